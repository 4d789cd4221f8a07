"""Sweep line over edges that do not cross, in n log n for every input; used by sweep_relation.py and sweep_validity.py.

The sweep visits vertices from left to right, and from bottom to top where x is equal. The status holds the edges that
the sweep line meets, in order from bottom to top: a linked list with a balanced tree (a treap) over it. Two edges that
cross become neighbours in the status before the crossing (Shamos and Hoey 1976), and the sweep stops there. Therefore
the sweep visits input vertices only, and every decision is an orientation test on input vertices.

A row of `segments` is an edge: x, y of the end that is visited first, then x, y of the other end. `items` lists the
visits: item e < len(segments) is the start of edge e; item len(segments) + e is a vertex where no edge starts and edge
e ends. Items at one place are sorted by the direction of their edges.
"""

import numpy as np

from contrada.jit import kernel
from contrada.kernels.relate.orientation import orient

# Columns of `nodes`, one row per edge: children and parent in the tree, neighbours in the list, priority in the tree, a
# label of the area above the edge, a number for the caller's use. The last row is the head: it lies below all edges and
# has the root of the tree as its left child.
LEFT, RIGHT, UP, BELOW, ABOVE, PRIORITY, LABEL, EXTRA = range(8)
STATUS_COLUMNS = 8
NONE = np.int64(-1)
LCG_FACTOR, LCG_MODULUS = np.int64(48271), np.int64(2147483647)  # Park and Miller's generator


@kernel
def is_after(xy, i, j):
    """Return True if vertex i is visited after vertex j."""
    return xy[i, 0] > xy[j, 0] or (xy[i, 0] == xy[j, 0] and xy[i, 1] > xy[j, 1])


@kernel
def count_edges(rings, r0, r1):
    """Return the number of edges of rings r0..r1: each ring has one edge fewer than vertices."""
    return rings[r1] - rings[r0] - (r1 - r0)


@kernel
def fill_segments(xy, rings, r0, r1, segments, at, items, count):
    """Write the edges of rings r0..r1 to segments[at:] and their visits to items[count:]; return the new count."""
    edges = len(segments)
    for r in range(r0, r1):
        rises = is_after(xy, rings[r + 1] - 1, rings[r + 1] - 2)  # of the edge before
        for k in range(rings[r], rings[r + 1] - 1):
            start = k
            stop = k + 1
            items[count] = at
            count += 1
            if is_after(xy, k, k + 1):
                start = k + 1
                stop = k
                if rises:
                    items[count] = edges + at
                    count += 1
                rises = False
            else:
                rises = True
            segments[at, 0] = xy[start, 0]
            segments[at, 1] = xy[start, 1]
            segments[at, 2] = xy[stop, 0]
            segments[at, 3] = xy[stop, 1]
            at += 1
    return count


@kernel
def place_of(segments, item):
    """Return the coordinates where `item` is visited."""
    if item < len(segments):
        return segments[item, 0], segments[item, 1]
    return segments[item - len(segments), 2], segments[item - len(segments), 3]


@kernel
def turn_from(x, y, segments, e, f):
    """Return 1 if edge f lies above edge e, both continuing from (x, y); 0 if they run along each other."""
    return orient(x, y, segments[e, 2], segments[e, 3], segments[f, 2], segments[f, 3])


@kernel
def comes_before(segments, i, j):
    """Return True if item i is visited before item j."""
    x, y = place_of(segments, i)
    other_x, other_y = place_of(segments, j)
    if x != other_x:
        return x < other_x
    if y != other_y:
        return y < other_y
    if i >= len(segments) or j >= len(segments):
        return i < len(segments) and j >= len(segments)
    return turn_from(x, y, segments, i, j) > 0


@kernel
def sort_items(segments, items, room, count):
    """Sort the first `count` items into the order of visits, by merging; `room` is scratch space of the same size."""
    width = 1
    while width < count:
        for low in range(0, count, 2 * width):
            middle = min(low + width, count)
            high = min(low + 2 * width, count)
            i = low
            j = middle
            for k in range(low, high):
                if j >= high or (i < middle and not comes_before(segments, items[j], items[i])):
                    room[k] = items[i]
                    i += 1
                else:
                    room[k] = items[j]
                    j += 1
        for k in range(count):
            items[k] = room[k]
        width *= 2


@kernel
def clear_status(nodes, seed):
    """Empty the status. `seed` decides the priorities; a seed that input can predict would allow unbalanced trees."""
    head = len(nodes) - 1
    state = seed % (LCG_MODULUS - 1) + 1
    for k in range(head):
        state = state * LCG_FACTOR % LCG_MODULUS
        nodes[k, PRIORITY] = state
        nodes[k, EXTRA] = NONE
    for column in range(STATUS_COLUMNS):
        nodes[head, column] = NONE
    nodes[head, BELOW] = nodes[head, ABOVE] = head
    nodes[head, PRIORITY] = LCG_MODULUS


