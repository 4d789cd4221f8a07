"""Tracks: follow objects from fix to fix, and tell when they enter, leave or cross the regions of subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import (
    CHANGES,
    EVENTS,
    FIXES,
    FOREVER,
    LATE,
    NEVER,
    NEXT_DUE,
    NO_RELATION,
    OF_LAST_FIX,
    OF_THIS_FIX,
    PAIRS,
)
from contrada.errors import ArgumentError
from contrada.geometry.arrays import frozen
from contrada.kernels.track.arrays import ChangeArrays, EventArrays, FixArrays
from contrada.matching.batch import SpatialColumn
from contrada.matching.matching_table import is_chosen
from contrada.shown import short
from contrada.tracking.crossing import CrossingIndex
from contrada.tracking.durations import MAX_DURATION
from contrada.tracking.fixes import Fixes
from contrada.tracking.growing import longer, room_for
from contrada.tracking.journal import Journal
from contrada.tracking.objects import TrackedObjects
from contrada.tracking.ordering import OrderedFixes, Pairs, ordered_fixes, rising_pairs
from contrada.tracking.relating import boxes_of, distances, points_of, relation_codes
from contrada.tracking.saved import SavedTracks, json_bytes, json_list, packed, unpacked
from contrada.tracking.transitions import REASONS, ObjectId, Transitions, id_order
from contrada.tracking.watch import Watch
from contrada.tracking.watches import Watches

Late = Literal["ignore", "arrival"]
NO_PAIRS: Pairs = (np.empty(0, np.int64), np.empty(0, np.int64))
PAIR_ROOM = 1 << 10  # least room for pairs that is added at a time


class Inside(NamedTuple):
    """An object that is inside of a subscription, since a time in milliseconds."""

    object: ObjectId
    number: int
    since: int


class Tracks:
    """The objects of one tracking attribute, and the subscriptions that each is inside of; not safe for threads.

    Matching happens elsewhere: `apply` takes fixes with the subscriptions that they match. Everything that changes can
    be taken as bytes, `take_delta`, and a snapshot with all deltas after it gives the same state again. Times are in
    milliseconds since 1970.

    >>> from contrada.tracking import read_fixes, watch_of
    >>> tracks = Tracks()
    >>> _ = tracks.watch(7, watch_of("S_WITHIN(at, BBOX(0, 0, 4, 4))", "enter, exit"), time=0)
    >>> message = {"bus": "b1", "at": {"type": "Point", "coordinates": [1, 1]}}
    >>> fixes, _ = read_fixes([message], "bus", "at", arrival=1000)
    >>> events = tracks.apply(fixes._replace(rows=np.array([0]), numbers=np.array([7])))
    >>> [(event.kind, event.object, str(event.after)) for event in events]
    [('enter', 'b1', 'inside')]
    >>> Tracks.restore(tracks.snapshot()).inside()
    [Inside(object='b1', number=7, since=1000)]
    """

    def __init__(
        self,
        *,
        late: Late = "ignore",
        expire_after: int | None = None,
        deltas: bool = True,
        watches: Watches | None = None,
    ) -> None:
        if not is_chosen(late, "ignore") and not is_chosen(late, "arrival"):
            raise ArgumentError(f'late: need "ignore" or "arrival", got {late!r:.60}')
        self._late, self._expire_after = late, _checked_expiry(expire_after)
        self._objects, self._watches = TrackedObjects(), Watches() if watches is None else watches
        self._crossing: tuple[int, CrossingIndex | None] = (0, None)  # for the version of the watches
        self._events = EventArrays(*(np.zeros(256, kind) for kind in ("u1", "u1", "u1", "u1", "i4", "i4", "i8", "i8")))
        size = 256 if deltas else 0
        self._changes = ChangeArrays(*(np.zeros(size, kind) for kind in ("i4", "i4", "u1", "u1", "i8", "i8")))
        self._journal = Journal(deltas)

    # Subscriptions

    def watch(self, number: int, watch: Watch, time: int, reason: str = "replaced") -> Transitions:
        """Watch objects for a subscription; return the exits of objects from a different one with the same number.

        The next fix of every object is its first one for the subscription. An equal subscription changes nothing.
        """
        if self._watches.get(number) == watch:
            return self._told(None, None)
        told = self.unwatch([number], time, reason)
        self._watches.put(number, watch, int(self._objects.arrays.state[FIXES]))
        self._journal.note_watch(number)
        return told

    def unwatch(self, numbers: Iterable[int], time: int, reason: str = "unsubscribed") -> Transitions:
        """Stop watching subscriptions; return the exits of the objects that are inside of them."""
        code = REASONS.index(reason)
        w = self._watches.arrays
        known = [number for number in numbers if self._watches.get(number) is not None]
        places = w.places[np.array(known, np.int64)]
        if w.inside[places].any():
            w.removed[places] = 1
            slots = len(self._objects.arrays.seen)
            self._drive(lambda begin: kernels.fill_removal(*self._state(), begin, time, code), slots)
        told = self._told(None, None)
        for number in known:
            self._watches.drop(number)
            if not self._watches.is_view:
                self._journal.note_unwatch(number)
        return told

    def take_watches(self, watches: Watches) -> None:
        """Take a later view of subscriptions that are kept elsewhere; nothing that it lacks may have an object inside.

        The time of watching of a new subscription is `fixes`.
        """
        inside = self._watches.arrays.inside
        watches.arrays.inside[: len(inside)] = inside
        self._watches, self._crossing = watches, (-1, None)

    @property
    def fixes(self) -> int:
        """Number of fixes taken."""
        return int(self._objects.arrays.state[FIXES])

    @property
    def oldest(self) -> int:
        """Number of fixes taken at the last fix of the object that is silent longest; `fixes` without objects."""
        seen = self._objects.arrays.seen
        return int(seen[seen > 0].min(initial=self.fixes))

    def watched(self, number: int) -> Watch | None:
        """Return what is watched under a number; None if nothing is."""
        return self._watches.get(number)

    def numbers(self) -> list[int]:
        """Return the numbers of watched subscriptions, rising."""
        return self._watches.numbers()

    # Fixes and time

    def apply(self, fixes: Fixes) -> Transitions:
        """Take a batch of fixes; return what they tell, in the order of their rows and then of the subscriptions.

        Several fixes of one object are taken in order of their times, at the places of its rows; with
        `late="arrival"` in order of their rows. Events that a fix makes due come before those of the fix itself.
        """
        slots, new, aliases = self._objects.slots_of(fixes.ids, fixes.aliases)
        self._journal.note_names(new, aliases)
        ordered = self._ordered(fixes, slots)
        arrays = self._fix_arrays(fixes, ordered)
        options = self._expire_after, self._watches.is_timed
        widest = int(np.diff(arrays.offsets).max(initial=0)) + int(np.diff(arrays.crossed_offsets).max(initial=0))
        self._drive(
            lambda begin: kernels.fill_fixes(*self._state(), arrays, begin, *options), len(ordered.rows), widest
        )
        told = self._told(fixes.geometry, ordered)
        self._objects.keep_last(ordered.slots, ordered.rows, fixes.geometry)
        self._journal.note_slots(ordered.slots)
        if ordered.ends.any():
            self._drop_gone(np.unique(ordered.slots).tolist())
        return told

    def advance(self, now: int) -> Transitions:
        """Let time pass up to `now`; return dwells and exits that became due, and exits of tracks that expired.

        Events come in order of their times, then of subscriptions and ids. Takes no time if nothing is due.
        """
        state = self._objects.arrays.state
        if state[NEXT_DUE] > now:
            return self._told(None, None)
        state[NEXT_DUE] = FOREVER
        options = now, self._expire_after, self._watches.is_timed
        slots = len(self._objects.arrays.seen)
        self._drive(lambda begin: kernels.fill_time(*self._state(), begin, *options), slots)
        told = self._told(None, None)
        if self._expire_after:
            self._drop_gone(self._objects.gone())
        return told

    @property
    def next_due(self) -> int | None:
        """Time before which `advance` tells nothing; None if nothing waits for time."""
        due = int(self._objects.arrays.state[NEXT_DUE])
        return None if due == FOREVER else due

    def _ordered(self, fixes: Fixes, slots: NDArray[np.int32]) -> OrderedFixes:
        """Return the fixes that are taken, in order; late ones are counted."""
        rows, times = np.flatnonzero(slots >= 0), fixes.times
        if self._late == "ignore":
            a = self._objects.arrays
            own = slots[rows]
            is_late = (a.seen[own] > 0) & (times[rows] < a.newest[own])
            late = int(np.count_nonzero(is_late))
            if late:
                a.state[LATE] += late
                self._journal.has_late = True
                rows = rows[~is_late]
        ended = () if fixes.ends is None else rows[fixes.ends[rows]].tolist()
        parts = [(row, self._objects.parts_of(fixes.ids[row])) for row in ended]
        return ordered_fixes(rows, slots[rows], times[rows], self._late == "ignore", parts)

    def _fix_arrays(self, fixes: Fixes, ordered: OrderedFixes) -> FixArrays:
        """Return fixes with their pairs for the kernel: matches, pairs near a region, and crossings."""
        size, geometry = len(ordered.rows), fixes.geometry
        numbers = np.asarray(fixes.numbers, np.int64)
        places = ordered.places(len(fixes.ids))[np.asarray(fixes.rows, np.int64)]
        known = np.flatnonzero((places >= 0) & (self._watches.places(numbers) >= 0))
        offsets, wanted, places = rising_pairs(places[known], numbers[known], size)
        relations = np.full(len(wanted), NO_RELATION, np.uint8)
        changing = np.flatnonzero(self._watches.asks_for_changes(wanted))
        if len(changing):
            shapes = self._watches.shapes(wanted[changing])
            relations[changing] = relation_codes(geometry, ordered.rows[places[changing]], *shapes).view(np.uint8)
        nothing = frozen(np.zeros(size + 1, np.int64)), frozen(np.zeros(0, np.int32))
        fixed = [frozen(array) for array in (ordered.slots, ordered.times, ordered.ends, offsets, wanted, relations)]
        arrays = FixArrays._make([*fixed, *nothing, *nothing])
        if self._watches.is_buffered:
            near = rising_pairs(*self._near(arrays, geometry, ordered), size)
            arrays = arrays._replace(near_offsets=frozen(near[0]), near=frozen(near[1]))
        crossed = rising_pairs(*self._crossed(fixes, ordered), size)
        return arrays._replace(crossed_offsets=frozen(crossed[0]), crossed=frozen(crossed[1]))

    def _near(self, arrays: FixArrays, geometry: SpatialColumn, ordered: OrderedFixes) -> Pairs:
        """Return the fixes that do not match subscriptions but are within their exit buffers."""
        boxes = boxes_of(geometry, ordered.rows)
        room = 1 << 12
        count = -1
        while count < 0:
            room *= 4
            places, numbers = np.empty(room, np.int64), np.empty(room, np.int32)
            given = self._objects.arrays, self._watches.arrays, arrays, frozen(boxes), frozen(ordered.grouped)
            count = kernels.list_near(*given, places, numbers)
        places, wanted = places[:count], numbers[:count].astype(np.int64)
        if not count:
            return NO_PAIRS
        rows, shapes = ordered.rows[places], self._watches.shapes(wanted)
        masks = self._watches.relations(wanted)
        codes = relation_codes(geometry, rows, *shapes)
        is_other = masks >> np.maximum(codes, 0).astype(np.uint8) & 1 == 0
        buffers = self._watches.arrays.buffers[self._watches.places(wanted)]
        kept = is_other & (codes >= 0) & (distances(geometry, rows, *shapes) <= buffers)
        return places[kept], wanted[kept]

    def _crossed(self, fixes: Fixes, ordered: OrderedFixes) -> Pairs:
        """Return the fixes and the subscriptions that the segments from the fixes before cross."""
        index = self._crossings()
        if index is None:
            return NO_PAIRS
        geometry, previous = fixes.geometry, ordered.previous
        starts = np.where(
            (previous >= 0)[:, None], points_of(geometry, previous), self._objects.xy[ordered.slots]
        )  # fmt: skip
        ends = points_of(geometry, ordered.rows)
        moving = np.flatnonzero(~np.isnan(starts[:, 0]) & ~np.isnan(ends[:, 0]))
        if not len(moving):
            return NO_PAIRS
        segments = np.hstack([starts[moving], ends[moving]])
        found, numbers = index.crossed(segments, ordered.rows[moving], fixes.message)
        return moving[found], numbers

    def _crossings(self) -> CrossingIndex | None:
        """Return the index of the regions that objects may cross; None if nobody asks."""
        version, index = self._crossing
        if version != self._watches.version:
            watches = {number: self._watches.known(number) for number in self._watches.crossable()}
            index = CrossingIndex(watches) if watches else None
            self._crossing = self._watches.version, index
        return index

    def _state(self) -> tuple[Any, ...]:
        return self._objects.arrays, self._watches.arrays, self._events, self._changes

    def _drive(self, step: Callable[[int], int], stop: int, widest: int = 0) -> None:
        """Call a kernel until it reaches `stop`, with more room for pairs, events and changes whenever it runs out."""
        begin = step(0) if stop else 0
        while begin < stop:
            a = self._objects.arrays
            most = int(a.counts.max(initial=0)) + widest
            self._objects.make_pairs(2 * most + PAIR_ROOM)
            for name, used in (("_events", int(a.state[EVENTS])), ("_changes", int(a.state[CHANGES]))):
                arrays = getattr(self, name)
                size = room_for(len(arrays[0]), used + 4 * most)
                if len(arrays[0]):
                    setattr(self, name, type(arrays)(*(longer(array, size, 0) for array in arrays)))
            begin = step(begin)

    def _drop_gone(self, slots: Sequence[int]) -> None:
        """Forget objects that have no fix any more."""
        gone = [slot for slot in slots if self._objects.arrays.seen[slot] == 0]
        for slot in gone:
            self._objects.drop(slot)
        self._journal.note_slots(np.array(gone, np.int64))

    def _told(self, geometry: SpatialColumn | None, ordered: OrderedFixes | None) -> Transitions:
        """Return the events that kernels told, with relations to the shapes of their subscriptions."""
        state = self._objects.arrays.state
        e = EventArrays(*(array[: state[EVENTS]].copy() for array in self._events))
        state[EVENTS] = 0
        numbers, slots = e.numbers.astype(np.int64), e.slots
        rows = np.full(len(slots), -1) if ordered is None else ordered.rows[e.places]
        earlier = np.full(len(slots), -1) if ordered is None else ordered.previous[e.places]
        befores, afters = e.befores.astype(np.int16), e.afters.astype(np.int16)
        for codes in (befores, afters):
            codes[codes == NO_RELATION] = -1
            asked = [
                (codes == OF_THIS_FIX, geometry, rows),
                ((codes == OF_LAST_FIX) & (earlier >= 0), geometry, earlier),
            ]
            for is_asked, column, own in asked:
                if column is not None and is_asked.any():
                    codes[is_asked] = relation_codes(column, own[is_asked], *self._watches.shapes(numbers[is_asked]))
            at = np.flatnonzero(codes == OF_LAST_FIX)
            if len(at):
                column = self._objects.last(slots[at].astype(np.int64))
                codes[at] = relation_codes(column, np.arange(len(at)), *self._watches.shapes(numbers[at]))
        ids = [self._objects.ids[slot] for slot in slots.tolist()]
        told = Transitions(
            e.kinds, numbers, ids, befores.astype(np.int8), afters.astype(np.int8), e.times, rows, e.reasons
        )
        return told if ordered is not None or len(told) < 2 else told.by_time()

    # Saving

    def take_delta(self) -> bytes:
        """Return everything that changed since the last delta as bytes; none if nothing did."""
        state = self._objects.arrays.state
        journal, changes = self._journal, [array[: state[CHANGES]] for array in self._changes]
        if journal.is_empty and not state[CHANGES]:
            return b""
        delta = packed(self._saved(journal, changes))
        state[CHANGES] = 0
        journal.clear()
        return delta

    def snapshot(self) -> bytes:
        """Return the whole state as bytes, the watched subscriptions included; deltas are not affected."""
        a, objects = self._objects.arrays, self._objects
        whole = Journal(True)
        whole.watched = {} if self._watches.is_view else dict.fromkeys(self.numbers())
        slots = [slot for slot, id in enumerate(objects.ids) if id is not None]
        whole.note_names(slots, objects.aliases())
        owners, numbers, places = objects.pairs()
        pairs = [array[places] for array in (a.flags, a.relations, a.entered, a.left)]
        return packed(self._saved(whole, [owners, numbers, *pairs]))

    @classmethod
    def restore(
        cls, snapshot: bytes, deltas: Iterable[bytes] = (), *, keep_deltas: bool = True, watches: Watches | None = None
    ) -> Tracks:
        """Return the state of a snapshot and of all deltas that were taken after it, in order.

        A state of which the subscriptions are kept elsewhere needs them as `watches`.
        """
        first = unpacked(snapshot)
        expire_after, is_arrival = int(first.head[3]), bool(first.head[4])
        tracks = cls(
            late="arrival" if is_arrival else "ignore", expire_after=expire_after or None, deltas=keep_deltas,
            watches=watches,
        )  # fmt: skip
        for saved in (first, *map(unpacked, filter(None, deltas))):
            tracks._take(saved)
        tracks._count_inside()
        return tracks

    def _saved(self, journal: Journal, pairs: Sequence[NDArray[Any]]) -> SavedTracks:
        a, objects = self._objects.arrays, self._objects
        slots = journal.slots()
        named = [slot for slot in journal.named if objects.ids[slot] is not None]
        shaped = [slot for slot in slots.tolist() if slot in objects.shapes] if objects.shapes else []
        shapes = [objects.shapes[slot] for slot in shaped]
        watched = list(journal.watched)
        watches = [self._watches.known(number).to_json() for number in watched]
        places = self._watches.arrays.places[np.array(watched, np.int64)]
        head = (a.state[FIXES], a.state[LATE], len(objects.ids), self._expire_after, self._late == "arrival")
        return SavedTracks(
            np.array(head, np.int64),
            np.array(list(journal.unwatched), np.int32),
            np.array(watched, np.int32),
            self._watches.arrays.since[places],
            json_bytes(watches),
            slots.astype(np.int32),
            a.newest[slots],
            a.seen[slots],
            objects.xy[slots],
            np.array(named, np.int32),
            json_bytes([objects.ids[slot] for slot in named]),
            json_bytes([pair for pair in journal.aliases if objects.slot(pair[0]) == pair[1]]),
            np.array(shaped, np.int32),
            np.array([len(shape) for shape in shapes], np.int64),
            np.frombuffer(b"".join(shapes), np.uint8),
            *pairs,
        )

    def _take(self, saved: SavedTracks) -> None:
        """Make a saved change."""
        objects, state = self._objects, self._objects.arrays.state
        for number in saved.unwatched.tolist():
            if self._watches.get(number) is not None:
                self._watches.drop(number)
        added = zip(saved.watched.tolist(), json_list(saved.watches), saved.since.tolist(), strict=True)
        for number, watch, since in added:
            self._watches.put(number, Watch.from_json(watch), since)
        objects.fill_slots(int(saved.head[2]))
        pairs = [frozen(array) for array in saved[-6:]]
        self._drive(lambda begin: kernels.fill_changes(objects.arrays, *pairs, begin), len(pairs[0]), 1)
        for slot in saved.slots[saved.seen == 0].tolist():
            objects.drop(slot, is_free=False)
        for slot in saved.named.tolist():
            objects.drop(slot, is_free=False)
        for slot, id in zip(saved.named.tolist(), json_list(saved.ids), strict=True):
            objects.add(id, slot)
        a = objects.arrays
        a.newest[saved.slots], a.seen[saved.slots], objects.xy[saved.slots] = saved.newest, saved.seen, saved.xy
        for slot in saved.slots.tolist() if objects.shapes else ():
            objects.shapes.pop(slot, None)
        ends = np.cumsum(saved.shape_sizes)
        for slot, stop, size in zip(saved.shaped.tolist(), ends.tolist(), saved.shape_sizes.tolist(), strict=True):
            objects.shapes[slot] = saved.shapes[stop - size : stop].tobytes()
        for alias, slot in json_list(saved.aliases):
            objects.alias(alias, slot)
        state[FIXES], state[LATE] = saved.head[0], saved.head[1]

    def _count_inside(self) -> None:
        """Count objects by subscription, and find when something is due next; the changes did not."""
        objects, w = self._objects, self._watches.arrays
        objects.find_free()
        inside = w.places[objects.pairs()[1]]
        w.inside[:] = np.bincount(inside, minlength=len(w.inside))
        self._find_due()

    def _find_due(self) -> None:
        """Find when something is due next: let no time pass."""
        self._objects.arrays.state[NEXT_DUE] = FOREVER
        options = NEVER, self._expire_after, self._watches.is_timed
        slots = len(self._objects.arrays.seen)
        self._drive(lambda begin: kernels.fill_time(*self._state(), begin, *options), slots)

    # What is inside

    def inside(self, number: int | None = None, object: ObjectId | None = None) -> list[Inside]:
        """Return the objects that are inside of a subscription, or of any, by number and id; or one object, by id."""
        slot = None if object is None else self._objects.slot(object)
        if object is not None and slot is None:
            return []
        slots, numbers, places = self._objects.pairs(slot)
        if number is not None:
            chosen = numbers == number
            slots, numbers, places = slots[chosen], numbers[chosen], places[chosen]
        since = self._objects.arrays.entered[places].tolist()
        ids = self._objects.ids
        pairs = zip(slots.tolist(), numbers.tolist(), since, strict=True)
        found = [Inside(id, own, time) for one, own, time in pairs if (id := ids[one]) is not None]
        return sorted(found, key=lambda one: (one.number, *id_order(one.object)))

    @property
    def expire_after(self) -> int | None:
        """Milliseconds without a fix after which an object is forgotten; None: never. May be changed at any time."""
        return self._expire_after or None

    @expire_after.setter
    def expire_after(self, milliseconds: int | None) -> None:
        self._expire_after = _checked_expiry(milliseconds)
        self._find_due()

    @property
    def objects(self) -> int:
        """Number of tracked objects."""
        return len(self._objects)

    @property
    def pairs(self) -> int:
        """Number of objects inside of subscriptions, each counted once for each subscription."""
        return int(self._objects.arrays.state[PAIRS])

    @property
    def late(self) -> int:
        """Number of late fixes that were ignored."""
        return int(self._objects.arrays.state[LATE])

    @property
    def pair_nbytes(self) -> int:
        """Bytes of the arrays of pairs."""
        return self._objects.pair_nbytes

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays: objects, pairs and subscriptions, without ids and shapes."""
        return self._objects.nbytes + self._watches.nbytes


def _checked_expiry(milliseconds: int | None) -> int:
    """Return the time after which tracks expire, 0 for never."""
    if milliseconds is None:
        return 0
    if not 1 <= milliseconds <= MAX_DURATION:
        raise ArgumentError(f"expire_after: need a number of milliseconds, got {short(milliseconds)}")
    return milliseconds
