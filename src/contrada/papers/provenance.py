"""Where a row was measured: commit, versions and machine; and from which file of regions."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from contrada import __version__

LIBRARIES = ("numpy", "numba", "llvmlite", "shapely", "pyspark")
CHANGED = "-changed"  # after a commit: sources differ from it
PACKAGE = Path(__file__).parent.parent
DIGEST_CHARACTERS = 16


@cache
def provenance() -> dict[str, Any]:
    """Return the commit, versions and machine of this process; in a Spark job those of the executor."""
    import shapely

    return {
        "commit": commit(),
        "version": __version__,
        "python": platform.python_version(),
        **{library: version_of(library) for library in LIBRARIES},
        "geos": shapely.geos_version_string,
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def version_of(library: str) -> str | None:
    """Return the version of an installed library, or None."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def is_of_this_source(row: dict[str, Any]) -> bool:
    """Return True for a row that was measured by unchanged sources of the running commit and version."""
    here = provenance()
    is_same = all(row.get(name) == here[name] for name in ("commit", "version"))
    return is_same and not here["commit"].endswith(CHANGED)


def commit(package: Path = PACKAGE) -> str:
    """Return the commit of a source tree, with CHANGED after it if sources differ; "unknown" outside of git."""
    # An installed package may lie in a repository that does not track it.
    if git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return "unknown"
    found = git(package, "rev-parse", "--short=12", "HEAD") or "unknown"
    return found + CHANGED if git(package, "status", "--porcelain", "--", ".") else found


def git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints in a folder; None if it fails or is not installed."""
    try:
        found = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)
    except OSError:
        return None
    return found.stdout.strip() if found.returncode == 0 else None


def digest_of(path: Path) -> str:
    """Return a digest of a file's contents; it is computed again when the file is replaced."""
    about = path.stat()
    return _digest(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=64)
def _digest(path: Path, _changed: int, _size: int) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()[:DIGEST_CHARACTERS]


def cpu() -> str:
    """Return the model of the processor, if the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
