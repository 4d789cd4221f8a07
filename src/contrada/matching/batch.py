"""Batches of messages: lists of mappings, or Arrow tables with a column per attribute."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from typing import Any

from contrada.errors import ContradaError, CrsError
from contrada.geometry import Rejection
from contrada.geometry.crs import common_crs
from contrada.geometry.mixed import Part, is_null, parts_of
from contrada.language.rows import attributes_of, rows_of
from contrada.matching.level import Place
from contrada.matching.together import Checked

Objects = Callable[[Mapping[str, Any]], Mapping[Place, Any]]


def messages_of(
    messages: Any, objects_of: Objects, asked: Collection[str]
) -> tuple[list[Checked | None], list[Rejection]]:
    """The messages of a batch, None for those that are rejected, and the rejections by row."""
    if hasattr(messages, "__arrow_c_stream__"):
        rows, bad = rows_of(as_table(messages, asked), asked)
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


def as_table(messages: Any, asked: Collection[str]) -> Any:
    """An Arrow table, with an attribute to a column, of what offers the Arrow stream interface."""
    import pyarrow as pa

    return attributes_of(messages if isinstance(messages, pa.Table) else pa.table(messages), asked)


def asked_columns(table: Any, asked: Container[str]) -> list[str]:
    """The columns that subscriptions have asked for; others are never read, so their values cannot be bad."""
    return [name for name in table.column_names if name in asked]


def checked_column(table: Any, name: str, crs: str | None) -> tuple[list[Part], list[Rejection]]:
    """A geometry column of messages, in the CRS of the subscriptions; nulls are absent, not bad."""
    parts, bad = parts_of(table.column(name))
    for part in parts:
        try:
            common_crs(crs, part.column.crs)
        except CrsError as error:
            raise CrsError(f"attribute {name!r}: subscriptions and messages: {error}") from error
    return parts, [item._replace(reason=f"attribute {name!r}: {item.reason}") for item in bad if not is_null(item)]
