"""The wheel of `make wheel` carries web pages and compiled kernels; where kernels do not fit, they are compiled."""

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from console import read_lines, write_lines
from doc_pages import ROOT
from environments import Environment

SUBSCRIPTION = {"subscriber": "harbour-master", "filter": "severity >= 3 AND overlaps(area, BBOX(9, 1, 14, 5))"}
STORM = {"severity": 4, "area": {"type": "Polygon", "coordinates": [[[4, 3], [10, 3], [12, 6], [4, 9], [4, 3]]]}}
RELATE = """
import contrada as ct
box = ct.Region.box(0, 0, 4, 4)
column = ct.RegionArray.from_wkb([box.to_wkb()] * 1000)
print(ct.relate(box, ct.Region.box(2, 2, 6, 6)), set(ct.relate(box, column).tolist()))
"""
RELATE_BOXES = """
import numpy as np
from contrada.geometry import relate_boxes
print(relate_boxes(np.array([[0.0, 0, 4, 4]]), np.array([[1.0, 1, 2, 2]])).tolist())
"""
FOLDER = "import contrada.jit; print(contrada.jit.CARRIED)"
FOLDERS = "import contrada.web; print(contrada.web.page_folder()); print(contrada.web.report_folder())"
COMPILING = "contrada: compiling kernels"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment with the wheel, without extras."""
    folder = tmp_path_factory.mktemp("wheel")
    tools = [f"BIN={Path(sys.executable).parent}", f"DIST={folder}"]
    subprocess.run(["make", "-C", ROOT, "--assume-old=.venv/.ready", *tools, "wheel"], check=True)
    (wheel,) = folder.glob("*.whl")
    assert "none-any" not in wheel.name
    environment = Environment(folder)
    environment.run("python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    return environment


@pytest.fixture
def carried(installed, tmp_path):
    """The folder of the carried kernels, which a test may change."""
    folder = Path(installed.run("python", "-c", FOLDER).stdout.strip())
    shutil.copytree(folder, tmp_path / "kept")
    yield folder
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "kept", folder)


@pytest.fixture
def use(installed, tmp_path):
    """Runs a program of the environment with an empty cache, which `tmp_path / "cache"` names."""
    return partial(installed.run, CONTRADA_CACHE_DIR=tmp_path / "cache")


def contents(folder):
    """The bytes of all files below a folder, by their paths there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_first_uses_compile_nothing(use, tmp_path):
    related = use("python", "-W", "error", "-c", RELATE)
    assert (related.stdout, related.stderr) == ("overlaps {3}\n", "")
    asked = write_lines(tmp_path / "subscriptions.ndjson", [SUBSCRIPTION])
    matched = use("contrada", "match", write_lines(tmp_path / "alerts.ndjson", [STORM]), asked)
    assert [row["subscriber"] for row in read_lines(matched.stdout)] == ["harbour-master"]
    assert COMPILING not in matched.stderr
    assert not (tmp_path / "cache").exists()
    assert "carried by the package" in use("contrada", "doctor").stdout


@pytest.mark.slow
def test_wheel_carries_the_map_and_the_script_of_the_report(installed):
    """All files as `make wheel` built them in the source tree."""
    folders = [Path(line) for line in installed.run("python", "-c", FOLDERS).stdout.splitlines()]
    assert folders[0].is_relative_to(installed.folder)
    for folder, name in zip(folders, ("page", "report"), strict=True):
        carried, built = (contents(place) for place in (folder, ROOT / "src" / "contrada" / "web" / "built" / name))
        assert carried == built
        assert {Path(path).suffix for path in carried} >= {".js", ".css"}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".nbc", ".nbi"])
def test_damaged_kernels_are_compiled_again(use, carried, tmp_path, suffix):
    for file in carried.glob(f"*box_relations*{suffix}"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 4
        file.write_bytes(data)
    ran = use("python", "-W", "error", "-c", RELATE_BOXES)
    assert ran.stdout == "[5]\n"
    assert ran.stderr.startswith(COMPILING)
    assert use("python", "-W", "error", "-c", RELATE_BOXES).stderr == ""
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 1


@pytest.mark.slow
def test_kernels_for_another_cpu_are_compiled_here(use, tmp_path):
    ran = use("python", "-W", "error", "-c", RELATE_BOXES, NUMBA_CPU_NAME="generic")
    assert ran.stdout == "[5]\n"
    assert ran.stderr.startswith(COMPILING)
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 1


@pytest.mark.slow
def test_kernels_of_other_sources_are_not_used(use, carried):
    for file in carried.iterdir():
        name, key, rest = file.name.rpartition("-")
        file.rename(file.with_name(f"{name}{key}{'0' * 16}{rest[16:]}"))
    ran = use("python", "-W", "error", "-c", RELATE_BOXES)
    assert ran.stdout == "[5]\n"
    assert ran.stderr.startswith(COMPILING)
