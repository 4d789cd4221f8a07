"""Convert well-known binary (ISO and extended, either byte order) to flat arrays and back.

Values are in one byte buffer, row i at data[offsets[i]:offsets[i + 1]]. Nothing outside a row is ever read, offsets
outside the buffer make a row malformed, and counts are checked against the remaining bytes before they are used.
"""

import numpy as np

from contrada.codes import (
    EWKB_SRID,
    GOOD,
    HOLE,
    MAGNITUDE,
    MALFORMED,
    MAX_MAGNITUDE,
    MIN_MAGNITUDE,
    MISSING,
    NESTED,
    PLAIN_SIZE,
    WRONG_TYPE,
)
from contrada.jit import entry, kernel

POINT, LINE, POLYGON, MULTIPOINT, MULTIPOLYGON, COLLECTION = 1, 2, 3, 4, 6, 7
EWKB_Z, EWKB_M = 0x80000000, 0x40000000
LITTLE_ENDIAN = 1
SIGN_BIT = np.uint64(1 << 63)
LEAST_BITS, MOST_BITS = (np.float64(size).view(np.uint64) for size in (MIN_MAGNITUDE, MAX_MAGNITUDE))


@kernel
def read_u4(data, at, order):
    """Return four bytes as an unsigned number."""
    value = np.uint64(0)
    for k in range(4):
        byte = np.uint64(data[at + k])
        value |= byte << np.uint64(8 * k if order == LITTLE_ENDIAN else 24 - 8 * k)
    return np.int64(value)


@kernel
def read_bits(data, at, order):
    """Return eight bytes as the bits of a double."""
    value = np.uint64(0)
    if order == LITTLE_ENDIAN:  # with constant shifts this compiles to one load
        for k in range(8):
            value |= np.uint64(data[at + k]) << np.uint64(8 * k)
        return value
    for k in range(8):
        value |= np.uint64(data[at + k]) << np.uint64(56 - 8 * k)
    return value


