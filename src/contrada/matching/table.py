"""ForwardingTable: add and remove subscriptions; find the subscribers and subscriptions that match a message."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from contrada.arguments import checks_methods
from contrada.cql2.queries import Asked, asked_predicate, bound_predicate
from contrada.doors import door
from contrada.errors import ArgumentError, FilterError, KeyInUseError, TableError, UnknownKeyError
from contrada.formats.wrapping import wrapped_predicate
from contrada.geometry import Line, Point, Region
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.globe import globes_of
from contrada.geometry.line_relating import ShapeColumn
from contrada.matching.answer import Matches
from contrada.matching.decompile import predicate_of
from contrada.matching.explain import Explanation, explain
from contrada.matching.matching_table import MatchingTable, is_chosen, shown_choice
from contrada.matching.metre_constraints import crs_in_metres
from contrada.matching.names import Name, Names, check_name, names_in
from contrada.matching.sources import Sources
from contrada.matching.store import storage
from contrada.matching.store.levels import Store, grown
from contrada.matching.store.snapshot import Snapshot
from contrada.matching.store.tuning import DEFAULT_TUNING, Tuning
from contrada.matching.subscriber_table import SubscriberTable, simplified_by_subscriber
from contrada.matching.table_simplification import Progress, recalled, simplify_table
from contrada.matching.template import BoundTemplate, bind_template
from contrada.model import Predicate
from contrada.shown import short
from contrada.simplification.simplifying import Simplification

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@checks_methods(
    "subscribe_many",
    "keys_of",
    "rows_of",
    "subscribers_of",
    "save",
    "open",
    "verify",
    "explain",
    "written",
    "plot",
)
class ForwardingTable(MatchingTable):
    """A live table of subscriptions; any number of threads may match while others update.

    `wrap` maps attributes in longitude and latitude to "longitude" or "shorter": regions and points of subscriptions
    and messages are then brought to longitude -180..180, so that they meet across the date line ([Globe](../globe.md)).

    >>> from contrada import Constraint, Filter, Region, Relation
    >>> table = ForwardingTable()
    >>> key = table.subscribe("ops-team", Filter([Constraint("area", Relation.OVERLAPS, Region.box(0, 0, 4, 4))]))
    >>> table.match({"area": Region.box(2, 2, 6, 6)})
    {'ops-team'}
    """

    _keys: Names

    def __init__(self, *, tuning: Tuning = DEFAULT_TUNING, wrap: Mapping[str, str] | None = None) -> None:
        _check_tuning(tuning)
        super().__init__(Store(tuning=tuning), Names(tuning), {}, 0, globes_of(wrap))
        self._keys, self._sources = Names(tuning), Sources()

    # Updates

    @door(FilterError)
    def subscribe(self, subscriber: Name, what: Asked, key: Name | None = None, replace: bool = False) -> Name:
        """Add a subscription and return its key; a key in use raises KeyInUseError unless `replace` is True.

        `what` is a Predicate, Filter or Constraint, CQL2 text, or CQL2 JSON as a dict.
        """
        given = bound_predicate(what)
        predicate = wrapped_predicate(given, self._spatial.globes)
        check_name("subscriber", subscriber)
        with self._store.updating():
            crs = self._checked_crs(predicate)
            if key is None:
                key, old = self._free_key(), None
            else:
                check_name("key", key)
                old = self._row_of(key)
                if old is not None and not replace:
                    raise KeyInUseError(f"a subscription with the key {key!r} already exists")
            self._store.encoder.check(constraint for part in predicate for constraint in part)
            self._crs.update(crs)
            self._keys.append(key)
            known = self._subscribers.row(subscriber)
            self._live += old is None
            if isinstance(what, str) or predicate is not given:
                self._sources.put(self._store.snapshot.rows, [what if isinstance(what, str) else str(given)])
            self._store.append(self._subscribers.append(subscriber) if known is None else known, predicate, old)
        return key

    @door(FilterError)
    def subscribe_many(self, rows: Any, template: Asked) -> list[Name]:
        """Add a subscription for every row of an Arrow table, and return their keys.

        `template` is a query with `Column("name")`, in CQL2 text `$name`, in place of values. Columns hold regions or
        points (WKB or GeoArrow), text, numbers, booleans or timestamps. Optional columns: `key` and `subscriber`
        (default: the key). Default keys are the row numbers in this table, or larger integers if one of those was a key
        before. A bad row raises, and nothing is added.
        """
        bound = bind_template(rows, asked_predicate(template), globes=self._spatial.globes)
        return self._subscribe_bound(bound, [template] * bound.rows if isinstance(template, str) else ())

    def _subscribe_bound(self, bound: BoundTemplate, written: Sequence[str]) -> list[Name]:
        """Add the subscriptions of a template; `written` are their texts, if they have any."""
        with self._store.lock:
            keys, subscribers = bound.names(self._free_key())
            crs = dict(self._crs)
            for (attribute, kind), part in chain.from_iterable(bound.spatial):
                crs[attribute] = crs_in_metres(attribute, kind, common_crs(crs.get(attribute), part.column.crs))
            self._refuse_used(keys)
            self._store.encoder.check(bound.long)
            self._crs.update(crs)
            self._keys.extend(keys)
            snapshot = self._store.snapshot
            draft = grown(snapshot, self._subscribers.rows_of(subscribers), bound.filters)
            self._live += bound.rows
            if written:
                self._sources.put(snapshot.rows, written)
            added = bound.split(snapshot.filters, self._store.encoder)
            self._store.append_many(draft, added, bound.rows * bound.filters)
            return list(names_in(keys))

    def unsubscribe(self, key: Name) -> None:
        """Remove a subscription; raise UnknownKeyError for an unknown key."""
        check_name("key", key)
        with self._store.updating(waits=False):
            row = self._row_of(key)
            if row is None:
                raise UnknownKeyError(f"no subscription has the key {key!r}")
            self._live -= 1
            self._store.remove(row)

    def simplify(self, progress: Progress | None = None) -> Simplification:
        """Drop redundant constraints and filters within each subscription; no answer changes.

        Matching continues, updates wait. `progress` is called with the number of subscriptions done and their total.

        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "severity >= 3 OR severity >= 5 AND kind = 'flood'")
        >>> report = table.simplify()
        >>> report.filters_before, report.filters_after
        (2, 1)
        """
        _check_progress(progress)
        with self._store.lock:
            self._store.pack()
            report = simplify_table(self._store, self._keys, self._crs, progress)
            self._store.pack()
        return report

    def simplified(self, by: Literal["subscriber"] = "subscriber", progress: Progress | None = None) -> SubscriberTable:
        """Return a read-only table with one simplified subscription per subscriber.

        It answers by subscriber as this table does, has no keys, and counts what was dropped in its `report`. This
        table does not change. `progress` is called with the number of subscriptions done and their total.

        >>> table = ForwardingTable()
        >>> keys = [table.subscribe("ops-team", text) for text in ("severity >= 3", "severity >= 5")]
        >>> shorter = table.simplified(by="subscriber")
        >>> shorter.report.filters_before, shorter.report.filters_after, shorter.match({"severity": 5})
        (2, 1, {'ops-team'})
        """
        if not is_chosen(by, "subscriber"):
            raise ArgumentError(f'simplified: by: need "subscriber", got {shown_choice(by)}')
        _check_progress(progress)
        with self._store.lock:
            self._store.pack()
            snapshot, crs = self._store.snapshot, dict(self._crs)
        globes = self._spatial.globes
        return simplified_by_subscriber(snapshot, self._store.encoder, self._subscribers, crs, progress, globes)

    def pack(self) -> None:
        """Pack all live filters into one level; matching continues, updates wait. Updates also pack step by step."""
        self._store.pack()

    def wait_for_compaction(self) -> None:
        """Wait until no level is being packed; matching and updates do not wait for packing."""
        self._store.wait_for_compaction()

    # Queries

    def match_keys(self, message: Mapping[str, Any]) -> Matches:
        """Return the keys of the subscriptions that `message` satisfies."""
        return Matches(self._store.asked().subscriptions(self._checked(message)), self._keys)

    def explain(self, message: Mapping[str, Any], key: Name) -> Explanation:
        """Explain why a message satisfies a subscription, or why not; raise UnknownKeyError for an unknown key.

        >>> from contrada import Constraint
        >>> table = ForwardingTable()
        >>> table.subscribe("ops-team", Constraint("severity", ">=", 3), key="k17")
        'k17'
        >>> table.explain({"severity": 4}, "k17").truth
        True
        """
        message, _ = self._read(message)
        with self._store.lock:  # a key is stored before its subscription
            row, snapshot = self._row_of(key), self._store.snapshot
        if row is None:
            raise UnknownKeyError(f"no subscription has the key {key!r}")
        return self._explained(snapshot, row, message)

    def _explained(self, snapshot: Snapshot, row: int, message: Mapping[str, Any]) -> Explanation:
        """Explain a message that was read against the subscription in a row."""
        predicate = predicate_of(snapshot, self._store.encoder, row, self._crs)
        subscriber = self._subscribers[int(snapshot.owners(np.array([row]))[0])]
        return explain(predicate, message, self._keys[row], subscriber)._replace(written=self._sources.find(row))

    def plot(
        self, message: Mapping[str, Any], ax: Any = None, *, attribute: str | None = None, limit: int = 100
    ) -> Axes:
        """Draw a message with the subscriptions that it hits and those near it that it misses; return Matplotlib axes.

        Misses are told apart: by the relation to the region, or by another condition. `attribute` names the region or
        point of the message to draw, by default the first that subscriptions ask about. At most `limit` hits and
        `limit` misses are drawn, on `ax` or on new axes. Needs the extra `plot`.

        >>> table = ForwardingTable()
        >>> keys = [table.subscribe("ops-team", f"S_INTERSECTS(area, BBOX({x}, 0, {x + 2}, 2))") for x in (0, 3, 6)]
        >>> key = table.subscribe("ops-team", "S_INTERSECTS(area, BBOX(0, 3, 2, 5)) AND severity >= 3")
        >>> axes = table.plot({"area": Region.box(1, 1, 2.5, 4), "severity": 1})
        >>> axes.get_title(), axes.get_legend_handles_labels()[1]
        ('1 of 4 subscriptions hit', ['missed by region: 1', 'missed by another condition: 1', 'hit: 1', 'message'])
        """
        from contrada.matching.plotting import plot_message, plotted_attribute

        _check_limit(limit)
        message, objects = self._read(message)
        snapshot, name = self._store.asked(), plotted_attribute(message, list(self._crs), attribute)
        hits = snapshot.subscriptions(self._noted(message, objects))
        explained = partial(self._explained, snapshot, message=message)
        return plot_message(snapshot, message[name], name, hits, explained, ax, limit)

    def written(self, key: Name) -> str:
        """Return the filter of a subscription in CQL2 text, as it was written; of `subscribe_many`, the template.

        A filter that was given as objects is written as `str` writes it. An unknown key raises UnknownKeyError.

        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "NOT (severity < 3)")
        >>> table.written(key)
        'NOT (severity < 3)'
        """
        check_name("key", key)
        with self._store.lock:
            row, snapshot = self._row_of(key), self._store.snapshot
            if row is None:
                raise UnknownKeyError(f"no subscription has the key {key!r}")
            text = self._sources.find(row)
        return str(predicate_of(snapshot, self._store.encoder, row, self._crs)) if text is None else text

    def predicates(self) -> Iterator[tuple[Name, Predicate]]:
        """Yield the key and the predicate of each live subscription, oldest first; the table is packed before.

        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "NOT (severity < 3)", key="k17")
        >>> dict(table.predicates())
        {'k17': <Predicate severity >= 3>}
        """
        with self._store.lock:
            self._store.pack()
            snapshot, crs = self._store.snapshot, dict(self._crs)
        rows = snapshot.living()
        if len(rows):
            found = recalled(snapshot, self._store.encoder, crs, list(rows.reshape(-1, 1)))
            for row, filters in zip(rows.tolist(), found, strict=True):
                yield self._keys[row], Predicate(filters)

    def keys_of(self, rows: NDArray[np.int64]) -> list[Name]:
        """Return the keys of the subscriptions in `rows`, the rows of an answer by subscription.

        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "severity >= 3", key="k17")
        >>> table.keys_of(table.match_keys({"severity": 4}).rows)
        ['k17']
        """
        return _listed(self._keys.chosen(_checked_rows(rows)))

    def rows_of(self, keys: Sequence[Name]) -> list[int]:
        """Return the rows of subscriptions, as answers by subscription have them; raise UnknownKeyError for others.

        >>> table = ForwardingTable()
        >>> keys = [table.subscribe("ops-team", "severity >= 3", key=key) for key in ("k17", "k18")]
        >>> table.rows_of(["k18"])
        [1]
        """
        with self._store.lock:
            found = [self._row_of(key) for key in keys]
        for key, row in zip(keys, found, strict=True):
            if row is None:
                raise UnknownKeyError(f"no subscription has the key {short(key)}")
        return [row for row in found if row is not None]

    def subscribers_of(self, rows: NDArray[np.int64], by: Literal["subscription", "subscriber"]) -> list[Name]:
        """Return the subscribers for the rows of an answer; `by` is the `by` of that answer."""
        rows = _checked_rows(rows)
        return _listed(self._subscribers.chosen(rows if by == "subscriber" else self._store.snapshot.owners(rows)))

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the table to a new directory of plain arrays; keys are kept, rows are renumbered.

        The directory appears complete or not at all, and is on disk when the call returns. With `replace` it replaces
        an existing saved table, on Linux in one step; processes that have opened the old table keep it.
        """
        saved = storage.packed(self._store, self._crs, self._keys, self._subscribers, self._sources, self.wrap)
        storage.save_table(saved, path, replace)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, verify: bool = True, tuning: Tuning = DEFAULT_TUNING
    ) -> ForwardingTable:
        """Open a saved table by memory map: processes share its pages; updates stay in memory.

        All files are checked against their checksums first; a damaged file raises a TableError that names it. With
        `verify=False` checksums are skipped: then damage may give wrong answers, but every number that is used as an
        index is still checked.
        """
        _check_tuning(tuning)
        saved = storage.open_table(path, verify)
        if not saved.has_keys:
            raise TableError(f"{os.fspath(path)} was simplified by subscriber; open it with SubscriberTable.open")
        table, store = cls.__new__(cls), storage.store_of(saved, tuning)
        names = storage.names_from(saved.subscribers, tuning)
        MatchingTable.__init__(table, store, names, dict(saved.crs), saved.rows, globes_of(saved.wrap))
        table._keys, table._sources = storage.names_from(saved.keys, tuning), Sources(saved.sources)
        return table

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the current state of the table through the files of `save`.

        >>> import copy
        >>> table = ForwardingTable()
        >>> key = table.subscribe("ops-team", "severity >= 3")
        >>> other = copy.deepcopy(table)
        >>> table.unsubscribe(key)
        >>> other.match({"severity": 4})
        {'ops-team'}
        """
        return storage.opened_bytes, (storage.packed_bytes(self.save), ForwardingTable.open)

    @staticmethod
    def verify(path: str | os.PathLike[str]) -> None:
        """Check a saved table against its checksums; raise TableError naming a damaged file."""
        storage.open_table(path, verify=True)

    def __contains__(self, key: object) -> bool:
        with self._store.lock:  # a key is stored before its subscription
            return self._row_of(key) is not None

    def __iter__(self) -> Iterator[Name]:
        """Return the keys of live subscriptions, oldest first."""
        return (self._keys[int(row)] for row in self._store.snapshot.living())

    # Helpers

    def _checked_crs(self, predicate: Predicate) -> dict[str, Crs | None]:
        crs: dict[str, Crs | None] = {}
        for part in predicate.filters:
            for constraint in part.constraints:
                name = constraint.attribute
                if not isinstance(constraint.value, Region | Point | Line):
                    if constraint.kind is not None:
                        crs.setdefault(name, self._crs.get(name))  # batches read only columns listed in _crs
                    continue
                known = common_crs(crs.get(name, self._crs.get(name)), constraint.value.crs)
                crs[name] = crs_in_metres(name, str(constraint.kind), known)
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
            raise KeyInUseError(f"a subscription with the key {key!r} already exists")


@door(FilterError)
def subscribe_rows(
    table: ForwardingTable,
    rows: Any,
    template: Predicate,
    *,
    read: Mapping[str, ShapeColumn] = MappingProxyType({}),
    written: Sequence[str] | None = None,
) -> None:
    """Do what `subscribe_many` does. `read` has geometry columns of the rows that are read already, by name.

    `written` are the texts of the rows, which differ only in the values of the template; by default the template.
    """
    bound = bind_template(rows, template, read, table._spatial.globes)
    table._subscribe_bound(bound, [str(template)] * bound.rows if written is None else written)


def _checked_rows(rows: Any) -> NDArray[np.int64]:
    array = np.asarray(rows)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ArgumentError(f"rows: need integers, got {array.dtype}")
    return array.astype(np.int64).reshape(-1)


def _listed(names: Any) -> list[Name]:
    """Return names as a list, also those of an Arrow array."""
    return list(names) if isinstance(names, list) else list(names.to_pylist())


def _check_tuning(tuning: object) -> None:
    if not isinstance(tuning, Tuning):
        raise ArgumentError(f"tuning: need a Tuning, got {type(tuning).__name__}")


def _check_limit(limit: object) -> None:
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ArgumentError(f"limit: need a whole number of at least 1, got {short(limit)}")


def _check_progress(progress: object) -> None:
    if not (progress is None or callable(progress)):
        raise ArgumentError(f"progress: need a function of two numbers, got {type(progress).__name__}")
