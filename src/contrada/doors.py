"""Doors: functions that take input from outside and turn every error it causes into a ContradaError.

The libraries below raise many kinds of errors for bad input. A door converts them, so that a bad record is rejected and
the rest of the run continues. TypeError, KeyError, IndexError, AttributeError and AssertionError pass: they mean a bug
in this package, which a door must not hide.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from contrada.errors import ContradaError, FormatError

P = ParamSpec("P")
R = TypeVar("R")

# Errors of libraries that are loaded count too: the base class of each library's errors.
_LIBRARY_ERRORS = {"shapely": "ShapelyError", "pyarrow": "ArrowException", "msgspec": "MsgspecError"}
# RecursionError and NotImplementedError are RuntimeErrors; UnicodeError and ArrowInvalid are ValueErrors.
_INPUT_ERRORS = (ContradaError, ValueError, ArithmeticError, RuntimeError, MemoryError, SystemError, BufferError)
MAX_ERROR_CHARS = 300  # characters kept of a library's error


def input_errors(*further: type[BaseException]) -> tuple[type[BaseException], ...]:
    """Return the kinds of errors that input causes, plus `further`, for `except`; only of libraries that are loaded.

    >>> OverflowError in input_errors(), issubclass(RecursionError, input_errors()), KeyError in input_errors()
    (False, True, False)
    """
    return _errors_of(further, *(name for name in _LIBRARY_ERRORS if name in sys.modules))


@cache  # called for every bad record of a file
def _errors_of(further: tuple[type[BaseException], ...], *loaded: str) -> tuple[type[BaseException], ...]:
    found: list[type[BaseException]] = [*_INPUT_ERRORS, *further]
    for name in loaded:
        module, kind = sys.modules[name], _LIBRARY_ERRORS[name]
        found.append(getattr(module, kind, None) or getattr(module.errors, kind))
    return tuple(found)


def reason_of(error: BaseException) -> str:
    """Return why input was rejected: the message of a ContradaError, or the kind and message of another error.

    >>> reason_of(OverflowError("int too large to convert to float"))
    'int too large to convert to float (OverflowError)'
    """
    if isinstance(error, ContradaError):
        return str(error)
    text = " ".join(str(error).split()) or "no details"
    text = text if len(text) <= MAX_ERROR_CHARS else text[:MAX_ERROR_CHARS] + "..."
    return f"{text} ({type(error).__name__})"


def plain_dict(value: Mapping[Any, Any], kind: type[ContradaError] = FormatError) -> dict[Any, Any]:
    """Return a dict as it is, and another mapping as a dict of its items; raise `kind` if `items` fails.

    Subclasses of dict may raise in any method, or have a `len` that contradicts `items`.

    >>> from collections import UserDict
    >>> plain_dict(UserDict(size=3))
    {'size': 3}
    """
    if type(value) is dict:
        return value
    try:
        return dict(value.items())
    except ContradaError:
        raise
    except Exception as error:  # any kind: this is code of the caller
        raise kind(f"the items of a {type(value).__name__} cannot be read: {reason_of(error)}") from error


def door(kind: type[ContradaError] = FormatError) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function raise only ContradaErrors for bad input; errors of other kinds become `kind`.

    >>> @door()
    ... def half(number):
    ...     return float(number) / 2
    >>> half(10**400)
    Traceback (most recent call last):
    contrada.errors.FormatError: int too large to convert to float (OverflowError)
    """

    def guarded(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except ContradaError:
                raise
            except input_errors() as error:
                raise kind(reason_of(error)) from error

        return call

    return guarded
