"""Encode the columns of an Arrow table for kernels, as `MessageEncoder.encode` encodes messages one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.formats.tables.rows import values_of
from contrada.geometry.arrays import frozen, offsets_of
from contrada.geometry.faults import Rejection
from contrada.index.scalars import NO_PLACES, EncodedMessages
from contrada.matching.encoding import AttributeSlots, MessageEncoder
from contrada.model.forms import ACCENTI, CASEI
from contrada.model.text import encode_text, fold
from contrada.model.values import BOOLEAN, EXACT_INTEGERS, NUMBER, TIME

Integers = NDArray[np.int64]

NO_RESTS = np.empty(0, np.int64)
TICKS_PER_MICROSECOND = {"us": 1, "ns": 1000}
MICROSECONDS_PER_TICK = {"s": 10**6, "ms": 10**3, "D": 86_400 * 10**6}


class SlotValues(NamedTuple):
    """The values of many messages at one slot: `keys[k]` and `rests[k]` belong to message `rows[k]`.

    Without rows there is a value for every message. For a slot of text they are begin and end in `blob`.
    """

    slot: int
    rows: Integers | None
    keys: Integers
    rests: Integers  # empty if all are 0
    blob: NDArray[np.uint8] | None = None
    first: int = 0  # what begin and end count from


class ColumnEncoder:
    """Collects the values of the columns of a table for the slots of an encoder."""

    def __init__(self, encoder: MessageEncoder, size: int) -> None:
        self._encoder, self._size = encoder, size
        self._values: list[SlotValues] = []
        self._present: dict[str, NDArray[np.bool_]] = {}
        self.presences = frozenset(attribute for attribute, _ in encoder.presences)  # whose presence is asked for

    def add(self, name: str, column: Any) -> list[Rejection]:
        """Add the values of column `name`, which holds no geometry; return rejections of values that cannot be read."""
        about = self._encoder.asked.get(name)
        if about is None:
            return []
        array, rejected = _readable(_whole(column))
        if name in self.presences:
            self.add_presence(name, _valid(array))
        if _is_text(array.type):
            self._add_texts(about, array)
        elif max(about.scalars) >= 0:
            self._add_scalars(about, array)
        return [item._replace(reason=f"attribute {name!r}: {item.reason}") for item in rejected]

    def add_presence(self, name: str, is_present: NDArray[np.bool_]) -> None:
        """Say which messages have attribute `name`."""
        self._present[name] = is_present

    def encoded(self, rows: Integers) -> EncodedMessages:
        """Return the messages `rows`, with everything that was added."""
        absent = np.zeros(self._size, bool)
        for attribute, slot in self._encoder.presences:
            present = self._present.get(attribute, absent)
            self._values.append(SlotValues(slot, None, present.astype(np.int64), NO_RESTS))
        return joined_values(self._values, rows, self._size)

    def _add_texts(self, about: AttributeSlots, array: Any) -> None:
        folded: dict[int, SlotValues] = {}
        for folding, slot in about.texts:
            if folding not in folded:
                folded[folding] = _texts(slot, array) if folding == 0 else _folded(slot, array, folding)
            # A blob is added once, for the first slot that has it.
            self._values.append(folded[folding]._replace(slot=slot))

    def _add_scalars(self, about: AttributeSlots, array: Any) -> None:
        import pyarrow as pa

        kind, types = array.type, pa.types
        if types.is_boolean(kind):
            self._add(about, BOOLEAN, array, array.cast(pa.uint8()))
        elif types.is_floating(kind):
            self._add_floats(about, array)
        elif types.is_integer(kind):
            self._add_integers(about, array)
        elif types.is_timestamp(kind) or types.is_date32(kind):
            self._add_instants(about, array)
        elif types.is_decimal(kind) or types.is_date64(kind):
            self._add_singly(about, array, np.flatnonzero(_valid(array)))

    def _add(self, about: AttributeSlots, kind: int, array: Any, plain: Any) -> None:
        slot = about.scalars[kind]
        if slot >= 0:
            rows = _rows(array)
            self._values.append(SlotValues(slot, rows, _chosen(_numpy(plain).astype(np.int64), rows), NO_RESTS))

    def _add_floats(self, about: AttributeSlots, array: Any) -> None:
        slot = about.scalars[NUMBER]
        if slot < 0:
            return
        numbers = _numpy(array).astype(np.float64)
        is_number = _valid(array) & ~np.isnan(numbers)
        rows = None if is_number.all() else np.flatnonzero(is_number)
        self._values.append(SlotValues(slot, rows, _ordered_bits(_chosen(numbers, rows)), NO_RESTS))

    def _add_integers(self, about: AttributeSlots, array: Any) -> None:
        slot = about.scalars[NUMBER]
        if slot < 0:
            return
        numbers = _numpy(array)
        if not array.null_count and numbers.dtype != np.uint64:
            bits = np.empty(len(numbers), np.int64)
            if kernels.fill_integer_bits(frozen(numbers.astype(np.int64, copy=False)), EXACT_INTEGERS, bits):
                self._values.append(SlotValues(slot, None, bits, NO_RESTS))
                return
        is_valid = _valid(array)
        is_exact = is_valid & (numbers <= EXACT_INTEGERS)
        if numbers.dtype.kind == "i":
            is_exact &= numbers >= -EXACT_INTEGERS
        rows = None if is_exact.all() else np.flatnonzero(is_exact)
        self._values.append(SlotValues(slot, rows, _ordered_bits(_chosen(numbers, rows).astype(np.float64)), NO_RESTS))
        self._add_singly(about, array, np.flatnonzero(is_valid & ~is_exact))

    def _add_instants(self, about: AttributeSlots, array: Any) -> None:
        slot = about.scalars[TIME]
        if slot < 0:
            return
        unit = getattr(array.type, "unit", "D") if "timestamp" in str(array.type) else "D"
        rows = _rows(array)
        ticks = _chosen(_numpy(_as_integers(array)).astype(np.int64), rows)
        if unit in TICKS_PER_MICROSECOND:
            keys, rests = np.divmod(ticks, TICKS_PER_MICROSECOND[unit])
            self._values.append(SlotValues(slot, rows, keys, rests))
            return
        factor = MICROSECONDS_PER_TICK[unit]
        fits = np.abs(ticks) <= (2**63 - 1) // factor  # other instants are beyond 64 bits: they satisfy no constraint
        if not fits.all():
            rows = np.flatnonzero(fits) if rows is None else rows[fits]
            ticks = ticks[fits]
        self._values.append(SlotValues(slot, rows, ticks * factor, NO_RESTS))

    def _add_singly(self, about: AttributeSlots, array: Any, rows: Integers) -> None:
        """Add the values of `rows` one by one: numbers that are no doubles, and dates of odd units."""
        import pyarrow as pa

        if not len(rows):
            return
        found: dict[int, list[tuple[int, int, int]]] = {}
        for row, value in zip(rows.tolist(), values_of(pa.chunked_array([array.take(rows)])), strict=True):
            scalar = self._encoder.scalar(value)
            if scalar is not None and about.scalars[scalar.kind] >= 0:
                found.setdefault(about.scalars[scalar.kind], []).append((row, scalar.key, scalar.rest))
        for slot, items in found.items():
            own, keys, rests = np.array(items, np.int64).T
            self._values.append(SlotValues(slot, own, np.ascontiguousarray(keys), np.ascontiguousarray(rests)))


def joined_values(values: list[SlotValues], rows: Integers, size: int) -> EncodedMessages:
    """Return the values of the messages `rows`, of `size` messages, message by message."""
    blobs: dict[int, int] = {}
    parts: list[NDArray[np.uint8]] = []
    end = 0
    for each in values:
        if each.blob is not None and id(each.blob) not in blobs:
            blobs[id(each.blob)] = end
            parts.append(each.blob)
            end += len(each.blob)
    text = np.concatenate([*parts, np.empty(0, np.uint8)]) if len(parts) != 1 else parts[0]
    if all(each.rows is None for each in values):
        offsets = np.arange(len(rows) + 1) * len(values)
        flat = np.empty((len(rows) * len(values), 3), np.int64)
        for k, each in enumerate(values):
            _fill(flat[k:], each, rows, blobs, len(values))
        return EncodedMessages(frozen(offsets), frozen(flat), frozen(text))
    place_of = np.full(size, -1)
    place_of[rows] = np.arange(len(rows))
    given = [place_of if each.rows is None else place_of[each.rows] for each in values]
    counts = np.zeros(len(rows), np.int64)
    for places in given:
        counts[places[places >= 0]] += 1
    offsets = offsets_of(counts)
    cursor, flat = offsets[:-1].copy(), np.empty((int(offsets[-1]), 3), np.int64)
    for each, places in zip(values, given, strict=True):
        chosen = np.flatnonzero(places >= 0)
        _fill(flat, each, chosen, blobs, cursor[places[chosen]])
        cursor[places[chosen]] += 1
    return EncodedMessages(frozen(offsets), frozen(flat), frozen(text))


def _fill(
    out: Integers, values: SlotValues, chosen: Integers, blobs: Mapping[int, int], places: Integers | int
) -> None:
    """Write the records of the chosen ones of the values at one slot to the rows `places` of `out`, or every n-th."""
    base = 0 if values.blob is None else blobs[id(values.blob)] - values.first
    given = (frozen(each) for each in (values.keys, values.rests, chosen))
    step, listed = (places, NO_PLACES) if isinstance(places, int) else (0, frozen(places))
    kernels.fill_values(values.slot, *given, base, step, listed, out)


def _texts(slot: int, array: Any) -> SlotValues:
    """Return the texts of a column as they are."""
    ends, blob = _text_buffers(array)
    rows = _rows(array)
    return SlotValues(slot, rows, _chosen(ends[:-1], rows), _chosen(ends[1:], rows), blob, int(ends[0]))


def _folded(slot: int, array: Any, folding: int) -> SlotValues:
    """Return the texts of a column folded: each distinct text once."""
    encoded = array.dictionary_encode()
    folds = bool(folding & CASEI), bool(folding & ACCENTI)
    texts = [encode_text(fold(text, *folds)) for text in encoded.dictionary.to_pylist()]
    ends = offsets_of(np.array([len(text) for text in texts], np.int64))
    rows = _rows(array)
    numbers = _chosen(_numpy(encoded.indices), rows)
    return SlotValues(slot, rows, ends[numbers], ends[numbers + 1], np.frombuffer(b"".join(texts), np.uint8))


def _text_buffers(array: Any) -> tuple[Integers, NDArray[np.uint8]]:
    """Return where the texts of a column end, after where the first begins, and the bytes from there on."""
    import pyarrow as pa

    wide = pa.types.is_large_string(array.type)
    _, positions, data = array.buffers()
    size = len(array)
    if positions is None or not size:
        return np.zeros(size + 1, np.int64), np.empty(0, np.uint8)
    kind: Any = np.int64 if wide else np.int32
    ends = np.frombuffer(positions, kind, size + 1, array.offset * np.dtype(kind).itemsize).astype(np.int64)
    return ends, np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.empty(0, np.uint8)


def _readable(array: Any) -> tuple[Any, list[Rejection]]:
    """Return a column with nulls in place of text that is not UTF-8, and those rows as rejections."""
    import pyarrow as pa

    if not (_is_text(array.type) or pa.types.is_nested(array.type)):
        return array, []
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        bad = [item for item in values_of(pa.chunked_array([array])) if isinstance(item, Rejection)]
        is_bad = np.zeros(len(array), bool)
        is_bad[[item.row for item in bad]] = True
        return pa.compute.if_else(pa.array(is_bad), None, array), bad
    return array, []


def _whole(column: Any) -> Any:
    """Return a chunked column as one array."""
    import pyarrow as pa

    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_string(column.type) and column.nbytes > 1 << 30:
        column = column.cast(pa.large_string())
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _as_integers(array: Any) -> Any:
    import pyarrow as pa

    return array.cast(pa.int32() if pa.types.is_date32(array.type) else pa.int64())


def _numpy(array: Any) -> NDArray[Any]:
    """Return the numbers of an array without looking at nulls."""

    _, data = array.buffers()
    kind = array.type.to_pandas_dtype()
    if not len(array) or data is None:
        return np.zeros(len(array), kind)
    return np.frombuffer(data, kind, len(array), array.offset * np.dtype(kind).itemsize)


def _valid(array: Any) -> NDArray[np.bool_]:
    """Return which values are not null."""
    if array.null_count == 0:
        return np.ones(len(array), bool)
    return np.asarray(array.is_valid())


def _rows(array: Any) -> Integers | None:
    """Return the rows that are not null; None for all."""
    return None if array.null_count == 0 else np.flatnonzero(_valid(array))


def _chosen(values: NDArray[Any], rows: Integers | None) -> NDArray[Any]:
    return values if rows is None else values[rows]


def _ordered_bits(numbers: NDArray[np.float64]) -> Integers:
    """Return `ordered_bits` of many numbers."""
    bits = np.empty(len(numbers), np.int64)
    kernels.fill_ordered_bits(frozen(numbers), frozen(numbers.view(np.int64)), bits)
    return bits
