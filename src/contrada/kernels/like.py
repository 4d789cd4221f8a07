"""LIKE on UTF-8: patterns as bytes, made by `contrada.model.text.encode_like`."""

import numpy as np

from contrada.jit import kernel

# Neither byte occurs in UTF-8. model/text.py has the same two: importing them from there would turn the layers around.
ANY_RUN = np.uint8(0xFF)
ANY_ONE = np.uint8(0xFE)


@kernel
def after_code_point(text, t, t1):
    """The place after the code point that begins at t: continuation bytes are 10xxxxxx."""
    t += 1
    while t < t1 and text[t] & 0xC0 == 0x80:
        t += 1
    return t


@kernel
def like_matches(pattern, p0, p1, text, t0, t1):
    """True if the whole of text[t0:t1] has the form of pattern[p0:p1]; at most O(n * m) steps.

    A run takes as little as it can. Where the rest then fails, only the last run is made longer: what stands before it
    has the earliest place there is, so that nothing is gained by moving that.
    """
    p = np.int64(p0)
    t = np.int64(t0)
    after_run = np.int64(-1)
    run_end = t
    while t < t1:
        if p < p1 and pattern[p] == ANY_RUN:
            p += 1
            if p == p1:
                return True
            after_run = p
            run_end = t
        elif p < p1 and pattern[p] == ANY_ONE:
            p += 1
            t = after_code_point(text, t, t1)
        elif p < p1 and pattern[p] == text[t]:
            p += 1
            t += 1
        elif after_run >= 0:
            # By whole code points, lest ANY_ONE take the rest of one; a literal cannot begin in the middle anyway.
            run_end = after_code_point(text, run_end, t1)
            p = after_run
            t = run_end
        else:
            return False
    while p < p1 and pattern[p] == ANY_RUN:
        p += 1
    return p == p1
