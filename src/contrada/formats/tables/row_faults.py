"""Find rows of subscriptions to which a template cannot be bound, for whole columns at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from contrada.errors import FormatError, LimitError
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.checks import bad_texts
from contrada.geometry.arrow.mixed import is_geometry, parts_of
from contrada.limits import check_limit, limit

Reasons = dict[int, str]  # by row
NAMES = ("key", "subscriber")


def row_faults(table: Any, kinds: dict[str, type], patterns: Collection[str] = ()) -> Reasons:
    """Return why rows of an Arrow table cannot be subscriptions of a template that uses all columns but `NAMES`.

    A geometry column holds regions or points, as in `kinds`; columns missing from `kinds` are added by their first
    rows. `patterns` names the columns that hold patterns, whose length is limited (`pattern_columns`).

    >>> import pyarrow as pa
    >>> row_faults(pa.table({"key": [7, 7, 8], "least": [3, 4, None]}), {})
    {2: "column 'least': no value", 1: 'duplicate key 7'}
    """
    reasons: Reasons = {}
    for name in table.column_names:
        column = table.column(name)
        _name_faults(name, column, reasons) if name in NAMES else _value_faults(name, column, reasons, kinds)
        if name in patterns:
            _pattern_faults(name, column, reasons)
    if "key" in table.column_names:
        _repeated_keys(table.column("key"), reasons)
    return reasons


def _value_faults(name: str, column: Any, reasons: Reasons, kinds: dict[str, type]) -> None:
    """Record rows without a value, with a bad region, or with a point where the first rows have regions."""
    _note(reasons, _marked(column.is_null()), f"column {name!r}: no value")
    _note(reasons, bad_texts(column), f"column {name!r}: text is not UTF-8")
    if pa.types.is_floating(column.type):
        _note(reasons, _marked(pa.compute.is_nan(column).fill_null(False)), f"column {name!r}: NaN cannot be compared")
    if not is_geometry(column):
        return
    parts, bad = parts_of(column)
    for item in bad:
        reasons.setdefault(item.row, f"column {name!r}: {item.reason}")
    for part in sorted((part for part in parts if len(part.rows)), key=lambda part: int(part.rows[0])):
        if kinds.setdefault(name, type(part.column)) is not type(part.column):
            reason = "regions and points are mixed; all rows must be of the kind of the first"
            _note(reasons, part.rows.tolist(), f"column {name!r}: {reason}")


def _pattern_faults(name: str, column: Any, reasons: Reasons) -> None:
    """Record rows whose pattern exceeds the limit `pattern_bytes`; columns without text are rejected later."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return
    lengths = np.asarray(pa.compute.binary_length(column).fill_null(0))
    for row in np.flatnonzero(lengths > limit("pattern_bytes")).tolist():
        try:
            check_limit("pattern_bytes", int(lengths[row]), "the pattern")
        except LimitError as error:
            reasons.setdefault(row, f"column {name!r}: {error}")


def _name_faults(name: str, column: Any, reasons: Reasons) -> None:

    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
        raise FormatError(f"column {name!r}: need text or integers, got {kind}")
    _note(reasons, _marked(column.is_null()), f"no {name}")
    _note(reasons, bad_texts(column), f"{name} is not UTF-8")


def _marked(column: Any) -> list[int]:
    """Return the rows that are true in a column of booleans."""
    rows: list[int] = np.flatnonzero(np.asarray(column)).tolist()
    return rows


def _note(reasons: Reasons, rows: list[int], reason: str) -> None:
    for row in rows:
        reasons.setdefault(row, reason)


def _repeated_keys(column: Any, reasons: Reasons) -> None:
    """Record the rows of repeated keys, except the first good row of each key."""
    codes = pa.chunked_array([column]) if isinstance(column, pa.Array) else column
    encoded = codes.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    if len(encoded.dictionary) == len(encoded):
        return
    numbers = np.asarray(encoded.indices.fill_null(-1))
    is_good = np.ones(len(numbers), bool)
    is_good[list(reasons)] = False
    good = np.flatnonzero(is_good)
    _, first = np.unique(numbers[good], return_index=True)
    for row in np.setdiff1d(good, good[first]).tolist():
        reasons[row] = f"duplicate key {column[row].as_py()!r:.60}"
