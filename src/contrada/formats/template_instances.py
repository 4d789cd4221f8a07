"""Instances of a template: the predicate of each row of a table, for code that needs them row by row.

`contrada.matching.template` binds a template to whole columns, which is much faster for matching.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from contrada.errors import ContradaError, CrsError, FilterError
from contrada.formats.subscriptions import template_columns
from contrada.formats.tables.rows import attributes_of, values_of
from contrada.geometry import PointArray, RegionArray
from contrada.geometry.arrow.mixed import is_geometry, is_null, parts_of
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.faults import Rejection
from contrada.model import Filter, Predicate


class Instances:
    """The instances of a template for the rows of an Arrow table, in order; an error for a row without one.

    Regions and points carry no CRS, as in text; `crs` maps attributes to the CRS of their columns, and two for one
    attribute are a CrsError.

    >>> import pyarrow as pa
    >>> from contrada import parse
    >>> rows = pa.table({"low": [1, None], "high": [2, 3]})
    >>> for found in Instances(parse("size BETWEEN $low AND $high"), rows):
    ...     print(found)
    size BETWEEN 1 AND 2
    column 'low': no value
    """

    def __init__(self, template: Predicate, rows: Any) -> None:
        named = template_columns(template)
        table = attributes_of(rows, named)
        for name in named:
            if name not in table.column_names:
                raise FilterError(f"the template needs column {name!r}; columns: {', '.join(rows.column_names)}")
        self._template, self._rows = template, rows.num_rows
        self._values: dict[str, Sequence[Any]] = {}
        found: dict[str, Crs | None] = {}
        for name in named:
            self._values[name], found[name] = _column_values(table.column(name))
        self.crs = _crs_by_attribute(template, found)

    def __iter__(self) -> Iterator[Predicate | ContradaError]:
        for row in range(self._rows):
            try:
                values = {name: _present(name, values[row]) for name, values in self._values.items()}
                yield Predicate([Filter([one._bound(values) for one in part]) for part in self._template])
            except ContradaError as error:
                yield error


def _column_values(column: Any) -> tuple[Sequence[Any], Crs | None]:
    """Return the values of a column and its CRS; bad values are Rejections."""
    if not is_geometry(column):
        return values_of(column), None
    values: list[Any] = [None] * len(column)
    crs = None
    parts, bad = parts_of(column)
    for part in parts:
        crs = common_crs(crs, part.column.crs)
        own = part.column
        plain = PointArray(own.xy) if isinstance(own, PointArray) else RegionArray(own.arrays)
        for k, row in enumerate(part.rows.tolist()):
            values[row] = plain[k]
    for item in bad:
        values[item.row] = None if is_null(item) else item
    return values, crs


def _crs_by_attribute(template: Predicate, found: dict[str, Crs | None]) -> dict[str, Crs | None]:
    crs: dict[str, Crs | None] = {}
    for constraint in (one for part in template for one in part):
        for column in constraint.columns:
            name = constraint.attribute
            try:
                crs[name] = common_crs(crs.get(name), found[column.name])
            except CrsError as error:
                raise CrsError(f"attribute {name!r}: {error}") from error
    return {name: known for name, known in crs.items() if known is not None}


def _present(name: str, value: Any) -> Any:
    if value is None:
        raise FilterError(f"column {name!r}: no value")
    if isinstance(value, Rejection):
        raise FilterError(f"column {name!r}: {value.reason}")
    return value
