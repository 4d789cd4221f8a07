"""`pip install .` without extras in an empty environment: the example and the commands of the README work there."""

import os
import shutil
import subprocess

import pytest

from console import read_lines, write_lines
from doc_pages import ROOT, blocks
from environments import Environment

OF_EXTRAS = ("pyspark", "pandas", "pyogrio", "matplotlib", "starlette", "duckdb", "geopandas", "hypothesis", "pytest")
OF_TESTS = ("generators", "oracles", "verification", "hostile")
SUBSCRIPTION = {"subscriber": "harbour-master", "filter": "severity >= 3 AND overlaps(area, BBOX(9, 1, 14, 5))"}
STORM = {"severity": 4, "area": {"type": "Polygon", "coordinates": [[[4, 3], [10, 3], [12, 6], [4, 9], [4, 3]]]}}
READ_PAGE = """
import doctest, sys
page, options = sys.argv[1], doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
failed, tried = doctest.testfile(page, module_relative=False, optionflags=options)
assert tried >= 10 and not failed, (tried, failed)
"""
ABSENT = """
import importlib.util, sys
print([name for name in sys.argv[1:] if importlib.util.find_spec(name)])
"""


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("clean"))
    environment.run("python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", ROOT)
    return environment


@pytest.mark.slow
def test_no_extra_and_no_test_support_is_installed(clean):
    assert clean.run("python", "-c", ABSENT, *OF_EXTRAS, *OF_TESTS).stdout == "[]\n"
    clean.run("python", "-m", "pip", "check")


@pytest.mark.slow
def test_the_example_of_the_readme(clean):
    """But that of the client, which needs an extra and a server; tests/client runs it."""
    text, page = (ROOT / "README.md").read_text(), clean.folder / "readme.txt"
    page.write_text("\n".join(one for one in blocks(text, "python") + blocks(text, "pycon") if "client" not in one))
    clean.run("python", "-c", READ_PAGE, page)


@pytest.mark.slow
def test_commands_work_and_that_for_spark_says_how_to_install_it(clean):
    asked = write_lines(clean.folder / "subscriptions.ndjson", [SUBSCRIPTION])
    match = ["match", write_lines(clean.folder / "alerts.ndjson", [STORM]), asked]
    found = read_lines(clean.run("contrada", *match).stdout)
    assert [row["subscriber"] for row in found] == ["harbour-master"]
    assert "contrada" in clean.run("contrada", "doctor").stdout.lower()
    assert "price < 100" in clean.run("contrada", "check", "NOT price >= 100").stdout
    refused = clean.run("contrada", *match, "--spark", "--output", "out", code=2).stderr
    assert "pip install" in refused
    assert "[spark]" in refused
    assert "Traceback" not in refused


@pytest.mark.slow
def test_the_commands_that_install(tmp_path):
    """Those of the page for newcomers, in a copy of the sources."""
    install, *_ = blocks((ROOT / "docs" / "start.md").read_text(), "sh")
    hidden = shutil.ignore_patterns(".git", ".venv", "build", "dist", ".*_cache", ".hypothesis", "__pycache__")
    copy = shutil.copytree(ROOT, tmp_path / "clone", ignore=hidden)
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    run = subprocess.run(["bash", "-e", "-c", install], cwd=copy, env=variables, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Contrada" in run.stdout
