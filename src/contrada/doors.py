"""Doors: where input comes in, and every error that it causes becomes a ContradaError.

Libraries below raise errors of many kinds for bad input. A door turns these into one of ours, so that a bad record is
rejected and the rest of the run goes on. TypeError, KeyError, IndexError, AttributeError and AssertionError pass: they
mean a mistake in this package, which a door must not hide.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from contrada.errors import ContradaError, FormatError

P = ParamSpec("P")
R = TypeVar("R")

# RecursionError and NotImplementedError are RuntimeErrors; UnicodeError and ArrowInvalid are ValueErrors.
_INPUT_ERRORS = (ContradaError, ValueError, ArithmeticError, RuntimeError, MemoryError, SystemError, BufferError)
LONGEST = 300  # characters of an error of a library that are kept


def input_errors(*further: type[BaseException]) -> tuple[type[BaseException], ...]:
    """Return the kinds of errors that input causes, and further ones, for `except`; of libraries that are loaded.

    >>> OverflowError in input_errors(), issubclass(RecursionError, input_errors()), KeyError in input_errors()
    (False, True, False)
    """
    loaded = sys.modules
    return _errors_of("shapely" in loaded, "pyarrow" in loaded, "msgspec" in loaded, further)


@cache  # asked for every bad record of a file
def _errors_of(
    shapely: bool, pyarrow: bool, msgspec: bool, further: tuple[type[BaseException], ...]
) -> tuple[type[BaseException], ...]:
    found: list[type[BaseException]] = [*_INPUT_ERRORS, *further]
    kinds = (("shapely", "ShapelyError"), ("pyarrow", "ArrowException"), ("msgspec", "MsgspecError"))
    for is_loaded, (name, kind) in zip((shapely, pyarrow, msgspec), kinds, strict=True):
        if is_loaded:
            module = sys.modules[name]
            found.append(getattr(module, kind, None) or getattr(module.errors, kind))
    return tuple(found)


def reason_of(error: BaseException) -> str:
    """Say why input was refused: the message of a ContradaError, or the kind and the message of another error.

    >>> reason_of(OverflowError("int too large to convert to float"))
    'int too large to convert to float (OverflowError)'
    """
    if isinstance(error, ContradaError):
        return str(error)
    text = " ".join(str(error).split()) or "no details"
    text = text if len(text) <= LONGEST else text[:LONGEST] + "..."
    return f"{text} ({type(error).__name__})"


def plain_dict(value: Mapping[Any, Any], kind: type[ContradaError] = FormatError) -> dict[Any, Any]:
    """Return a dict as it is, and another mapping as a dict of its items; one whose `items` fails is a `kind`.

    Subclasses of dict may raise in any method, or say one thing by `len` and another by `items`.

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
    except Exception as error:  # of any kind: this is code of the caller
        raise kind(f"the items of a {type(value).__name__} cannot be read: {reason_of(error)}") from error


def door(kind: type[ContradaError] = FormatError) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function raise ContradaErrors alone for bad input; errors of other kinds become a `kind`.

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
