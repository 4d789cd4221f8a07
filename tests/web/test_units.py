"""The unit tests of the live map (Vitest), and the script that builds it."""

import importlib.util
import subprocess
import sys

import pytest

from doc_pages import ROOT

BUILD = ROOT / "web" / "build.py"


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("web_build", BUILD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_unit_tests_pass():
    done = subprocess.run([sys.executable, BUILD, "test"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_sources_are_all_files_but_what_is_made(build, tmp_path):
    for name in ("a.ts", "src/b.ts", "node_modules/c.js", "build/d.js", "basemap/e.json", "build.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    found = build.source_files(tmp_path)
    assert sorted(file.name for file in found) == ["a.ts", "b.ts"]
    before = build.hash_files(found, tmp_path)
    (tmp_path / "node_modules" / "c.js").write_text("other")
    assert build.hash_files(build.source_files(tmp_path), tmp_path) == before
    (tmp_path / "src" / "b.ts").rename(tmp_path / "src" / "c.ts")
    assert build.hash_files(build.source_files(tmp_path), tmp_path) != before


def test_a_step_is_repeated_only_if_its_inputs_changed_or_it_failed(build, tmp_path):
    runs = []
    stamp = tmp_path / "stamp"

    def fail():
        raise build.BuildError("no")

    assert build.run_step("x", stamp, "1", lambda: runs.append(1))
    assert not build.run_step("x", stamp, "1", lambda: runs.append(2))
    assert build.run_step("x", stamp, "2", lambda: runs.append(3))
    with pytest.raises(build.BuildError):
        build.run_step("x", stamp, "3", fail)
    assert build.run_step("x", stamp, "2", lambda: runs.append(4))
    assert runs == [1, 3, 4]


def test_an_unreachable_registry_is_named(build, monkeypatch, tmp_path):
    def refuse(what, command):
        raise build.BuildError("npm error code ENOTFOUND")

    monkeypatch.setattr(build, "run", refuse)
    monkeypatch.setattr(build, "run_step", lambda what, stamp, digest, work: work())
    with pytest.raises(build.BuildError, match="npm registry cannot be reached"):
        build.install_packages()


def test_other_commands_are_refused(build):
    assert build.main(["nothing"]) == 2
