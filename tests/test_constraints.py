"""constraints.txt pins, plainly, everything that pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
PINNED = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in LINES)}
REQUIRED = PROJECT["dependencies"] + [r for extra in PROJECT["optional-dependencies"].values() for r in extra]


def test_lines_are_names_and_versions_only():
    for line in LINES:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line), line


@pytest.mark.parametrize("line", sorted(set(REQUIRED)))
def test_requirements_admit_the_pinned_version(line):
    requirement = Requirement(line)
    assert requirement.specifier.contains(PINNED[canonicalize_name(requirement.name)])
