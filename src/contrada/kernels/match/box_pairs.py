"""List the items of a packed tree whose boxes meet those of messages: candidates for a relation with a line."""

import numpy as np

from contrada.codes import FAN, FAN_SHIFT, MAX_LEVELS
from contrada.jit import entry, kernel
from contrada.kernels.match.packed_tree import fill_starts


@kernel
def meets(boxes, i, x0, y0, x1, y1):
    """Return True if box i meets the box x0..y1."""
    return boxes[i, 0] <= x1 and boxes[i, 2] >= x0 and boxes[i, 1] <= y1 and boxes[i, 3] >= y0


@kernel
def list_items(items, first, last, x0, y0, x1, y1, out, count):
    """List those of items first..last whose boxes meet the box x0..y1."""
    for k in range(first, last):
        out[count] = k
        count += np.int64(meets(items, k, x0, y0, x1, y1))
    return count


@entry("f8[2] f8[2] f8[2] i8[1] i8 i4[1]! i8[1]!")
def list_box_pairs(boxes, items, nodes, order, start, out, ends):
    """Write the items whose boxes meet the box of each message order[start:] to `out`; ends[k] is where those of k end.

    `nodes` are those of `build_nodes`; without any, all items are tried. Returns the first k that was not tried: a
    message is tried only while there is room in `out` for every item, and one more.
    """
    size = np.int64(len(items))
    starts = np.empty(MAX_LEVELS, np.int64)
    levels = fill_starts(size, starts) if len(nodes) > 0 else np.int64(0)
    stack = np.empty((FAN * MAX_LEVELS, 2), np.int64)
    none = np.int64(0)
    count = none
    for turn in range(start, len(order)):
        if len(out) - count <= size:
            return turn
        i = order[turn]
        x0 = boxes[i, 0]
        y0 = boxes[i, 1]
        x1 = boxes[i, 2]
        y1 = boxes[i, 3]
        depth = 0
        if levels == 0:
            count = list_items(items, none, size, x0, y0, x1, y1, out, count)
        else:
            for c in range(starts[levels + 1] - starts[levels]):
                if meets(nodes, starts[levels] + c, x0, y0, x1, y1):
                    stack[depth, 0] = levels
                    stack[depth, 1] = c
                    depth += 1
        while depth > 0:
            depth -= 1
            level = stack[depth, 0] - 1
            first = stack[depth, 1] << FAN_SHIFT
            if level == 0:
                count = list_items(items, first, min(first + FAN, size), x0, y0, x1, y1, out, count)
                continue
            for c in range(first, min(first + FAN, starts[level + 1] - starts[level])):
                if meets(nodes, starts[level] + c, x0, y0, x1, y1):
                    stack[depth, 0] = level
                    stack[depth, 1] = c
                    depth += 1
        ends[turn] = count
    return len(order)
