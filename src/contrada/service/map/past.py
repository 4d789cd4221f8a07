"""The past of a tenant: pages of messages, counts, and the latest matches of a subscription. All read the store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from contrada.service.http.schemas import instant
from contrada.service.kept_state import KeptState
from contrada.service.map.schemas import MapCounts
from contrada.service.matches import NUMBER_MASK, unpack_matches
from contrada.service.store.message_store import StoredMessage

ROWS_TOGETHER = 500  # messages that are read at once
MOST_ROWS = 20_000  # messages of all tenants that one page looks at
MOST_PAGE_BYTES = 4 << 20  # bytes of bodies in one page, but for a single message
MOST_COUNTED = 200_000  # messages of all tenants that are counted for one answer
LISTS_TOGETHER = 4_000  # match lists that are read at once
MOST_STEPS = 5_000


class SequenceRange(NamedTuple):
    """Messages from `first` on and before `stop`."""

    first: int
    stop: int


class FoundMessages(NamedTuple):
    """Messages of a tenant by rising sequence, and the range of the log that was examined."""

    messages: list[StoredMessage]
    seen: SequenceRange


def forward(kept: KeptState, tenant: str, asked: SequenceRange, limit: int) -> FoundMessages:
    """Return the first messages of a tenant in a range."""
    found: list[StoredMessage] = []
    size, place = 0, asked.first
    while place < asked.stop and place - asked.first < MOST_ROWS:
        page = kept.messages(place, min(ROWS_TOGETHER, asked.stop - place))
        if not page:
            return FoundMessages(found, SequenceRange(asked.first, asked.stop))
        for message in page:
            if message.sequence >= asked.stop:
                return FoundMessages(found, asked)
            if message.tenant == tenant:
                if found and (len(found) >= limit or size + len(message.body) > MOST_PAGE_BYTES):
                    return FoundMessages(found, SequenceRange(asked.first, found[-1].sequence + 1))
                found.append(message)
                size += len(message.body)
        place = page[-1].sequence + 1
    return FoundMessages(found, SequenceRange(asked.first, place))


def backward(kept: KeptState, tenant: str, asked: SequenceRange, limit: int) -> FoundMessages:
    """Return the last messages of a tenant in a range."""
    found: list[StoredMessage] = []
    size, stop = 0, asked.stop
    while stop > asked.first and asked.stop - stop < MOST_ROWS:
        first = max(asked.first, stop - min(ROWS_TOGETHER, max(2 * limit, 16)))
        for message in reversed(kept.messages(first, stop - first)):
            if message.tenant == tenant and message.sequence < stop:
                if found and (len(found) >= limit or size + len(message.body) > MOST_PAGE_BYTES):
                    return FoundMessages(found[::-1], SequenceRange(found[-1].sequence, asked.stop))
                found.append(message)
                size += len(message.body)
        stop = first
    return FoundMessages(found[::-1], SequenceRange(stop, asked.stop))


def counts(kept: KeptState, tenant: str, start: int, end: int, step: int) -> MapCounts:
    """Return how many messages came, and how many matches they had, in steps of milliseconds from `start` on."""
    steps = -(-(end - start) // step)
    messages, matches = np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    span = kept.span()
    first, stop = kept.first_at(start), kept.first_at(end)
    least = max(first, stop - MOST_COUNTED)
    oldest = next((one.at for one in kept.messages(span.oldest, 1)), None)
    for low, high in pairwise([*range(least, stop, LISTS_TOGETHER), stop] if least < stop else []):
        rows = kept.matches(tenant, low, high)
        places = (np.array([at for _, at, _ in rows], np.int64) - start) // step
        np.add.at(messages, places, 1)
        np.add.at(matches, places, np.array([count_of(data) for *_, data in rows], np.int64))
    is_complete = least == first and (span.oldest <= 1 or (oldest is not None and oldest < start))
    seconds = step / 1_000
    return MapCounts(instant(start), instant(end), seconds, messages.tolist(), matches.tolist(), is_complete)


def count_of(matches: bytes) -> int:
    """Return the number of events in a match list."""
    return len(unpack_matches(matches)) if matches else 0


class LatestMatches(NamedTuple):
    """Messages that matched a subscription, newest first, and the number of messages that were examined."""

    messages: list[StoredMessage]
    examined: int
    is_complete: bool


def latest_matches(kept: KeptState, tenant: str, number: int, limit: int) -> LatestMatches:
    """Return the latest messages of the log that matched the subscription with a number."""
    oldest, newest = kept.span()
    stop, found = newest + 1, list[int]()
    while stop > oldest and len(found) < limit and newest + 1 - stop < MOST_COUNTED:
        first = max(oldest, stop - LISTS_TOGETHER)
        found += _matching(kept.matches(tenant, first, stop), number)
        stop = first
    chosen = [one for sequence in found[:limit] for one in kept.messages(sequence, 1) if one.sequence == sequence]
    return LatestMatches(chosen, newest + 1 - stop, stop <= oldest)


def _matching(rows: list[tuple[int, int, bytes]], number: int) -> Iterator[int]:
    for sequence, _, data in reversed(rows):
        if data and bool(np.any(unpack_matches(data) & NUMBER_MASK == number)):
            yield sequence
