"""Read batches of messages: lists of mappings, or Arrow tables with one column per attribute."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Any

from contrada.errors import ContradaError, CrsError, FormatError
from contrada.formats.tables.rows import attributes_of, rows_of, table_of
from contrada.geometry import Rejection
from contrada.geometry.arrow.mixed import ValueRows, is_null, parts_by_crs
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.faults import FaultCode
from contrada.matching.batch import Checked

CRS_ERROR_PREFIX = "subscriptions and message"  # start of the error for a CRS that differs
Reader = Callable[[Any], Checked]


def messages_of(messages: Any, read: Reader, asked: Collection[str]) -> tuple[list[Checked | None], list[Rejection]]:
    """Return the messages of a batch, None in place of rejected ones, and the rejections sorted by row."""
    if is_arrow(messages):
        rows, bad = rows_of(as_table(messages, asked), asked)
    elif isinstance(messages, Mapping | str | bytes) or not isinstance(messages, Iterable):
        hint = "; for one message use match" if isinstance(messages, Mapping) else ""
        raise FormatError(f"match_many: need a list of messages or an Arrow table, got {type(messages).__name__}{hint}")
    else:
        rows, bad = list(messages), {}
    good: list[Checked | None] = []
    for row, message in enumerate(rows):
        if row in bad:
            good.append(None)
            continue
        try:
            good.append(read(message))
        except ContradaError as error:
            bad[row] = Rejection(row, str(error), FaultCode.VALUE)
            good.append(None)
    return good, [bad[row] for row in sorted(bad)]


def is_arrow(messages: Any) -> bool:
    """Return True if `messages` has an Arrow interface: a table, record batch or data frame."""
    return hasattr(messages, "__arrow_c_stream__") or hasattr(messages, "__arrow_c_array__")


def as_table(messages: Any, asked: Collection[str]) -> Any:
    """Return `messages`, which has an Arrow interface, as an Arrow table with one column per attribute."""
    return attributes_of(table_of(messages), asked)


def asked_columns(table: Any, asked: Container[str]) -> list[str]:
    """Return the columns that subscriptions ask about; other columns are never read, so they cannot be bad."""
    return [name for name in table.column_names if name in asked]


def checked_column(table: Any, name: str, crs: Crs | None) -> tuple[list[ValueRows], list[Rejection]]:
    """Return the values of geometry column `name` in the CRS `crs`, and the rejections; nulls are not rejected."""
    mixed = parts_by_crs(table.column(name))
    good: list[ValueRows] = []
    bad = [item for item in mixed.rejected if not is_null(item)]
    for part in mixed.parts:
        try:
            common_crs(crs, part.column.crs)
            good.append(part)
        except CrsError as error:
            bad += [Rejection(row, f"{CRS_ERROR_PREFIX}: {error}", FaultCode.OTHER_CRS) for row in part.rows.tolist()]
    return good, [item._replace(reason=f"attribute {name!r}: {item.reason}") for item in bad]
