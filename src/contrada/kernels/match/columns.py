"""Put the columns of a batch of messages into the order and the form in which the other kernels take them."""

import numpy as np

from contrada.codes import A_POINT, NOTHING
from contrada.jit import allocating_kernel, entry, kernel

Z_CELLS = 256  # per side of the grid whose cells are ordered: keys of 16 bits


@kernel
def spread(cell):
    """Return the eight bits of a cell number with a free bit above each."""
    cell = (cell | cell << np.uint32(4)) & np.uint32(0x0F0F)
    cell = (cell | cell << np.uint32(2)) & np.uint32(0x3333)
    return (cell | cell << np.uint32(1)) & np.uint32(0x5555)


@kernel
def scale_of(low, high):
    """Return the cells per unit of an axis, 0 if it spans nothing or too much."""
    return (Z_CELLS - 1) / (high - low) if 0 < high - low < np.inf else 0.0


@allocating_kernel
def z_keys_of(corners):
    """Return the cell of each corner on a Z-curve over all corners."""
    x0 = y0 = np.inf
    x1 = y1 = -np.inf
    for k in range(len(corners)):
        x, y = corners[k, 0], corners[k, 1]
        x0, x1 = x if x < x0 else x0, x if x > x1 else x1
        y0, y1 = y if y < y0 else y0, y if y > y1 else y1
    sx, sy = scale_of(x0, x1), scale_of(y0, y1)
    keys = np.empty(len(corners), np.uint16)
    for k in range(len(corners)):
        x, y = np.uint32((corners[k, 0] - x0) * sx), np.uint32((corners[k, 1] - y0) * sy)
        keys[k] = spread(x) | spread(y) << np.uint32(1)
    return keys


@allocating_kernel
def sorted_by_byte(keys, shift, rows):
    """Return `rows` sorted by one byte of their keys; rows with equal bytes stay in order."""
    ends = np.zeros(257, np.int64)
    for k in range(len(keys)):
        ends[(np.int64(keys[k]) >> shift & 255) + 1] += 1
    for byte in range(256):
        ends[byte + 1] += ends[byte]
    made = np.empty(len(rows), np.int64)
    for k in range(len(rows)):
        byte = np.int64(keys[rows[k]]) >> shift & 255
        made[ends[byte]] = rows[k]
        ends[byte] += 1
    return made


@entry("f8[2]")
def z_order(corners):
    """Return the rows of `corners` in the order of a Z-curve."""
    keys = z_keys_of(corners)
    rows = sorted_by_byte(keys, np.int64(0), np.arange(len(keys)))
    return sorted_by_byte(keys, np.int64(8), rows)


@entry("f8[2] f8[2] i8[1] i8[1] f8[2]! i8[1]!")
def fill_boxes(xy, bounds, point_of, region_of, boxes, regions):
    """Write the box of each message's point or region, around nothing without either, and its region or A_POINT."""
    for k in range(len(point_of)):
        p, r = point_of[k], region_of[k]
        boxes[k, 0] = boxes[k, 1] = np.inf
        boxes[k, 2] = boxes[k, 3] = -np.inf
        regions[k] = NOTHING
        if r >= 0:
            for side in range(4):
                boxes[k, side] = bounds[r, side]
            regions[k] = r
        elif p >= 0:
            boxes[k, 0] = boxes[k, 2] = xy[p, 0]
            boxes[k, 1] = boxes[k, 3] = xy[p, 1]
            regions[k] = A_POINT


@entry("f8[1] i8[1] i8[1]!")
def fill_ordered_bits(numbers, bits, ordered):
    """Write integers in the order of `numbers`, whose bits are `bits`, to `ordered`; 0.0 and -0.0 get one integer."""
    for k in range(len(numbers)):
        own = bits[k] if numbers[k] != 0 else np.int64(0)
        ordered[k] = own if own >= 0 else own ^ np.int64(0x7FFFFFFFFFFFFFFF)


@entry("i8[1] i8 i8[1]!")
def fill_integer_bits(numbers, most, ordered):
    """Write what `fill_ordered_bits` writes for whole numbers; return whether all are from -`most` to `most`."""
    low = high = np.int64(0)
    for k in range(len(numbers)):
        low, high = min(low, numbers[k]), max(high, numbers[k])
        own = np.float64(numbers[k]).view(np.int64)
        ordered[k] = own if own >= 0 else own ^ np.int64(0x7FFFFFFFFFFFFFFF)
    return -most <= low and high <= most


@entry("i8 i8[1] i8[1] i8[1] i8 i8 i8[1] i8[2]!")
def fill_values(slot, keys, rests, chosen, base, step, places, values):
    """Write the values `chosen` of a slot to rows of `values`: the slot, then key and rest plus `base`.

    They go to the rows `places`, or without any to every row that is a multiple of `step`. Without rests, they are 0.
    """
    for k in range(len(chosen)):
        row = chosen[k]
        at = places[k] if len(places) > 0 else k * step
        values[at, 0] = slot
        values[at, 1] = keys[row] + base
        values[at, 2] = rests[row] + base if len(rests) > 0 else 0
