"""Take fixes, let time pass, remove subscriptions: change the pairs of objects, and tell events."""

import numpy as np

from contrada.codes import (
    BY_END,
    BY_EXPIRY,
    BY_FIX,
    BY_TIME,
    CHANGE,
    CHANGE_BIT,
    CHANGES,
    CROSS,
    DWELL,
    DWELT,
    ENTER,
    ENTER_BIT,
    EVENTS,
    EXIT,
    EXIT_BIT,
    FIXES,
    FOREVER,
    GONE,
    NEVER,
    NEXT_DUE,
    NO_BLOCK,
    NO_RELATION,
    OF_LAST_FIX,
    OF_THIS_FIX,
    PAIRS,
)
from contrada.jit import entry, kernel
from contrada.kernels.track.arrays import ChangeArrays, EventArrays, FixArrays, TrackArrays, WatchArrays
from contrada.kernels.track.blocks import class_for, clear_pairs, fit_block, free_block, has_room, note_change, note_due

EVENTS_PER_PAIR = 3  # at one fix: dwell, exit, enter
CHANGES_PER_PAIR = 3


@kernel
def tell(a, e, kind, reason, before, after, number, slot, place, time):
    """Add an event."""
    k = a.state[EVENTS]
    e.kinds[k] = kind
    e.reasons[k] = reason
    e.befores[k] = before
    e.afters[k] = after
    e.numbers[k] = number
    e.slots[k] = slot
    e.places[k] = place
    e.times[k] = time
    a.state[EVENTS] = k + 1


@kernel
def tell_exit(a, w, e, reason, after, number, slot, place, time):
    """Add the event of an object that leaves a subscription, if that asks for it."""
    kinds = w.kinds[w.places[number]]
    if kinds & EXIT_BIT:
        tell(a, e, EXIT, reason, OF_LAST_FIX, after, number, slot, place, time)
    elif kinds & CHANGE_BIT:
        tell(a, e, CHANGE, reason, OF_LAST_FIX, after, number, slot, place, time)


@kernel
def pass_time(a, w, e, c, slot, place, now):
    """Do for one object what is due up to `now`: dwells, and exits that waited long enough."""
    start = a.starts[slot]
    kept = start
    for at in range(start, start + a.counts[slot]):
        number = a.numbers[at]
        own = w.places[number]
        gone = FOREVER
        if a.left[at] != NEVER and w.exit_afters[own] > 0:
            gone = a.left[at] + w.exit_afters[own]
        due = a.entered[at] + w.dwells[own]
        if w.dwells[own] > 0 and not a.flags[at] & DWELT and due <= now and due <= gone:
            tell(a, e, DWELL, BY_TIME, OF_LAST_FIX, OF_LAST_FIX, number, slot, place, due)
            a.flags[at] |= DWELT
            note_change(a, c, slot, number, a.flags[at], a.relations[at], a.entered[at], a.left[at])
        if gone <= now:
            tell_exit(a, w, e, BY_TIME, OF_LAST_FIX, number, slot, place, gone)
            w.inside[own] -= 1
            note_change(a, c, slot, number, GONE, 0, 0, 0)
            continue
        if kept < at:
            copy_pair(a, at, kept)
        kept += 1
    shrink(a, slot, kept - start)


@kernel
def copy_pair(a, source, target):
    """Copy the pair at a place to another place."""
    a.numbers[target] = a.numbers[source]
    a.relations[target] = a.relations[source]
    a.flags[target] = a.flags[source]
    a.entered[target] = a.entered[source]
    a.left[target] = a.left[source]


@kernel
def shrink(a, slot, count):
    """Keep the first `count` pairs of a block."""
    a.state[PAIRS] -= a.counts[slot] - count
    a.counts[slot] = count
    if count == 0:
        free_block(a, slot)


