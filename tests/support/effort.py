"""How much a run of the tests tries: a tenth of all examples in `make test`, all of them in `make verify`.

Without compilation, where kernels run in Python, tests try less.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
FULL = os.environ.get("CONTRADA_EFFORT") == "full"
SHARE = 10


def examples(count: int) -> int:
    """The number of examples of a property that `make verify` gives `count`."""
    return count if FULL else max(1, count // SHARE)


def slow(*values: Any) -> Any:
    """Values of a parametrized test with which only `make test-all` runs it."""
    return pytest.param(*values, marks=pytest.mark.slow)


def thorough(*values: Any) -> Any:
    """Values of a parametrized test with which only `make verify` runs it."""
    is_skipped = pytest.mark.skipif(not FULL, reason="only make verify tries these values")
    return pytest.param(*values, marks=[pytest.mark.slow, pytest.mark.effort, is_skipped])


@contextmanager
def within(seconds: float, about: object = "") -> Iterator[None]:
    """Fail if the block takes this process longer, whatever else the machine does."""
    begun = time.process_time()
    yield
    assert time.process_time() - begun < seconds, about
