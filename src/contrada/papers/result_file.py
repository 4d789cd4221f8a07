"""Files of results: rows, with the seed, the versions and the machine that they hold for."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from contrada.errors import FormatError

LIBRARIES = ("numpy", "numba", "llvmlite")


def save(path: Path, experiment: str, settings: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Write a file of results, and return what is in it."""
    result = {
        "experiment": experiment,
        "settings": settings,
        "commit": _commit(),
        "versions": {"python": platform.python_version(), **{library: version(library) for library in LIBRARIES}},
        "machine": {"cpu": _cpu(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
        "rows": rows,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    return result


def load(path: Path, experiment: str) -> dict[str, Any]:
    """Read a file of results; raises FormatError if it is none of this experiment."""
    try:
        result: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not JSON: {error}") from None
    if not isinstance(result, dict) or result.get("experiment") != experiment:
        raise FormatError(f"{path} has no results of {experiment}")
    return dict(result)


def _commit() -> str:
    """The commit of the source tree that runs, if it is one."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(git, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return found.stdout.strip() if found.returncode == 0 else "unknown"


def _cpu() -> str:
    """The model of the processor, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
