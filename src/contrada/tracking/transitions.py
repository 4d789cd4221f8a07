"""Transitions: the events of tracked objects, as arrays and one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Relation
from contrada.tracking.watch import KINDS

REASONS = ("fix", "time", "expired", "ended", "unsubscribed", "replaced", "expired-subscription")
RELATIONS = (*Relation, None)  # by code, -1 for none; calling the class takes five times as long
ObjectId = str | int


def id_order(id: ObjectId) -> tuple[bool, ObjectId]:
    """Return a key that sorts ids: whole numbers before text."""
    return isinstance(id, str), id


class Transition(NamedTuple):
    """One event: an object entered, left, changed its relation, crossed a region or stayed in it.

    `before` and `after` are relations of the object to the region, None if it had no fix with a geometry. `time` is in
    milliseconds since 1970; `row` is that of the fix that told it, None if time or a subscription did.
    """

    kind: str
    number: int
    object: ObjectId
    before: Relation | None
    after: Relation | None
    time: int
    row: int | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the event with relations by name.

        >>> Transition("enter", 3, "bus 7", None, Relation.INSIDE, 1000, 0, "fix").to_dict()["after"]
        'inside'
        """
        before, after = (None if one is None else str(one) for one in (self.before, self.after))
        return {**self._asdict(), "before": before, "after": after}


class Transitions:
    """Events in order, as arrays of one length: codes of `KINDS`, `REASONS` and Relation; -1 for no relation or row."""

    __slots__ = ("afters", "befores", "kinds", "numbers", "objects", "reasons", "rows", "times")

    def __init__(
        self,
        kinds: NDArray[np.uint8],
        numbers: NDArray[np.int64],
        objects: list[ObjectId],
        befores: NDArray[np.int8],
        afters: NDArray[np.int8],
        times: NDArray[np.int64],
        rows: NDArray[np.int64],
        reasons: NDArray[np.uint8],
    ) -> None:
        self.kinds, self.numbers, self.objects, self.befores = kinds, numbers, objects, befores
        self.afters, self.times, self.rows, self.reasons = afters, times, rows, reasons

    def __len__(self) -> int:
        return len(self.kinds)

    def __iter__(self) -> Iterator[Transition]:
        columns = (self.kinds, self.numbers, self.befores, self.afters, self.times, self.rows, self.reasons)
        lists = [column.tolist() for column in columns]
        for kind, number, before, after, time, row, reason, who in zip(*lists, self.objects, strict=True):
            told = RELATIONS[before], RELATIONS[after]
            yield Transition(KINDS[kind], number, who, *told, time, None if row < 0 else row, REASONS[reason])

    def by_time(self) -> Transitions:
        """Return the events in order of time, then of subscriptions and ids; of one pair in the order told."""
        keys = zip(self.times.tolist(), self.numbers.tolist(), map(id_order, self.objects), strict=True)
        order = [place for _, place in sorted((key, place) for place, key in enumerate(keys))]
        columns = (self.befores[order], self.afters[order], self.times[order], self.rows[order], self.reasons[order])
        return Transitions(self.kinds[order], self.numbers[order], [self.objects[k] for k in order], *columns)

    def __repr__(self) -> str:
        return f"<Transitions: {len(self)} events>"
