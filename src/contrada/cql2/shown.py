"""Values in error messages: short, and made in time that does not grow with the value."""

from __future__ import annotations

import reprlib
from typing import Any

LONGEST = 60  # characters

_repr = reprlib.Repr()
_repr.maxlevel, _repr.maxdict, _repr.maxlist, _repr.maxtuple = 3, 4, 4, 4
_repr.maxstring = _repr.maxother = _repr.maxlong = LONGEST


def short(value: Any) -> str:
    """The beginning of a value as Python writes it.

    >>> short({"type": "name", "list": list(range(10**6))})
    "{'list': [0, 1, 2, 3, ...], 'type': 'name'}"
    """
    text = _repr.repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
