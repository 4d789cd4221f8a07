"""Convert the values of a message to ranks among the constants of a level (index/scalars.py).

The constants of a slot, c[0] < c[1] < ..., give every value a rank: 2 i + 1 if it equals c[i], and 2 i if it lies
between c[i - 1] and c[i]. A constraint then asks whether the rank lies in an interval. A missing value, or a value of
another kind, has the rank ABSENT.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.codes import ABSENT, BACKWARDS, MAX_GRAM_BYTES, PATTERN, TEXT
from contrada.jit import kernel
from contrada.kernels.match.like import like_matches
from contrada.kernels.match.tables import SCALARS
from contrada.kernels.runtime.pointers import reader

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
def rank_of_key(level, slot, key, rest):
    """Return the rank of a scalar."""
    first = level.const_base[slot]
    low = first
    high = level.const_base[slot + 1]
    has_rests = len(level.rests) > 0
    while low < high:  # find the first constant that is not less
        middle = (low + high) >> 1
        at = level.keys[middle]
        if at < key or (at == key and has_rests and level.rests[middle] < rest):
            low = middle + 1
        else:
            high = middle
    is_equal = (
        low < level.const_base[slot + 1]
        and level.keys[low] == key
        and (level.rests[low] if has_rests else np.int64(0)) == rest
    )
    if not has_rests and rest > 0 and low < level.const_base[slot + 1] and level.keys[low] == key:
        low += 1
    return np.int32(2 * (low - first) + np.int64(is_equal))


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
def rank_of_text(level, slot, text, t0, t1, backwards):
    """Return the rank of a text."""
    first = level.text_base[slot]
    low = first
    high = level.text_base[slot + 1]
    while low < high:
        middle = (low + high) >> 1
        sign = compare_text(
            level.blob, level.text_offsets[middle], level.text_offsets[middle + 1], text, t0, t1, backwards
        )
        if sign == 0:
            return np.int32(2 * (middle - first) + 1)
        if sign < 0:
            low = middle + 1
        else:
            high = middle
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
