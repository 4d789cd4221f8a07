"""Blocks of pairs: the subscriptions that an object is inside of, one block of a power of two for each object."""

from contrada.codes import CHANGES, FOREVER, GONE, NEVER, NEXT_DUE, NO_BLOCK, PAIRS, TAIL
from contrada.jit import kernel


@kernel
def class_for(count):
    """Return the class of the smallest block with room for `count` pairs, which is at least 1."""
    found = 0
    while (1 << found) < count:
        found += 1
    return found


@kernel
def take_block(a, wanted):
    """Return the start of a block of a class: a free one, or a new one, for which the caller has seen to room."""
    start = a.free[wanted]
    if start >= 0:
        a.free[wanted] = a.numbers[start]
        return start
    start = a.state[TAIL]
    a.state[TAIL] += 1 << wanted
    return start


@kernel
def free_block(a, slot):
    """Give back the block of an object, if it has one."""
    own = a.classes[slot]
    if own != NO_BLOCK:
        start = a.starts[slot]
        a.numbers[start] = a.free[own]
        a.free[own] = start
        a.classes[slot] = NO_BLOCK


@kernel
def fit_block(a, slot, count):
    """Give an object a block for `count` pairs, whose content is lost; a block four times too large is replaced."""
    if count == 0:
        free_block(a, slot)
        return
    wanted = class_for(count)
    own = a.classes[slot]
    if own != NO_BLOCK and wanted <= own <= wanted + 1:
        return
    free_block(a, slot)
    a.starts[slot] = take_block(a, wanted)
    a.classes[slot] = wanted


@kernel
def has_room(a, more):
    """Return True if a block for `more` pairs can be taken; twice as many cover the power of two."""
    return a.state[TAIL] + 2 * more <= len(a.numbers)


@kernel
def note_change(a, c, slot, number, flags, relation, entered, left):
    """Note a pair that changed, for deltas; the caller has seen to room, unless no changes are asked for."""
    if len(c.slots) == 0:
        return
    k = a.state[CHANGES]
    c.slots[k] = slot
    c.numbers[k] = number
    c.flags[k] = flags
    c.relations[k] = relation
    c.entered[k] = entered
    c.left[k] = left
    a.state[CHANGES] = k + 1


@kernel
def note_due(a, w, at, slot):
    """Lower the time at which something is due to that of the pair at a place."""
    place = w.places[a.numbers[at]]
    due = FOREVER
    if w.exit_afters[place] > 0 and a.left[at] != NEVER:
        due = a.left[at] + w.exit_afters[place]
    if w.dwells[place] > 0 and a.flags[at] == 0:
        due = min(due, a.entered[at] + w.dwells[place])
    a.state[NEXT_DUE] = min(a.state[NEXT_DUE], due)


@kernel
def clear_pairs(a, w, c, slot):
    """Take an object out of all subscriptions; tell nothing."""
    start = a.starts[slot]
    for at in range(start, start + a.counts[slot]):
        w.inside[w.places[a.numbers[at]]] -= 1
        note_change(a, c, slot, a.numbers[at], GONE, 0, 0, 0)
    a.state[PAIRS] -= a.counts[slot]
    a.counts[slot] = 0
    free_block(a, slot)
