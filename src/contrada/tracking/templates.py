"""Watches of a template: one for every row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contrada.cql2.queries import Asked, asked_predicate
from contrada.formats.spatial import Spatial
from contrada.formats.tables.rows import attributes_of, rows_of, table_of
from contrada.formats.wrapping import column_globes, wrapped_predicate
from contrada.geometry.globe import globes_of
from contrada.model import Filter, Predicate
from contrada.tracking.watch import Watch, watch_of


def watches_of(
    rows: Any, template: Asked, on: Any, wrap: Mapping[str, str] | None = None, **options: Any
) -> list[Watch]:
    """Return what each row of a table asks of tracked objects, with its values in place of the columns of a template.

    `wrap` says by attribute how regions and points are wrapped.

    >>> import pyarrow as pa
    >>> rows = pa.table({"least": [1, 2]})
    >>> watches = watches_of(rows, "S_WITHIN(at, BBOX(0, 0, 4, 4)) AND speed > $least", "enter")
    >>> [watch.rest for watch in watches]
    ['speed > 1', 'speed > 2']
    """
    globes = globes_of(wrap)
    predicate = wrapped_predicate(asked_predicate(template), globes)
    names = {column.name for part in predicate for constraint in part for column in constraint.columns}
    table = attributes_of(table_of(rows), names)
    values, _ = rows_of(table, names, Spatial(globes=column_globes(predicate, globes)))
    return [watch_of(_bound(predicate, row), on, **options) for row in values]


def _bound(predicate: Predicate, row: dict[str, Any]) -> Predicate:
    return Predicate([Filter([constraint._bound(row) for constraint in part]) for part in predicate.filters])
