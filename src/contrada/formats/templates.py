"""Templates: the columns they use, Arrow columns of single values for them, and their instances row by row.

`contrada.matching.template` binds a template to whole columns, which is much faster for matching.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from types import MappingProxyType
from typing import Any

from contrada.errors import ContradaError, CrsError, FilterError
from contrada.formats.tables.rows import attributes_of, values_of
from contrada.geometry import Line, LineArray, Point, PointArray, Region, RegionArray
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.mixed import is_geometry, is_null, parts_of
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.faults import Rejection
from contrada.geometry.globe import Globe
from contrada.model import Constraint, Filter, Predicate
from contrada.model.constraint import is_pattern
from contrada.model.filter import as_predicate
from contrada.model.values import TIME, scalar_of

_INT64 = range(-(2**63), 2**63)


def template_columns(template: Constraint | Filter | Predicate) -> list[str]:
    """Return the columns that a template uses, each once.

    >>> from contrada import Column, Relation
    >>> template_columns(Filter([Constraint("area", Relation.OVERLAPS, Column("geometry"))]))
    ['geometry']
    """
    constraints = chain.from_iterable(as_predicate(template))
    return list(dict.fromkeys(column.name for constraint in constraints for column in constraint.columns))


def pattern_columns(template: Constraint | Filter | Predicate) -> set[str]:
    """Return the columns of a template that hold patterns of LIKE and CONTAINS, whose length is limited.

    >>> from contrada import Column
    >>> pattern_columns(Filter([Constraint("name", "like", Column("pattern"))]))
    {'pattern'}
    """
    constraints = [one for one in chain.from_iterable(as_predicate(template)) if is_pattern(one.operator)]
    return {column.name for constraint in constraints for column in constraint.columns}


def misfits(values: Sequence[Any]) -> list[int]:
    """Return the rows of a column of one kind that no Arrow type holds exactly together with the others.

    >>> misfits([1, 2**53 + 1]), misfits([0.5, 2**53 + 1]), misfits(["a"])
    ([], [1], [])
    """
    instants = _instants(values)
    counts = values if instants is None else instants[1]
    if all(isinstance(count, int) for count in counts):
        return [row for row, count in enumerate(counts) if count not in _INT64]
    if not all(isinstance(value, int | float | Decimal) for value in values) or _as_decimals(values) is not None:
        return []
    return [row for row, value in enumerate(values) if not _is_double(value)]


def column_of(values: Sequence[Any]) -> Any:
    """Return an Arrow column of values of one kind, without misfits; shapes as WKB with their CRS."""
    from contrada.geometry.arrow.geoarrow import with_crs

    first = values[0] if values else None
    if isinstance(first, Region | Point | Line):
        column: RegionArray | PointArray | LineArray
        if isinstance(first, Point):
            column = PointArray([(point.x, point.y) for point in values], crs=first.crs)
        else:
            column = LineArray.from_lines(values) if isinstance(first, Line) else RegionArray.from_regions(values)
        return with_crs(pa.chunked_array([column.to_wkb()]), column.crs)
    if (instants := _instants(values)) is not None:
        return pa.array(instants[1], pa.int64()).cast(pa.timestamp(instants[0], "UTC"))
    if any(isinstance(value, float | Decimal) for value in values):
        decimals = _as_decimals(values)
        return pa.array([float(value) for value in values], pa.float64()) if decimals is None else decimals
    return pa.array(list(values))


def _as_decimals(values: Sequence[Any]) -> Any | None:
    """Return a column of decimals if there are some and all values fit, else None."""
    if not any(isinstance(value, Decimal) for value in values):
        return None
    try:
        return pa.array([Decimal(value) for value in values])
    except (pa.ArrowException, ValueError, ArithmeticError):
        return None


def _is_double(value: Any) -> bool:
    try:
        return Fraction(float(value)) == Fraction(value)
    except (OverflowError, ValueError):
        return False


def _instants(values: Sequence[Any]) -> tuple[str, list[int]] | None:
    """Return the unit of timestamps and their counts since 1970; None if they are no timestamps."""
    scalars = [scalar_of(value) for value in values]
    times = [scalar for scalar in scalars if scalar is not None and scalar.kind == TIME]
    if not times or len(times) < len(values):
        return None
    if any(time.rest for time in times):
        return "ns", [time.key * 1000 + time.rest for time in times]
    return "us", [time.key for time in times]


class Instances:
    """The instances of a template for the rows of an Arrow table, in order; an error for a row without one.

    Regions and points carry no CRS, as in text; `crs` maps attributes to the CRS of their columns, and two for one
    attribute are a CrsError. `globes` says by column how regions and points are wrapped.

    >>> import pyarrow as pa
    >>> from contrada import parse
    >>> rows = pa.table({"low": [1, None], "high": [2, 3]})
    >>> for found in Instances(parse("size BETWEEN $low AND $high"), rows):
    ...     print(found)
    size BETWEEN 1 AND 2
    column 'low': no value
    """

    def __init__(self, template: Predicate, rows: Any, globes: Mapping[str, Globe] = MappingProxyType({})) -> None:
        named = template_columns(template)
        table = attributes_of(rows, named)
        for name in named:
            if name not in table.column_names:
                raise FilterError(f"the template needs column {name!r}; columns: {', '.join(rows.column_names)}")
        self._template, self._rows = template, rows.num_rows
        self._values: dict[str, Sequence[Any]] = {}
        found: dict[str, Crs | None] = {}
        for name in named:
            self._values[name], found[name] = _column_values(table.column(name), globes.get(name))
        self.crs = _crs_by_attribute(template, found)

    def __iter__(self) -> Iterator[Predicate | ContradaError]:
        for row in range(self._rows):
            try:
                values = {name: _present(name, values[row]) for name, values in self._values.items()}
                yield Predicate([Filter([one._bound(values) for one in part]) for part in self._template])
            except ContradaError as error:
                yield error


def _column_values(column: Any, globe: Globe | None) -> tuple[Sequence[Any], Crs | None]:
    """Return the values of a column and its CRS; bad values are Rejections."""
    if not is_geometry(column):
        return values_of(column), None
    values: list[Any] = [None] * len(column)
    crs = None
    parts, bad = parts_of(column, globe)
    for part in parts:
        crs = common_crs(crs, part.column.crs)
        own = part.column
        plain = PointArray(own.xy) if isinstance(own, PointArray) else type(own)(own._arrays)
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
