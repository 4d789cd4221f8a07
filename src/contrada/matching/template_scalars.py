"""Bind scalar constraints of a template to columns: one raw record per row, computed by column where possible."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import codes
from contrada.errors import FilterError, LimitError
from contrada.geometry.arrow.checks import bad_texts
from contrada.index.constants import distinct_scalars, distinct_texts
from contrada.index.raw import RawRecords, raw_of_tests
from contrada.model.constraint import Constraint, check_pattern
from contrada.model.forms import ACCENTI, CASEI, Slot, Test
from contrada.model.operators import SETS, TEXTUAL, Column, exact_operands, test_of
from contrada.model.text import encode_text, fold
from contrada.model.values import BOOLEAN, EXACT_INTEGERS, NUMBER, TIME

# Lower and upper end of the interval that a comparison asks for; others ask for a closed interval.
HALF_OPEN = {"<": (0, codes.OPEN), "<=": (0, codes.CLOSED), ">": (codes.OPEN, 0), ">=": (codes.CLOSED, 0)}
ALL_BUT_SIGN_BIT = np.int64(0x7FFFFFFFFFFFFFFF)


class OperandColumn(NamedTuple):
    """Operands of one form: key and rest, or start and end of a text in `blob`."""

    form: int
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    blob: NDArray[np.uint8]


def bind_scalar(constraint: Constraint, table: Any, long: list[Constraint]) -> list[tuple[Slot, RawRecords]]:
    """Return the records of a constraint for every row of an Arrow table, by slot; the caller fills in slot numbers.

    Constraints on long numbers are appended to `long`, because the table must store them.
    """
    if not constraint.columns:
        if constraint.long_numbers:
            long.append(constraint)
        return _gathered(constraint.attribute, [constraint._test], np.zeros(table.num_rows, np.int64))
    if constraint.operator in TEXTUAL:
        bound = _bind_patterns(constraint, table)
        return _bind_rows(constraint, table, long) if bound is None else bound
    operands = [_operands(constraint, value, table) for value in constraint._items]
    alike = [each for each in operands if each is not None and each.form == getattr(operands[0], "form", None)]
    if len(alike) < len(operands):
        return _bind_rows(constraint, table, long)
    slot = constraint.attribute, alike[0].form
    if constraint.operator in SETS:
        return [(slot, _sets(str(constraint.operator), alike))]
    return [(slot, _records(str(constraint.operator), alike[0], alike[-1]))]


def whole_column(table: Any, name: str, what: str) -> Any:
    """Return column `name` as one Arrow array; raise FilterError for nulls (rows with no `what`) or invalid UTF-8."""
    import pyarrow as pa

    array = table.column(name)
    if array.null_count:
        row = int(np.flatnonzero(np.asarray(array.is_null()))[0])
        raise FilterError(f"column {name!r}, row {row}: no {what}")
    if rows := bad_texts(array):
        raise FilterError(f"column {name!r}, row {rows[0]}: text is not UTF-8")
    return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)


def _operands(constraint: Constraint, value: Any, table: Any) -> OperandColumn | None:
    """Return the operands of all rows if computed by column: doubles, small integers, text, times, booleans.

    Return None otherwise. A value in the template itself is repeated for every row.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(value, Column):
        return _constant(constraint, value, table.num_rows)
    array = whole_column(table, value.name, f"value for `{constraint}`")
    kind = array.type
    none, no_text = np.zeros(len(array), np.int64), np.empty(0, np.uint8)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _texts(constraint, array)
    if constraint.casei or constraint.accenti:
        return None
    if pa.types.is_boolean(kind) and constraint.operator in ("=", "!=", *SETS):  # other operators raise row by row
        return OperandColumn(BOOLEAN, np.asarray(array.cast(pa.int64())), none, no_text)
    if pa.types.is_timestamp(kind):
        per = {"s": 10**6, "ms": 10**3, "us": 1}.get(kind.unit)
        ticks = np.asarray(array.cast(pa.int64()))
        if per is None:
            return OperandColumn(TIME, ticks // 1000, ticks % 1000, no_text)
        return OperandColumn(TIME, ticks * per, none, no_text)
    if pa.types.is_integer(kind):
        largest = pc.max(pc.abs(array.cast(pa.float64(), safe=False))).as_py() or 0
        if largest >= EXACT_INTEGERS:
            return None
    elif not pa.types.is_floating(kind):
        return None
    numbers = np.asarray(array.cast(pa.float64())) + 0.0  # -0.0 becomes 0.0
    if np.isnan(numbers).any():
        return None
    bits = numbers.view(np.int64)
    return OperandColumn(NUMBER, np.where(bits >= 0, bits, bits ^ ALL_BUT_SIGN_BIT), none, no_text)


def _constant(constraint: Constraint, value: Any, rows: int) -> OperandColumn | None:
    """Return a value of the template repeated for every row; None for long numbers, which must be stored."""
    if exact_operands(value):
        return None
    test = constraint._asking("=", value)._test
    assert test.low is not None
    operand = test.low.operand
    is_text = isinstance(operand, bytes)
    first, second = (0, len(operand)) if is_text else operand
    blob = np.frombuffer(operand, np.uint8) if isinstance(operand, bytes) else np.empty(0, np.uint8)
    return OperandColumn(test.form, np.full(rows, first, np.int64), np.full(rows, second, np.int64), blob)


def _texts(constraint: Constraint, array: Any) -> OperandColumn:
    """Return the operands of a text column, each distinct text folded and encoded once."""
    folded = constraint.casei * CASEI | constraint.accenti * ACCENTI
    encoded = array.dictionary_encode()
    numbers = np.asarray(encoded.indices)
    texts = [encode_text(fold(text, constraint.casei, constraint.accenti)) for text in encoded.dictionary.to_pylist()]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = ends - np.array([len(text) for text in texts], np.int64)
    return OperandColumn(codes.TEXT + folded, starts[numbers], ends[numbers], np.frombuffer(b"".join(texts), np.uint8))


def _records(operator: str, low: OperandColumn, high: OperandColumn) -> RawRecords:
    """Return records that ask for an interval between the operands `low` and `high`."""
    low_end, high_end = HALF_OPEN.get(operator, (codes.CLOSED, codes.CLOSED))
    negated = codes.NOT if operator in ("!=", "not between") else 0
    records = np.zeros((len(low.first), 7), np.int64)
    records[:, codes.FILTER] = np.arange(len(records))
    records[:, codes.ASKED] = codes.INTERVAL + negated | low_end << codes.LOW_SHIFT | high_end << codes.HIGH_SHIFT
    if low_end:
        records[:, codes.LOW], records[:, codes.LOW_REST] = low.first, low.second
    if high_end:
        moved = len(low.blob) if low.form >= codes.TEXT else 0
        records[:, codes.HIGH], records[:, codes.HIGH_REST] = high.first + moved, high.second + moved
    return RawRecords(records, np.empty((0, 2), np.int64), np.concatenate([low.blob, high.blob]))


def _sets(operator: str, columns: list[OperandColumn]) -> RawRecords:
    """Return records that ask for one of several operands, one per column; sets are sorted, without repetitions."""
    rows, form, blob = len(columns[0].first), columns[0].form, np.concatenate([each.blob for each in columns])
    moved = np.cumsum([0, *(len(each.blob) for each in columns[:-1])]) if form >= codes.TEXT else [0] * len(columns)
    first = np.concatenate([each.first + by for each, by in zip(columns, moved, strict=True)])
    second = np.concatenate([each.second + by for each, by in zip(columns, moved, strict=True)])
    if form >= codes.TEXT:
        offsets, blob, numbers, _ = distinct_texts(first, second, blob)
        distinct = np.column_stack([offsets[:-1], offsets[1:]])
    else:
        keys, rests, numbers, _ = distinct_scalars(first, second)
        distinct = np.column_stack([keys, rests])
    ranks = np.sort(numbers.reshape(len(columns), rows), axis=0).T
    is_new = np.ones(ranks.shape, bool)
    is_new[:, 1:] = ranks[:, 1:] != ranks[:, :-1]
    sizes = is_new.sum(axis=1)
    records = np.zeros((rows, 7), np.int64)
    records[:, codes.FILTER] = np.arange(rows)
    records[:, codes.ASKED] = codes.SET + codes.NOT * operator.startswith("not ")
    records[:, codes.LOW_REST] = np.cumsum(sizes)
    records[:, codes.LOW] = records[:, codes.LOW_REST] - sizes
    return RawRecords(records, distinct[ranks[is_new]], blob)


def _bind_patterns(constraint: Constraint, table: Any) -> list[tuple[Slot, RawRecords]] | None:
    """Return the records of LIKE and its kin for a text column, each distinct text checked once; None otherwise."""
    import pyarrow as pa

    array = whole_column(table, constraint.value.name, f"value for `{constraint}`")
    if not pa.types.is_string(array.type) and not pa.types.is_large_string(array.type):
        return None
    encoded = array.dictionary_encode()
    numbers = np.asarray(encoded.indices)
    operator, tests = str(constraint.operator), []
    for number, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            check_pattern(operator, text)
            tests.append(test_of(operator, text, constraint.casei, constraint.accenti))
        except (FilterError, LimitError) as error:
            row = int(np.argmax(numbers == number))
            raise type(error)(f"row {row}: constraint on {constraint.attribute!r}: {error}") from error
    return _gathered(constraint.attribute, tests, numbers)


def _gathered(attribute: str, tests: list[Test], numbers: NDArray[Any]) -> list[tuple[Slot, RawRecords]]:
    """Return records by slot, because tests may have different forms; row r has the test `tests[numbers[r]]`."""
    forms = np.array([test.form for test in tests], np.int64)
    gathered = []
    for form in np.unique(forms).tolist():
        raw = raw_of_tests(test for test in tests if test.form == form)
        rows = np.flatnonzero(forms[numbers] == form)
        records = raw.records[(np.cumsum(forms == form) - 1)[numbers[rows]]]
        records[:, codes.FILTER] = rows
        gathered.append(((attribute, form), raw._replace(records=records)))
    return gathered


def _bind_rows(constraint: Constraint, table: Any, long: list[Constraint]) -> list[tuple[Slot, RawRecords]]:
    """Bind operands row by row, for types that have no column operation."""
    what = f"value for `{constraint}`"
    columns = {column.name: whole_column(table, column.name, what).to_pylist() for column in constraint.columns}
    tests = []
    for row in range(table.num_rows):
        try:
            bound = constraint._bound({name: column[row] for name, column in columns.items()})
        except (FilterError, LimitError) as error:
            raise type(error)(f"row {row}: {error}") from error
        if bound.long_numbers:
            long.append(bound)
        tests.append(bound._test)
    return _gathered(constraint.attribute, tests, np.arange(len(tests)))
