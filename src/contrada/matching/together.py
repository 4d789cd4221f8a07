"""Match batches of messages that have scalars, with as few kernel calls as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import RegionArray
from contrada.geometry.arrays import concatenate, frozen
from contrada.geometry.pool import map_threaded
from contrada.index.scalars import NO_REGIONS, NOTHING_BESIDE, Beside, EncodedMessages, ScalarIndex
from contrada.matching.columns import Counted, slice_count, sorted_rows
from contrada.matching.encoding import Places
from contrada.matching.level import Level, Message, Place
from contrada.matching.snapshot import Snapshot

MIN_MESSAGES_PER_SLICE = 16


class Checked(NamedTuple):
    """A checked message, and by slot its regions, points and values of added types."""

    message: Mapping[str, Any]
    objects: Mapping[Place, Any]


def match_together(
    snapshot: Snapshot, places: Places, messages: Sequence[Checked | None], threads: int | None
) -> Counted:
    """Return how many subscriptions each message satisfies, and their rows, sorted per message; None matches none."""
    levels = [level for level in snapshot.levels if level.filters]
    if threads is None and any(not level.trees and _batch_index(level) is None for level in levels):
        threads = 1  # one short call per message: threads would only wait for the GIL
    good = np.array([k for k, message in enumerate(messages) if message is not None], np.int64)

    def match(rows: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        chosen = [message for row in rows.tolist() if (message := messages[row]) is not None]
        scalars = places.encode([one.message for one in chosen]) if places.asked else None
        parts = [_level_pairs(level, [one.objects for one in chosen], scalars) for level in levels]
        return [(rows[owners], filters) for owners, filters in parts]

    slices = np.array_split(good, slice_count(len(good), threads, MIN_MESSAGES_PER_SLICE)) if len(good) else []
    found = [pair for part in map_threaded(match, slices, threads) for pair in part]
    owners = np.concatenate([owner for owner, _ in found] or [np.empty(0, np.int64)])
    filters = np.concatenate([part for _, part in found] or [np.empty(0, np.int64)])
    return sorted_rows(snapshot, owners, filters, len(messages))


def _level_pairs(
    level: Level, objects: list[Mapping[Place, Any]], scalars: EncodedMessages | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of messages and filters of `level` that the messages satisfy."""
    index = _batch_index(level)
    if index is None or scalars is None:
        found = [level.match(Message(own, _one(scalars, k))) for k, own in enumerate(objects)]
        return np.repeat(np.arange(len(found)), [len(each) for each in found]), _joined(found)
    if index.place is None and not level.trees:  # nothing but scalars
        beside, reached = _repeated(NOTHING_BESIDE, len(objects)), []
    else:
        messages = [Message(own, None) for own in objects]
        beside = _together([level.beside(message) for message in messages])
        trees = level._replace(checks={}, scalars=None)
        reached = [trees.match(message) for message in messages] if level.trees else []
    offsets = np.zeros(len(objects) + 1, np.int64)
    offsets[1 : len(reached) + 1] = np.cumsum([len(each) for each in reached])
    counts, filters = index.match_many(scalars, offsets, _joined(reached), beside)
    return np.repeat(np.arange(len(counts)), counts), filters


def _batch_index(level: Level) -> ScalarIndex | None:
    """Return the index by which `level` matches several messages in one call; None if it takes them one by one."""
    return level.scalars if isinstance(level.scalars, ScalarIndex) and level.is_checked_beside else None


def _one(scalars: EncodedMessages | None, number: int) -> EncodedMessages | None:
    """Return message `number` of an encoded batch."""
    return None if scalars is None else EncodedMessages(scalars.offsets[number : number + 2], *scalars[1:])


def _repeated(beside: Beside, count: int) -> Beside:
    """Repeat the region part of one message `count` times."""
    boxes, region_of = np.repeat(beside.boxes, count, axis=0), np.repeat(beside.region_of, count)
    return beside._replace(boxes=frozen(boxes), region_of=frozen(region_of))


def _together(each: list[Beside]) -> Beside:
    """Concatenate the spatial parts of several encoded messages."""
    columns = [RegionArray.of_kernel_arrays(one.regions).arrays for one in each if one.region_of[0] == 0]
    region_of = np.concatenate([one.region_of for one in each])
    region_of[region_of == 0] = np.arange(len(columns))
    regions = RegionArray(concatenate(columns)).kernel_arrays() if columns else NO_REGIONS
    return Beside(frozen(np.concatenate([one.boxes for one in each])), regions, frozen(region_of), each[0].table)


def _joined(found: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([*found, np.empty(0, np.int64)])
