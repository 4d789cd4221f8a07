"""Find the boxes of a packed tree that given boxes meet: candidates of messages that no other kernel takes."""

import numpy as np

from contrada.codes import FAN, FAN_SHIFT, MAX_LEVELS
from contrada.jit import entry
from contrada.kernels.match.packed_tree import fill_starts


@entry("f8[2] f8[2] f8[2] i8 i8[1]! i4[1]!")
def list_meeting(boxes, nodes, asked, start, ends, out):
    """List the boxes that asked[start:] meet, one after another; ends[k] gets the end of those that asked[k] meets.

    `nodes` are those of a packed tree over `boxes`, or empty. Returns the first k that was not answered: one is tried
    only while there is room in `out` for every box.
    """
    starts = np.empty(MAX_LEVELS, np.int64)
    size = np.int64(len(boxes))
    levels = fill_starts(size, starts) if len(nodes) > 0 else 0
    stack = np.empty((FAN * MAX_LEVELS, 2), np.int64)
    count = np.int64(0)
    for turn in range(start, len(asked)):
        if len(out) - count < size:
            return turn
        x0 = asked[turn, 0]
        y0 = asked[turn, 1]
        x1 = asked[turn, 2]
        y1 = asked[turn, 3]
        depth = 0
        if levels == 0:
            stack[0, 0] = 0
            stack[0, 1] = 0
            depth = 1
        else:
            for c in range(starts[levels + 1] - starts[levels]):
                stack[depth, 0] = levels
                stack[depth, 1] = c
                depth += 1
        while depth > 0:
            depth -= 1
            level = stack[depth, 0]
            first = stack[depth, 1]
            last = size
            if level > 0:
                node = starts[level] + first
                if x0 > nodes[node, 2] or x1 < nodes[node, 0] or y0 > nodes[node, 3] or y1 < nodes[node, 1]:
                    continue
                first <<= FAN_SHIFT
                last = first + FAN
                if level > 1:
                    for c in range(first, min(last, starts[level] - starts[level - 1])):
                        stack[depth, 0] = level - 1
                        stack[depth, 1] = c
                        depth += 1
                    continue
            for c in range(first, min(last, size)):
                if x0 <= boxes[c, 2] and x1 >= boxes[c, 0] and y0 <= boxes[c, 3] and y1 >= boxes[c, 1]:
                    out[count] = c
                    count += 1
        ends[turn] = count
    return len(asked)
