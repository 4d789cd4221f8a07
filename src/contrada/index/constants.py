"""Sort and deduplicate the constants of each slot; ranks count positions among them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.codes import ANY_ONE_BYTE, HEAD_BYTES, MAX_GRAM_BYTES, PATTERN
from contrada.geometry.arrays import offsets_of, ranges

CODE_BITS = 8 * MAX_GRAM_BYTES + 3  # code of a gram: its bytes and their number


class Scalars(NamedTuple):
    """Distinct scalars, their slots, and for each given operand the number of its scalar."""

    keys: NDArray[np.int64]
    rests: NDArray[np.int64]
    numbers: NDArray[np.int64]
    slots: NDArray[np.int64]


class Texts(NamedTuple):
    """Distinct text constants, slot by slot, and for each operand the number of its constant."""

    offsets: NDArray[np.int64]
    blob: NDArray[np.uint8]
    numbers: NDArray[np.int64]
    slots: NDArray[np.int64]


def distinct_scalars(
    keys: NDArray[np.int64], rests: NDArray[np.int64], slots: NDArray[np.int64] | None = None
) -> Scalars:
    """Return the distinct pairs of every slot in order, slot by slot; all in slot 0 if `slots` is None.

    >>> distinct_scalars(np.array([7, 5, 7]), np.array([0, 0, 0])).keys.tolist()
    [5, 7]
    """
    slots = np.zeros(len(keys), np.int64) if slots is None else slots
    order = np.lexsort([part for part in (rests, keys, slots) if part.any()] or [keys])
    k, r, s = keys[order], rests[order], slots[order]
    is_first = np.append(True, (k[1:] != k[:-1]) | (r[1:] != r[:-1]) | (s[1:] != s[:-1]))[: len(k)]
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = np.cumsum(is_first) - 1
    return Scalars(k[is_first], r[is_first], numbers, s[is_first])


def distinct_texts(
    starts: NDArray[np.int64], stops: NDArray[np.int64], blob: NDArray[np.uint8], slots: NDArray[np.int64] | None = None
) -> Texts:
    """Return the distinct texts of every slot in byte order, slot by slot; all in slot 0 if `slots` is None."""
    import pyarrow as pa
    import pyarrow.compute as pc

    none = np.empty(0, np.int64)
    if not len(starts):
        return Texts(np.zeros(1, np.int64), np.empty(0, np.uint8), none, none)
    offsets, own = gathered(starts, stops, blob)
    array = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(own)]
    )
    encoded = array.dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary)).astype(np.int64)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    ordered = pa.concat_arrays([encoded.dictionary.take(pa.array(order))])
    _, ends, text = ordered.buffers()
    ends = np.frombuffer(ends, np.int64)[: len(ordered) + 1]
    text = np.frombuffer(text, np.uint8)[: ends[-1]] if text is not None else np.empty(0, np.uint8)
    numbers = place[np.asarray(encoded.indices)]
    if slots is None or not slots.any():
        return Texts(ends, text, numbers, np.zeros(len(ordered), np.int64))
    distinct, numbers = np.unique(slots * len(ordered) + numbers, return_inverse=True)
    chosen = distinct % len(ordered)
    return Texts(*gathered(ends[chosen], ends[chosen + 1], text), numbers.ravel(), distinct // len(ordered))


def gathered(
    starts: NDArray[np.int64], stops: NDArray[np.int64], blob: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where each piece begins, and the pieces blob[starts[k]:stops[k]] one after another."""
    return offsets_of(stops - starts), blob[ranges(starts, stops)]


def heads_of(texts: Texts) -> NDArray[np.uint64]:
    """Return the first bytes of each text as a number; a shorter text counts as followed by zeros.

    Of two texts the lesser one never has the larger number, so most comparisons of texts are comparisons of numbers.

    >>> heads = heads_of(Texts(np.array([0, 1, 3]), np.frombuffer(b"aab", np.uint8), np.arange(2), np.zeros(2, int)))
    >>> [hex(head) for head in heads]
    ['0x6100000000000000', '0x6162000000000000']
    """
    heads, lengths = np.zeros(len(texts.slots), np.uint64), np.diff(texts.offsets)
    for k in range(HEAD_BYTES):
        longer = np.flatnonzero(lengths > k)
        heads[longer] |= texts.blob[texts.offsets[longer] + k].astype(np.uint64) << np.uint64(8 * (HEAD_BYTES - 1 - k))
    return heads


class Grams(NamedTuple):
    """Patterns by one gram that each needs: first gram of each slot, codes in order, the patterns under each code."""

    base: NDArray[np.int64]
    codes: NDArray[np.int64]
    offsets: NDArray[np.int32]
    patterns: NDArray[np.int32]


def grams_of(texts: Texts, forms: NDArray[np.uint8]) -> Grams:
    """List every pattern under its rarest gram in its slot, among its longest grams; under code 0 if it has none.

    Patterns are the texts in slots of such a form; `forms` has the form of each slot.
    """
    numbers = np.flatnonzero(forms[texts.slots] >= PATTERN)
    slots = texts.slots[numbers]
    offsets, blob = gathered(texts.offsets[numbers], texts.offsets[numbers + 1], texts.blob)
    patterns, codes = _grams(offsets, blob)
    _, kind, counts = np.unique(slots[patterns] << CODE_BITS | codes, return_inverse=True, return_counts=True)
    order = np.lexsort((codes, counts[kind.ravel()], patterns))
    firsts = order[np.append(True, np.diff(patterns[order]) > 0)] if len(order) else order  # rarest of each pattern
    chosen = np.zeros(len(offsets) - 1, np.int64)
    chosen[patterns[firsts]] = codes[firsts]
    keys = slots << CODE_BITS | chosen
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    base = offsets_of(np.bincount(distinct >> CODE_BITS, minlength=len(forms)))
    ends = np.append(first, len(order)).astype(np.int32)
    return Grams(base, distinct & (1 << CODE_BITS) - 1, ends, numbers[order].astype(np.int32))


def _grams(offsets: NDArray[np.int64], blob: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return patterns and the codes of their longest grams, each once: the bytes, and above them their number."""
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    lengths = np.zeros(len(offsets) - 1, np.int64)  # length of the grams of each pattern
    found = [np.empty(0, np.int64)]
    for length in range(min(MAX_GRAM_BYTES, len(blob)), 0, -1):
        count = len(blob) - length + 1
        good = (owners[:count] == owners[length - 1 :]) & (lengths[owners[:count]] == 0)
        keys = owners[:count].copy()
        for k in range(length):
            letters = blob[k : count + k]
            good &= letters < ANY_ONE_BYTE  # the least wildcard
            keys = keys << 8 | letters
        keys = keys[good] << 8 * (MAX_GRAM_BYTES - length)
        found.append(keys)
        lengths[keys >> 8 * MAX_GRAM_BYTES] = length
    keys = np.sort(np.concatenate(found))
    keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
    patterns, tails = keys >> 8 * MAX_GRAM_BYTES, keys & (1 << 8 * MAX_GRAM_BYTES) - 1
    of = lengths[patterns]
    return patterns, tails >> 8 * (MAX_GRAM_BYTES - of) | of << 8 * MAX_GRAM_BYTES
