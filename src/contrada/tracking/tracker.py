"""Tracker: subscriptions to what tracked objects do, over a ForwardingTable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from contrada.arguments import checks_methods
from contrada.cql2.queries import Asked, bound_predicate
from contrada.errors import ArgumentError, ContradaError, FilterError, KeyInUseError, UnknownKeyError
from contrada.formats.wrapping import wrapped_predicate
from contrada.geometry import Rejection, Relation
from contrada.geometry.globe import globes_of
from contrada.matching import ForwardingTable
from contrada.matching.batch_reading import is_arrow
from contrada.matching.names import Name
from contrada.shown import short
from contrada.tracking.durations import Duration, duration_ms
from contrada.tracking.fixes import MAX_TIME, Fixes, FixReader
from contrada.tracking.templates import watches_of
from contrada.tracking.tracks import Late, Tracks
from contrada.tracking.transitions import ObjectId, Transitions
from contrada.tracking.watch import First, On, Watch, check_no_cross, kinds_of, watch_of


class TrackEvent(NamedTuple):
    """One event: an object entered, left, changed its relation, crossed a region or stayed in it.

    `before` and `after` are relations of the object to the region, None if it had no fix with a geometry. `time` is in
    milliseconds since 1970. `row` is the message that told it, None if time or a subscription did; `reason` says why.
    """

    kind: str
    key: Name
    object: ObjectId
    before: Relation | None
    after: Relation | None
    time: int
    row: int | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the event with relations by name, for JSON.

        >>> TrackEvent("exit", "depot", 7, Relation.INSIDE, Relation.DISJOINT, 1000, 3, "fix").to_dict()["before"]
        'inside'
        """
        before, after = (None if one is None else str(one) for one in (self.before, self.after))
        return {**self._asdict(), "before": before, "after": after}


class TrackEvents(Sequence[TrackEvent]):
    """Events in order; `rejected` has the messages that were not tracked, and why."""

    __slots__ = ("_events", "_keys", "rejected", "transitions")

    def __init__(
        self, transitions: Transitions, keys: Callable[[Any], list[Name]], rejected: Sequence[Rejection] = ()
    ) -> None:
        self.transitions, self.rejected = transitions, tuple(rejected)  # the former has the events as arrays
        self._keys, self._events = keys, list[TrackEvent]()

    @overload
    def __getitem__(self, index: int) -> TrackEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[TrackEvent]: ...
    def __getitem__(self, index: int | slice) -> TrackEvent | list[TrackEvent]:
        return self._made()[index]

    def __len__(self) -> int:
        return len(self.transitions)

    def __iter__(self) -> Iterator[TrackEvent]:
        return iter(self._made())

    def _repr_html_(self) -> str:
        """Return the events for Jupyter, of many the first."""
        from contrada.tracking.pictures import events_html

        return events_html(self)

    def __repr__(self) -> str:
        return f"<TrackEvents: {len(self)} events, {len(self.rejected)} messages not tracked>"

    def _made(self) -> list[TrackEvent]:
        """Return the events, made when they are first looked at; a table keeps the keys of removed subscriptions."""
        if len(self._events) < len(self.transitions):
            names = self._keys(self.transitions.numbers)
            told = zip(names, self.transitions, strict=True)
            self._events = [TrackEvent(one.kind, key, *one[2:]) for key, one in told]
        return self._events


