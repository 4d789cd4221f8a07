"""Meetings of a segment with the boundary of a region, by exact orientations."""

from contrada.jit import entry, kernel
from contrada.kernels.relate.orientation import orient

APART, TOUCHING, CROSSING = 0, 1, 2  # the segment misses the boundary; touches it somehow; cuts an edge properly


@kernel
def meeting(ax, ay, bx, by, xy, first, last):
    """Return how a segment meets the edges between vertices `first` and `last` of one ring."""
    found = APART
    side = orient(ax, ay, bx, by, xy[first, 0], xy[first, 1])
    for k in range(first, last):
        px, py, qx, qy = xy[k, 0], xy[k, 1], xy[k + 1, 0], xy[k + 1, 1]
        before, side = side, orient(ax, ay, bx, by, qx, qy)
        if before == side and side != 0:
            continue
        if max(px, qx) < min(ax, bx) or max(ax, bx) < min(px, qx):
            continue
        if max(py, qy) < min(ay, by) or max(ay, by) < min(py, qy):
            continue
        one, other = orient(px, py, qx, qy, ax, ay), orient(px, py, qx, qy, bx, by)
        if one * other < 0 and before * side < 0:
            return CROSSING
        if one * other <= 0:
            found = TOUCHING
    return found


@entry("f8[2] f8[2] i8[1] i4[1] i8[1] i8[1] u1[1]!")
def meet_segments(segments, xy, rings, regions, segment_rows, region_rows, out):
    """Write how segment segment_rows[k], (x, y) to (x, y), meets the boundary of region region_rows[k] to out[k]."""
    for k in range(len(out)):
        s, r = segment_rows[k], region_rows[k]
        ax, ay, bx, by = segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]
        found = APART
        for ring in range(regions[r], regions[r + 1]):
            found = max(found, meeting(ax, ay, bx, by, xy, rings[ring], rings[ring + 1] - 1))
            if found == CROSSING:
                break
        out[k] = found
