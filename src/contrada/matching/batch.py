"""Batches of messages: lists of mappings, or Arrow tables with a column per attribute."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from contrada.errors import ContradaError
from contrada.geometry import Rejection
from contrada.matching.columns import parts_of
from contrada.matching.level import Value

Checked = Callable[[Mapping[str, Any]], dict[str, Value]]


def messages_of(
    messages: Any, check: Checked, asked: Container[str]
) -> tuple[list[dict[str, Value] | None], list[Rejection]]:
    """The messages of a batch, None for those that are rejected, and the rejections by row."""
    if hasattr(messages, "__arrow_c_stream__"):
        rows, bad = _rows_of(messages, asked)
    else:
        rows, bad = list(messages), {}
    good: list[dict[str, Value] | None] = []
    for row, message in enumerate(rows):
        if row in bad:
            good.append(None)
            continue
        try:
            if not isinstance(message, Mapping):
                raise ContradaError(f"a message maps attributes to values, not {type(message).__name__}")
            good.append(check(message))
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
    """The spatial attributes of the rows of an Arrow table; a null is an absent attribute."""
    table = as_table(messages)
    rows: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
    bad: dict[int, Rejection] = {}
    for name in asked_columns(table, asked):
        parts, rejected = parts_of(table.column(name))
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
