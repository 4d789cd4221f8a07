"""Bind a template, a predicate with columns in place of values, to the rows of a table of subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.codes import FILTER, PLACE
from contrada.errors import CrsError, FilterError, RegionError
from contrada.formats.subscriptions import template_columns
from contrada.formats.tables.rows import attributes_of, table_of
from contrada.formats.wrapping import column_globes, wrapped_predicate
from contrada.geometry import Line, LineArray, Point, PointArray, Region, RegionArray, read_regions
from contrada.geometry.arrow.mixed import ValueRows, is_vertex
from contrada.geometry.faults import FaultCode, first_error
from contrada.geometry.globe import Globe
from contrada.geometry.globe_reading import column_on_globe
from contrada.geometry.line_relating import ShapeColumn
from contrada.geometry.line_relation import LineRelationSet
from contrada.geometry.metres import NO_PLACE, bad_places, check_degrees
from contrada.index.packed import reordered
from contrada.index.raw import RawRecords
from contrada.matching.encoding import MessageEncoder
from contrada.matching.line_constraints import LineConstraints
from contrada.matching.metre_constraints import constraints_in, near_kind
from contrada.matching.residual import Constraints
from contrada.matching.store.level import Added, Slot, Spatial
from contrada.matching.template_scalars import bind_scalar, whole_column
from contrada.model import Column, Constraint, Filter, Predicate, forms
from contrada.model.constraint import operator_for
from contrada.model.reach import DistanceOperator


class BoundTemplate(NamedTuple):
    """A template bound to rows: constraints in arrays, and the names of the rows.

    Filter k of row r has the number `r * filters + k`, so the filters of a row are consecutive.
    """

    rows: int
    filters: int  # per row
    spatial: list[list[tuple[Slot, Spatial]]]  # per filter of the template, the most selective first
    scalars: list[tuple[forms.Slot, int, RawRecords]]  # with the filter of the template; records are numbered by row
    long: list[Constraint]  # with long numbers, which `MessageEncoder.check` must store
    keys: Any | None
    subscribers: Any | None

    def names(self, first: int) -> tuple[Any, Any]:
        """Return keys and subscribers as Arrow arrays or ranges; default keys count from `first`."""
        keys = range(first, first + self.rows) if self.keys is None else self.keys
        return keys, keys if self.subscribers is None else self.subscribers

    def split(self, first: int, encoder: MessageEncoder) -> Added:
        """Split the constraints, with filters numbered from `first`, into reaching, residual and scalar."""
        reached: dict[Slot, list[Spatial]] = {}
        further: dict[Slot, list[Spatial]] = {}
        for parts in self.spatial:
            for k, (slot, part) in enumerate(parts):
                moved = part._replace(filters=part.filters + np.int32(first))
                (further if k else reached).setdefault(slot, []).append(moved)
        raw = [self._numbered(part, first + k, encoder.number(slot)) for slot, k, part in self.scalars]
        return Added(reached, further, raw)

    def _numbered(self, raw: RawRecords, first: int, slot: int) -> RawRecords:
        """Return records, numbered by row, with filters numbered from `first` on and the slot set to `slot`."""
        records = raw.records.copy()
        records[:, FILTER] = first + self.filters * records[:, FILTER]
        records[:, PLACE] = slot
        return raw._replace(records=records)


def asked_columns(rows: Any, template: Predicate) -> Any:
    """Return the columns that a template names, with `key` and `subscriber`; raise FilterError if one is missing."""
    whole, named = table_of(rows), template_columns(template)
    table = attributes_of(whole, {*named, "key", "subscriber"})
    for name in sorted({*named} - {*table.column_names}):
        raise FilterError(
            f"the template needs column {name!r}; columns: {', '.join(attributes_of(whole).column_names)}"
        )
    names = [name for name in ("key", "subscriber") if name in table.column_names and name not in named]
    return table.select([*named, *names])


def bind_template(
    rows: Any,
    template: Predicate,
    read: Mapping[str, ShapeColumn] = MappingProxyType({}),
    globes: Mapping[str, Globe] = MappingProxyType({}),
) -> BoundTemplate:
    """Bind a template to the rows of an Arrow table; `read` has geometry columns that are read already, by name.

    `globes` says by attribute how regions and points are wrapped.
    """
    table = asked_columns(rows, template)
    template, wrapped = wrapped_predicate(template, globes), column_globes(template, globes)
    # By value in the template, so that each column is read once.
    columns: dict[Any, ShapeColumn] = {
        Column(name): _on_globe(column, wrapped.get(name)) for name, column in read.items()
    }
    spatial: list[list[tuple[Slot, Spatial]]] = []
    scalars: list[tuple[forms.Slot, int, RawRecords]] = []
    long: list[Constraint] = []
    for number, part in enumerate(template):
        numbers = np.arange(table.num_rows, dtype=np.int32) * np.int32(len(template)) + np.int32(number)
        spatial.append(_bind_spatial(part, numbers, table, columns, wrapped))
        for constraint in part:
            if constraint.kind is None:
                scalars += [(slot, number, raw) for slot, raw in bind_scalar(constraint, table, long)]
    names = _names_of(table, "key", True), _names_of(table, "subscriber", False)
    return BoundTemplate(table.num_rows, len(template), spatial, scalars, long, *names)


def read_columns(read: Mapping[str, list[ValueRows]], rows: NDArray[np.int64], count: int) -> dict[str, ShapeColumn]:
    """Return chosen rows of geometry columns that are read already, for `bind_template`; a table has `count` rows.

    Columns of several kinds, or without a value in a chosen row, are left out.
    """
    found: dict[str, ShapeColumn] = {}
    for name, parts in read.items():
        if len(parts) != 1:
            continue
        column, own = parts[0]
        place = np.full(count, -1)
        place[own] = np.arange(len(own))
        if (place[rows] >= 0).all():
            found[name] = column if np.array_equal(rows, own) else reordered(column, place[rows])
    return found


def _bind_spatial(
    part: Filter,
    numbers: NDArray[np.int32],
    table: Any,
    columns: dict[Any, ShapeColumn],
    globes: Mapping[str, Globe],
) -> list[tuple[Slot, Spatial]]:
    """Return the spatial constraints of a filter for all rows, the most selective first."""
    asked = [constraint for constraint in part if constraint.kind is not None]
    for constraint in asked:
        if isinstance(constraint.operator, str):
            raise FilterError(f"`{constraint}`: templates do not support operators of registered types; use subscribe")
    asked.sort(key=lambda constraint: (not constraint.is_local, not isinstance(constraint.value, Column)))
    bound: list[tuple[Slot, Spatial]] = []
    for constraint in asked:
        if constraint.value not in columns:
            columns[constraint.value] = _column_of(table, constraint.value, globes)
        column = columns[constraint.value]
        asks = constraint.operator
        assert not isinstance(asks, str), "operators of registered types are refused above"
        kind = "point" if isinstance(column, PointArray) else "line" if isinstance(column, LineArray) else "region"
        operator = operator_for(asks, kind)
        masks = np.full(table.num_rows, operator.mask, np.uint8)
        if isinstance(operator, LineRelationSet):
            slot = constraint.attribute, "line" if kind == "line" else f"line {kind}"
            bound.append((slot, LineConstraints(numbers, masks, column)))
            continue
        if isinstance(operator, DistanceOperator):
            distances = distances_of(operator, table)
            if operator.unit is not None:
                assert not isinstance(column, LineArray), "lines have no distance in metres"
                _check_in_metres(constraint, column)
            near = constraints_in(operator.unit, numbers, masks, column, distances)
            bound.append(((constraint.attribute, near_kind(operator.unit, kind)), near))
        else:
            assert not isinstance(column, LineArray), "relations to lines are line relations"
            bound.append(((constraint.attribute, kind), Constraints(numbers, masks, column)))
    return bound


def _check_in_metres(constraint: Constraint, column: RegionArray | PointArray) -> None:
    """Raise an error that names the row if a geometry has no distance in metres."""
    check_degrees(column.crs)
    bad = bad_places(column)
    if len(bad):
        name = f"column {constraint.value.name!r}, " if isinstance(constraint.value, Column) else ""
        raise RegionError(f"{name}row {bad[0]}: {NO_PLACE}", row=int(bad[0]))


def distances_of(operator: DistanceOperator, table: Any) -> NDArray[np.float64]:
    """Return the distance of every row of a table: a column, or one distance for all rows."""
    made, bad = sifted_distances(operator, table)
    for row, reason in bad.items():
        name = f"column {operator.distance.name!r}" if isinstance(operator.distance, Column) else ""
        raise FilterError(reason.replace(name, f"{name}, row {row}", 1) if len(made) > 1 else reason)
    return made


def sifted_distances(operator: DistanceOperator, table: Any) -> tuple[NDArray[np.float64], dict[int, str]]:
    """Return the distance of every row of a table, and why some rows have none."""
    import pyarrow as pa

    distance = operator.distance
    if not isinstance(distance, Column):
        return np.full(table.num_rows, distance), {}
    name = f"column {distance.name!r}"
    array = whole_column(table, distance.name, name)
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        raise FilterError(f"{name}: a distance needs numbers, got {array.type}")
    made = np.asarray(array.cast(pa.float64(), safe=False)) + 0.0
    bad = np.flatnonzero(~((made >= 0) & (made < np.inf))).tolist()
    return made, {row: f"{name}: a distance needs a finite number of at least 0, got {made[row]}" for row in bad}


def _on_globe(column: ShapeColumn, globe: Globe | None) -> ShapeColumn:
    """Return a column wrapped as a globe says; lines are not wrapped."""
    return column if globe is None or isinstance(column, LineArray) else column_on_globe(column, globe)


def _column_of(table: Any, value: Column | Region | Point | Line, globes: Mapping[str, Globe]) -> ShapeColumn:
    """Return the regions, points or lines of all rows: a column, or one value repeated."""
    if isinstance(value, Column):
        array = table.column(value.name)
        try:
            return _geometry_of(array, globes.get(value.name))
        except RegionError as error:
            raise RegionError(f"column {value.name!r}, {error}", row=error.row) from error
        except CrsError as error:
            raise CrsError(f"column {value.name!r}: {error}") from error
    if isinstance(value, Region | Line):
        return reordered(value._column, np.zeros(table.num_rows, np.int64))
    return PointArray(np.repeat(value._column.xy, table.num_rows, axis=0), crs=value.crs)


def _geometry_of(array: Any, globe: Globe | None) -> ShapeColumn:
    """Return the regions of an Arrow column; or its points or lines, if its type or its first fault says so."""
    from contrada.geometry.arrow.geoarrow import storage_of
    from contrada.geometry.arrow.lines import is_line_array

    if is_line_array(array):
        return LineArray.from_arrow(array)
    if is_vertex(storage_of(array)[0].type):
        return _points_of(array, globe)
    read = read_regions(array, wrap=None if globe is None else globe.wrap)
    if not read.rejected:
        return read.regions
    if read.rejected[0].fault is FaultCode.POINT:
        return _points_of(array, globe)
    raise first_error(read.rejected)


def _points_of(array: Any, globe: Globe | None) -> RegionArray | PointArray:
    points = PointArray.from_arrow(array)
    return points if globe is None else column_on_globe(points, globe)


def _names_of(table: Any, name: str, distinct: bool) -> Any | None:
    """Return column `name` as one Arrow array of text or integers, None if absent; raise FilterError if it is bad."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if name not in table.column_names:
        return None
    kind = table.column(name).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
        raise FilterError(f"column {name!r}: need text or integers, got {kind}")
    array = whole_column(table, name, name)
    if distinct and pc.count_distinct(array).as_py() < len(array):
        counts = pc.value_counts(array)
        twice = next(item["values"] for item in counts.to_pylist() if item["counts"] > 1)
        raise FilterError(f"column {name!r}: duplicate {name} {twice!r:.60}")
    return array
