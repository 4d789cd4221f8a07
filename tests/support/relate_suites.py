"""Test cases of relate in the sources of GEOS and JTS, from Debian's source packages, fetched once into build."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from filelock import FileLock

from fetched_programs import CACHE, run

PACKAGES = ("geos", "jts")
TARGETS = "$(REPO_URI) $(RELEASE) $(COMPONENT)"


class SuiteCase(NamedTuple):
    """Two geometries as WKT or hex WKB, and the matrix that the suite expects."""

    name: str
    a: str
    b: str
    matrix: str


def suite(package: str) -> Path:
    """Return the archive of upstream's sources; raise NoProgramError if it cannot be fetched."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / f"{package}-source.lock"):
        found = sorted(CACHE.glob(f"{package}_*.orig.tar.*"))
        if not found:
            with tempfile.TemporaryDirectory(dir=CACHE) as place:
                _fetch(package, Path(place))
                for path in Path(place).glob(f"{package}_*.orig.tar.*"):
                    path.rename(CACHE / path.name)
            found = sorted(CACHE.glob(f"{package}_*.orig.tar.*"))
        return found[0]


def _fetch(package: str, place: Path) -> None:
    """Download the sources with apt, by the package lists of this machine with their sources in place of binaries."""
    told = run(["apt-get", "indextargets", "--format", TARGETS, "Created-By: Packages"], place)
    lines = [line for line in sorted(set(told.splitlines())) if line.endswith(" main")]
    (place / "sources.list").write_text("".join(f"deb-src {line}\n" for line in lines))
    for folder in ("lists/partial", "cache/archives/partial"):
        (place / folder).mkdir(parents=True)
    options = {
        "Dir::Etc::sourcelist": place / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": place / "lists", "Dir::Cache": place / "cache",
    }  # fmt: skip
    apt = ["apt-get", *(part for name, value in options.items() for part in ("-o", f"{name}={value}"))]
    run([*apt, "update"], place)
    run([*apt, "source", "--download-only", "--tar-only", package], place)


def cases(archive: Path) -> Iterator[SuiteCase]:
    """Yield the cases of relate that expect a matrix."""
    with tarfile.open(archive) as files:
        for member in files:
            if not (member.name.endswith(".xml") and "relate" in member.name.lower()):
                continue
            handle = files.extractfile(member)
            if handle is None:
                continue
            try:
                root = ElementTree.parse(handle).getroot()
            except ElementTree.ParseError:
                continue
            for number, case in enumerate(root.iter("case")):
                a, b = (" ".join((case.findtext(side) or "").split()) for side in "ab")
                for op in case.iter("op"):
                    is_matrix = op.get("name", "").lower() == "relate" and (op.text or "").strip() == "true"
                    if is_matrix and a and b:
                        ways = {"a": a, "b": b}
                        first, second = (ways.get(op.get(name, "").lower(), "") for name in ("arg1", "arg2"))
                        name = f"{Path(member.name).name} {number}"
                        yield SuiteCase(name, first, second, op.get("arg3", "").upper())
