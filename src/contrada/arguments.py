"""Turn errors about wrong arguments into clear ArgumentErrors, where Python would raise a bare TypeError.

NumPy, PyArrow and Shapely reject values of wrong types deep inside, with errors of their own. `checks_arguments` marks
the functions that users call: such an error becomes an ArgumentError that names the function and its arguments' types.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from contrada.errors import ArgumentError, ContradaError

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
REFUSALS = (
    TypeError, ValueError, ArithmeticError, AttributeError, LookupError, RecursionError, NotImplementedError,
    BufferError,
)  # fmt: skip
LIBRARIES = ("pyarrow", "shapely", "pyproj", "numpy")
MAX_ERROR_CHARS = 300  # characters of the original error


def checks_arguments(function: F) -> F:
    """Mark a public function: an error of Python or of a library about its arguments becomes an ArgumentError.

    >>> @checks_arguments
    ... def half(number):
    ...     return number / 2
    >>> half("a")
    Traceback (most recent call last):
    contrada.errors.ArgumentError: half: unsupported operand type(s) for /: 'str' and 'int' (given number: str)
    """
    refuse = _refuse

    def checked(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except Exception as error:
            refuse(function, arguments, named, error)
            raise

    # The function gets the globals of its module, so that doctest finds its examples: it skips functions of other
    # modules.
    inner: Any = function
    made: Any = FunctionType(checked.__code__, inner.__globals__, closure=checked.__closure__)
    update_wrapper(made, inner)
    marked: F = made
    return marked


def checks_methods(*names: str) -> Callable[[C], C]:
    """Mark methods of a class by name, as `checks_arguments` does."""

    def mark(kind: C) -> C:
        for name in names:
            value = vars(kind)[name]
            if isinstance(value, classmethod | staticmethod):
                setattr(kind, name, type(value)(checks_arguments(value.__func__)))
            else:
                setattr(kind, name, checks_arguments(value))
        return kind

    return mark


def _refuse(function: Any, arguments: tuple[Any, ...], named: dict[str, Any], error: Exception) -> None:
    """Raise an ArgumentError if an error is about arguments; intended errors and the caller's own pass."""
    if isinstance(error, ContradaError | OSError | AssertionError):
        return
    if not isinstance(error, REFUSALS) and type(error).__module__.partition(".")[0] not in LIBRARIES:
        return
    detail = " ".join(str(error).split())[:MAX_ERROR_CHARS] or type(error).__name__
    name = function.__qualname__.removesuffix(".__init__")
    raise ArgumentError(f"{name}: {detail} (given {_given(function, arguments, named)})") from error


def _given(function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Return the arguments of a call by name and type, without the object itself."""
    try:
        bound = inspect.signature(function).bind(*arguments, **named).arguments
    except TypeError:
        return "wrong number or names of arguments"
    types = [f"{name}: {type(value).__name__}" for name, value in bound.items() if name not in ("self", "cls")]
    return ", ".join(types) or "nothing"


def checked_length(value: Any, name: str, of_type: type[ContradaError], of_value: type[ContradaError]) -> float:
    """Return a radius or distance as a double; raise an error of the given types unless it is finite and at least 0.

    >>> checked_length(2, "radius", of_type=ContradaError, of_value=ContradaError)
    2.0
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise of_type(f"{name}: need a number, got {type(value).__name__}")
    try:
        made = float(value)
    except OverflowError:
        made = math.inf
    if not 0 <= made < math.inf:
        raise of_value(f"{name}: need a finite number of at least 0, got {value!r:.60}")
    if isinstance(value, int) and int(made) != value:
        raise of_value(f"{name}: {value!r:.60} is no double; the nearest is {made!r}")
    return made + 0.0
