"""Constants of a place in order, each once: what ranks are counted in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

GRAM = 4  # bytes of a gram, at most, as in kernels/ranks.py
RUN, ONE = 0xFF, 0xFE  # of any code points, and of one, in the code of a pattern (model/text.py)


class Scalars(NamedTuple):
    """Constants that are scalars, and for each operand that was given which it is."""

    keys: NDArray[np.int64]
    rests: NDArray[np.int64]
    numbers: NDArray[np.int64]


class Texts(NamedTuple):
    """The same for text."""

    offsets: NDArray[np.int64]
    blob: NDArray[np.uint8]
    numbers: NDArray[np.int64]


def distinct_scalars(keys: NDArray[np.int64], rests: NDArray[np.int64]) -> Scalars:
    """The distinct pairs in order."""
    if not rests.any():
        ordered, numbers = np.unique(keys, return_inverse=True)
        return Scalars(ordered, np.zeros(len(ordered), np.int64), numbers.ravel())
    order = np.lexsort((rests, keys))
    k, r = keys[order], rests[order]
    is_first = np.append(True, (k[1:] != k[:-1]) | (r[1:] != r[:-1]))
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = np.cumsum(is_first) - 1
    return Scalars(k[is_first], r[is_first], numbers)


def distinct_texts(starts: NDArray[np.int64], stops: NDArray[np.int64], blob: NDArray[np.uint8]) -> Texts:
    """The distinct texts in order of their bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(starts):
        return Texts(np.zeros(1, np.int64), np.empty(0, np.uint8), np.empty(0, np.int64))
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
    return Texts(ends, text, place[np.asarray(encoded.indices)])


def runs(starts: NDArray[Any], stops: NDArray[Any]) -> NDArray[np.int64]:
    """The numbers starts[0]..stops[0], starts[1]..stops[1], ..., one after another."""
    lengths = stops - starts
    ends = np.cumsum(lengths)
    listed: NDArray[np.int64] = np.arange(lengths.sum()) + np.repeat(starts - (ends - lengths), lengths)
    return listed


def gathered(
    starts: NDArray[np.int64], stops: NDArray[np.int64], blob: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Pieces of a blob, one after another, and where each begins."""
    return np.concatenate([[0], np.cumsum(stops - starts)]), blob[runs(starts, stops)]


class Grams(NamedTuple):
    """Patterns by one gram that each needs: codes in order, and the patterns under each."""

    codes: NDArray[np.int64]
    offsets: NDArray[np.int32]
    patterns: NDArray[np.int32]


def grams_of(texts: Texts) -> Grams:
    """List every pattern under its rarest gram, the longest there are; one without any stands under code 0."""
    patterns, codes = _grams(texts)
    _, kind, counts = np.unique(codes, return_inverse=True, return_counts=True)
    order = np.lexsort((codes, counts[kind], patterns))
    firsts = order[np.append(True, np.diff(patterns[order]) > 0)] if len(order) else order  # the rarest of each
    chosen = np.zeros(len(texts.offsets) - 1, np.int64)
    chosen[patterns[firsts]] = codes[firsts]
    order = np.argsort(chosen, kind="stable")
    distinct, first = np.unique(chosen[order], return_index=True)
    offsets = np.append(first, len(order)).astype(np.int32)
    return Grams(distinct, offsets, order.astype(np.int32))


def _grams(texts: Texts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Patterns and the codes of their grams of the longest kind each has: bytes, and above them how many; each once."""
    blob = texts.blob[texts.offsets[0] : texts.offsets[-1]]
    owners = np.repeat(np.arange(len(texts.offsets) - 1), np.diff(texts.offsets))
    lengths = np.zeros(len(texts.offsets) - 1, np.int64)  # of the grams of each pattern
    found = [np.empty(0, np.int64)]
    for length in range(min(GRAM, len(blob)), 0, -1):
        count = len(blob) - length + 1
        good = (owners[:count] == owners[length - 1 :]) & (lengths[owners[:count]] == 0)
        keys = owners[:count].copy()
        for k in range(length):
            letters = blob[k : count + k]
            good &= letters < ONE
            keys = keys << 8 | letters
        keys = keys[good] << 8 * (GRAM - length)
        found.append(keys)
        lengths[keys >> 8 * GRAM] = length
    keys = np.sort(np.concatenate(found))
    keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
    patterns, tails = keys >> 8 * GRAM, keys & (1 << 8 * GRAM) - 1
    of = lengths[patterns]
    return patterns, tails >> 8 * (GRAM - of) | of << 8 * GRAM
