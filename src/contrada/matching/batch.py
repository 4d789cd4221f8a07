"""Batches of messages: lists of mappings, or Arrow tables with a column per attribute."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from contrada.errors import ContradaError
from contrada.geometry import Rejection
from contrada.matching.columns import is_geometry, parts_of
from contrada.matching.level import Place
from contrada.matching.together import Checked

Objects = Callable[[Mapping[str, Any]], Mapping[Place, Any]]


def messages_of(
    messages: Any, objects_of: Objects, asked: Container[str]
) -> tuple[list[Checked | None], list[Rejection]]:
    """The messages of a batch, None for those that are rejected, and the rejections by row."""
    if hasattr(messages, "__arrow_c_stream__"):
        rows, bad = _rows_of(messages, asked)
    else:
        rows, bad = list(messages), {}
    good: list[Checked | None] = []
    for row, message in enumerate(rows):
        if row in bad:
            good.append(None)
            continue
        try:
            if not isinstance(message, Mapping):
                raise ContradaError(f"a message maps attributes to values, not {type(message).__name__}")
            good.append(Checked(message, objects_of(message)))
        except ContradaError as error:
            bad[row] = Rejection(row, str(error), None, None, None)
            good.append(None)
    return good, [bad[row] for row in sorted(bad)]


def as_table(messages: Any) -> Any:
    """An Arrow table of what offers the Arrow stream interface."""
    import pyarrow as pa

    return messages if isinstance(messages, pa.Table) else pa.table(messages)


def asked_columns(table: Any, asked: Container[str]) -> list[str]:
    """The columns that subscriptions have asked for; others are never read, so their values cannot be bad."""
    return [name for name in table.column_names if name in asked]


def _rows_of(messages: Any, asked: Container[str]) -> tuple[Sequence[dict[str, Any]], dict[int, Rejection]]:
    """The attributes of the rows of an Arrow table; a null is an absent attribute."""
    table = as_table(messages)
    rows: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
    bad: dict[int, Rejection] = {}
    for name in asked_columns(table, asked):
        column = table.column(name)
        if not is_geometry(column):
            for row, value in enumerate(column.to_pylist()):
                rows[row][name] = value
            continue
        parts, rejected = parts_of(column)
        for part in parts:
            for row, value in zip(part.rows.tolist(), part.column, strict=True):
                rows[row][name] = value
        for item in rejected:
            if not is_null(item):
                bad.setdefault(item.row, item._replace(reason=f"attribute {name!r}: {item.reason}"))
    return rows, bad


def is_null(rejected: Rejection) -> bool:
    """True if there was nothing to read: an absent attribute, which is no fault."""
    return rejected.reason == "no geometry (null)"
