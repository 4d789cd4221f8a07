"""Fair timing on a machine that drifts: calls are warmed up, contenders take turns in one run, medians are compared.

Every helper here leaves the first call out, which may compile a kernel or read memory for the first time. Only
`time_cold` does not: for a start or a job whose first time is the question.
"""

import gc
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from contrada.collecting import collections_paused

Name = TypeVar("Name")
STARTED = time.perf_counter()
UNTIMED = 10  # calls of `time_each` that warm up


class Timed(NamedTuple):
    """The median seconds of one contender and its last answer."""

    seconds: float
    answer: Any


def take_turns(contenders: Mapping[Name, Callable[[], Any]], repeats: int, per: int = 1) -> dict[Name, Timed]:
    """Call each contender once to warm up, then `repeats` times in turn, each time from another one on.

    A call that answers `per` messages counts as so many: seconds are those of one.
    """
    answers = {name: call() for name, call in contenders.items()}
    seconds: dict[Name, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    with collections_paused():
        for repeat in range(repeats):
            shift = repeat % len(names)
            for name in names[shift:] + names[:shift]:
                start = time.perf_counter()
                answers[name] = contenders[name]()
                seconds[name].append(time.perf_counter() - start)
            gc.collect()
    return {name: Timed(statistics.median(seconds[name]) / per, answers[name]) for name in names}


def race(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int, per: int = 1) -> tuple[Timed, Timed]:
    """Let two contenders take turns."""
    found = take_turns({"ours": ours, "theirs": theirs}, repeats, per)
    return found["ours"], found["theirs"]


def measured(
    call: Callable[[], Any],
    repeats: int = 1,
    per: int = 1,
    *,
    warm_up: Callable[[], Any] | None = None,
    clock: Callable[[], float] = time.perf_counter,
    choose: Callable[[Sequence[float]], float] = statistics.median,
) -> Timed:
    """Time `repeats` calls after a warm-up: the call itself, or `warm_up` where the call takes long or works once."""
    (warm_up or call)()
    seconds = []
    with collections_paused():
        for _ in range(repeats):
            start = clock()
            answer = call()
            seconds.append(clock() - start)
    return Timed(choose(seconds) / per, answer)


def time_each(call: Callable[..., Any], given: Iterable[tuple[Any, ...]]) -> tuple[NDArray[np.float64], list[Any]]:
    """Time each call alone; the first UNTIMED ones warm up. Return the seconds of the others and all answers."""
    arguments = iter(given)
    answers = [call(*one) for one in islice(arguments, UNTIMED)]
    seconds = []
    for one in arguments:
        start = time.perf_counter()
        answers.append(call(*one))
        seconds.append(time.perf_counter() - start)
    return np.array(seconds), answers


def time_cold(call: Callable[[], Any]) -> float:
    """Time a single call without a warm-up: for what is asked about its first time."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@contextmanager
def repeated(action: Callable[[], Any], pause: float = 0.0) -> Iterator[None]:
    """Call an action again and again in another thread while the block runs, each time after a pause in seconds."""
    stop = threading.Event()

    def repeat() -> None:
        while not (stop.wait(pause) if pause else stop.is_set()):
            action()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def say(text: str) -> None:
    """Print one line of progress on standard error, with the seconds since the start."""
    print(f"[{time.perf_counter() - STARTED:6.1f} s] {text}", file=sys.stderr, flush=True)
