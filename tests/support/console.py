"""`contrada` called in this process, Python in others, and the lines of JSON that commands read and write."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from contrada.cli.main import app


def contrada(*arguments: object, input: str | bytes | None = None, code: int | None = None) -> Any:
    """Run a command; arguments may be paths and numbers. It must end with `code`, where one is given."""
    result = CliRunner().invoke(app, list(map(str, arguments)), input=input)
    assert code in (None, result.exit_code), f"{arguments}: exit code {result.exit_code}\n{result.output}"
    return result


def python(
    *arguments: object, code: int = 0, env: dict[str, str] | None = None, timeout: float = 900
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, which must end with `code`."""
    command = [sys.executable, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, env=env, timeout=timeout)
    assert run.returncode == code, f"{command}: exit code {run.returncode}\n{run.stdout}{run.stderr}"
    return run


def wait_for(holds: Callable[[], Any], seconds: float, told: Callable[[], str] = str) -> Any:
    """Wait until something holds and return it; after so many seconds fail with what `told` tells."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, f"not within {seconds} seconds: {told()}"
        time.sleep(0.02)
    return found


def without_compiling(text: str) -> str:
    """Return what a command said but for the note on kernels, which a machine gives once."""
    return "".join(line for line in text.splitlines(True) if not line.startswith("contrada: compiling"))


def ndjson(rows: Iterable[object]) -> str:
    """Return rows as lines of JSON."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_lines(path: Path, rows: Iterable[object]) -> Path:
    """Write rows as lines of JSON to a file that is there whole or not at all, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(ndjson(rows))
    return hidden.rename(path)


def read_lines(text: str | Path) -> list[Any]:
    """Return the values of lines of JSON, given as text or as a file."""
    return [json.loads(line) for line in (text.read_text() if isinstance(text, Path) else text).splitlines()]


def feature(geometry: Any, **properties: Any) -> dict[str, Any]:
    """Return a GeoJSON feature; its geometry is a mapping, None or a Shapely geometry."""
    mapping = getattr(geometry, "__geo_interface__", geometry)
    return {"type": "Feature", "geometry": mapping, "properties": properties}


def collection(features: Iterable[dict[str, Any]]) -> str:
    """Return the text of a GeoJSON feature collection."""
    return json.dumps({"type": "FeatureCollection", "features": list(features)})
