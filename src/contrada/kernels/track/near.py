"""Find the pairs that an exit buffer may keep: objects that may be inside, and do not match, near the region's box."""

import numpy as np

from contrada.jit import entry, kernel
from contrada.kernels.track.arrays import FixArrays, TrackArrays, WatchArrays

SLACK = 1e-9  # distances between boxes are rounded; candidates are measured exactly afterwards


@kernel
def is_far(boxes, place, bounds, own, buffer):
    """Return True if a fix has no geometry, or its box is farther than the buffer from that of the region."""
    if np.isnan(boxes[place, 0]):
        return True
    x = max(bounds[own, 0] - boxes[place, 2], boxes[place, 0] - bounds[own, 2])
    y = max(bounds[own, 1] - boxes[place, 3], boxes[place, 1] - bounds[own, 3])
    return max(x, y) > buffer * (1 + SLACK)


@kernel
def add_buffered(w, numbers, start, stop, held, count, merged):
    """Merge rising numbers that have a buffer with the `count` rising numbers held; return how many there are."""
    size, k = 0, 0
    for at in range(start, stop):
        number = numbers[at]
        if w.buffers[w.places[number]] <= 0:
            continue
        while k < count and held[k] < number:
            merged[size] = held[k]
            size += 1
            k += 1
        if k < count and held[k] == number:
            k += 1
        merged[size] = number
        size += 1
    while k < count:
        merged[size] = held[k]
        size += 1
        k += 1
    return size


@entry(TrackArrays, WatchArrays, FixArrays, "f8[2] i8[1] i8[1]! i4[1]!")
def list_near(a, w, f, boxes, grouped, out_places, out_numbers):
    """Write places of fixes and subscriptions that may be kept by a buffer; return their number, -1 if out of room.

    `grouped` are the places of fixes, those of one object together and in order. Of an object, a subscription that it
    was inside of is looked at from fix to fix until a fix is certainly too far.
    """
    found = 0
    held, merged = np.empty(16, np.int32), np.empty(16, np.int32)
    count = 0
    last = np.int64(-1)
    for place in grouped:
        slot = f.slots[place]
        start, stop = f.offsets[place], f.offsets[place + 1]
        fresh = slot != last
        most = (np.int64(a.counts[slot]) if fresh else count) + stop - start
        if most > len(merged):
            merged = np.empty(2 * most, np.int32)
            larger = np.empty(2 * most, np.int32)
            larger[:count] = held[:count]
            held = larger
        if fresh:
            last = np.int64(slot)
            begin = np.int64(a.starts[slot])
            count = add_buffered(w, a.numbers, begin, begin + a.counts[slot], held, np.int64(0), merged)
            held, merged = merged, held
        kept, match = 0, start
        for k in range(count):
            number = held[k]
            own = w.places[number]
            while match < stop and f.numbers[match] < number:
                match += 1
            if match == stop or f.numbers[match] != number:
                far = is_far(boxes, place, w.bounds, own, w.buffers[own])
                if far and w.exit_afters[own] == 0:
                    continue
                if not far:
                    if found == len(out_places):
                        return -1
                    out_places[found] = place
                    out_numbers[found] = number
                    found += 1
            held[kept] = number
            kept += 1
        count = add_buffered(w, f.numbers, start, stop, held, kept, merged)
        held, merged = merged, held
    return found
