"""Match filters whose constraints are not packed yet (index/raw.py), one after another."""

import numpy as np

from contrada.codes import (
    ASKED,
    BACKWARDS,
    FILTER,
    HIGH,
    HIGH_REST,
    HIGH_SHIFT,
    LIKE,
    LOW,
    LOW_REST,
    LOW_SHIFT,
    OPEN,
    PLACE,
    SET,
    TEXT,
    UNBOUNDED,
)
from contrada.jit import entry, kernel
from contrada.kernels.match.like import like_matches
from contrada.kernels.match.ranks import compare_text
from contrada.kernels.runtime.gil_gate import wait_at


@kernel
def compare_operand(form, first, second, blob, m_first, m_second, m_blob):
    """Return the sign of the comparison of an operand and a message's value."""
    if form >= TEXT:
        return compare_text(blob, first, second, m_blob, m_first, m_second, form >= BACKWARDS)
    if first != m_first:
        return -1 if first < m_first else 1
    return 0 if second == m_second else (-1 if second < m_second else 1)


@kernel
def record_holds(records, k, form, members, blob, first, second, m_blob):
    """Return True if a value satisfies record k."""
    asked = records[k, ASKED]
    asks = asked & 7
    is_negated = asks & 1 != 0
    if asks >= LIKE:
        return like_matches(blob, records[k, LOW], records[k, LOW_REST], m_blob, first, second) != is_negated
    if asks >= SET:
        for m in range(records[k, LOW], records[k, LOW_REST]):
            if compare_operand(form, members[m, 0], members[m, 1], blob, first, second, m_blob) == 0:
                return not is_negated
        return is_negated
    end = (asked >> LOW_SHIFT) & 3
    if end != UNBOUNDED:
        sign = compare_operand(form, records[k, LOW], records[k, LOW_REST], blob, first, second, m_blob)
        if sign > 0 or (sign == 0 and end == OPEN):
            return is_negated
    end = (asked >> HIGH_SHIFT) & 3
    if end != UNBOUNDED:
        sign = compare_operand(form, records[k, HIGH], records[k, HIGH_REST], blob, first, second, m_blob)
        if sign < 0 or (sign == 0 and end == OPEN):
            return is_negated
    return not is_negated


@kernel
def scan_message(records, members, blob, forms, m_values, m_blob, value_of, out, count):
    """Write the filters whose records a message all satisfies behind out[:count]; return their end.

    value_of[place] is the row of the message's value there in `m_values`, or -1.
    """
    k = 0
    while k < len(records):
        number = records[k, FILTER]
        is_match = True
        while k < len(records) and records[k, FILTER] == number:
            if is_match:
                j = value_of[records[k, PLACE]]
                is_match = j >= 0 and record_holds(
                    records, k, forms[records[k, PLACE]], members, blob, m_values[j, 1], m_values[j, 2], m_blob
                )
            k += 1
        if is_match:
            out[count] = number
            count += 1
    return count


@entry(
    "i8[2] i8[2] u1[1] u1[1] i8[1] i8[2] u1[1] i8 i4[1]! i8[1]! i8[1]! i8[1]",
    checked=False,
)
def scan_raw(records, members, blob, forms, m_offsets, m_values, m_blob, start, value_of, out, ends, gate):
    """Write the filters whose records messages all satisfy, in order, to `out`; ends[i] gets the end of message i's.

    The records of a filter are adjacent. `value_of` has room for every place, and is -1 before and after the call.
    Returns the first message, from `start` on, that was not matched because `out` might not have had room for it.
    """
    count = np.int64(0)
    for i in range(start, len(ends)):
        if i > start and len(out) - count < len(records):
            wait_at(gate)
            return i
        for j in range(m_offsets[i], m_offsets[i + 1]):
            if m_values[j, 0] < len(value_of):
                value_of[m_values[j, 0]] = j
        count = scan_message(records, members, blob, forms, m_values, m_blob, value_of, out, count)
        for j in range(m_offsets[i], m_offsets[i + 1]):
            if m_values[j, 0] < len(value_of):
                value_of[m_values[j, 0]] = -1
        ends[i] = count
    wait_at(gate)
    return len(ends)
