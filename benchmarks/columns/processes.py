"""Two processes that share nothing, each with half of the messages: what two cores of the machine reach."""

import multiprocessing
import time
from functools import partial
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from benchmarks.columns.work import messages, table_for
from contrada.collecting import collections_paused

AHEAD = 0.0005  # seconds until both begin, in which they are awake


def serve(pipe: Connection, template: str, seed: int, count: int, start: int, stop: int) -> None:
    """Match the messages `start` to `stop` of `count` at each moment that comes; answer with the seconds from then."""
    table, own = table_for(template, seed), messages(seed, count).slice(start, stop - start)
    match = partial(table.match_many, own, by="subscription", threads=1)
    found = len(match().rows)
    pipe.send(found)
    with collections_paused():
        while (begin := pipe.recv()) is not None:
            while time.perf_counter() < begin:
                pass
            match()
            pipe.send(time.perf_counter() - begin)


class TwoProcesses:
    """Two processes with a table each and half of the messages."""

    def __init__(self, template: str, seed: int, count: int) -> None:
        context: Any = multiprocessing.get_context("spawn")
        self.seconds: list[float] = []  # of every turn: from the common start until both have ended
        self._pipes, self._processes = [], []
        for start, stop in ((0, count // 2), (count // 2, count)):
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, template, seed, count, start, stop), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)
        self.found = sum(pipe.recv() for pipe in self._pipes)

    def match(self) -> int:
        """Let both match their halves, beginning together; return the number of matches."""
        begin = time.perf_counter() + AHEAD
        for pipe in self._pipes:
            pipe.send(begin)
        self.seconds.append(max(pipe.recv() for pipe in self._pipes))
        return self.found

    def __enter__(self) -> "TwoProcesses":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.send(None)
            process.join()