@kernel
def read_header(data, at, stop):
    """Return (kind, bytes per vertex, SRID or -1, byte order, next position); kind -1 if there is no geometry."""
    if stop - at < 5 or data[at] > 1:
        return np.int64(-1), np.int64(0), np.int64(-1), np.int64(0), at
    order = np.int64(data[at])
    code = read_u4(data, at + 1, order)
    at += 5
    srid = np.int64(-1)
    if code & EWKB_SRID:
        if stop - at < 4:
            return np.int64(-1), np.int64(0), srid, order, at
        srid = read_u4(data, at, order)
        at += 4
    has_z, has_m = code & EWKB_Z != 0, code & EWKB_M != 0
    code &= 0x1FFFFFFF
    if code >= 4000:  # no such type; readers interpret it differently
        return code, np.int64(16), srid, order, at
    extra = (has_z or code // 1000 in (1, 3)) + (has_m or code // 1000 in (2, 3))
    return code % 1000, np.int64(16 + 8 * extra), srid, order, at


@kernel
def skip_polygon(data, at, stop, width, order, counts):
    """Skip the rings of a polygon and add to `counts`; return the end, -1 if bytes are missing."""
    if stop - at < 4:
        return np.int64(-1)
    rings = read_u4(data, at, order)
    at += 4
    for _ in range(rings):
        if stop - at < 4:
            return np.int64(-1)
        vertices = read_u4(data, at, order)
        at += 4
        if vertices * width > stop - at:
            return np.int64(-1)
        at += vertices * width
        counts[1] += 1
        counts[2] += vertices
    counts[0] += 1
    return at


@kernel
def scan_row(data, at, stop, counts):
    """Count one value's parts, rings and vertices; return (fault, kind of geometry, SRID)."""
    if at < 0 or stop < at or stop > len(data):
        return MALFORMED, np.int64(-1), np.int64(-1)
    kind, width, srid, order, at = read_header(data, at, stop)
    if kind < 0:
        return MALFORMED, kind, srid
    if kind == POLYGON:
        at = skip_polygon(data, at, stop, width, order, counts)
        return (GOOD if at == stop else MALFORMED), kind, srid
    if kind != MULTIPOLYGON:
        return WRONG_TYPE, kind, srid
    if stop - at < 4:
        return MALFORMED, kind, srid
    parts = read_u4(data, at, order)
    at += 4
    for _ in range(parts):
        kind, width, _, order, at = read_header(data, at, stop)
        if kind != POLYGON:
            return MALFORMED, kind, srid
        at = skip_polygon(data, at, stop, width, order, counts)
        if at < 0:
            return MALFORMED, kind, srid
    return (GOOD if at == stop else MALFORMED), np.int64(MULTIPOLYGON), srid


@entry("u1[1] i8[1] u1[1] i8[1]! i8[1]! i8[1]! i8[1]! i8[1]!", interpreted=True)
def count_wkb(data, offsets, missing, faults, kinds, srids, regions, totals):
    """Write faults[i], kinds[i] and srids[i] of every row (first pass), and offsets into the parts to `regions`.

    `totals` gets the numbers of parts, rings and vertices of all good rows.
    """
    counts = np.empty(3, np.int64)
    regions[0] = 0
    for c in range(3):
        totals[c] = 0
    for i in range(len(offsets) - 1):
        kinds[i] = -1
        srids[i] = -1
        faults[i] = MISSING
        if not missing[i]:
            for c in range(3):
                counts[c] = 0
            faults[i], kinds[i], srids[i] = scan_row(data, offsets[i], offsets[i + 1], counts)
            if faults[i] == GOOD:
                for c in range(3):
                    totals[c] += counts[c]
        regions[i + 1] = totals[0]


@kernel
def skip_simple(data, at, stop, kind, width, order, counts):
    """Skip a point, a line or a polygon; return the end, -1 if bytes are missing."""
    if kind == POLYGON:
        return skip_polygon(data, at, stop, width, order, counts)
    vertices = np.int64(1)
    if kind == LINE:
        if stop - at < 4:
            return np.int64(-1)
        vertices = read_u4(data, at, order)
        at += 4
    return at + vertices * width if vertices * width <= stop - at else np.int64(-1)


@kernel
def scan_nested(data, at, stop, left, counts):
    """Return the fault of a value of any type; left[d] counts the remaining members at depth d."""
    depth = np.int64(0)
    left[0] = 1
    while depth >= 0:
        if left[depth] == 0:
            depth -= 1
            continue
        left[depth] -= 1
        kind, width, _, order, at = read_header(data, at, stop)
        if kind < 0:
            return MALFORMED
        if kind < POINT or kind > COLLECTION:
            return WRONG_TYPE
        if kind < MULTIPOINT:
            at = skip_simple(data, at, stop, kind, width, order, counts)
            if at < 0:
                return MALFORMED
            continue
        if stop - at < 4:
            return MALFORMED
        members = read_u4(data, at, order)
        at += 4
        if members * 5 > stop - at:  # the smallest member has five bytes
            return MALFORMED
        depth += 1
        if depth == len(left):
            return NESTED
        left[depth] = members
    return GOOD


@entry("u1[1] i8[1] u1[1] i8[1]! i8[1]!", interpreted=True)
def scan_wkb(data, offsets, missing, left, faults):
    """Write faults[i] of every row, of any type, by headers and counts only; collections nest less than len(left)."""
    counts = np.zeros(3, np.int64)
    for i in range(len(offsets) - 1):
        faults[i] = MISSING
        if not missing[i]:
            faults[i] = MALFORMED
            if 0 <= offsets[i] <= offsets[i + 1] <= len(data):
                faults[i] = scan_nested(data, offsets[i], offsets[i + 1], left, counts)


@kernel
def fill_polygon(data, at, width, order, xy, parts, rings, part, ring, vertex):
    """Copy the rings of a polygon; return the end and the next ring and vertex."""
    count = read_u4(data, at, order)
    at += 4
    for _ in range(count):
        vertices = read_u4(data, at, order)
        at += 4
        for _ in range(vertices):
            xy[vertex, 0] = read_bits(data, at, order)
            xy[vertex, 1] = read_bits(data, at + 8, order)
            at += width
            vertex += 1
        ring += 1
        rings[ring] = vertex
    parts[part + 1] = ring
    return at, ring, vertex


@entry("u1[1] i8[1] i8[1] u8[2]! i8[1]! i8[1]!", interpreted=True)
def fill_wkb(data, offsets, faults, xy, rings, parts):
    """Write the coordinates (as bits of doubles), rings and parts of every good row (second pass)."""
    part = ring = vertex = np.int64(0)
    rings[0] = 0
    parts[0] = 0
    for i in range(len(offsets) - 1):
        if faults[i] != GOOD:
            continue
        kind, width, _, order, at = read_header(data, offsets[i], offsets[i + 1])
        if kind == POLYGON:
            at, ring, vertex = fill_polygon(data, at, width, order, xy, parts, rings, part, ring, vertex)
            part += 1
            continue
        count = read_u4(data, at, order)
        at += 4
        for _ in range(count):
            kind, width, _, order, at = read_header(data, at, offsets[i + 1])
            at, ring, vertex = fill_polygon(data, at, width, order, xy, parts, rings, part, ring, vertex)
            part += 1


@entry("u1[1] i8[1] u8[2]!", interpreted=True)
def fill_points(data, offsets, xy):
    """Write the coordinates (as bits of doubles, 0.0 for -0.0) of little-endian points without Z, M or SRID.

    Return GOOD; MAGNITUDE if a coordinate is not finite or out of range; WRONG_TYPE at the first row that is no such
    point, or lies outside the buffer.
    """
    found = GOOD
    for i in range(len(offsets) - 1):
        at = offsets[i]
        if offsets[i + 1] - at != PLAIN_SIZE or at < 0 or at > len(data) - PLAIN_SIZE:
            return WRONG_TYPE
        if data[at] != LITTLE_ENDIAN or read_u4(data, at + 1, LITTLE_ENDIAN) != POINT:
            return WRONG_TYPE
        for side in range(2):
            bits = read_bits(data, at + 5 + 8 * side, LITTLE_ENDIAN)
            size = bits & ~SIGN_BIT  # the bits of doubles >= 0 are in the order of the doubles
            if size == 0:
                bits = size
            elif size < LEAST_BITS or size > MOST_BITS:
                found = MAGNITUDE
            xy[i, side] = bits
    return found


@kernel
def write_u4(out, at, value):
    """Write four bytes of a number, the least first; return their end."""
    for k in range(4):
        out[at + k] = np.uint8((value >> np.int64(8 * k)) & np.int64(255))
    return at + 4


@kernel
def write_head(out, at, kind, count):
    """Write the byte order, a type and a number of parts; return their end."""
    out[at] = np.uint8(LITTLE_ENDIAN)
    return write_u4(out, write_u4(out, at + 1, np.int64(kind)), count)


@kernel
def count_to_next_shell(flags, r, stop):
    """Return the number of rings of the part that begins with ring r."""
    end = r + 1
    while end < stop and flags[end] & HOLE:
        end += 1
    return end - r


@entry("u8[2] i8[1] i4[1] u1[1] i8[1] u1[1]!")
def write_wkb(xy, rings, regions, flags, offsets, out):
    """Write regions, with coordinates given as bits, to out[offsets[i]:offsets[i + 1]], which has the exact size."""
    for i in range(len(offsets) - 1):
        at = offsets[i]
        parts = np.int64(0)
        for r in range(regions[i], regions[i + 1]):
            parts += (flags[r] & HOLE) == 0
        if parts > 1:
            at = write_head(out, at, MULTIPOLYGON, parts)
        for r in range(regions[i], regions[i + 1]):
            if (flags[r] & HOLE) == 0:
                count = count_to_next_shell(flags, np.int64(r), np.int64(regions[i + 1]))
                at = write_head(out, at, POLYGON, count)
            at = write_u4(out, at, rings[r + 1] - rings[r])
            for v in range(rings[r], rings[r + 1]):
                for axis in range(2):
                    bits = xy[v, axis]
                    for k in range(8):
                        out[at + k] = np.uint8((bits >> np.uint64(8 * k)) & np.uint64(255))
                    at += 8