@kernel
def side_of(x, y, segments, e):
    """Return 1 if (x, y) lies above edge e of the status, -1 below, 0 on it."""
    return orient(segments[e, 0], segments[e, 1], segments[e, 2], segments[e, 3], x, y)


@kernel
def find_at(x, y, segments, nodes):
    """Return the lowest edge of the status through (x, y), or NONE, and the edge below it, or the head."""
    head = len(nodes) - 1
    below = head
    k = nodes[head, LEFT]
    while k >= 0:
        side = side_of(x, y, segments, k)
        if side == 0:
            below = nodes[k, BELOW]
            while below != head and side_of(x, y, segments, below) == 0:
                k = below
                below = nodes[k, BELOW]
            return k, below
        if side > 0:
            below = k
            k = nodes[k, RIGHT]
        else:
            k = nodes[k, LEFT]
    return NONE, below


@kernel
def replace_child(nodes, parent, old, new):
    """Replace the child `old` of `parent` by `new`, or by nothing if `new` is negative."""
    side = LEFT if nodes[parent, LEFT] == old else RIGHT
    nodes[parent, side] = new
    if new >= 0:
        nodes[new, UP] = parent


@kernel
def rotate_up(nodes, k):
    """Rotate the tree so that k takes its parent's place; the order of the edges stays."""
    parent = nodes[k, UP]
    side = LEFT if nodes[parent, LEFT] == k else RIGHT
    other = LEFT + RIGHT - side
    replace_child(nodes, nodes[parent, UP], parent, k)
    inner = nodes[k, other]
    nodes[parent, side] = inner
    if inner >= 0:
        nodes[inner, UP] = parent
    nodes[k, other] = parent
    nodes[parent, UP] = k


@kernel
def insert_above(nodes, k, below):
    """Put edge k into the status, directly above the edge `below` or the head."""
    head = len(nodes) - 1
    above = nodes[below, ABOVE]
    nodes[k, BELOW] = below
    nodes[k, ABOVE] = above
    nodes[below, ABOVE] = nodes[above, BELOW] = k
    nodes[k, LEFT] = nodes[k, RIGHT] = NONE
    if below != head and nodes[below, RIGHT] < 0:
        nodes[below, RIGHT] = k
        nodes[k, UP] = below
    else:  # then the edge above has no left child
        nodes[above, LEFT] = k
        nodes[k, UP] = above
    while nodes[nodes[k, UP], PRIORITY] < nodes[k, PRIORITY]:
        rotate_up(nodes, k)


@kernel
def remove(nodes, k):
    """Remove edge k from the status."""
    while nodes[k, LEFT] >= 0 and nodes[k, RIGHT] >= 0:
        left = nodes[k, LEFT]
        right = nodes[k, RIGHT]
        rotate_up(nodes, left if nodes[left, PRIORITY] > nodes[right, PRIORITY] else right)
    child = nodes[k, LEFT] if nodes[k, LEFT] >= 0 else nodes[k, RIGHT]
    replace_child(nodes, nodes[k, UP], k, child)
    below = nodes[k, BELOW]
    above = nodes[k, ABOVE]
    nodes[below, ABOVE] = above
    nodes[above, BELOW] = below


@kernel
def ends_at(x, y, segments, e):
    """Return True if edge e, which passes through (x, y), ends there."""
    return segments[e, 2] == x and segments[e, 3] == y


@kernel
def do_cross(segments, e, f):
    """Return True if edges e and f cross at a point that is an end of neither; the head crosses nothing."""
    if e >= len(segments) or f >= len(segments):
        return False
    if max(segments[e, 0], segments[f, 0]) > min(segments[e, 2], segments[f, 2]):
        return False
    start = side_of(segments[e, 0], segments[e, 1], segments, f)
    if start * side_of(segments[e, 2], segments[e, 3], segments, f) >= 0:
        return False
    start = side_of(segments[f, 0], segments[f, 1], segments, e)
    return start * side_of(segments[f, 2], segments[f, 3], segments, e) < 0


@kernel
def visit_end(segments, items, count, at):
    """Return the end of the run of items that are visited at the same place as items[at]."""
    x, y = place_of(segments, items[at])
    end = at + 1
    while end < count:
        next_x, next_y = place_of(segments, items[end])
        if next_x != x or next_y != y:
            return end
        end += 1
    return end
