"""Find Parquet files whose footers crash C++ readers; as a main module, reads the footers of files from its input."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress

from contrada.errors import ContradaError
from contrada.pipeline.storage import path_of
from contrada.pipeline.stream.apart import Ran, limit_memory, run_apart
from contrada.pipeline.systems import file_systems

FILES_PER_PROCESS = 50  # files per process


def deadly_footers(uris: Sequence[str]) -> dict[str, str]:
    """Return the files whose footers crash the process that reads them, and how; other faults do not count."""
    if uris and (failure := _read([]).failure) is not None:
        raise ContradaError(f"cannot start a process to read footers of Parquet files: {failure}")
    found: dict[str, str] = {}
    rest = list(uris)
    while rest:
        group = rest[:FILES_PER_PROCESS]
        run = _read(group)
        done = len(run.output.splitlines())
        if done < len(group):
            alone = _read(group[done : done + 1])  # retried: the files before it may have used up the time
            if alone.failure is not None:
                found[group[done]] = f"the file is damaged: {alone.failure}"
            done += 1
        rest = rest[done:]
    return found


def _read(uris: Sequence[str]) -> Ran:
    return run_apart("contrada.pipeline.stream.footers", data=json.dumps(uris).encode())


def main() -> None:
    """Print a line when the footer of a file has been read, or reading it raised an error."""
    limit_memory()
    for uri in json.loads(sys.stdin.read()):
        with suppress(ContradaError):
            file_systems(path_of(uri))
        print("read", flush=True)


if __name__ == "__main__":
    main()
