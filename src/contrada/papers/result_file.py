"""Read and write result files: rows, with the settings, versions and machine that produced them."""

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
    """Write a result file, and return its contents."""
    result = {
        "experiment": experiment,
        "settings": settings,
        "commit": commit(),
        "versions": {"python": platform.python_version(), **{library: version(library) for library in LIBRARIES}},
        "machine": {"cpu": cpu(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
        "rows": rows,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    return result


def load(path: Path, experiment: str) -> dict[str, Any]:
    """Read a result file; raise FormatError if it holds no results of `experiment`."""
    try:
        result: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not JSON: {error}") from None
    if not isinstance(result, dict) or result.get("experiment") != experiment:
        raise FormatError(f"{path} has no results of {experiment}")
    return dict(result)


def commit() -> str:
    """Return the commit of the running source tree, or "unknown"."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(git, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return found.stdout.strip() if found.returncode == 0 else "unknown"


def cpu() -> str:
    """Return the model of the processor, if the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
