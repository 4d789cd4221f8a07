"""Payloads: what travels between brokers with the columns of a message, so that it is delivered as it was published."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from contrada.service.intake.posts import MEDIA_TYPES

FORMATS = frozenset(MEDIA_TYPES.values())
FRAME_BYTES = 1 << 20  # of bodies in one frame; one message alone may have more
LINE_ENDS = b"\n", b"\r"  # a body has none: events of a stream are lines


class MessagePayload(NamedTuple):
    """The format and the JSON of a message."""

    format: str
    body: bytes


def payload_of(format: str, body: bytes) -> bytes:
    """Return the payload of a message.

    >>> payload_of("json", b"{}"), read_payload(b"json:{}")
    (b'json:{}', MessagePayload(format='json', body=b'{}'))
    """
    return format.encode() + b":" + body


def read_payload(payload: bytes) -> MessagePayload | None:
    """Return what a neighbour sent with a message; None if it is not the format and the JSON, in one line, of one."""
    name, _, body = payload.partition(b":")
    format = name.decode("ascii", "replace")
    if format not in FORMATS or any(end in body for end in LINE_ENDS):
        return None
    try:
        msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return MessagePayload(format, body)


def network_ids(ids: Sequence[str | None]) -> list[str]:
    """Return ids by which a network tells messages apart; those that have none get one that is nowhere else.

    >>> network_ids(["ce:7", None])[0]
    'ce:7'
    """
    token = f"at:{secrets.token_hex(12)}"
    return [id or f"{token}.{place}" for place, id in enumerate(ids)]


def frame_slices(sizes: Sequence[int], most: int = FRAME_BYTES) -> Iterator[tuple[int, int]]:
    """Yield the first row and the row after the last one of parts whose sizes sum up to at most `most`, if possible.

    >>> list(frame_slices([4, 3, 3, 20, 1], 10))
    [(0, 3), (3, 4), (4, 5)]
    """
    start, total = 0, 0
    for row, size in enumerate(sizes):
        if row > start and total + size > most:
            yield start, row
            start, total = row, 0
        total += size
    if start < len(sizes):
        yield start, len(sizes)