@kernel
def leave_all(a, w, e, c, slot, place, time, reason):
    """Tell that an object leaves every subscription, and forget its fixes."""
    start = a.starts[slot]
    for at in range(start, start + a.counts[slot]):
        tell_exit(a, w, e, reason, NO_RELATION, a.numbers[at], slot, place, time)
    clear_pairs(a, w, c, slot)
    a.seen[slot] = 0


@kernel
def pass_time_or_expire(a, w, e, c, slot, place, now, expire_after, is_timed):
    """Do for one object what is due up to `now`; return True if its track expired."""
    expiry = FOREVER if expire_after == 0 else a.newest[slot] + expire_after
    if is_timed and a.counts[slot] > 0:
        pass_time(a, w, e, c, slot, place, min(now, expiry))
    if expiry <= now:
        leave_all(a, w, e, c, slot, place, expiry, BY_EXPIRY)
        return True
    return False


@kernel
def enter(a, w, e, slot, number, relation, place, time):
    """Tell that an object entered, if the subscription asks for it and knows the object."""
    own = w.places[number]
    is_first = a.seen[slot] <= w.since[own]
    w.inside[own] += 1
    if is_first and w.silent[own]:
        return
    before = NO_RELATION if is_first else OF_LAST_FIX
    after = OF_THIS_FIX if relation == NO_RELATION else relation
    if w.kinds[own] & ENTER_BIT:
        tell(a, e, ENTER, BY_FIX, before, after, number, slot, place, time)
    elif w.kinds[own] & CHANGE_BIT:
        tell(a, e, CHANGE, BY_FIX, before, after, number, slot, place, time)


@kernel
def find(numbers, start, stop, number):
    """Return True if a number is among the rising numbers from `start` to `stop`."""
    end = stop
    while start < stop:
        middle = (start + stop) // 2
        if numbers[middle] < number:
            start = middle + 1
        else:
            stop = middle
    return start < end and numbers[start] == number


@kernel
def stay(a, w, e, c, f, at, place, slot, time, match, room, size):
    """Copy a pair to `room` unless its object leaves; `match` is the fix's match of this pair, or -1."""
    number = a.numbers[at]
    own = w.places[number]
    relation, left = a.relations[at], a.left[at]
    if match >= 0:
        left = NEVER
        if w.kinds[own] & CHANGE_BIT and f.relations[match] != relation:
            tell(a, e, CHANGE, BY_FIX, relation, f.relations[match], number, slot, place, time)
            relation = f.relations[match]
    elif find(f.near, f.near_offsets[place], f.near_offsets[place + 1], number):
        left = NEVER
    elif w.exit_afters[own] > 0:
        left = time if left == NEVER else left
    else:
        tell_exit(a, w, e, BY_FIX, OF_THIS_FIX, number, slot, place, time)
        w.inside[own] -= 1
        note_change(a, c, slot, number, GONE, 0, 0, 0)
        return size
    if relation != a.relations[at] or left != a.left[at]:
        note_change(a, c, slot, number, a.flags[at], relation, a.entered[at], left)
    put(room, size, number, relation, a.flags[at], a.entered[at], left)
    return size + 1


@kernel
def put(room, size, number, relation, flags, entered, left):
    """Write a pair to a place of `room`."""
    room[size, 0] = number
    room[size, 1] = relation
    room[size, 2] = flags
    room[size, 3] = entered
    room[size, 4] = left


@kernel
def merge_fix(a, w, e, c, f, place, slot, time, room):
    """Merge the pairs of an object with the matches of a fix, both by rising number, into `room`; tell what changes."""
    at, stop = np.int64(a.starts[slot]), np.int64(a.starts[slot]) + a.counts[slot]
    if a.counts[slot] == 0:
        stop = at
    match, match_stop = f.offsets[place], f.offsets[place + 1]
    size = 0
    while at < stop or match < match_stop:
        if match == match_stop or (at < stop and a.numbers[at] < f.numbers[match]):
            size = stay(a, w, e, c, f, at, place, slot, time, np.int64(-1), room, size)
            at += 1
        elif at < stop and a.numbers[at] == f.numbers[match]:
            size = stay(a, w, e, c, f, at, place, slot, time, match, room, size)
            at += 1
            match += 1
        else:
            number, relation = f.numbers[match], f.relations[match]
            enter(a, w, e, slot, number, relation, place, time)
            note_change(a, c, slot, number, 0, relation, time, NEVER)
            put(room, size, number, relation, 0, time, NEVER)
            size += 1
            match += 1
    return size


