"""Show values in error messages: short, and in time that does not depend on the size of the value."""

from __future__ import annotations

import reprlib
from typing import Any

MAX_CHARACTERS = 60

_repr = reprlib.Repr()
_repr.maxlevel, _repr.maxdict, _repr.maxlist, _repr.maxtuple = 3, 4, 4, 4
_repr.maxstring = _repr.maxother = _repr.maxlong = MAX_CHARACTERS


def short(value: Any) -> str:
    """Return the beginning of the `repr` of a value.

    >>> short({"type": "name", "list": list(range(10**6))})
    "{'list': [0, 1, 2, 3, ...], 'type': 'name'}"
    """
    text = _repr.repr(value)
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 3] + "..."
