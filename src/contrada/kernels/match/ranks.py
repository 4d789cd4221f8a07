"""Convert the values of a message to ranks among the constants of a level (index/scalars.py).

The constants of a slot, c[0] < c[1] < ..., give every value a rank: 2 i + 1 if it equals c[i], and 2 i if it lies
between c[i - 1] and c[i]. A constraint then asks whether the rank lies in an interval. A missing value, or a value of
another kind, has the rank ABSENT.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.codes import ABSENT, BACKWARDS, HEAD_BYTES, MAX_GRAM_BYTES, PATTERN, TEXT
from contrada.jit import kernel
from contrada.kernels.match.like import like_matches
from contrada.kernels.match.tables import SCALARS
from contrada.kernels.runtime.pointers import reader

MAX_KEY = np.int64(2**63 - 1)
MAX_COUNTED = 16  # constants that are counted in place of a search among them
TRIED = np.uint8(2)  # mark of a pattern that was tried and does not match


level_at = reader(SCALARS, "ScalarLevel")


class MessageArrays(NamedTuple):
    """Messages one after another: for each message, the places that have values, and the values."""

    offsets: Any  # start of the values of each message
    values: Any  # per value: place, then key and rest, or where its text begins and ends in the blob
    blob: Any
    boxes: Any  # box of each message's region at the place that entries are ordered by; an empty box if there is none


@kernel
def slot_at(level, place):
    """Return the slot of `place`, -1 if no constraint of the level is about it."""
    return np.int64(level.slot_of[place]) if place < len(level.slot_of) else np.int64(-1)


@kernel
def first_not_less(ordered, low, high, value):
    """Return the first place of ordered[low:high] that is not less than `value`, `high` if all are.

    The last few places are counted: branches of a search there would be hard to predict.
    """
    count = high - low
    while count > MAX_COUNTED:
        half = (count + 1) >> 1
        if ordered[np.uint64(low + half - 1)] < value:
            low += half
        count -= half
    less = np.int64(0)
    for k in range(count):
        less += np.int64(ordered[np.uint64(low + k)] < value)
    return low + less


@kernel
def rank_of_key(level, slot, key, rest):
    """Return the rank of a scalar."""
    first = level.const_base[slot]
    stop = level.const_base[slot + 1]
    low = first_not_less(level.keys, first, stop, key)
    if len(level.rests) > 0:
        last = stop if key == MAX_KEY else first_not_less(level.keys, low, stop, key + 1)
        low = first_not_less(level.rests, low, last, rest)
        return np.int32(2 * (low - first) + np.int64(low < last and level.rests[low] == rest))
    is_named = low < stop and level.keys[low] == key
    if is_named and rest > 0:
        return np.int32(2 * (low - first) + 2)
    return np.int32(2 * (low - first) + np.int64(is_named and rest == 0))


@kernel
def compare_text(blob, start, stop, text, t0, t1, backwards):
    """Return the sign of the comparison of a constant and a text; `backwards` reads the text from its end."""
    length = min(stop - start, t1 - t0)
    for k in range(length):
        a = blob[start + k]
        b = text[t1 - 1 - k] if backwards else text[t0 + k]
        if a != b:
            return -1 if a < b else 1
    if stop - start == t1 - t0:
        return 0
    return -1 if stop - start < t1 - t0 else 1


@kernel
def head_of(text, t0, t1, backwards):
    """Return the first bytes of a text as a number, as `heads` has them of constants (index/constants.py)."""
    head = np.uint64(0)
    for k in range(min(t1 - t0, HEAD_BYTES)):
        byte = text[t1 - 1 - k] if backwards else text[t0 + k]
        head |= np.uint64(byte) << np.uint64(8 * (HEAD_BYTES - 1 - k))
    return head


@kernel
def rank_of_text(level, slot, text, t0, t1, backwards):
    """Return the rank of a text."""
    first = level.text_base[slot]
    high = level.text_base[slot + 1]
    head = head_of(text, t0, t1, backwards)
    low = first_not_less(level.heads, first, high, head)
    if low == high or level.heads[low] != head:
        return np.int32(2 * (low - first))
    middle = low  # most often the only constant that begins like the text
    while low < high:
        sign = compare_text(
            level.blob, level.text_offsets[middle], level.text_offsets[middle + 1], text, t0, t1, backwards
        )
        if sign == 0:
            return np.int32(2 * (middle - first) + 1)
        if sign < 0:
            low = middle + 1
        else:
            high = middle
        middle = (low + high) >> 1
    return np.int32(2 * (low - first))


@kernel
def try_patterns(level, slot, code, text, t0, t1, satisfied, found, count, failed):
    """Try the patterns listed under a gram: matches go to `found`, failures to the end of `found`.

    Each pattern is tried once, however often its gram occurs in the text. Returns the numbers of matches and failures.
    """
    low = level.gram_base[slot]
    high = level.gram_base[slot + 1]
    while low < high:
        middle = (low + high) >> 1
        if level.gram_codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    if low == level.gram_base[slot + 1] or level.gram_codes[low] != code:
        return count, failed
    first = level.gram_offsets[low]
    stop = level.gram_offsets[low + 1]
    if first < stop and satisfied[level.gram_patterns[first]] != 0:  # each pattern is listed under one gram only
        return count, failed
    for k in range(first, stop):
        p = level.gram_patterns[k]
        if like_matches(level.blob, level.text_offsets[p], level.text_offsets[p + 1], text, t0, t1):
            satisfied[p] = 1
            found[count] = p
            count += 1
        else:
            satisfied[p] = TRIED
            failed += 1
            found[len(found) - failed] = p
    return count, failed


@kernel
def find_patterns(level, slot, text, t0, t1, satisfied, found, count):
    """Find all patterns of a slot that match a text: each is listed under one gram that it needs, or under none."""
    failed = np.int64(0)
    count, failed = try_patterns(level, slot, np.int64(0), text, t0, t1, satisfied, found, count, failed)
    for at in range(t0, t1):
        code = np.int64(0)
        for length in range(1, min(MAX_GRAM_BYTES, t1 - at) + 1):
            code = code << 8 | np.int64(text[at + length - 1])
            count, failed = try_patterns(
                level, slot, code | np.int64(length) << 32, text, t0, t1, satisfied, found, count, failed
            )
    for k in range(len(found) - failed, len(found)):
        satisfied[found[k]] = 0
    return count


@kernel
def fill_ranks(level, messages, i, ranks, satisfied, found):
    """Write the ranks of the values of message i and note the patterns that match; return the number of patterns."""
    count = np.int64(0)
    for j in range(messages.offsets[i], messages.offsets[i + 1]):
        slot = slot_at(level, messages.values[j, 0])
        if slot < 0:
            continue
        first = messages.values[j, 1]
        second = messages.values[j, 2]
        form = level.forms[slot]
        if form < TEXT:
            ranks[slot] = rank_of_key(level, slot, first, second)
        elif form < PATTERN:
            ranks[slot] = rank_of_text(level, slot, messages.blob, first, second, form >= BACKWARDS)
        else:
            ranks[slot] = 0
            count = find_patterns(level, slot, messages.blob, first, second, satisfied, found, count)
    return count


@kernel
def clear_ranks(level, messages, i, ranks, satisfied, found, count):
    """Undo what fill_ranks did."""
    for j in range(messages.offsets[i], messages.offsets[i + 1]):
        slot = slot_at(level, messages.values[j, 0])
        if slot >= 0:
            ranks[slot] = ABSENT
    for k in range(count):
        satisfied[found[k]] = 0
