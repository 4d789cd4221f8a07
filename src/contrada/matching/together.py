"""Messages together: what a batch of messages satisfies, with as few calls of kernels as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.geometry.arrays import frozen
from contrada.geometry.pool import map_threaded
from contrada.index.scalars import EVERYWHERE, Messages
from contrada.index.scanned import Scanned
from contrada.matching.columns import Counted, slice_count, sorted_rows
from contrada.matching.level import Level, Message, Place
from contrada.matching.message import Places
from contrada.matching.snapshot import Snapshot

LEAST = 16  # messages in a slice


class Checked(NamedTuple):
    """A message that nothing is wrong with, and its regions, points and values of added types."""

    message: Mapping[str, Any]
    objects: Mapping[Place, Any]


def match_together(
    snapshot: Snapshot, places: Places, messages: Sequence[Checked | None], threads: int | None
) -> Counted:
    """How many subscriptions each message satisfies, and their rows, sorted within each; None satisfies none."""
    good = np.array([k for k, message in enumerate(messages) if message is not None], np.int64)

    def match(rows: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        chosen = [message for row in rows.tolist() if (message := messages[row]) is not None]
        scalars = places.encode([one.message for one in chosen]) if places.asked else None
        parts = [
            _level_pairs(level, [one.objects for one in chosen], scalars) for level in snapshot.levels if level.filters
        ]
        return [(rows[owners], filters) for owners, filters in parts]

    slices = np.array_split(good, slice_count(len(good), threads, LEAST))
    found = [pair for part in map_threaded(match, slices, threads) for pair in part]
    owners = np.concatenate([owner for owner, _ in found] or [np.empty(0, np.int64)])
    filters = np.concatenate([part for _, part in found] or [np.empty(0, np.int64)])
    return sorted_rows(snapshot, owners, filters, len(messages))


def _level_pairs(
    level: Level, objects: list[Mapping[Place, Any]], scalars: Messages | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of messages and the filters of a level that each satisfies."""
    if level.scalars is None or scalars is None or isinstance(level.scalars, Scanned) or level.checks:
        found = [level.match(Message(own, _one(scalars, k))) for k, own in enumerate(objects)]
        return np.repeat(np.arange(len(found)), [len(each) for each in found]), _joined(found)
    reached = [Level(level.trees, {}, None, level.filters).match(Message(own, None)) for own in objects]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in reached])]).astype(np.int64)
    counts, filters = level.scalars.match_many(scalars, offsets, _joined(reached), _boxes(level, objects))
    return np.repeat(np.arange(len(counts)), counts), filters


def _one(scalars: Messages | None, number: int) -> Messages | None:
    """One message of several."""
    return None if scalars is None else scalars._replace(offsets=scalars.offsets[number : number + 2])


def _boxes(level: Level, objects: list[Mapping[Place, Any]]) -> NDArray[np.float64]:
    """For each message the box that entries are left out by."""
    place = None if level.scalars is None else level.scalars.place
    if place is None:
        return frozen(np.repeat(EVERYWHERE, len(objects), axis=0))
    return frozen(np.concatenate([Message(own, None).box_at(place) for own in objects]))


def _joined(found: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([*found, np.empty(0, np.int64)])
