"""Fair timing on a machine that drifts: contenders take turns within one run, and medians are compared."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

Name = TypeVar("Name")
STARTED = time.perf_counter()


class Timed(NamedTuple):
    """The median seconds of one contender and its last answer."""

    seconds: float
    answer: Any


def take_turns(contenders: Mapping[Name, Callable[[], Any]], repeats: int) -> dict[Name, Timed]:
    """Call each contender once to warm up, then `repeats` times in turn, each time from another one on."""
    answers = {name: call() for name, call in contenders.items()}
    seconds: dict[Name, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for repeat in range(repeats):
            shift = repeat % len(names)
            for name in names[shift:] + names[:shift]:
                start = time.perf_counter()
                answers[name] = contenders[name]()
                seconds[name].append(time.perf_counter() - start)
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return {name: Timed(statistics.median(seconds[name]), answers[name]) for name in names}


def time_once(call: Callable[[], Any]) -> float:
    """Seconds of a single call, for what happens once."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def say(text: str) -> None:
    """One line of progress on standard error, with the seconds since the start."""
    print(f"[{time.perf_counter() - STARTED:6.1f} s] {text}", file=sys.stderr, flush=True)
