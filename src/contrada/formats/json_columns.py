"""Read blocks of newline JSON as Arrow tables with one column per attribute, as reading each line would."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.errors import ContradaError
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.mixed import is_geometry, is_null, sift_mixed
from contrada.geometry.crs import LONGITUDE_LATITUDE
from contrada.limits import limit
from contrada.model.types import has_types
from contrada.model.values import EXACT_INTEGERS

_FEATURE_MEMBERS = {"type", "id", "bbox", "geometry", "properties"}
_NESTING = {"Point": 0, "Polygon": 2, "MultiPolygon": 3}  # lists around the positions of a geometry
_NOT_JSON = re.compile(rb"[:\[,]\s*-?(?:NaN|Inf)")  # numbers that Arrow takes


class UnfitError(Exception):
    """Lines that do not fit into columns, or may be bad: they have to be read one by one."""


class JsonLines:
    """Reads blocks of lines with the types of the objects that it has learnt from."""

    def __init__(self) -> None:
        self._kind: Any = None  # a struct

    def learn(self, objects: Sequence[dict[str, Any]]) -> None:
        """Take the types of objects, and those taken before, for the blocks to come."""
        try:
            kind = _kind_of(objects, 0)
        except UnfitError:
            return
        try:
            self._kind = _united(self._kind, kind)
        except UnfitError:
            self._kind = kind

    def table_of(self, block: bytes) -> Any | None:
        """Return the messages of a block of whole lines as a table for `match_many`; None to read them one by one.

        >>> lines = JsonLines()
        >>> lines.learn([{"wind": {"speed": 12}, "at": {"type": "Point", "coordinates": [1, 2]}}])
        >>> lines.table_of(b'{"wind": {"speed": 3}, "at": null}\\n').to_pydict()
        {'wind.speed': [3]}
        >>> lines.table_of(b'{"wind": {"speed": "high"}}\\n') is None
        True
        """
        if self._kind is None or has_types():
            return None
        try:
            return _message_table(_parsed(block, pa.schema(list(self._kind))))
        except (UnfitError, ContradaError, pa.ArrowException):
            return None


def _kind_of(values: Sequence[Any], depth: int) -> Any:
    """Return the Arrow type that JSON values have in common; raise UnfitError if there is none."""
    kinds = set(map(type, values)) - {type(None)}
    if depth > limit("nesting"):
        raise UnfitError
    if kinds == {dict}:
        objects = [value for value in values if value is not None]
        names = dict.fromkeys(chain.from_iterable(objects))
        fields = {name: _kind_of([each.get(name) for each in objects], depth + 1) for name in names}
        if "coordinates" in fields and "type" in fields:
            fields["coordinates"] = _of_doubles(fields["coordinates"])
        return pa.struct(fields)
    if kinds == {list}:
        return pa.list_(_kind_of(list(chain.from_iterable(value for value in values if value)), depth + 1))
    if kinds == {int, float}:
        return pa.float64()
    if len(kinds) > 1:
        raise UnfitError
    simple = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    return simple[kinds.pop()] if kinds else pa.null()


def _of_doubles(kind: Any) -> Any:
    if pa.types.is_list(kind):
        return pa.list_(_of_doubles(kind.value_type))
    return pa.float64() if pa.types.is_integer(kind) else kind


def _united(a: Any, b: Any) -> Any:
    """Return a type for the values of two types; raise UnfitError if there is none."""
    if a is None or a == b or pa.types.is_null(a):
        return b
    if pa.types.is_null(b):
        return a
    if pa.types.is_struct(a) and pa.types.is_struct(b):
        fields = {field.name: field.type for field in a}
        return pa.struct(fields | {field.name: _united(fields.get(field.name), field.type) for field in b})
    if pa.types.is_list(a) and pa.types.is_list(b):
        return pa.list_(_united(a.value_type, b.value_type))
    if {a, b} == {pa.int64(), pa.float64()}:
        return pa.float64()
    raise UnfitError


def _parsed(block: bytes, schema: Any) -> Any:
    """Return the objects of a block as a table; raise UnfitError unless there is one in each line."""
    import pyarrow.json

    if not block.endswith(b"\n"):
        block += b"\n"
    bytes_of = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(bytes_of == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    # An object that begins in one line and ends in another has a line that does not begin and end like this.
    if (bytes_of[starts] != ord("{")).any() or (bytes_of[ends - 1] != ord("}")).any():
        raise UnfitError
    if (b"NaN" in block or b"Inf" in block) and _NOT_JSON.search(block):
        raise UnfitError
    try:
        block.decode()
    except UnicodeError as error:
        raise UnfitError from error
    table = pyarrow.json.read_json(
        pa.BufferReader(block),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
    if table.num_rows != len(ends):
        raise UnfitError
    return table


def _message_table(table: Any) -> Any:
    """Return the attributes of objects: of GeoJSON features, their properties, geometry and id."""
    columns: dict[str, Any] = {}
    members = {field.name: _whole(table.column(k)) for k, field in enumerate(table.schema)}
    is_typed = "type" in members and pa.types.is_string(members["type"].type)
    kinds = members["type"].unique().to_pylist() if is_typed else []
    if kinds == ["Feature"] and _FEATURE_MEMBERS.issuperset(members):
        _add_features(members, columns)
    elif "specversion" in members or "Feature" in kinds or "FeatureCollection" in kinds:
        raise UnfitError
    else:
        for name, column in members.items():
            _add(name, column, columns)
    if not columns or len(columns) > limit("attributes") or max(map(len, columns)) > limit("name_bytes"):
        raise UnfitError
    return pa.table(columns)


def _add_features(members: dict[str, Any], columns: dict[str, Any]) -> None:
    """Add the attributes of GeoJSON features."""
    from contrada.geometry.arrow.geoarrow import with_crs

    parts = [members[name] for name in ("geometry", "properties") if name in members]
    if not parts or np.logical_and.reduce([np.asarray(part.is_null()) for part in parts]).any():
        raise UnfitError  # no member that makes it a feature
    properties, geometry, name = (members.get(name) for name in ("properties", "geometry", "id"))
    if properties is not None and properties.null_count < len(properties):
        _add_members("", properties, columns)
    if "geometry" in columns or any(map(is_geometry, columns.values())):
        raise UnfitError  # geometry among the properties has the CRS of GeoJSON too
    if name is not None and name.null_count < len(name):
        if "id" in columns or not (pa.types.is_string(name.type) or pa.types.is_integer(name.type)):
            raise UnfitError
        columns["id"] = name
    if geometry is not None and geometry.null_count < len(geometry):
        _add("geometry", geometry, columns)
        if "geometry" not in columns or not _is_on_globe(columns["geometry"]):
            raise UnfitError
        columns["geometry"] = with_crs(pa.chunked_array([columns["geometry"]]), LONGITUDE_LATITUDE)


def _is_on_globe(geometry: Any) -> bool:
    """Return True if all coordinates are longitudes and latitudes; of a point, `match_many` does not ask that."""
    while not pa.types.is_fixed_size_list(geometry.type):
        geometry = geometry.values
    return not (np.abs(np.asarray(geometry.values).reshape(-1, 2)) > (180, 90)).any()


def _add(name: str, column: Any, columns: dict[str, Any]) -> None:
    """Add a member of objects: its own members, a geometry, or a value."""
    if column.null_count == len(column):
        return
    if name in columns:
        raise UnfitError
    if pa.types.is_floating(column.type):
        numbers = np.asarray(column.drop_null())
        if not (np.abs(numbers) < EXACT_INTEGERS).all():  # an integer there may have been rounded, also to the limit
            raise UnfitError
    if pa.types.is_list(column.type):  # operators only ask whether there is one
        empty = np.zeros(len(column) + 1, np.int32)
        columns[name] = pa.ListArray.from_arrays(pa.array(empty), pa.nulls(0), mask=column.is_null())
        return
    if not pa.types.is_struct(column.type):
        columns[name] = column
        return
    names = {field.name for field in column.type}
    if {"type", "geometries"} <= names:
        raise UnfitError
    if {"type", "coordinates"} <= names and pa.types.is_string(column.type.field("type").type):
        geometry = _geometry(column, names)
        if any(not is_null(item) for item in sift_mixed(geometry).rejected):
            raise UnfitError
        columns[name] = geometry
    else:
        _add_members(f"{name}.", column, columns)


def _add_members(prefix: str, column: Any, columns: dict[str, Any]) -> None:
    """Add the members of objects."""
    if not pa.types.is_struct(column.type):
        raise UnfitError
    for field, values in zip(column.type, column.flatten(), strict=True):
        _add(prefix + field.name, values, columns)


def _geometry(column: Any, names: set[str]) -> Any:
    """Return GeoJSON geometry objects of one type as GeoArrow."""
    rows = np.flatnonzero(np.asarray(column.is_valid()))
    kinds, coordinates = (column.field(name).take(pa.array(rows)) for name in ("type", "coordinates"))
    found = kinds.unique().to_pylist()
    if len(names) > 2 or len(found) != 1 or found[0] not in _NESTING:
        raise UnfitError
    depth = _NESTING[found[0]]
    built = _nested(coordinates, depth)
    if len(rows) == len(column):
        return built
    places = np.full(len(column), -1)
    places[rows] = np.arange(len(rows))
    return built.take(pa.array(places, mask=places < 0))


def _nested(lists: Any, depth: int) -> Any:
    """Return nested lists of positions with two coordinates each as GeoArrow keeps them."""
    if lists.null_count or not pa.types.is_list(lists.type):
        raise UnfitError
    if depth > 0:
        return pa.ListArray.from_arrays(lists.offsets, _nested(lists.values, depth - 1))
    if not pa.types.is_floating(lists.values.type) or lists.values.null_count:
        raise UnfitError
    offsets: NDArray[np.int32] = np.asarray(lists.offsets)
    if (np.diff(offsets) != 2).any():
        raise UnfitError
    return pa.FixedSizeListArray.from_arrays(lists.values[offsets[0] : offsets[-1]] if len(lists) else lists.values, 2)


def _whole(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
