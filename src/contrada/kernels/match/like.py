"""Match LIKE patterns against UTF-8 text; `contrada.model.text.encode_like` makes the pattern bytes."""

import numpy as np

from contrada.codes import ANY_ONE_BYTE, ANY_RUN_BYTE
from contrada.jit import allocating_kernel, kernel

# Neither byte occurs in UTF-8. model/text.py defines the same two; importing them from there would invert the layers.
MAX_STEPS_BACK_PER_BYTE = 16  # steps back per byte of pattern and text


@kernel
def after_code_point(text, t, t1):
    """Return the position after the code point that begins at t: continuation bytes are 10xxxxxx."""
    t += 1
    while t < t1 and text[t] & 0xC0 == 0x80:
        t += 1
    return t


@allocating_kernel
def follow_states(pattern, p0, p1, text, t0, t1):
    """Return what `like_matches` returns, in at most (t1 - t0) * (p1 - p0) / 64 steps, for patterns that make it slow.

    Bit n of the state says whether the first n pattern bytes, not counting runs, can have matched the text so far. A
    state before a run stays; a state after ANY_ONE_BYTE stays while the bytes of that code point continue.
    """
    words = (p1 - p0) // 64 + 1
    accepts = np.zeros((256, words), np.uint64)
    ones = np.zeros(words, np.uint64)
    loops = np.zeros(words, np.uint64)
    after_one = np.zeros(words, np.uint64)
    states = np.zeros(words, np.uint64)
    size = np.int64(0)
    for p in range(p0, p1):
        word = size >> 6
        bit = np.uint64(1) << np.uint64(size & 63)
        if pattern[p] == ANY_RUN_BYTE:
            loops[word] |= bit
            continue
        size += 1
        if pattern[p] == ANY_ONE_BYTE:
            ones[word] |= bit
            after_one[size >> 6] |= np.uint64(1) << np.uint64(size & 63)
        else:
            accepts[pattern[p], word] |= bit
    states[0] = np.uint64(1)
    first = np.int64(0)  # states below the last run that was reached lead nowhere else, so they are skipped
    for t in range(t0, t1):
        byte = text[t]
        is_continued = byte & 0xC0 == 0x80
        carry = np.uint64(0)
        reached = first
        is_alive = False
        for w in range(first, words):
            state = states[w]
            moved = state & (accepts[byte, w] if is_continued else accepts[byte, w] | ones[w])
            kept = state & (loops[w] | after_one[w] if is_continued else loops[w])
            state = moved << np.uint64(1) | carry | kept
            carry = moved >> np.uint64(63)
            states[w] = state
            is_alive = is_alive or state != np.uint64(0)
            if state & loops[w] != np.uint64(0):
                reached = w
        if not is_alive:
            return False
        first = reached
    return states[size >> 6] >> np.uint64(size & 63) & np.uint64(1) == np.uint64(1)


@kernel
def like_matches(pattern, p0, p1, text, t0, t1):
    """Return True if the whole of text[t0:t1] has the form of pattern[p0:p1].

    A run takes as few bytes as possible. If the rest then fails, only the last run is extended: everything before it is
    at its earliest position, so moving that gains nothing. After MAX_STEPS_BACK_PER_BYTE steps per byte,
    `follow_states` takes over: a pattern of 20 KB on a text of 200 KB took more than 20 s in this loop.
    """
    p = np.int64(p0)
    t = np.int64(t0)
    after_run = np.int64(-1)
    run_end = t
    left = MAX_STEPS_BACK_PER_BYTE * ((p1 - p0) + (t1 - t0))
    while t < t1:
        if p < p1 and pattern[p] == ANY_RUN_BYTE:
            p += 1
            if p == p1:
                return True
            after_run = p
            run_end = t
        elif p < p1 and pattern[p] == ANY_ONE_BYTE:
            p += 1
            t = after_code_point(text, t, t1)
        elif p < p1 and pattern[p] == text[t]:
            p += 1
            t += 1
        elif after_run >= 0:
            left -= t - run_end
            if left < 0:
                return follow_states(pattern, after_run - 1, p1, text, run_end, t1)
            # Advance by whole code points, or ANY_ONE_BYTE could match a part of one; a literal cannot begin in the
            # middle anyway.
            run_end = after_code_point(text, run_end, t1)
            p = after_run
            t = run_end
        else:
            return False
    while p < p1 and pattern[p] == ANY_RUN_BYTE:
        p += 1
    return p == p1
