"""The command that installs an extra works for the way in which contrada is installed."""

import json
import re
import shlex
import sys
from importlib import metadata
from pathlib import Path
from unittest import mock

import pytest

from contrada import installation
from contrada.errors import ContradaError, FormatError
from contrada.formats.tables.row_files import gis_batches
from contrada.pipeline.ingestion.survey import require_pyogrio


class Distribution:
    requires = ("pyspark<5,>=4.1; extra == 'spark'", "numpy>=2")

    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return self.origin


@pytest.fixture
def no_clone(monkeypatch, tmp_path):
    """Pretends that the module lies in a folder that is no clone."""
    monkeypatch.setattr(installation, "__file__", str(tmp_path / "lib" / "contrada" / "installation.py"))


@pytest.fixture
def installed(monkeypatch, no_clone):
    """Pretends that the package was installed by pip, from an origin as PEP 610 writes it."""

    def install(origin):
        text = origin if origin is None or isinstance(origin, str) else json.dumps(origin)
        monkeypatch.setattr(metadata, "distribution", lambda name: Distribution(text))

    return install


def arguments(extra="spark"):
    return shlex.split(installation.install_command(extra))


def test_a_clone(no_clone, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "contrada"\n')
    assert arguments() == [sys.executable, "-m", "pip", "install", "-e", f"{tmp_path}[spark]"]
    assert arguments("") == [sys.executable, "-m", "pip", "install", "-e", str(tmp_path)]


def test_this_source_tree_is_a_clone():
    folder = Path(installation.__file__).parents[2]
    is_clone = (folder / "src" / "contrada").is_dir()
    assert (arguments("")[-2:] == ["-e", str(folder)]) == is_clone


@pytest.mark.parametrize("name", ["contrada-0.1.0-py3-none-any.whl", "a folder"])
def test_a_wheel_or_a_folder(name, installed, tmp_path):
    path = tmp_path / name
    path.touch()
    installed({"url": path.as_uri(), "archive_info": {}})
    assert arguments()[-1] == f"{path}[spark]"


def test_a_wheel_that_is_gone_names_the_packages_and_addresses_are_kept(installed, tmp_path):
    installed({"url": (tmp_path / "gone.whl").as_uri(), "archive_info": {}})
    assert arguments()[1:] == ["-m", "pip", "install", "pyspark<5,>=4.1"]
    installed({"url": "https://example.org/contrada.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}})
    assert arguments()[-1] == "contrada[spark] @ git+https://example.org/contrada.git@abc"
    installed({"url": "https://example.org/contrada-0.1.0.whl", "archive_info": {}})
    assert arguments()[-1] == "contrada[spark] @ https://example.org/contrada-0.1.0.whl"


@pytest.mark.parametrize("origin", [None, "{", "[]", "{}", '{"url": 5}'])
def test_an_origin_that_says_nothing(origin, installed):
    installed(origin)
    command = installation.install_command("spark")
    assert "-m pip install " in command
    assert "'contrada[spark]'" not in command


def test_not_installed_at_all(monkeypatch, no_clone):
    none = mock.Mock(side_effect=metadata.PackageNotFoundError("contrada"))
    monkeypatch.setattr(metadata, "distribution", none)
    monkeypatch.setattr(metadata, "requires", none)
    assert installation.install_command("spark").endswith("-e '.[spark]'  (in a clone of the repository)")


def test_gis_files_without_pyogrio_advise_what_works(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyogrio", None)
    (tmp_path / "a.gpkg").touch()
    advice = re.escape(installation.install_command("spark"))
    with (tmp_path / "a.gpkg").open("rb") as stream, pytest.raises(FormatError, match=advice):
        next(gis_batches(stream, 10))
    with pytest.raises(ContradaError, match=advice):
        require_pyogrio()


def test_no_other_module_advises_pip():
    source = Path(installation.__file__).parent
    advising = {path.name for path in source.rglob("*.py") if "pip install" in path.read_text(encoding="utf-8")}
    assert advising == {"installation.py", "doctor.py"}  # the latter for requirements of the core, by their names