@kernel
def tell_crossings(a, w, e, f, place, slot, time):
    """Tell the regions that the segment from the fix before crosses; no pair of them existed before or exists now."""
    start = a.starts[slot]
    stop = start + a.counts[slot]
    for k in range(f.crossed_offsets[place], f.crossed_offsets[place + 1]):
        number = f.crossed[k]
        if a.seen[slot] <= w.since[w.places[number]]:
            continue
        if find(f.numbers, f.offsets[place], f.offsets[place + 1], number):
            continue
        if a.counts[slot] > 0 and find(a.numbers, start, stop, number):
            continue
        tell(a, e, CROSS, BY_FIX, OF_LAST_FIX, OF_THIS_FIX, number, slot, place, time)


@kernel
def write_back(a, w, slot, room, size):
    """Make `room` the pairs of an object."""
    fit_block(a, slot, size)
    a.state[PAIRS] += size - a.counts[slot]
    a.counts[slot] = size
    start = a.starts[slot]
    for k in range(size):
        a.numbers[start + k] = room[k, 0]
        a.relations[start + k] = room[k, 1]
        a.flags[start + k] = room[k, 2]
        a.entered[start + k] = room[k, 3]
        a.left[start + k] = room[k, 4]
        note_due(a, w, start + k, slot)


@entry(TrackArrays, WatchArrays, EventArrays, ChangeArrays, FixArrays, "i8 i8 b1")
def fill_fixes(a, w, e, c, f, begin, expire_after, is_timed):
    """Take fixes from place `begin` on; return the place at which room ran out, or the end.

    `expire_after` is 0 if tracks do not expire; `is_timed` says whether a subscription has a dwell or `exit_after`.
    """
    room = np.empty((64, 5), np.int64)
    for place in range(begin, len(f.slots)):
        slot = f.slots[place]
        matches = f.offsets[place + 1] - f.offsets[place]
        most = a.counts[slot] + matches
        events = EVENTS_PER_PAIR * most + f.crossed_offsets[place + 1] - f.crossed_offsets[place]
        changes = CHANGES_PER_PAIR * most
        if (
            not has_room(a, most)
            or a.state[EVENTS] + events > len(e.kinds)
            or (len(c.slots) > 0 and a.state[CHANGES] + changes > len(c.slots))
        ):
            return place
        if most > len(room):
            room = np.empty((2 * most, 5), np.int64)
        time = f.times[place]
        if a.seen[slot] > 0:
            time = max(time, a.newest[slot])
            pass_time_or_expire(a, w, e, c, slot, place, time, expire_after, is_timed)
        if f.ends[place]:
            leave_all(a, w, e, c, slot, place, time, BY_END)
            continue
        if a.seen[slot] > 0 and f.crossed_offsets[place] < f.crossed_offsets[place + 1]:
            tell_crossings(a, w, e, f, place, slot, time)
        if a.counts[slot] + matches > 0:
            write_back(a, w, slot, room, merge_fix(a, w, e, c, f, place, slot, time, room))
        a.newest[slot] = time
        a.state[FIXES] += 1
        a.seen[slot] = a.state[FIXES]
        if expire_after > 0:
            a.state[NEXT_DUE] = min(a.state[NEXT_DUE], time + expire_after)
    return len(f.slots)


