"""MatchingTable: the queries that all tables of subscriptions answer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from contrada.arguments import checks_methods
from contrada.errors import ArgumentError, CrsError
from contrada.formats.message_values import read_message
from contrada.formats.spatial import Spatial
from contrada.formats.tables.rows import attributes_of, table_of
from contrada.geometry import Circle, Line, Point, Region, Rejection
from contrada.geometry.arrays import offsets_of
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.globe import Globe, wraps_of
from contrada.matching import batch_reading
from contrada.matching.answer import By, ManyMatches, Matches, TableNames
from contrada.matching.batch import (
    Batch,
    BatchPace,
    Integers,
    PartPairs,
    count_pairs,
    counted_parts,
    main_attribute,
    match_batch,
    match_part,
    may_be_cut,
    slice_spans,
)
from contrada.matching.batch_reading import Checked, Read
from contrada.matching.census import kinds_by_attribute
from contrada.matching.names import Names
from contrada.matching.shared_slices import SharedSlices, SliceWork
from contrada.matching.shortcut import Shortcut
from contrada.matching.store.level import Message, Slot
from contrada.matching.store.levels import Store
from contrada.matching.store.snapshot import Snapshot
from contrada.model.types import has_types, types_accepting

SAMPLED_PER_BATCH = 16  # messages added to the sample that packing uses, until it has enough
SAMPLED_PER_LATER_BATCH = 2


def is_chosen(given: object, choice: str) -> bool:
    """Return True if an argument is this choice; an array would compare item by item."""
    return isinstance(given, str) and given == choice


def shown_choice(given: object) -> str:
    """Return how an error names a wrong choice: a text as it is, of anything else the type."""
    return f"{given!r:.60}" if isinstance(given, str) else type(given).__name__


class Stats(NamedTuple):
    """Sizes of a table: counts, filters per level, bytes, and how the shortcut does."""

    subscriptions: int
    subscribers: int
    filters: int
    levels: tuple[int, ...]
    nbytes: int
    shortcut_filters: int  # 0 if there is no shortcut
    shortcut_decided: int  # messages that the shortcut decided alone


@checks_methods("match_many")
class MatchingTable:
    """A table of subscriptions to match messages against; safe to query from several threads.

    Subclasses: `ForwardingTable` adds keys and updates, `SubscriberTable` is read-only.
    """

    _keys: Names | None

    def __init__(
        self,
        store: Store,
        subscribers: Names,
        crs: dict[str, Crs | None],
        live: int,
        globes: Mapping[str, Globe] = MappingProxyType({}),
    ) -> None:
        self._store = store
        self._shortcut = Shortcut(store)
        self._pace = BatchPace()
        self._subscribers = subscribers
        self._crs = crs
        self._live = live
        self._spatial = Spatial(globes=globes)

    def match(self, message: Mapping[str, Any], by: By = "subscriber") -> Matches:
        """Return the subscribers with a subscription that `message` satisfies.

        With `by="subscription"` return the keys of the subscriptions, as `match_keys` does.
        """
        if is_chosen(by, "subscriber"):
            return Matches(self._shortcut.subscribers(self._store.asked(), self._checked(message)), self._subscribers)
        keys = self._keys_for(by)
        return Matches(self._store.asked().subscriptions(self._checked(message)), keys)

    def match_many(self, messages: Any, by: By = "subscriber", threads: int | None = None) -> ManyMatches:
        """Match a list of messages or the rows of an Arrow table; bad messages are rejected, the others matched.

        >>> from contrada import ForwardingTable
        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "severity >= 3")
        >>> answer = table.match_many([{"severity": 4}, {"severity": {1, 2}}])
        >>> answer[0], answer.rejected[0].reason[:50]
        ({'ops-team'}, "attribute 'severity': type 'set' cannot be matched")
        """
        if not is_chosen(by, "subscriber"):
            self._keys_for(by)
        snapshot = self._store.asked()
        encoder = self._store.encoder
        if batch_reading.is_arrow(messages):
            offsets, answer, rejected = self._match_table(snapshot, table_of(messages), threads)
        else:
            main = main_attribute(snapshot)
            batch, rejected = batch_reading.batch_of_list(messages, self._read, encoder, main)
            self._note_sample(batch)
            counts, answer = match_batch(snapshot, batch, len(batch.rows) + len(rejected), threads, self._pace)
            offsets = offsets_of(counts)
        return self._many(snapshot, offsets, answer, by, rejected)

    def _match_table(
        self, snapshot: Snapshot, table: Any, threads: int | None
    ) -> tuple[Integers, Integers, list[Rejection]]:
        """Read and match slices of a large table in threads, a small table as a whole; return offsets and rows."""
        spans, main = slice_spans(table.num_rows, threads), main_attribute(snapshot)
        asked = {*self._crs, *self._store.encoder.asked}
        offsets = np.empty(table.num_rows + 1, np.int64)
        offsets[0] = 0

        def read(number: int) -> tuple[Read, int]:
            start, stop = spans[number]
            part = attributes_of(table.slice(start, stop - start), asked)
            batch, rejected = batch_reading.batch_of_table(
                part, self._crs, self._store.encoder, main, self._spatial.globes
            )
            if number == len(spans) - 1:  # the slice that this thread begins with, while the others wake up
                self._note_sample(batch)
            return (batch, rejected), len(batch.rows) if len(spans) > 1 and may_be_cut(snapshot, batch) else 0

        def match(held: Read, start: int, stop: int) -> PartPairs:
            return match_part(snapshot, held[0], start, stop)

        def finish(number: int, held: Read, parts: list[PartPairs]) -> tuple[Integers, list[Rejection]]:
            (start, stop), (batch, rejected) = spans[number], held
            if parts:
                counts, answer = counted_parts(snapshot, parts, len(batch.rows), stop - start, self._pace)
            else:
                own = threads if len(spans) == 1 else 1
                counts, answer = match_batch(snapshot, batch, stop - start, own, self._pace)
            np.cumsum(counts, out=offsets[start + 1 : stop + 1])
            return answer, [item._replace(row=item.row + start) for item in rejected]

        found = SharedSlices(len(spans), SliceWork(read, match, finish), threads).run()
        for start, stop in spans[1:]:
            offsets[start + 1 : stop + 1] += offsets[start]
        rows = np.concatenate([answer for answer, _ in found])
        return offsets, rows, [item for _, rejected in found for item in rejected]

    def _note_sample(self, batch: Batch) -> None:
        """Add a few messages of a batch to the sample."""
        size, sample = len(batch.rows), self._store.sample
        most = SAMPLED_PER_BATCH if sample.turn < sample.SAMPLE_SIZE else SAMPLED_PER_LATER_BATCH
        places = np.arange(0, size, max(1, size // most))
        forms = self._store.encoder.forms
        for place in places.tolist():
            scalars = None if batch.scalars is None else batch.scalars.one(place, forms)
            sample.note(scalars, batch.objects(place))

    @property
    def wrap(self) -> dict[str, str]:
        """Attributes whose regions and points are wrapped at the date line, with "longitude" or "shorter"."""
        return wraps_of(self._spatial.globes)

    def stats(self) -> Stats:
        """Return the sizes of the table, for reports."""
        snapshot = self._store.snapshot
        nbytes = sum(tree.nbytes for level in snapshot.levels for tree in level.trees.values())
        nbytes += sum(level.scalars.nbytes for level in snapshot.levels if level.scalars is not None)
        further = (snapshot.filter_subscription, snapshot.subscription_subscriber, snapshot.died)
        nbytes += sum(array.nbytes for array in further if array is not None)
        sizes = tuple(level.filters for level in snapshot.levels)
        shortcut = self._shortcut.filters, self._shortcut.decided
        return Stats(self._live, len(self._subscribers), snapshot.filters, sizes, nbytes, *shortcut)

    def asked_kinds(self) -> dict[str, list[str]]:
        """Return the attributes that subscriptions ask about, with the kinds of values asked for.

        >>> from contrada import ForwardingTable
        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "severity >= 3 AND kind LIKE 'fl%'")
        >>> table.asked_kinds()
        {'kind': ['text'], 'severity': ['number']}
        """
        levels = self._store.snapshot.levels
        spatial = [slot for level in levels for slot in (*level.trees, *level.checks)]
        return kinds_by_attribute(list(self._store.encoder.numbers), spatial, tuple(self._crs))

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        snapshot = self._store.snapshot
        assert len(snapshot.living()) == self._live, "the number of live subscriptions is wrong"
        trees = [tree for level in snapshot.levels for tree in level.trees.values()]
        for tree in trees:
            tree.check()
        filters = np.concatenate([level.reached() for level in snapshot.levels])
        assert len(np.unique(filters)) == len(filters), "a filter is in two parts of the index"
        living = np.flatnonzero(snapshot.is_filter_alive(np.arange(snapshot.filters, dtype=np.int32)))
        assert np.isin(living, filters).all(), "a live filter is not in the index"

    def __len__(self) -> int:
        return self._live

    # Helpers

    def _keys_for(self, by: object) -> Names:
        """Return the keys of subscriptions; raise ArgumentError unless `by` is "subscription" and there are keys."""
        if not is_chosen(by, "subscription"):
            raise ArgumentError(f'by: need "subscriber" or "subscription", got {shown_choice(by)}')
        if self._keys is None:
            raise ArgumentError('a table simplified by subscriber has no keys; pass by="subscriber"')
        return self._keys

    def _many(
        self, snapshot: Snapshot, offsets: Integers, answer: Integers, by: By, rejected: list[Rejection]
    ) -> ManyMatches:
        """Turn rows of subscriptions, message by message, into the answer by `by`."""
        owners = TableNames(self._subscribers, snapshot.subscription_subscriber, self._keys)
        if by == "subscriber" and owners.subscription_subscriber is not None:
            size = len(offsets) - 1
            messages = np.repeat(np.arange(size), np.diff(offsets))
            subscribers = owners.of_subscriptions(answer)
            counts, answer = count_pairs(messages, subscribers, size, len(self._subscribers), True)
            offsets = offsets_of(counts)
        return ManyMatches(offsets, answer, tuple(rejected), by, owners)

    def _checked(self, message: Mapping[str, Any]) -> Message:
        """Check and encode a message for the levels."""
        return self._noted(*self._read(message))

    def _noted(self, message: Mapping[str, Any], objects: Mapping[Slot, Any]) -> Message:
        """Encode a message whose regions, points and added types are in `objects`, and add it to the sample."""
        store = self._store
        encoder = store.encoder
        scalars = encoder.encode((message,)) if encoder.asked else None
        store.sample.note(scalars, objects)
        return tuple.__new__(Message, (objects, scalars))  # calling the class takes three times as long

    def _is_asked(self, attribute: str) -> bool:
        """Return True if a subscription may ask about `attribute`."""
        return attribute in self._crs or attribute in self._store.encoder.asked

    def _read(self, message: Any) -> Checked:
        """Check a message; return plain values, and by slot its regions, points and values of added types."""
        message = read_message(message, self._is_asked, self._spatial)
        objects: dict[Slot, Any] = {}
        are_types_added = has_types()
        for attribute, value in message.items():
            if isinstance(value, (Region, Point, Circle, Line)):
                crs = value.crs
                if crs is not None and crs != self._crs.get(attribute):
                    self._check_crs(attribute, crs)
                if isinstance(value, Line):
                    objects[attribute, "line"] = value
                else:
                    objects[attribute, "region"] = objects[attribute, "point"] = value
            elif are_types_added:
                for kind in types_accepting(value):
                    objects[attribute, kind] = value
        return message, objects

    def _check_crs(self, attribute: str, crs: Crs) -> None:
        """Raise CrsError if `crs` differs from the CRS of the subscriptions on `attribute`."""
        try:
            common_crs(self._crs.get(attribute), crs)
        except CrsError as error:
            raise CrsError(f"attribute {attribute!r}: {batch_reading.CRS_ERROR_PREFIX}: {error}") from error
