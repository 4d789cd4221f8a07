"""Templates: one filter with columns in place of values, bound to a table of subscriptions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contrada.errors import FilterError, RegionError
from contrada.geometry import Point, PointArray, Region, RegionArray
from contrada.index.packed import reordered
from contrada.index.raw import FILTER, PLACE, Raw, joined_raw
from contrada.language.rows import attributes_of
from contrada.matching.checks import Constraints
from contrada.matching.level import Added, Place
from contrada.matching.message import Places
from contrada.matching.template_scalars import bind_scalar
from contrada.model import Column, Constraint, Filter, forms


class Bound(NamedTuple):
    """A template bound to rows: its constraints in arrays, the narrowest first, and the names of the rows."""

    rows: int
    constraints: list[tuple[Place, Constraints]]
    scalars: list[tuple[forms.Place, Raw]]
    long: list[Constraint]  # those whose numbers the table must take note of
    keys: Any | None
    subscribers: Any | None

    def names(self, first: int) -> tuple[Any, Any]:
        """Keys and subscribers as Arrow arrays; keys default to numbers from `first` on, subscribers to keys."""
        keys = range(first, first + self.rows) if self.keys is None else self.keys
        return keys, keys if self.subscribers is None else self.subscribers

    def split(self, first: int, places: Places) -> Added:
        """The constraints that filters first.. are reached through, the further ones and the scalar ones."""
        parts = [(place, part._replace(filters=part.filters + np.int32(first))) for place, part in self.constraints]
        further: dict[Place, list[Constraints]] = {}
        for place, part in parts[1:]:
            further.setdefault(place, []).append(part)
        raw = [_numbered(part, first, places.number(place)) for place, part in self.scalars]
        whole = joined_raw(raw, places.forms >= forms.TEXT) if raw else None
        return Added(dict(parts[:1]), {place: group[0].joined(group[1:]) for place, group in further.items()}, whole)


def _numbered(raw: Raw, first: int, place: int) -> Raw:
    """Records of filters first.. at a place."""
    records = raw.records.copy()
    records[:, FILTER] += first
    records[:, PLACE] = place
    return raw._replace(records=records)


def bind_template(rows: Any, template: Constraint | Filter) -> Bound:
    """Bind a template to the rows of an Arrow table."""
    import pyarrow as pa

    parts = [template] if isinstance(template, Constraint) else list(template)
    named = {column.name for constraint in parts for column in constraint.columns}
    whole = rows if isinstance(rows, pa.Table) else pa.table(rows)
    table = attributes_of(whole, {*named, "key", "subscriber"})
    for name in sorted(named - {*table.column_names}):
        raise FilterError(f"the template asks for the column {name!r}; there are {attributes_of(whole).column_names}")
    scalars = [constraint for constraint in parts if constraint.kind is None]
    own = [constraint for constraint in parts if constraint.kind is not None and isinstance(constraint.operator, str)]
    if own:
        raise FilterError(f"`{own[0]}`: templates take no constraints of added types")
    parts = [constraint for constraint in parts if constraint.kind is not None]
    parts.sort(key=lambda constraint: (0 in constraint.relations, not isinstance(constraint.value, Column)))
    filters = np.arange(table.num_rows, dtype=np.int32)
    bound = []
    for constraint in parts:
        column = _column_of(table, constraint)
        masks = np.full(table.num_rows, constraint.relations.mask, np.uint8)
        place = (constraint.attribute, "point" if isinstance(column, PointArray) else "region")
        bound.append((place, Constraints(filters, masks, column)))
    long: list[Constraint] = []
    raw = [bound for constraint in scalars for bound in bind_scalar(constraint, table, long)]
    return Bound(table.num_rows, bound, raw, long, _names_of(table, "key", True), _names_of(table, "subscriber", False))


def _column_of(table: Any, constraint: Constraint) -> RegionArray | PointArray:
    value = constraint.value
    if isinstance(value, Column):
        array = table.column(value.name)
        try:
            return RegionArray.from_arrow(array)
        except RegionError as error:
            if "wrong geometry type Point" in str(error) or "not GeoArrow polygons" in str(error):
                return PointArray.from_arrow(array)
            raise RegionError(f"column {value.name!r}, {error}", row=error.row) from error
    if isinstance(value, Region):
        return reordered(value.column, np.zeros(table.num_rows, np.int64))
    assert isinstance(value, Point)
    return PointArray(np.repeat(value.column.xy, table.num_rows, axis=0), crs=value.crs)


def _names_of(table: Any, name: str, distinct: bool) -> Any | None:
    """A column of names as one Arrow array of text or integers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if name not in table.column_names:
        return None
    array = table.column(name).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type) or pa.types.is_integer(array.type)):
        raise FilterError(f"column {name!r} holds text or integers, not {array.type}")
    if array.null_count:
        row = int(np.flatnonzero(np.asarray(array.is_null()))[0])
        raise FilterError(f"column {name!r}, row {row}: no {name}")
    if distinct and pc.count_distinct(array).as_py() < len(array):
        counts = pc.value_counts(array)
        twice = next(item["values"] for item in counts.to_pylist() if item["counts"] > 1)
        raise FilterError(f"column {name!r}: the {name} {twice!r} stands there more than once")
    return array
