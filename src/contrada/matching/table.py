"""ForwardingTable: subscriptions in, the subscribers and subscriptions of a message out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.arguments import checks_methods
from contrada.cql2.queries import Asked, asked_predicate
from contrada.doors import door
from contrada.errors import ArgumentError, CrsError, FilterError, KeyInUseError, KeysGoneError, UnknownKeyError
from contrada.formats.message_values import read_message
from contrada.geometry import Point, Region, Rejection
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.mixed import ValueRows
from contrada.matching.answer import ManyMatches, Matches
from contrada.matching.batch import MEET, as_table, asked_columns, checked_column, is_arrow, messages_of
from contrada.matching.census import kinds_by_attribute
from contrada.matching.columns import Counted, count_pairs, is_plain, kept_rows, match_columns
from contrada.matching.decompile import predicate_of
from contrada.matching.encoding import Places
from contrada.matching.explain import Explanation, explain
from contrada.matching.level import EMPTY, Message, Place
from contrada.matching.levels import LEVELS, Store, grown
from contrada.matching.names import Name, Names, check_name, names_in
from contrada.matching.packing import packed
from contrada.matching.pickling import opened_bytes, packed_bytes
from contrada.matching.shortcut import Front
from contrada.matching.snapshot import Snapshot
from contrada.matching.storage import names_from, open_table, save_table, verify_table
from contrada.matching.table_simplification import Progress, simplify_table
from contrada.matching.template import bind_template
from contrada.matching.together import Checked, match_together
from contrada.model import Predicate
from contrada.model.types import has_types, types_accepting
from contrada.simplify.simplification import Simplification

NOTED = 16  # messages of a batch that packing learns from


class Stats(NamedTuple):
    """What a table holds."""

    subscriptions: int
    subscribers: int
    filters: int
    levels: tuple[int, ...]
    nbytes: int


@checks_methods("subscribe_many", "match_many", "keys_of", "subscribers_of", "save", "open", "verify", "explain")
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
        self._front = Front(self._store)
        self._keys = Names()
        self._subscribers = Names()
        self._crs: dict[str, Crs | None] = {}
        self._live = 0
        self._has_keys = True  # not after simplifying across subscriptions

    # Updates

    @door(FilterError)
    def subscribe(self, subscriber: Name, what: Asked, key: Name | None = None, replace: bool = False) -> Name:
        """Add a subscription and return its key; a key in use is an error unless `replace` is set.

        What it asks is a Predicate, Filter or Constraint, CQL2 text, or CQL2 JSON as a dict.
        """
        predicate = asked_predicate(what)
        self._need_keys()
        check_name("subscriber", subscriber)
        with self._store.updating():
            crs = self._checked_crs(predicate)
            if key is None:
                key, old = self._free_key(), None
            else:
                check_name("key", key)
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

    @door(FilterError)
    def subscribe_many(self, rows: Any, template: Asked) -> NDArray[np.int64]:
        """Add a subscription for every row of an Arrow table, and return their rows in this table.

        The template is what one subscription may ask, with `Column("name")`, in CQL2 text `$name`, in place of values:
        WKB or GeoArrow columns of regions or points, and columns of text, numbers, booleans and timestamps. The columns
        `key` and `subscriber` (default: the key) are read if there. Keys default to the row numbers of this table, or
        to larger numbers if one of these was a key already. One bad row raises, and then nothing is added.
        """
        self._need_keys()
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
            draft = grown(snapshot, self._subscribers.rows_of(subscribers), bound.filters)
            self._live += bound.rows
            added = bound.split(snapshot.filters, self._store.places)
            self._store.append_many(draft, added, bound.rows * bound.filters)
            return np.arange(first, first + bound.rows)

    def unsubscribe(self, key: Name) -> None:
        """Remove a subscription; an unknown key is an error."""
        self._need_keys()
        check_name("key", key)
        with self._store.updating(waits=False):
            row = self._row_of(key)
            if row is None:
                raise UnknownKeyError(f"no subscription has the key {key!r}")
            self._live -= 1
            self._store.remove(row)

    def simplify(self, across: bool = False, progress: Progress | None = None) -> Simplification:
        """Drop what is redundant within each subscription: for every message the answers stay what they were.

        With `across` also between the subscriptions of one subscriber: only answers by subscriber stay then. The keys
        are gone, whatever needs one is an error, and so is subscribing: keep the table itself for that. Readers go on,
        writers wait. `progress` is told how many subscriptions are done, and of how many.

        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "severity >= 3 OR severity >= 5 AND kind = 'flood'")
        >>> report = table.simplify()
        >>> report.filters_before, report.filters_after
        (2, 1)
        """
        _check_simplifying(across, progress)
        self._need_keys()
        with self._store.lock:
            self._store.pack()
            self._has_keys = not across
            report = simplify_table(self._store, self._keys, self._crs, across, progress)
            self._live = len(self._living())
            self._store.pack()
        return report

    def pack(self) -> None:
        """Pack all levels into one, without what is dead; readers go on, writers wait. Updates pack bit by bit."""
        self._store.pack()

    def settle(self) -> None:
        """Wait until nothing is being packed; readers and writers need not."""
        self._store.settle()

    # Questions

    def match(self, message: Mapping[str, Any]) -> Matches:
        """The subscribers that a message goes to: those with a subscription that it satisfies."""
        return Matches(self._front.subscribers(self._store.asked(), self._checked(message)), self._subscribers)

    def match_keys(self, message: Mapping[str, Any]) -> Matches:
        """The keys of the subscriptions that a message satisfies."""
        self._need_keys()
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
        self._need_keys()
        message = self._read(message).message
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
        """Match a list of messages or the rows of an Arrow table; bad messages are rejected, the others go on.

        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "severity >= 3")
        >>> found = table.match_many([{"severity": 4}, {"severity": {1, 2}}])
        >>> found.rows.tolist(), found.rejected[0].reason[:50]
        ([0], "attribute 'severity': type 'set' cannot be matched")
        """
        if by not in ("subscription", "subscriber"):
            raise ArgumentError(f'by is "subscription" or "subscriber", not {by!r}')
        if by == "subscription":
            self._need_keys()
        snapshot = self._store.asked()
        if is_arrow(messages) and is_plain(snapshot):
            return self._match_table(snapshot, messages, by, threads)
        good, rejected = messages_of(messages, self._read, {*self._crs, *self._store.places.asked})
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
        self._need_keys()
        return _listed(self._keys.chosen(_checked_rows(rows)))

    def subscribers_of(self, rows: NDArray[np.int64], by: Literal["subscription", "subscriber"]) -> list[Name]:
        """The subscribers that the rows of an answer stand for, which was given by subscription or by subscriber."""
        rows = _checked_rows(rows)
        owners = self._store.snapshot.subscription_subscriber
        whose = rows if by == "subscriber" or owners is None else owners[rows].astype(np.int64)
        return _listed(self._subscribers.chosen(whose))

    def _match_table(self, snapshot: Snapshot, messages: Any, by: str, threads: int | None) -> ManyMatches:
        """Match the rows of an Arrow table column by column."""
        table = as_table(messages, self._crs)
        columns: dict[str, list[ValueRows]] = {}
        rejected: dict[int, Rejection] = {}
        for name in asked_columns(table, self._crs):
            columns[name], bad = checked_column(table, name, self._crs.get(name))
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

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the table to a new directory of plain arrays; keys are kept, rows are numbered anew.

        The directory is there whole or not at all, and on the disk when this returns. With `replace` it takes the place
        of a saved table that is there, on Linux in one step; whoever has opened that one keeps it.
        """
        save_table(packed(self._store, self._crs, self._keys, self._subscribers, self._has_keys), path, replace)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = True) -> ForwardingTable:
        """A saved table, memory-mapped: processes share its pages, and it can be updated further in memory.

        All of it is read against its checksums first; damage is a TableError that names the file. `verify=False` leaves
        that out, for a table that is known to be good: what is damaged then may give wrong answers, but every number
        that is used as an index is still checked.
        """
        saved = open_table(path, verify)
        table = cls()
        table._crs = dict(saved.crs)
        table._keys, table._subscribers = names_from(saved.keys), names_from(saved.subscribers)
        table._live, table._has_keys = saved.rows, saved.has_keys
        owners = (saved.filter_subscription, saved.subscription_subscriber)
        levels = (saved.level, *(EMPTY,) * (LEVELS - 1))
        snapshot = Snapshot(1, levels, saved.rows, saved.filters, *owners, None, saved.several_filters)
        table._store = Store(snapshot, Places.of_saved(saved.places))
        table._front = Front(table._store)
        return table

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        """Pickle and copy the table as it is now, through the files of a saved one.

        >>> import copy
        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "severity >= 3")
        >>> other = copy.deepcopy(table)
        >>> table.unsubscribe(key)
        >>> other.match({"severity": 4})
        {'ops-team'}
        """
        return _unpickled, (packed_bytes(self.save),)

    @staticmethod
    def verify(path: str | os.PathLike[str]) -> None:
        """Read a saved table against its checksums; a damaged file is an error that names it."""
        verify_table(path)

    def stats(self) -> Stats:
        """Sizes, for people."""
        snapshot = self._store.snapshot
        nbytes = sum(tree.nbytes for level in snapshot.levels for tree in level.trees.values())
        nbytes += sum(level.scalars.nbytes for level in snapshot.levels if level.scalars is not None)
        further = (snapshot.filter_subscription, snapshot.subscription_subscriber, snapshot.died)
        nbytes += sum(array.nbytes for array in further if array is not None)
        sizes = tuple(level.filters for level in snapshot.levels)
        return Stats(self._live, len(self._subscribers), snapshot.filters, sizes, nbytes)

    def asked_kinds(self) -> dict[str, list[str]]:
        """Return the attributes that subscriptions ask for, and for each the kinds of values.

        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "severity >= 3 AND kind LIKE 'fl%'")
        >>> table.asked_kinds()
        {'kind': ['text'], 'severity': ['number']}
        """
        levels = self._store.snapshot.levels
        spatial = [place for level in levels for place in (*level.trees, *level.checks)]
        return kinds_by_attribute(list(self._store.places.numbers), spatial, tuple(self._crs))

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
        self._need_keys()
        with self._store.lock:  # a name is there before its subscription is
            return self._row_of(key) is not None

    def __iter__(self) -> Iterator[Name]:
        """The keys of the living subscriptions, oldest first."""
        self._need_keys()
        return (self._keys[int(row)] for row in self._living())

    # Inside

    def _need_keys(self) -> None:
        if not self._has_keys:
            raise KeysGoneError(
                "the keys are gone: `simplify(across=True)` joined the subscriptions of each subscriber; ask this "
                "table by subscriber, and keep what it was made from for keys and updates"
            )

    def _living(self) -> NDArray[np.int64]:
        """The rows of the subscriptions that are alive."""
        snapshot = self._store.snapshot
        return np.flatnonzero(snapshot.is_alive(np.arange(snapshot.rows)))

    def _checked(self, message: Mapping[str, Any]) -> Message:
        """A message as levels take it."""
        return self._noted(*self._read(message))

    def _noted(self, message: Mapping[str, Any], objects: Mapping[Place, Any]) -> Message:
        """The same, given what is not scalar; packing learns from it."""
        places = self._store.places
        checked = Message(objects, places.encode((message,)) if places.asked else None)
        self._store.sample.note(checked.scalars, checked.objects)
        return checked

    def _is_asked(self, attribute: str) -> bool:
        """True if a subscription may ask about an attribute."""
        return attribute in self._crs or attribute in self._store.places.asked

    def _read(self, message: Any) -> Checked:
        """A message with plain values, and its regions and points, in the CRS of the subscriptions, and own types."""
        message = read_message(message, self._is_asked)
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
        return Checked(message, objects)

    def _check_crs(self, attribute: str, crs: Crs) -> None:
        """Raise if a message's CRS is not that of the subscriptions."""
        try:
            common_crs(self._crs.get(attribute), crs)
        except CrsError as error:
            raise CrsError(f"attribute {attribute!r}: {MEET}: {error}") from error

    def _checked_crs(self, predicate: Predicate) -> dict[str, Crs | None]:
        crs: dict[str, Crs | None] = {}
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


def _unpickled(data: bytes) -> ForwardingTable:
    """The table of a pickle."""
    return opened_bytes(data, ForwardingTable.open)


def _checked_rows(rows: Any) -> NDArray[np.int64]:
    array = np.asarray(rows)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ArgumentError(f"rows are integers, as answers have them, not {array.dtype}")
    return array.astype(np.int64).reshape(-1)


def _listed(names: Any) -> list[Name]:
    """Names as a list; an Arrow array is made one."""
    return list(names) if isinstance(names, list) else list(names.to_pylist())


def _check_simplifying(across: object, progress: object) -> None:
    if not isinstance(across, bool) or not (progress is None or callable(progress)):
        given = f"{type(across).__name__} and {type(progress).__name__}"
        raise ArgumentError(f"simplify: across is True or False and progress a function, not {given}")
