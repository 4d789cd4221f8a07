"""`contrada doctor` on machines that lack this or that."""

import json
import os
import sys
from functools import partial
from importlib import metadata
from pathlib import Path
from unittest import mock

import pytest
from packaging.requirements import Requirement

import console
import contrada
from contrada import kernels
from contrada.cli import doctor, java

needs_installation = pytest.mark.skipif(
    doctor.installed_version("contrada") is None, reason="contrada runs from a folder and is not installed"
)


def put_java(folder: Path, answer: str, status: int = 0) -> Path:
    """A program called java that prints the answer where Java prints its version."""
    program = folder / "java"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{answer}\nEND\nexit {status}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def only_java(tmp_path, monkeypatch):
    """A folder that is the whole PATH but for the shell's own commands; no JAVA_HOME."""
    shell, folder = tmp_path / "shell", tmp_path / "java"
    for path in (shell, folder):
        path.mkdir()
    (shell / "cat").symlink_to("/bin/cat")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{shell}")
    return folder


run_doctor = partial(console.contrada, "doctor")


def examined(**options) -> dict:
    """The report of the command as JSON."""
    return json.loads(run_doctor("--json", **options).output)


def feature(report: dict, name: str) -> dict:
    return next(feature for feature in report["features"] if feature["name"] == name)


@pytest.mark.parametrize(
    ("answer", "major", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', 17, "17.0.15"),
        ('java version "1.8.0_392"', 8, "1.8.0_392"),
        ('openjdk version "21" 2023-09-19 LTS', 21, "21"),
        ('openjdk version "25-ea" 2025-09-16', 25, "25-ea"),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2" 2019-01-15', 11, "11.0.2"),
        ("no such thing", None, None),
    ],
)
def test_version_is_read_from_what_java_prints(answer, major, version):
    assert java.parse_version(answer) == (major, version)


@needs_installation
def test_a_complete_machine_is_ready(only_java):
    put_java(only_java, 'openjdk version "21.0.1" 2023-10-17')
    report = examined(code=0)
    assert report["contrada"] == contrada.__version__
    assert report["python"] == ".".join(map(str, sys.version_info[:3]))
    assert report["cores"] >= 1
    assert report["memory"] is None or report["memory"] > 0
    assert (report["java"]["ready"], report["java"]["version"]) == (True, "21.0.1")
    assert report["packages"]["numpy"] == metadata.version("numpy")
    assert feature(report, "regions and relations")["ready"]


@needs_installation
def test_missing_java_stops_spark_and_nothing_else(only_java):
    report = examined(code=0)
    assert not report["java"]["ready"]
    spark = feature(report, "Spark pipeline")
    assert not spark["ready"]
    assert "Java 17 or newer" in spark["missing"][-1]
    assert spark["install"][-1] == java.install_command()
    assert feature(report, "regions and relations")["ready"]


def test_old_java_is_named_with_its_version(only_java):
    program = put_java(only_java, 'java version "1.8.0_392"')
    found = examined()["java"]
    assert found["major"] == 8
    assert f"{program}, which is version 1.8.0_392" in found["complaint"]


def test_java_that_does_not_start_counts_as_missing(only_java):
    put_java(only_java, "The operation couldn't be completed. Unable to locate a Java Runtime.", status=1)
    assert "which does not start" in java.find_java().complaint


def test_java_home_goes_before_the_path(only_java, tmp_path, monkeypatch):
    put_java(only_java, 'openjdk version "21.0.1" 2023-10-17')
    home = tmp_path / "home" / "bin"
    home.mkdir(parents=True)
    put_java(home, 'openjdk version "11.0.2" 2019-01-15')
    monkeypatch.setenv("JAVA_HOME", str(home.parent))
    found = java.find_java()
    assert found.major == 11
    assert "JAVA_HOME names" in found.complaint


@pytest.mark.parametrize(
    ("system", "release", "command"),
    [
        ("darwin", {}, "brew install --cask temurin@21"),
        ("linux", {"ID": "ubuntu", "ID_LIKE": "debian"}, "apt-get install -y openjdk-21-jre-headless"),
        ("linux", {"ID": "mint", "ID_LIKE": "ubuntu debian"}, "apt-get install -y openjdk-21-jre-headless"),
        ("linux", {"ID": "debian"}, "apt-get install -y default-jre-headless"),
        ("linux", {"ID": "fedora"}, "dnf install -y java-21-openjdk-headless"),
        ("linux", {"ID": "rocky", "ID_LIKE": "rhel fedora"}, "dnf install -y java-21-openjdk-headless"),
        ("linux", {"ID": "plan9"}, "https://adoptium.net"),
    ],
)
def test_install_command_fits_the_platform(system, release, command, monkeypatch):
    monkeypatch.setattr(java.sys, "platform", system)
    monkeypatch.setattr(java.platform, "freedesktop_os_release", lambda: release)
    assert java.install_command().endswith(command)


@pytest.mark.parametrize(("answer", "code"), [('openjdk version "11.0.2"', 1), ('openjdk version "17.0.15"', 0)])
def test_the_makefile_check_says_one_sentence_if_it_fails(only_java, answer, code):
    put_java(only_java, answer)
    run = console.python("-I", java.__file__, code=code)
    assert (run.stdout, run.stderr.count("\n")) == ("", code)
    assert (java.install_command() in run.stderr) == bool(code)


def test_a_missing_core_package_fails_the_command(monkeypatch):
    monkeypatch.setattr(doctor, "requirements", lambda extra: [Requirement("no-such-package>=2")])
    core = feature(examined(code=1), "regions and relations")
    assert core["missing"] == ["no-such-package is not installed"]
    assert core["install"][0].endswith("-m pip install 'no-such-package>=2'")


def test_a_package_outside_its_bounds_or_that_does_not_import_is_not_ready(monkeypatch):
    fault = doctor.package_fault(Requirement("numpy<1"), import_it=False)
    assert fault == f"numpy {metadata.version('numpy')} is installed, <1 is needed"
    monkeypatch.setattr(doctor, "import_module", mock.Mock(side_effect=ImportError("needs NumPy 2.4 or less")))
    fault = doctor.package_fault(Requirement("numba"), import_it=True)
    assert fault.endswith("does not import (needs NumPy 2.4 or less)")


def test_running_from_a_folder_says_how_to_install(monkeypatch):
    monkeypatch.setattr(doctor, "requirements", lambda extra: [])
    assert "pip install -e " in run_doctor(code=1).output


def test_a_pipe_gets_plain_lines(only_java):
    lines = run_doctor().output.splitlines()
    assert lines[0].startswith("Contrada")
    assert any(line.startswith("  Kernels ") and "compiled" in line for line in lines)
    assert not any("│" in line or "\x1b" in line for line in lines)


def test_a_terminal_gets_tables(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    doctor.show(doctor.examine(), as_json=False)
    assert "│" in capsys.readouterr().out


def test_version():
    assert console.contrada("--version").output == f"contrada {contrada.__version__}\n"


def test_the_command_line_starts_without_the_heavy_libraries():
    code = "import sys, contrada.cli.main; print(*sys.modules)"
    assert {"numba", "pyspark", "rich.table"} & set(console.python("-c", code).stdout.split()) == set()


@pytest.mark.slow
def test_warming_compiles_every_kernel():
    result = run_doctor("--warm", "--json")
    assert result.exit_code == 0
    cache = json.loads(result.stdout)["cache"]
    assert cache["kernels"] >= len(kernels.NAMES)
