"""Run a kernel as plain Python, for a few small calls that compiling would delay by many seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

MAX_ELEMENTS = 1024  # of all arrays of a call: two regions of 64 vertices, which take Python 10 ms


def is_small(arguments: tuple[Any, ...]) -> bool:
    """Return True if the arrays among the arguments of a kernel have few elements together.

    >>> is_small((np.zeros((5, 2)), 1)), is_small((np.zeros(2000),))
    (True, False)
    """
    return sum(argument.size for argument in arguments if isinstance(argument, np.ndarray)) <= MAX_ELEMENTS


def interpret(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call a kernel as plain Python, and the kernels that it calls too.

    It returns exactly what the compiled kernel returns: both compute with 64-bit integers and IEEE doubles.
    """
    assert isinstance(function, FunctionType)
    with np.errstate(all="ignore"):  # as in compiled code
        return _plain(function)(*arguments)


@cache
def _plain(function: FunctionType) -> Callable[..., Any]:
    return FunctionType(function.__code__, _namespace(function.__module__), function.__name__, function.__defaults__)


@cache
def _namespace(module: str) -> dict[str, Any]:
    """Return the names of a module, with the Python functions behind its kernels and those that it imports."""
    names = dict(vars(sys.modules[module]))
    for name, value in list(names.items()):
        function = getattr(value, "py_func", None)
        if function is not None:
            inner = names if function.__module__ == module else _namespace(function.__module__)
            names[name] = FunctionType(function.__code__, inner, function.__name__, function.__defaults__)
    return names
