"""ForwardingTable: subscriptions in, the subscribers and subscriptions of a message out."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import CrsError, FilterError, KeyInUseError, UnknownKeyError
from contrada.geometry import Point, Region, Rejection
from contrada.geometry.crs import common_crs
from contrada.geometry.pool import map_threaded
from contrada.matching.answer import ManyMatches, Matches
from contrada.matching.batch import as_table, is_null, messages_of
from contrada.matching.columns import Part, count_pairs, is_plain, kept_rows, match_columns, parts_of
from contrada.matching.level import EMPTY, Level, Value, merge_levels, renumbered
from contrada.matching.names import Name, Names
from contrada.matching.packing import constraints_of
from contrada.matching.snapshot import Snapshot
from contrada.matching.storage import Saved, names_from, open_table, save_table, verify_table
from contrada.matching.template import bind_template
from contrada.model import Constraint, Filter, Predicate
from contrada.model.filter import as_predicate

ALIVE = np.iinfo(np.int64).max
# Levels, oldest first: the base; a level that is being packed into it; the middle, small and youngest ones. The two
# youngest hold so many filters before they are packed into the next, the middle one this fraction of the base.
LEVELS = 5
BUFFER, SMALL = 64, 4096
SHARE = 8


class Stats(NamedTuple):
    """What a table holds."""

    subscriptions: int
    subscribers: int
    filters: int
    levels: tuple[int, ...]
    nbytes: int


class ForwardingTable:
    """A live table of subscriptions; any number of threads may match while others update.

    >>> from contrada import Constraint, Filter, Region, Relation
    >>> table = ForwardingTable()
    >>> key = table.subscribe("ops-team", Filter([Constraint("area", Relation.OVERLAPS, Region.box(0, 0, 4, 4))]))
    >>> table.match({"area": Region.box(2, 2, 6, 6)})
    {'ops-team'}
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._keys = Names()
        self._subscribers = Names()
        self._crs: dict[str, str | None] = {}
        self._live = 0
        self._rebuild: threading.Thread | None = None
        self._snapshot = Snapshot(0, (EMPTY,) * LEVELS, 0, 0, None, None, None, False)

    # Updates

    def subscribe(
        self, subscriber: Name, what: Constraint | Filter | Predicate, key: Name | None = None, replace: bool = False
    ) -> Name:
        """Add a subscription and return its key; a key in use is an error unless `replace` is set."""
        predicate = as_predicate(what)
        _check_name("subscriber", subscriber)
        with self._lock:
            if key is None:
                key = self._free_key()
            _check_name("key", key)
            crs = self._checked_crs(predicate)
            old = self._row_of(key)
            if old is not None and not replace:
                raise KeyInUseError(f"a subscription with the key {key!r} exists already")
            self._crs.update(crs)
            draft = self._snapshot if old is None else self._without(self._snapshot, old)
            self._append(draft, key, subscriber, predicate)
            return key

    def subscribe_many(self, rows: Any, template: Constraint | Filter) -> NDArray[np.int64]:
        """Add a subscription for every row of an Arrow table, and return their rows in this table.

        The template is a Filter whose values may be `Column("name")`: WKB or GeoArrow columns of regions or points. The
        columns `key` (default: the row number in this table) and `subscriber` (default: the key) are read if there. One
        bad row raises, and then nothing is added.
        """
        with self._lock:
            bound = bind_template(rows, template)
            keys, subscribers = bound.names(len(self._keys))
            for place, part in bound.constraints:
                self._crs[place[0]] = common_crs(self._crs.get(place[0]), part.column.crs)
            self._refuse_used(keys)
            first = self._keys.extend(keys)
            draft = _grown(self._snapshot, first, bound.rows, self._subscriber_rows(subscribers))
            added = bound.split(self._snapshot.filters)
            base = merge_levels(draft.levels, draft.is_filter_alive, added)
            self._live += bound.rows
            self._publish(draft, (base, *(EMPTY,) * (LEVELS - 1)))
            return np.arange(first, first + bound.rows)

    def unsubscribe(self, key: Name) -> None:
        """Remove a subscription; an unknown key is an error."""
        with self._lock:
            row = self._row_of(key)
            if row is None:
                raise UnknownKeyError(f"no subscription has the key {key!r}")
            self._publish(self._without(self._snapshot, row), self._snapshot.levels)

    # Questions

    def match(self, message: Mapping[str, Any]) -> Matches:
        """The subscribers that a message goes to: those with a subscription that it satisfies."""
        return Matches(self._snapshot.subscribers(self._checked(message)), self._subscribers)

    def match_keys(self, message: Mapping[str, Any]) -> Matches:
        """The keys of the subscriptions that a message satisfies."""
        return Matches(self._snapshot.subscriptions(self._checked(message)), self._keys)

    def match_many(
        self,
        messages: Any,
        by: Literal["subscription", "subscriber"] = "subscription",
        threads: int | None = None,
    ) -> ManyMatches:
        """Match a list of messages or the rows of an Arrow table; bad messages are rejected, the others go on."""
        if by not in ("subscription", "subscriber"):
            raise ValueError(f'by is "subscription" or "subscriber", not {by!r}')
        snapshot = self._snapshot
        if hasattr(messages, "__arrow_c_stream__") and is_plain(snapshot):
            return self._match_table(snapshot, messages, by, threads)
        ask = snapshot.subscriptions if by == "subscription" else snapshot.subscribers
        good, rejected = messages_of(messages, self._checked)
        answers = map_threaded(
            lambda message: np.empty(0, np.int64) if message is None else ask(message), good, threads
        )
        offsets = np.zeros(len(answers) + 1, np.int64)
        np.cumsum([len(answer) for answer in answers], out=offsets[1:])
        return ManyMatches(offsets, np.concatenate([*answers, np.empty(0, np.int64)]), tuple(rejected))

    def _match_table(self, snapshot: Snapshot, messages: Any, by: str, threads: int | None) -> ManyMatches:
        """Match the rows of an Arrow table column by column."""
        table = as_table(messages)
        columns: dict[str, list[Part]] = {}
        rejected: dict[int, Rejection] = {}
        for name in {place[0] for level in snapshot.levels for place in level.trees} & set(table.column_names):
            columns[name], bad = self._checked_column(table, name)
            rejected.update({item.row: item for item in bad})
        if rejected:  # a message with one bad attribute is rejected whole
            good = np.setdiff1d(np.arange(table.num_rows), list(rejected))
            columns = {name: [kept_rows(part, good) for part in parts] for name, parts in columns.items()}
        counts, answer = match_columns(snapshot, columns, table.num_rows, threads)
        if by == "subscriber" and snapshot.subscription_subscriber is not None:
            owners = np.repeat(np.arange(table.num_rows), counts)
            subscribers = snapshot.subscription_subscriber[answer].astype(np.int64)
            counts, answer = count_pairs(owners, subscribers, table.num_rows, len(self._subscribers), True)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return ManyMatches(offsets, answer, tuple(rejected[row] for row in sorted(rejected)))

    def _checked_column(self, table: Any, name: str) -> tuple[list[Part], list[Rejection]]:
        """A geometry column of messages, in the CRS of the subscriptions; nulls are absent, not bad."""
        parts, bad = parts_of(table.column(name))
        for part in parts:
            try:
                common_crs(self._crs.get(name), part.column.crs)
            except CrsError as error:
                raise CrsError(f"attribute {name!r}: subscriptions and messages: {error}") from error
        return parts, [item._replace(reason=f"attribute {name!r}: {item.reason}") for item in bad if not is_null(item)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a new directory of plain arrays; keys are kept, rows are numbered anew."""
        save_table(self._packed(), path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> ForwardingTable:
        """A saved table, memory-mapped: processes share its pages, and it can be updated further in memory."""
        saved = open_table(path)
        table = cls()
        table._crs = dict(saved.crs)
        table._keys, table._subscribers = names_from(saved.keys), names_from(saved.subscribers)
        table._live = saved.rows
        owners = (saved.filter_subscription, saved.subscription_subscriber)
        levels = (saved.level, *(EMPTY,) * (LEVELS - 1))
        table._snapshot = Snapshot(1, levels, saved.rows, saved.filters, *owners, None, saved.several_filters)
        return table

    @staticmethod
    def verify(path: str | os.PathLike[str]) -> None:
        """Read a saved table against its checksums; a damaged file is an error that names it."""
        verify_table(path)

    def _packed(self) -> Saved:
        """The living subscriptions in one level, with rows, filters and subscribers numbered from 0 on."""
        with self._lock:
            snapshot = self._snapshot
            rows = np.flatnonzero(snapshot.is_alive(np.arange(snapshot.rows)))
            filters = np.flatnonzero(snapshot.is_filter_alive(np.arange(snapshot.filters, dtype=np.int32)))
            packed = snapshot.died is None and not any(level.filters for level in snapshot.levels[1:])
            level = snapshot.levels[0] if packed else merge_levels(snapshot.levels, snapshot.is_filter_alive)
            owners = filters if snapshot.filter_subscription is None else snapshot.filter_subscription[filters]
            whose = rows if snapshot.subscription_subscriber is None else snapshot.subscription_subscriber[rows]
            named, to_subscriber = np.unique(whose.astype(np.int64), return_inverse=True)
            return Saved(
                renumbered(level, filters), dict(self._crs),
                self._keys.chosen(rows), self._subscribers.chosen(named),
                _extended(None, 0, np.searchsorted(rows, owners)), _extended(None, 0, to_subscriber),
                len(rows), len(filters), snapshot.several_filters,
            )  # fmt: skip

    def stats(self) -> Stats:
        """Sizes, for people."""
        snapshot = self._snapshot
        nbytes = sum(tree.nbytes for level in snapshot.levels for tree in level.trees.values())
        further = (snapshot.filter_subscription, snapshot.subscription_subscriber, snapshot.died)
        nbytes += sum(array.nbytes for array in further if array is not None)
        sizes = tuple(level.filters for level in snapshot.levels)
        return Stats(self._live, len(self._subscribers), snapshot.filters, sizes, nbytes)

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        snapshot = self._snapshot
        alive = snapshot.is_alive(np.arange(snapshot.rows))
        assert alive.sum() == self._live, "living subscriptions are counted wrong"
        seen = [tree.rows for level in snapshot.levels for tree in level.trees.values()]
        filters = np.concatenate([*seen, np.empty(0, np.int32)])
        assert len(np.unique(filters)) == len(filters), "a filter is reached in two ways"
        living = np.flatnonzero(snapshot.is_filter_alive(np.arange(snapshot.filters, dtype=np.int32)))
        assert np.isin(living, filters).all(), "a living filter cannot be reached"

    def __len__(self) -> int:
        return self._live

    def __contains__(self, key: object) -> bool:
        return self._row_of(key) is not None

    def __iter__(self) -> Iterator[Name]:
        """The keys of the living subscriptions, oldest first."""
        snapshot = self._snapshot
        rows = np.flatnonzero(snapshot.is_alive(np.arange(snapshot.rows)))
        return (self._keys[int(row)] for row in rows)

    # Inside

    def _checked(self, message: Mapping[str, Any]) -> dict[str, Value]:
        """The spatial attributes of a message; anything else is unknown to spatial constraints."""
        values: dict[str, Value] = {}
        for attribute, value in message.items():
            if isinstance(value, (Region, Point)):
                crs = value.crs
                if crs is not None and crs != self._crs.get(attribute):
                    self._check_crs(attribute, crs)
                values[attribute] = value
        return values

    def _check_crs(self, attribute: str, crs: str) -> None:
        """Raise if a message's CRS is not that of the subscriptions."""
        try:
            common_crs(self._crs.get(attribute), crs)
        except CrsError as error:
            raise CrsError(f"attribute {attribute!r}: subscriptions and message: {error}") from error

    def _checked_crs(self, predicate: Predicate) -> dict[str, str | None]:
        crs: dict[str, str | None] = {}
        for constraint in (constraint for part in predicate for constraint in part):
            if not isinstance(constraint.value, (Region, Point)):
                raise FilterError(f"{constraint.value} is a column of a template: use subscribe_many")
            name = constraint.attribute
            crs[name] = common_crs(crs.get(name, self._crs.get(name)), constraint.value.crs)
        return crs

    def _free_key(self) -> int:
        key = self._snapshot.rows
        while self._row_of(key) is not None:
            key += 1
        return key

    def _row_of(self, key: object) -> int | None:
        row = self._keys.row(key)
        snapshot = self._snapshot
        if row is None or (snapshot.died is not None and snapshot.died[row] <= snapshot.version):
            return None
        return row

    def _refuse_used(self, keys: Any) -> None:
        if self._live:
            for key in keys.to_pylist():
                if self._row_of(key) is not None:
                    raise KeyInUseError(f"a subscription with the key {key!r} exists already")

    def _append(self, draft: Snapshot, key: Name, subscriber: Name, predicate: Predicate) -> None:
        row = self._keys.append(key)
        known = self._subscribers.row(subscriber)
        who = self._subscribers.append(subscriber) if known is None else known
        first = draft.filters
        draft = _grown(draft, row, 1, np.array([who], np.int32), len(predicate))
        self._live += 1
        base, frozen, middle, small, buffer = draft.levels
        alive = draft.is_filter_alive
        added = constraints_of([(first + k, part) for k, part in enumerate(predicate)])
        buffer = merge_levels([buffer], alive, added)
        if buffer.filters > BUFFER:
            small, buffer = merge_levels([small, buffer], alive), EMPTY
        if small.filters > SMALL:
            middle, small = merge_levels([middle, small], alive), EMPTY
        if middle.filters * SHARE > max(base.filters, SMALL * SHARE) and not frozen.filters:
            frozen, middle = middle, EMPTY
        self._publish(draft, (base, frozen, middle, small, buffer))
        if frozen.filters and self._rebuild is None:
            self._rebuild = threading.Thread(target=self._merge_into_base, name="contrada-rebuild", daemon=True)
            self._rebuild.start()

    def _merge_into_base(self) -> None:
        """Pack the frozen level into the base while readers and writers go on."""
        snapshot = self._snapshot
        base, frozen = snapshot.levels[:2]
        merged = merge_levels([base, frozen], snapshot.is_filter_alive)
        with self._lock:
            levels = self._snapshot.levels
            if levels[0] is base and levels[1] is frozen:  # else a batch has packed everything meanwhile
                self._publish(self._snapshot, (merged, EMPTY, *levels[2:]))
            self._rebuild = None

    def settle(self) -> None:
        """Wait until no rebuild is under way; readers and writers need not."""
        rebuild = self._rebuild
        if rebuild is not None:
            rebuild.join()

    def _without(self, draft: Snapshot, row: int) -> Snapshot:
        """The snapshot after a subscription has died, for the version to come."""
        died = np.full(_capacity(draft.rows), ALIVE) if draft.died is None else draft.died
        died[row] = self._snapshot.version + 1
        self._live -= 1
        return draft._replace(died=died)

    def _subscriber_rows(self, subscribers: Any) -> NDArray[np.int32]:
        """Rows of subscribers, an Arrow array; new ones are added."""
        encoded = subscribers.dictionary_encode()
        names = encoded.dictionary
        if len(self._subscribers) == 0:
            self._subscribers.extend(names)
            return np.asarray(encoded.indices, np.int32)
        rows = np.empty(len(names), np.int32)
        for k, name in enumerate(names.to_pylist()):
            known = self._subscribers.row(name)
            rows[k] = self._subscribers.append(name) if known is None else known
        chosen: NDArray[np.int32] = rows[np.asarray(encoded.indices)]
        return chosen

    def _publish(self, draft: Snapshot, levels: tuple[Level, ...]) -> None:
        """Make the updates visible: one assignment, which readers see whole or not at all."""
        self._snapshot = draft._replace(version=self._snapshot.version + 1, levels=levels)


def _grown(old: Snapshot, row: int, count: int, subscribers: NDArray[np.int32], filters_each: int = 1) -> Snapshot:
    """A snapshot with further rows; arrays are replaced when full, so earlier snapshots keep theirs."""
    owners = np.repeat(np.arange(row, row + count), filters_each)
    return old._replace(
        rows=row + count,
        filters=old.filters + count * filters_each,
        filter_subscription=_extended(old.filter_subscription, old.filters, owners),
        subscription_subscriber=_extended(old.subscription_subscriber, row, subscribers),
        died=None if old.died is None else _extended(old.died, row, np.full(count, ALIVE)),
        several_filters=old.several_filters or filters_each > 1,
    )


def _capacity(length: int) -> int:
    return max(64, length + length // 2)


def _extended(array: NDArray[Any] | None, start: int, values: NDArray[Any]) -> NDArray[Any] | None:
    """An array whose entries from start on are values; None stands for 0, 1, 2, ... and stays if it can."""
    stop = start + len(values)
    if array is None:
        if np.array_equal(values, np.arange(start, stop)):
            return None
        array = np.arange(_capacity(stop), dtype=np.int32)
    elif len(array) < stop or not array.flags.writeable:  # a mapped array is read-only
        array = np.concatenate([array[:start], np.empty(_capacity(stop) - start, array.dtype)])
    array[start:stop] = values
    return array


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        raise FilterError(f"a {what} is a str or int, not {name!r}")
