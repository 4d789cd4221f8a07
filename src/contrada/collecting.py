"""Pause Python's garbage collector, or spare it long-lived objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def collections_paused() -> Iterator[None]:
    """Keep the garbage collector from running meanwhile: it would visit many live objects again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@cache
def freeze_live_objects() -> None:
    """Exempt the objects that live now from later collections; only the first call of a process does it.

    Call it in a Spark worker at the end of a task. Spark collects after every task, and visiting all objects of the
    imported modules takes longer than many a task.
    """
    gc.collect()
    gc.freeze()
