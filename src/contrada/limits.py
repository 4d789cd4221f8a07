"""Limits on the size of one input, so that a small file can never take all memory or hours of time.

Every limit has a name, a default and an environment variable that changes it: `CONTRADA_MAX_NESTING=200` allows 200
levels in this process and in every process it starts. docs/limitations.md lists them all.
"""

from __future__ import annotations

import os
from functools import cache
from types import MappingProxyType

from contrada.errors import LimitError

PREFIX = "CONTRADA_MAX_"

# Name: default and unit. The environment variable is PREFIX and the name in capitals.
DEFAULTS = MappingProxyType(
    {
        "nesting": (64, "levels of nesting"),
        "attributes": (10_000, "attributes"),
        "name_bytes": (4_096, "bytes in a name"),
        "record_bytes": (1 << 28, "bytes in one record"),
        "vertices": (20_000_000, "vertices in one geometry"),
        "alerts": (100_000, "XML documents in one file"),
        "circles": (10_000, "different circles in one block of information"),
        "filters": (10_000, "filters"),
        "constraints": (1_000_000, "constraints"),
        "terms": (20_000, "terms joined by AND and OR"),
        "filter_nesting": (200, "levels of nesting in a filter"),
        "pattern_bytes": (4_096, "bytes in a LIKE pattern"),
        "expansion": (100, "bytes out of each compressed byte"),
        "frame_bytes": (1 << 20, "bytes in one frame between peers"),
        "link_frame_bytes": (1 << 28, "bytes in one frame between brokers"),
        "note_peers": (256, "addresses of peers in one note"),
        "peer_links": (512, "outgoing connections of one peer"),
        "peer_dials": (300, "outgoing connections of one peer opened in a minute"),
        "kept_bytes": (1 << 26, "bytes of messages that one peer keeps to send them again"),
        "waiting_bytes": (1 << 27, "bytes that wait to be sent by one peer"),
        "output_bytes": (1 << 26, "bytes that wait to be written by one peer"),
        "guests": (1_024, "accepted connections of one peer"),
        "host_guests": (256, "accepted connections from one host"),
        "repair_pairs": (200_000, "pairs of edges whose boxes meet"),
        "comparisons": (100_000_000, "comparisons of edges of one pair of shapes"),
        "crs_bytes": (1 << 20, "characters"),
        "reader_seconds": (300, "seconds to read one file in a process of its own"),
        "reader_memory": (1 << 32, "bytes of memory to read one file in a process of its own"),
    }
)


@cache
def limit(name: str) -> int:
    """Return the limit `name`: its default, or the value of its environment variable.

    >>> limit("nesting")
    64
    """
    default, _ = DEFAULTS[name]
    text = os.environ.get(variable(name))
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and 0 < int(text[:19]) < 1 << 62):
        raise LimitError(f"{variable(name)}={text!r} is not a positive whole number")
    return int(text)


def variable(name: str) -> str:
    """Return the environment variable that changes a limit.

    >>> variable("nesting")
    'CONTRADA_MAX_NESTING'
    """
    return PREFIX + name.upper()


def check_limit(name: str, count: int, what: str) -> None:
    """Raise LimitError if `count` is above the limit `name`; `what` says whose count it is.

    >>> check_limit("nesting", 70, "the filter")
    Traceback (most recent call last):
    contrada.errors.LimitError: the filter has 70 levels of nesting; the limit is 64 (CONTRADA_MAX_NESTING)
    """
    most = limit(name)
    if count > most:
        raise LimitError(f"{what} has {count:,} {DEFAULTS[name][1]}; the limit is {most:,} ({variable(name)})")