@entry(TrackArrays, WatchArrays, EventArrays, ChangeArrays, "i8 i8 i8 b1")
def fill_time(a, w, e, c, begin, now, expire_after, is_timed):
    """Do for the objects from slot `begin` on what is due up to `now`; return where room ran out, or the end."""
    for slot in range(begin, len(a.seen)):
        if a.seen[slot] == 0:
            continue
        most = np.int64(a.counts[slot])
        if a.state[EVENTS] + EVENTS_PER_PAIR * most > len(e.kinds):
            return slot
        if len(c.slots) > 0 and a.state[CHANGES] + CHANGES_PER_PAIR * most > len(c.slots):
            return slot
        if pass_time_or_expire(a, w, e, c, slot, -1, now, expire_after, is_timed):
            continue
        if expire_after > 0:
            a.state[NEXT_DUE] = min(a.state[NEXT_DUE], a.newest[slot] + expire_after)
        if is_timed and a.counts[slot] > 0:
            for at in range(a.starts[slot], a.starts[slot] + a.counts[slot]):
                note_due(a, w, at, slot)
    return len(a.seen)


@entry(TrackArrays, WatchArrays, EventArrays, ChangeArrays, "i8 i8 i8")
def fill_removal(a, w, e, c, begin, time, reason):
    """Take the objects from slot `begin` on out of subscriptions marked as removed; return where room ran out."""
    for slot in range(begin, len(a.seen)):
        most = np.int64(a.counts[slot])
        if a.state[EVENTS] + most > len(e.kinds):
            return slot
        if len(c.slots) > 0 and a.state[CHANGES] + most > len(c.slots):
            return slot
        if most == 0:
            continue
        start = a.starts[slot]
        kept = start
        for at in range(start, start + most):
            number = a.numbers[at]
            own = w.places[number]
            if w.removed[own]:
                tell_exit(a, w, e, reason, NO_RELATION, number, slot, -1, time)
                w.inside[own] -= 1
                note_change(a, c, slot, number, GONE, 0, 0, 0)
                continue
            if kept < at:
                copy_pair(a, at, kept)
            kept += 1
        shrink(a, slot, kept - start)
    return len(a.seen)


@entry(TrackArrays, "i4[1] i4[1] u1[1] u1[1] i8[1] i8[1] i8")
def fill_changes(a, slots, numbers, flags, relations, entered, left, begin):
    """Put and remove pairs as noted changes say, from `begin` on; return where room for pairs ran out, or the end."""
    for k in range(begin, len(slots)):
        slot, number = slots[k], numbers[k]
        count = np.int64(a.counts[slot])
        if not has_room(a, count + 1):
            return k
        at = np.int64(a.starts[slot])
        stop = at + count
        high = stop
        while at < high:
            middle = (at + high) // 2
            if a.numbers[middle] < number:
                at = middle + 1
            else:
                high = middle
        is_there = at < stop and a.numbers[at] == number
        if flags[k] & GONE:
            if is_there:
                for further in range(at + 1, stop):
                    copy_pair(a, further, further - 1)
                shrink(a, slot, count - 1)
            continue
        if not is_there:
            at = grow(a, slot, at - a.starts[slot])
        a.numbers[at] = number
        a.relations[at] = relations[k]
        a.flags[at] = flags[k]
        a.entered[at] = entered[k]
        a.left[at] = left[k]
    return len(slots)


@kernel
def grow(a, slot, before):
    """Make room for one more pair after the first `before` pairs of an object; return its place."""
    count = np.int64(a.counts[slot])
    old = np.int64(a.starts[slot])
    own = a.classes[slot]
    if count == 0:
        fit_block(a, slot, 1)
    elif class_for(count + 1) > own:
        a.classes[slot] = NO_BLOCK
        fit_block(a, slot, count + 1)
        for k in range(count):
            copy_pair(a, old + k, a.starts[slot] + k)
        a.numbers[old] = a.free[own]
        a.free[own] = old
    start = np.int64(a.starts[slot])
    for at in range(start + count, start + before, -1):
        copy_pair(a, at - 1, at)
    a.counts[slot] = count + 1
    a.state[PAIRS] += 1
    return start + before
