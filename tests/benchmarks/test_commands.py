"""Commands that the docs name are there, and every table of results names the one that writes it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"python -m\s+benchmarks\.([\w.]+\w)")
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
