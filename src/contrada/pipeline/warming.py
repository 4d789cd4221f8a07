"""Compile kernels in processes of their own, while this process does something else, such as starting Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from queue import SimpleQueue

from contrada import jit, kernels
from contrada.errors import ContradaError
from contrada.geometry.pool import cores

Process = subprocess.Popen[str]


def not_cached(names: Iterable[str]) -> list[str]:
    """Return the kernels that the cache does not have; imports no Numba."""
    # Numba names a file by module, function and hash of the sources: contrada.kernels.read.wkb.scan_wkb-<hash>.….nbc
    cached = {path.name.partition("-")[0].rpartition(".")[2] for path in jit.cache_directory().glob("*.nbc")}
    return [name for name in names if name not in cached]


class Warming:
    """Compiles kernels into the cache in the given order, or loads them from it; used as a context manager.

    The processes start with the block and end with it, and with this process. They are in sessions of their own, so
    Ctrl-C does not reach them, and print nothing. A kernel that fails there is compiled by the first process that
    uses it, which then has the error.
    """

    def __init__(self, names: Iterable[str], processes: int | None = None) -> None:
        self._names = list(names)
        self._count = min(processes or cores(), len(self._names))
        self._idle: SimpleQueue[Process] = SimpleQueue()
        self._started: list[Process] = []
        self._results: dict[str, Future[str]] = {}

    def __enter__(self) -> Warming:
        if not self._count:
            return self
        command = [sys.executable, "-m", "contrada.pipeline.warming"]
        for _ in range(self._count):
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                start_new_session=True,
            )  # fmt: skip
            self._started.append(process)
            self._idle.put(process)
        self._pool = ThreadPoolExecutor(self._count)
        self._results = {name: self._pool.submit(self._compile, name) for name in self._names}
        return self

    def __exit__(self, *raised: object) -> None:
        for process in self._started:
            process.kill()
        if self._started:
            self._pool.shutdown(cancel_futures=True)
        for process in self._started:
            with suppress(OSError):
                process.communicate()

    def wait(self, names: Iterable[str] | None = None) -> None:
        """Wait until the processes are done with some kernels, by default with all."""
        chosen = self._names if names is None else names
        wait([self._results[name] for name in chosen if name in self._results])

    def ready(self) -> Iterator[str]:
        """Yield the names of kernels as they are ready; raise ContradaError for one that failed."""
        for done in as_completed(self._results.values()):
            yield done.result()

    def _compile(self, name: str) -> str:
        process = self._idle.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            if process.stdout.readline().strip() != name:
                raise ContradaError(f"kernel {name} was not compiled: the process that compiled it ended")
        except OSError as error:  # an ended process reads nothing
            raise ContradaError(f"kernel {name} was not compiled: {error}") from error
        finally:
            self._idle.put(process)
        return name


def main() -> None:
    """Compile the kernels that standard input names, a line each, and answer with their names."""
    for line in sys.stdin:
        kernels.compiled_kernel(line.strip())
        print(line.strip(), flush=True)


if __name__ == "__main__":
    main()
