"""Commands of benchmarks: those that the docs name are there, and what they write to pages and files."""

import json
import re
import sys
from pathlib import Path

import pytest

from benchmarks.command import page_of, result_of, run_sections
from benchmarks.report import Row, machine, place, read_page

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"python -m\s+benchmarks\.([\w.]+\w)")
RESULTS = [*sorted(ROOT.glob("benchmarks/results/*.md")), ROOT / "docs" / "scale.md"]
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("*.md"), *ROOT.glob("benchmarks/**/*.md")])


def is_command(name: str) -> bool:
    """True if `python -m benchmarks.NAME` runs something."""
    path = ROOT / "benchmarks" / name.replace(".", "/")
    paths = (path.with_suffix(".py"), path / "__main__.py")
    return any(found.exists() and '__name__ == "__main__"' in found.read_text() for found in paths)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_benchmarks_exist(page):
    for name in COMMAND.findall(page.read_text()):
        assert is_command(name), name


def test_make_bench_runs_benchmarks():
    (names,) = re.findall(r"^BENCHMARKS := (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert all(is_command(name) for name in names.split())


@pytest.mark.parametrize("page", sorted(ROOT.glob("benchmarks/results/*.md")), ids=lambda page: page.name)
def test_results_name_their_command(page):
    (name,) = set(COMMAND.findall(page.read_text()))
    source = (ROOT / "benchmarks" / name.replace(".", "/")).with_suffix(".py")
    source = source if source.exists() else source.with_suffix("") / "__main__.py"
    assert any(written in source.read_text() for written in (f'run_sections("{page.stem}"', f'"{page.name}"'))


def measure_seconds(report):
    yield Row.alone("Seconds", "one", 1.0, "s")
    yield Row.alone("Seconds", "two", 2.0, "s")


def measure_bytes(report):
    yield Row.alone("Bytes", "all", 3.0, "MB")


def fail(report):
    yield Row.alone("Bytes", "before the failure", 4.0, "MB")
    raise ZeroDivisionError


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a benchmark whose page is in tmp_path."""
    page = page_of("sizes", tmp_path)
    page.parent.mkdir(parents=True)
    page.write_text("# Sizes\n\n<!-- sizes:begin -->\n<!-- sizes:end -->\n")

    def run_with(*arguments, measure_bytes=measure_bytes):
        monkeypatch.setattr(sys, "argv", ["sizes", *arguments])
        sections = {"seconds": measure_seconds, "bytes": measure_bytes}
        run_sections("sizes", "Measure sizes.", sections, root=tmp_path)
        return read_page(page, "sizes")

    return run_with


def rows_of(tmp_path, name):
    return [row["work"] for row in json.loads(result_of(name, tmp_path).read_text())["rows"]]


def test_page_keeps_sections_that_were_not_measured_without_saved_results(run, tmp_path):
    page = page_of("sizes", tmp_path)
    whole = run("--write")
    page.write_text(page.read_text().replace(f"commit {whole.commit}", "commit 5eed"))
    result_of("sizes", tmp_path).unlink()
    again = run("--only", "bytes", "--write")
    assert again.sections == {
        "Seconds": f"Measured at commit 5eed.\n\n{whole.sections['Seconds']}",
        "Bytes": whole.sections["Bytes"],
    }
    assert again.commit == whole.commit
    assert run("--only", "bytes", "--write") == again
    assert run("--write") == whole


def test_section_of_another_machine_says_so(run, tmp_path):
    page, here = page_of("sizes", tmp_path), place(machine())
    run("--write")
    page.write_text(page.read_text().replace(here, "an abacus").replace("Versions: ", "Versions: beads 7, "))
    found = run("--only", "bytes", "--write")
    assert found.machine == here
    assert "beads 7" in found.versions
    assert found.sections["Seconds"].startswith(f"Measured at commit {found.commit} on an abacus, seed 7.\n")
    assert "Measured" not in found.sections["Bytes"]


def test_results_keep_rows_that_were_not_measured(run, tmp_path):
    run("--write")
    run("--only", "bytes", "--write")
    assert rows_of(tmp_path, "sizes") == ["one", "two", "all"]
    run("--only", "bytes")
    assert rows_of(tmp_path, "sizes") == ["one", "two", "all"]
    assert rows_of(tmp_path, "sizes-part") == ["all"]


def test_what_was_measured_before_a_failure_is_saved(run, tmp_path):
    before = run("--write")
    with pytest.raises(ZeroDivisionError):
        run("--write", measure_bytes=fail)
    assert rows_of(tmp_path, "sizes-part") == ["one", "two", "before the failure"]
    assert rows_of(tmp_path, "sizes") == ["one", "two", "all"]
    assert read_page(page_of("sizes", tmp_path), "sizes") == before


def test_page_without_markers_is_refused_before_anything_is_measured(run, tmp_path):
    page_of("sizes", tmp_path).write_text("# Sizes\n")
    with pytest.raises(SystemExit, match="no markers <!-- sizes:begin -->"):
        run("--write", measure_bytes=fail)


@pytest.mark.parametrize("path", [path for path in RESULTS if path.stem != "compared"], ids=lambda path: path.stem)
def test_tables_of_every_page_can_be_kept(path):
    page = read_page(path, path.stem)
    assert page.sections
    assert all((page.machine, page.commit, page.seed))
