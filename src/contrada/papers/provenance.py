"""Where a row was measured: commit, versions and machine."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from contrada import __version__

LIBRARIES = ("numpy", "numba", "llvmlite")


@cache
def provenance() -> dict[str, Any]:
    """Return the commit, versions and machine of this process."""
    return {
        "commit": commit(),
        "version": __version__,
        "python": platform.python_version(),
        **{library: version(library) for library in LIBRARIES},
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


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
