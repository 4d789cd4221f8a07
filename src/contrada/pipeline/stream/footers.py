"""Footers of Parquet files that end the process in which C++ code reads them; `python -m` reads those of its input."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress

from contrada.errors import ContradaError
from contrada.pipeline.ingest.quarantine import path_of
from contrada.pipeline.stream.apart import Ran, limit_memory, run_apart
from contrada.pipeline.systems import file_systems

TOGETHER = 50  # files that one process reads


def deadly_footers(uris: Sequence[str]) -> dict[str, str]:
    """The files whose footers end the process that reads them, with how it ends; other faults are none here."""
    if uris and (failure := _read([]).failure) is not None:
        raise ContradaError(f"no process can be started that reads footers of Parquet files: {failure}")
    found: dict[str, str] = {}
    rest = list(uris)
    while rest:
        group = rest[:TOGETHER]
        run = _read(group)
        done = len(run.output.splitlines())
        if done < len(group):
            alone = _read(group[done : done + 1])  # once more: the files before it may have taken the time
            if alone.failure is not None:
                found[group[done]] = f"the file is damaged: {alone.failure}"
            done += 1
        rest = rest[done:]
    return found


def _read(uris: Sequence[str]) -> Ran:
    return run_apart("contrada.pipeline.stream.footers", data=json.dumps(uris).encode())


def main() -> None:
    """Write a line when the footer of a file is read, or is an error that is reported."""
    limit_memory()
    for uri in json.loads(sys.stdin.read()):
        with suppress(ContradaError):
            file_systems(path_of(uri))
        print("read", flush=True)


if __name__ == "__main__":
    main()