@checks_methods("__init__", "publish", "subscribe", "subscribe_many", "watch_all", "unsubscribe", "advance", "inside")
class Tracker:
    """Tells when tracked objects enter, leave, touch or cross the regions of subscriptions, not every position.

    Messages with the same value of attribute `track` are states (fixes) of one object. `time` names the attribute with
    the time of a fix; without it, fixes happen when they are published. A fix older than the newest of its object is
    late: `late="ignore"` counts it, `"arrival"` takes it in order of arrival. After `expire_after` without a fix an
    object is forgotten, and leaves what it is inside of. Not safe for threads.

    >>> tracker = Tracker(track="bus")
    >>> events = tracker.subscribe("depot", "S_WITHIN(at, BBOX(0, 0, 4, 4))", on=["enter", "exit"])
    >>> path = [{"bus": 7, "at": {"type": "Point", "coordinates": [x, 2]}} for x in (1, 2, 5)]
    >>> [(event.kind, event.key, event.object, str(event.before)) for event in tracker.publish(path)]
    [('enter', 'depot', 7, 'None'), ('exit', 'depot', 7, 'inside')]
    """

    def __init__(
        self,
        table: ForwardingTable | None = None,
        track: str = "id",
        time: str | None = None,
        *,
        late: Late = "ignore",
        expire_after: Duration | None = None,
        alias: str | None = None,
        end: Asked | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        if table is not None and not isinstance(table, ForwardingTable):
            raise ArgumentError(f"table: need a ForwardingTable, got {type(table).__name__}")
        for name, value in (("track", track), ("time", time), ("alias", alias)):
            _check_attribute_name(name, value)
        self._table = ForwardingTable() if table is None else table
        self._reader = FixReader(track, time=time, alias=alias, end=end, wrap=self._table.wrap)
        expiry = None if expire_after is None else duration_ms(expire_after, "expire_after")
        self._tracks = Tracks(late=late, expire_after=expiry, deltas=False)
        if clock is not None and not callable(clock):
            raise ArgumentError(f"clock: need a function that returns milliseconds, got {type(clock).__name__}")
        self._clock = _now if clock is None else clock
        self._attribute: str | None = None
        self._numbers: dict[Name, int] = {}
        self.newest: int | None = None  # latest time of a fix

    @property
    def table(self) -> ForwardingTable:
        """The table of subscriptions."""
        return self._table

    @property
    def tracks(self) -> Tracks:
        """The state of the objects: counts, sizes, and who is inside."""
        return self._tracks

    def subscribe(
        self,
        key: Name,
        query: Asked,
        on: On,
        *,
        subscriber: Name | None = None,
        exit_buffer: float = 0.0,
        exit_after: Duration | None = None,
        first: First = "enter",
        replace: bool = False,
    ) -> TrackEvents:
        """Add a subscription; return the exits of objects from a subscription that it replaces.

        `on` lists kinds of events: `enter`, `exit`, `change`, `cross`, `dwell(5m)` or `{"dwell": "5m"}`. The query has
        exactly one spatial constraint, whose relation counts. An object stays in until a fix is farther than
        `exit_buffer` from the region, and until fixes have not matched for `exit_after`. The first fix of an object
        after this call tells `enter` if it matches, or nothing with `first="silent"`. Replacing a subscription by an
        equal one changes nothing.
        """
        wrap = self._table.wrap
        wrapped = wrapped_predicate(bound_predicate(query), globes_of(wrap)) if wrap else query
        watch = watch_of(wrapped, on, exit_buffer=exit_buffer, exit_after=exit_after, first=first)
        self._check(watch)
        old = self._numbers.get(key)
        if old is not None and not replace:
            raise KeyInUseError(f"a subscription with the key {key!r} already exists")
        if old is not None and self._tracks.watched(old) == watch:
            return self._events(self._tracks.unwatch([], 0))
        self._table.subscribe(key if subscriber is None else subscriber, query, key, replace=replace)
        told = self._events(self._tracks.unwatch([] if old is None else [old], self._time(None), "replaced"))
        self._add([key], [watch])
        return told

    def subscribe_many(
        self,
        rows: Any,
        template: Asked,
        on: On,
        *,
        exit_buffer: float = 0.0,
        exit_after: Duration | None = None,
        first: First = "enter",
    ) -> list[Name]:
        """Add a subscription for every row of an Arrow table, as `ForwardingTable.subscribe_many` does; return keys."""
        keys = self._table.subscribe_many(rows, template)
        try:
            watches = watches_of(
                rows, template, on, self._table.wrap, exit_buffer=exit_buffer, exit_after=exit_after, first=first
            )
            for watch in watches[:1]:
                self._check(watch)
        except ContradaError:
            for key in keys:
                self._table.unsubscribe(key)
            raise
        self._add(keys, watches)
        return keys

    def watch_all(
        self, on: On, *, exit_buffer: float = 0.0, exit_after: Duration | None = None, first: First = "enter"
    ) -> dict[Name, str]:
        """Watch the subscriptions that the table already has; return by key why others cannot be watched.

        >>> table = ForwardingTable()
        >>> keys = [table.subscribe("ann", "S_WITHIN(at, BBOX(0, 0, 4, 4))", "depot"), table.subscribe("ann", "a = 1")]
        >>> Tracker(table).watch_all("enter, exit")
        {1: 'on: need exactly one spatial constraint to track objects by; `a = 1` has none'}
        """
        kinds_of(on)
        refused: dict[Name, str] = {}
        watches: dict[Name, Watch] = {}
        for key, predicate in self._table.predicates():
            if key in self._numbers:
                continue
            try:
                watch = watch_of(predicate, on, exit_buffer=exit_buffer, exit_after=exit_after, first=first)
                self._check(watch)
            except FilterError as error:
                refused[key] = str(error)
                continue
            self._attribute = watch.attribute
            watches[key] = watch
        self._add(list(watches), list(watches.values()))
        return refused

    def unsubscribe(self, key: Name) -> TrackEvents:
        """Remove a subscription; return the exits of the objects inside; raise UnknownKeyError for an unknown key."""
        number = self._numbers.get(key)
        if number is None:
            raise UnknownKeyError(f"no subscription has the key {key!r}")
        told = self._events(self._tracks.unwatch([number], self._time(None)))
        self._table.unsubscribe(key)
        del self._numbers[key]
        if not self._numbers:
            self._attribute = None
        return told

    def publish(self, messages: Any, now: int | None = None, threads: int | None = None) -> TrackEvents:
        """Take messages, a list of mappings or an Arrow table, in order; return what they tell.

        Messages that cannot be matched, or have no tracking id or time, are rejected; the others are tracked.
        `now` is the time of arrival in milliseconds since 1970; default: the clock.
        """
        arrival = self._time(now)
        is_whole = is_arrow(messages) or isinstance(messages, list | str | bytes | Mapping)
        batch = messages if is_whole else list(messages)
        answer = self._table.match_many(batch, "subscription", threads)
        fixes, bad = self._reader.read(batch, self._attribute, arrival)
        if answer.rejected:
            fixes = fixes.without(item.row for item in answer.rejected)
        self._note_newest(fixes)
        rows = np.repeat(np.arange(len(answer)), np.diff(answer.offsets))
        told = self._tracks.apply(fixes._replace(rows=rows, numbers=answer.rows))
        rejected = {item.row: item for item in (*bad, *answer.rejected)}
        return self._events(told, [rejected[row] for row in sorted(rejected)])

    def advance(self, now: int | None = None) -> TrackEvents:
        """Let time pass: return dwells and waiting exits that became due, and exits of objects that expired.

        `now` is in milliseconds since 1970, on the clock of the fixes; default: the clock.
        """
        return self._events(self._tracks.advance(self._time(now)))

    def inside(self, key: Name) -> list[ObjectId]:
        """Return the objects that are inside of a subscription; raise UnknownKeyError for an unknown key."""
        number = self._numbers.get(key)
        if number is None:
            raise UnknownKeyError(f"no subscription has the key {key!r}")
        return [one.object for one in self._tracks.inside(number)]

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"<Tracker: {len(self)} subscriptions, {self._tracks.objects} objects>"

    # Helpers

    def _time(self, now: int | None) -> int:
        """Return a time that is given, or that of the clock."""
        time: Any = self._clock() if now is None else now
        if not isinstance(time, int) or isinstance(time, bool) or abs(time) > MAX_TIME:
            raise ArgumentError(f"now: need milliseconds since 1970, got {short(time)}")
        return time

    def _check(self, watch: Watch) -> None:
        check_no_cross(watch, self._table.wrap)
        attribute = watch.attribute
        if self._attribute not in (None, attribute):
            raise FilterError(
                f"subscriptions of this tracker ask about {self._attribute!r}, this one about {attribute!r};"
                " use another Tracker for it"
            )

    def _add(self, keys: Sequence[Name], watches: Sequence[Watch]) -> None:
        """Watch new subscriptions of the table."""
        for key, watch, number in zip(keys, watches, self._table.rows_of(keys), strict=True):
            self._attribute = watch.attribute
            self._tracks.watch(number, watch, 0)
            self._numbers[key] = number

    def _note_newest(self, fixes: Fixes) -> None:
        times = fixes.times[np.array([id is not None for id in fixes.ids], bool)]
        if len(times):
            latest = int(times.max())
            self.newest = latest if self.newest is None else max(latest, self.newest)

    def _events(self, transitions: Transitions, rejected: Sequence[Rejection] = ()) -> TrackEvents:
        return TrackEvents(transitions, self._table.keys_of, rejected)


def _check_attribute_name(name: str, value: Any) -> None:
    if not (value is None and name != "track") and not (isinstance(value, str) and value):
        raise ArgumentError(f"{name}: need the name of an attribute, got {short(value)}")


def _now() -> int:
    return time.time_ns() // 1_000_000
