"""A door that misbehaves on demand: whatever the runner is to notice must be noticed."""

from __future__ import annotations

import ctypes

from contrada.errors import FormatError
from hostile.registry import Door


def _misbehave(what: str) -> object:
    if what == "crash":
        return ctypes.string_at(0)
    if what == "spin":
        while True:
            pass
    if what == "memory":
        return len(bytearray(1100 << 20))
    if what == "exhaust":
        return bytearray(1 << 40)
    if what == "raise":
        raise KeyError(what)
    if what == "refuse":
        raise FormatError(what)
    return what


SELF_TEST = Door("self test", (), _misbehave, lambda: {"answer": "answer", "refuse": "refuse"}, 0)
