"""ForwardingTable: subscriptions in, the subscribers and subscriptions of a message out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import CrsError, FilterError, KeyInUseError, UnknownKeyError
from contrada.geometry import Point, Region, Rejection
from contrada.geometry.crs import common_crs
from contrada.geometry.mixed import Part, is_null, parts_of
from contrada.matching.answer import ManyMatches, Matches
from contrada.matching.asked import Asked, asked_predicate
from contrada.matching.batch import as_table, asked_columns, messages_of
from contrada.matching.columns import Counted, count_pairs, is_plain, kept_rows, match_columns
from contrada.matching.explain import Explanation, explain
from contrada.matching.level import EMPTY, Message, Place, renumbered
from contrada.matching.message import Places
from contrada.matching.names import Name, Names, as_arrow, names_in
from contrada.matching.recall import predicate_of
from contrada.matching.snapshot import Snapshot
from contrada.matching.storage import Saved, names_from, open_table, save_table, verify_table
from contrada.matching.store import LEVELS, Store, extended, grown
from contrada.matching.template import bind_template
from contrada.matching.together import match_together
from contrada.model import Predicate
from contrada.model.types import has_types, types_accepting

NOTED = 16  # messages of a batch that packing learns from


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
        self._store = Store()
        self._keys = Names()
        self._subscribers = Names()
        self._crs: dict[str, str | None] = {}
        self._live = 0

    # Updates

    def subscribe(self, subscriber: Name, what: Asked, key: Name | None = None, replace: bool = False) -> Name:
        """Add a subscription and return its key; a key in use is an error unless `replace` is set.

        What it asks is a Predicate, Filter or Constraint, CQL2 text, or CQL2 JSON as a dict.
        """
        predicate = asked_predicate(what)
        _check_name("subscriber", subscriber)
        with self._store.updating():
            crs = self._checked_crs(predicate)
            if key is None:
                key, old = self._free_key(), None
            else:
                _check_name("key", key)
                old = self._row_of(key)
                if old is not None and not replace:
                    raise KeyInUseError(f"a subscription with the key {key!r} exists already")
            self._store.places.check(constraint for part in predicate for constraint in part)
            self._crs.update(crs)
            self._keys.append(key)
            known = self._subscribers.row(subscriber)
            self._live += old is None
            self._store.append(self._subscribers.append(subscriber) if known is None else known, predicate, old)
        return key

    def subscribe_many(self, rows: Any, template: Asked) -> NDArray[np.int64]:
        """Add a subscription for every row of an Arrow table, and return their rows in this table.

        The template is what one subscription may ask, with `Column("name")`, in CQL2 text `$name`, in place of values:
        WKB or GeoArrow columns of regions or points, and columns of text, numbers, booleans and timestamps. The columns
        `key` and `subscriber` (default: the key) are read if there. Keys default to the row numbers of this table, or
        to larger numbers if one of these was a key already. One bad row raises, and then nothing is added.
        """
        bound = bind_template(rows, asked_predicate(template))
        with self._store.lock:
            keys, subscribers = bound.names(self._free_key())
            crs = dict(self._crs)
            for (attribute, _), part in chain.from_iterable(bound.spatial):
                crs[attribute] = common_crs(crs.get(attribute), part.column.crs)
            self._refuse_used(keys)
            self._store.places.check(bound.long)
            self._crs.update(crs)
            first = self._keys.extend(keys)
            snapshot = self._store.snapshot
            draft = grown(snapshot, self._subscriber_rows(subscribers), bound.filters)
            self._live += bound.rows
            added = bound.split(snapshot.filters, self._store.places)
            self._store.append_many(draft, added, bound.rows * bound.filters)
            return np.arange(first, first + bound.rows)

    def unsubscribe(self, key: Name) -> None:
        """Remove a subscription; an unknown key is an error."""
        with self._store.updating(waits=False):
            row = self._row_of(key)
            if row is None:
                raise UnknownKeyError(f"no subscription has the key {key!r}")
            self._live -= 1
            self._store.remove(row)

    def pack(self) -> None:
        """Pack all levels into one, without what is dead; readers go on, writers wait. Updates pack bit by bit."""
        self._store.pack()

    def settle(self) -> None:
        """Wait until nothing is being packed; readers and writers need not."""
        self._store.settle()

    # Questions

    def match(self, message: Mapping[str, Any]) -> Matches:
        """The subscribers that a message goes to: those with a subscription that it satisfies."""
        return Matches(self._store.asked().subscribers(self._checked(message)), self._subscribers)

    def match_keys(self, message: Mapping[str, Any]) -> Matches:
        """The keys of the subscriptions that a message satisfies."""
        return Matches(self._store.asked().subscriptions(self._checked(message)), self._keys)

    def explain(self, message: Mapping[str, Any], key: Name) -> Explanation:
        """Why a message satisfies a subscription, or why not, constraint by constraint; an unknown key is an error.

        >>> from contrada import Constraint
        >>> table = ForwardingTable()
        >>> table.subscribe("ops-team", Constraint("severity", ">=", 3), key="k17")
        'k17'
        >>> table.explain({"severity": 4}, "k17").truth
        True
        """
        self._objects(message)
        with self._store.lock:  # a name is there before its subscription is
            row, snapshot = self._row_of(key), self._store.snapshot
        if row is None:
            raise UnknownKeyError(f"no subscription has the key {key!r}")
        predicate = predicate_of(snapshot, self._store.places, row, self._crs)
        owners = snapshot.subscription_subscriber
        return explain(predicate, message, key, self._subscribers[row if owners is None else int(owners[row])])

    def match_many(
        self,
        messages: Any,
        by: Literal["subscription", "subscriber"] = "subscription",
        threads: int | None = None,
    ) -> ManyMatches:
        """Match a list of messages or the rows of an Arrow table; bad messages are rejected, the others go on."""
        if by not in ("subscription", "subscriber"):
            raise ValueError(f'by is "subscription" or "subscriber", not {by!r}')
        snapshot = self._store.asked()
        if hasattr(messages, "__arrow_c_stream__") and is_plain(snapshot):
            return self._match_table(snapshot, messages, by, threads)
        good, rejected = messages_of(messages, self._objects, {*self._crs, *self._store.places.asked})
        for message in good[:: max(1, len(good) // NOTED)]:
            if message is not None:
                self._noted(*message)
        counted = match_together(snapshot, self._store.places, good, threads)
        return self._many(snapshot, counted, by, rejected)

    def keys_of(self, rows: NDArray[np.int64]) -> list[Name]:
        """The keys of the subscriptions in these rows, as an answer by subscription has them.

        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "severity >= 3", key="k17")
        >>> table.keys_of(table.match_keys({"severity": 4}).rows)
        ['k17']
        """
        return _listed(self._keys.chosen(rows))

    def subscribers_of(self, rows: NDArray[np.int64], by: Literal["subscription", "subscriber"]) -> list[Name]:
        """The subscribers that the rows of an answer stand for, which was given by subscription or by subscriber."""
        owners = self._store.snapshot.subscription_subscriber
        whose = rows if by == "subscriber" or owners is None else owners[rows].astype(np.int64)
        return _listed(self._subscribers.chosen(whose))

    def _match_table(self, snapshot: Snapshot, messages: Any, by: str, threads: int | None) -> ManyMatches:
        """Match the rows of an Arrow table column by column."""
        table = as_table(messages, self._crs)
        columns: dict[str, list[Part]] = {}
        rejected: dict[int, Rejection] = {}
        for name in asked_columns(table, self._crs):
            columns[name], bad = self._checked_column(table, name)
            rejected.update({item.row: item for item in bad})
        if rejected:  # a message with one bad attribute is rejected whole
            good = np.setdiff1d(np.arange(table.num_rows), list(rejected))
            columns = {name: [kept_rows(part, good) for part in parts] for name, parts in columns.items()}
        counts, answer = match_columns(snapshot, columns, table.num_rows, threads)
        return self._many(snapshot, (counts, answer), by, [rejected[row] for row in sorted(rejected)])

    def _many(self, snapshot: Snapshot, counted: Counted, by: str, rejected: list[Rejection]) -> ManyMatches:
        """An answer by subscription as users get it."""
        counts, answer = counted
        if by == "subscriber" and snapshot.subscription_subscriber is not None:
            owners = np.repeat(np.arange(len(counts)), counts)
            subscribers = snapshot.subscription_subscriber[answer].astype(np.int64)
            counts, answer = count_pairs(owners, subscribers, len(counts), len(self._subscribers), True)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return ManyMatches(offsets, answer, tuple(rejected))

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
        snapshot = Snapshot(1, levels, saved.rows, saved.filters, *owners, None, saved.several_filters)
        table._store = Store(snapshot, Places.of_saved(saved.places))
        return table

    @staticmethod
    def verify(path: str | os.PathLike[str]) -> None:
        """Read a saved table against its checksums; a damaged file is an error that names it."""
        verify_table(path)

    def _packed(self) -> Saved:
        """The living subscriptions in one level, with rows, filters and subscribers numbered from 0 on."""
        with self._store.lock:
            snapshot = self._store.snapshot
            rows = np.flatnonzero(snapshot.is_alive(np.arange(snapshot.rows)))
            filters = np.flatnonzero(snapshot.is_filter_alive(np.arange(snapshot.filters, dtype=np.int32)))
            packed = snapshot.died is None and not any(level.filters for level in snapshot.levels[1:])
            level = snapshot.levels[0] if packed else self._store.merged(snapshot)
            owners = filters if snapshot.filter_subscription is None else snapshot.filter_subscription[filters]
            whose = rows if snapshot.subscription_subscriber is None else snapshot.subscription_subscriber[rows]
            named, to_subscriber = np.unique(whose.astype(np.int64), return_inverse=True)
            return Saved(
                renumbered(level, filters), dict(self._crs), self._store.places.saved(),
                self._keys.chosen(rows), self._subscribers.chosen(named),
                extended(None, 0, np.searchsorted(rows, owners)), extended(None, 0, to_subscriber),
                len(rows), len(filters), snapshot.several_filters,
            )  # fmt: skip

    def stats(self) -> Stats:
        """Sizes, for people."""
        snapshot = self._store.snapshot
        nbytes = sum(tree.nbytes for level in snapshot.levels for tree in level.trees.values())
        nbytes += sum(level.scalars.nbytes for level in snapshot.levels if level.scalars is not None)
        further = (snapshot.filter_subscription, snapshot.subscription_subscriber, snapshot.died)
        nbytes += sum(array.nbytes for array in further if array is not None)
        sizes = tuple(level.filters for level in snapshot.levels)
        return Stats(self._live, len(self._subscribers), snapshot.filters, sizes, nbytes)

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        snapshot = self._store.snapshot
        alive = snapshot.is_alive(np.arange(snapshot.rows))
        assert alive.sum() == self._live, "living subscriptions are counted wrong"
        trees = [tree for level in snapshot.levels for tree in level.trees.values()]
        for tree in trees:
            tree.check()
        filters = np.concatenate([level.reached() for level in snapshot.levels])
        assert len(np.unique(filters)) == len(filters), "a filter is reached in two ways"
        living = np.flatnonzero(snapshot.is_filter_alive(np.arange(snapshot.filters, dtype=np.int32)))
        assert np.isin(living, filters).all(), "a living filter cannot be reached"

    def __len__(self) -> int:
        return self._live

    def __contains__(self, key: object) -> bool:
        with self._store.lock:  # a name is there before its subscription is
            return self._row_of(key) is not None

    def __iter__(self) -> Iterator[Name]:
        """The keys of the living subscriptions, oldest first."""
        snapshot = self._store.snapshot
        rows = np.flatnonzero(snapshot.is_alive(np.arange(snapshot.rows)))
        return (self._keys[int(row)] for row in rows)

    # Inside

    def _checked(self, message: Mapping[str, Any]) -> Message:
        """A message as levels take it."""
        return self._noted(message, self._objects(message))

    def _noted(self, message: Mapping[str, Any], objects: Mapping[Place, Any]) -> Message:
        """The same, given what is not scalar; packing learns from it."""
        places = self._store.places
        checked = Message(objects, places.encode((message,)) if places.asked else None)
        self._store.sample.note(checked.scalars, checked.objects)
        return checked

    def _objects(self, message: Mapping[str, Any]) -> dict[Place, Any]:
        """The regions and points of a message, in the CRS of the subscriptions, and its values of added types."""
        objects: dict[Place, Any] = {}
        are_types_added = has_types()
        for attribute, value in message.items():
            if isinstance(value, (Region, Point)):
                crs = value.crs
                if crs is not None and crs != self._crs.get(attribute):
                    self._check_crs(attribute, crs)
                objects[attribute, "region"] = objects[attribute, "point"] = value
            elif are_types_added:
                for kind in types_accepting(value):
                    objects[attribute, kind] = value
        return objects

    def _check_crs(self, attribute: str, crs: str) -> None:
        """Raise if a message's CRS is not that of the subscriptions."""
        try:
            common_crs(self._crs.get(attribute), crs)
        except CrsError as error:
            raise CrsError(f"attribute {attribute!r}: subscriptions and message: {error}") from error

    def _checked_crs(self, predicate: Predicate) -> dict[str, str | None]:
        crs: dict[str, str | None] = {}
        for part in predicate.filters:
            for constraint in part.constraints:
                if constraint.columns:
                    raise FilterError(f"{constraint.columns[0]} is a column of a template: use subscribe_many")
                name = constraint.attribute
                if not isinstance(constraint.value, Region | Point):
                    if constraint.kind is not None:
                        crs.setdefault(name, self._crs.get(name))  # it is asked about, which batches must know
                    continue
                crs[name] = common_crs(crs.get(name, self._crs.get(name)), constraint.value.crs)
        return crs

    def _free_key(self) -> int:
        return max(self._store.snapshot.rows, self._keys.free)

    def _row_of(self, key: object) -> int | None:
        row = self._keys.row(key)
        snapshot = self._store.snapshot
        if row is None or (snapshot.died is not None and snapshot.died[row] <= snapshot.version):
            return None
        return row

    def _refuse_used(self, keys: Any) -> None:
        snapshot = self._store.snapshot
        rows = self._keys.rows(keys)
        known = np.flatnonzero(rows >= 0)
        used = known[snapshot.is_alive(rows[known])]
        if len(used):
            key = names_in(keys)[int(used[0])]
            raise KeyInUseError(f"a subscription with the key {key!r} exists already")

    def _subscriber_rows(self, subscribers: Any) -> NDArray[np.int32]:
        """Rows of subscribers, an Arrow array or a range; new ones are added."""
        is_range = isinstance(subscribers, range)
        encoded = None if is_range else subscribers.dictionary_encode()
        names = subscribers if encoded is None else encoded.dictionary
        rows = self._subscribers.rows(names)
        new = rows < 0
        if new.any():
            first = self._subscribers.extend(names if new.all() else as_arrow(names).filter(new))
            rows[new] = np.arange(first, len(self._subscribers))
        chosen = rows if encoded is None else rows[np.asarray(encoded.indices)]
        return chosen.astype(np.int32)


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        raise FilterError(f"a {what} is a str or int, not {name!r}")


def _listed(names: Any) -> list[Name]:
    """Names as a list; an Arrow array is made one."""
    return list(names) if isinstance(names, list) else list(names.to_pylist())
