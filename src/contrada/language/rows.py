"""Rows of Arrow tables as messages: a column is an attribute, a field of a struct one with a dotted name."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.errors import CrsError, FormatError
from contrada.geometry.faults import Rejection
from contrada.geometry.mixed import is_geometry, is_null, is_vertex, parts_of

if TYPE_CHECKING:
    from contrada.language.spatial import Spatial

READ = ("geoarrow.wkb", "geoarrow.point", "geoarrow.polygon", "geoarrow.multipolygon")
EXTENSION, EXTENSION_METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"


def attributes_of(table: Any, only: Collection[str] | None = None) -> Any:
    """A table with an attribute to a column, as `ForwardingTable.match_many` takes it; `only` names those wanted.

    Structs become columns with dotted names, dictionary-encoded values are decoded, and geometry columns carry the
    CRS that GeoParquet or GeoArrow metadata name. Nothing else changes, and other columns are not looked at.

    >>> import pyarrow as pa
    >>> attributes_of(pa.table({"id": [7], "wind": [{"speed": 12.5, "from": "NW"}]})).column_names
    ['id', 'wind.speed', 'wind.from']
    """
    import pyarrow as pa

    geo = _geo_columns(table.schema.metadata or {})
    columns: dict[str, Any] = {}
    is_same = True
    for place, field in enumerate(table.schema):
        if only is not None and not _is_asked(field.name, only):
            is_same = False
            continue
        column = table.column(place)
        for name, values in _plain_columns(field, column, geo.get(field.name)):
            if name in columns:
                raise FormatError(f"two columns give the attribute {name!r}")
            is_same = is_same and values is column
            columns[name] = values
    if is_same:
        return table
    if not columns:  # a table without columns would have no rows
        return table.select([])
    return pa.table(columns)


class GeometryColumns(NamedTuple):
    """The columns of a schema that are geometry by its metadata, with their CRS, and the one that counts."""

    primary: str | None
    crs: dict[str, str | None]


def geometry_columns(schema: Any) -> GeometryColumns:
    """What GeoParquet and GeoArrow metadata say of geometry; encodings that are not read are a FormatError.

    >>> import pyarrow as pa
    >>> geo = b'{"primary_column": "area", "columns": {"area": {"encoding": "WKB"}}}'
    >>> geometry_columns(pa.schema([("area", pa.binary())], metadata={b"geo": geo}))
    GeometryColumns(primary='area', crs={'area': 'OGC:CRS84'})
    """
    import pyarrow as pa

    from contrada.geometry.arrow import crs_of_type

    metadata = schema.metadata or {}
    geo = _geo_columns(metadata)
    found: dict[str, str | None] = {}
    for field in schema:
        about, extension = geo.get(field.name), (field.metadata or {}).get(EXTENSION, b"").decode(errors="replace")
        nothing = pa.chunked_array([], field.type)
        if isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name.startswith("geoarrow."):
            _check_encoding(field.name, nothing, field.type.extension_name)
            found[field.name] = crs_of_type(field.type)
        elif about is not None or extension.startswith("geoarrow."):
            encoding = extension or f"geoarrow.{str(about and about.get('encoding')).lower()}"
            _check_encoding(field.name, nothing, encoding)
            found[field.name] = _column_crs(field.name, field, about)
    primary = json.loads(metadata[b"geo"]).get("primary_column") if geo else None
    return GeometryColumns(primary if primary in found else next(iter(found), None), found)


def _is_asked(name: str, only: Collection[str]) -> bool:
    return name in only or any(asked.startswith(name + ".") for asked in only)


def _geo_columns(metadata: dict[bytes, bytes]) -> dict[str, Any]:
    """What the GeoParquet metadata of a schema says, by column."""
    if b"geo" not in metadata:
        return {}
    try:
        return {str(name): dict(about) for name, about in json.loads(metadata[b"geo"])["columns"].items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FormatError(f"the GeoParquet metadata cannot be read: {error}") from error


def _plain_columns(field: Any, column: Any, geo: dict[str, Any] | None) -> Iterator[tuple[str, Any]]:
    """A column as plain ones: decoded, flattened, with its CRS."""
    import pyarrow as pa

    name, extension = field.name, (field.metadata or {}).get(EXTENSION, b"").decode(errors="replace")
    if isinstance(column.type, pa.BaseExtensionType):
        _check_encoding(name, column, column.type.extension_name)
        yield name, column
        return
    column = _decoded(column)
    if geo is not None or extension.startswith("geoarrow."):
        from contrada.geometry.arrow import with_crs

        _check_encoding(name, column, extension or f"geoarrow.{str(geo and geo.get('encoding')).lower()}")
        yield name, with_crs(column, _column_crs(name, field, geo))
    elif pa.types.is_struct(column.type) and not is_vertex(column.type):
        inner = column.flatten()
        for place, values in enumerate(inner):
            for below, plain in _plain_columns(column.type.field(place), values, None):
                yield f"{name}.{below}", plain
    else:
        yield name, column


def _check_encoding(name: str, column: Any, encoding: str) -> None:
    """Refuse GeoArrow that is no WKB, point or polygon: several kinds look alike but for their names."""
    if encoding.startswith("geoarrow.") and not (encoding in READ and is_geometry(column)):
        raise FormatError(f"column {name!r} is {encoding} in {column.type}; read are {', '.join(READ)}")


def _decoded(column: Any) -> Any:
    """A column whose values stand in it: no dictionaries, no views."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _decoded(column.cast(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return _decoded(pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], kind.value_type))
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return column.cast(views[kind]) if kind in views else column


def _column_crs(name: str, field: Any, geo: dict[str, Any] | None) -> str | None:
    """The CRS of a geometry column; GeoParquet's default is longitude and latitude."""
    from contrada.geometry.arrow import crs_text

    about = geo
    if about is None:
        try:
            about = {"crs": None, **json.loads((field.metadata or {}).get(EXTENSION_METADATA) or b"{}")}
        except (ValueError, TypeError) as error:
            raise FormatError(f"column {name!r}: its GeoArrow metadata cannot be read: {error}") from error
    if about.get("edges", "planar") != "planar":
        raise CrsError(f"column {name!r} is GEOGRAPHY, with {about['edges']} edges; relations here are planar")
    return crs_text(about["crs"]) if "crs" in about else "OGC:CRS84"


def rows_of(
    table: Any, only: Collection[str] | None = None, spatial: Spatial | None = None
) -> tuple[list[dict[str, Any]], dict[int, Rejection]]:
    """The messages of a table that `attributes_of` made, and by row why some are bad; a null is an absent attribute.

    >>> import pyarrow as pa
    >>> rows_of(pa.table({"id": [7, 8], "name": ["storm", None]}))[0]
    [{'id': 7, 'name': 'storm'}, {'id': 8}]
    """
    rows: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
    bad: dict[int, Rejection] = {}
    for name in table.column_names:
        if only is not None and name not in only:
            continue
        column = table.column(name)
        if not is_geometry(column):
            found_values: Iterator[tuple[int, Any]] = enumerate(values_of(column))
        else:
            found_values = _spatial_values(column, spatial)
        for row, found in found_values:
            if not isinstance(found, Rejection):
                if found is not None:
                    rows[row][name] = found
            elif not is_null(found):
                bad.setdefault(row, found._replace(reason=f"attribute {name!r}: {found.reason}"))
    return rows, bad


def _spatial_values(column: Any, spatial: Spatial | None) -> Iterator[tuple[int, Any]]:
    """The regions and points of a column with their rows, and rejections."""
    if spatial is not None and spatial.is_changing:
        yield from spatial.of_column(column)
        return
    parts, rejected = parts_of(column)
    for part in parts:
        yield from zip(part.rows.tolist(), part.column, strict=True)
    yield from ((item.row, item) for item in rejected)


def values_of(column: Any) -> list[Any]:
    """The values of a column that is no geometry, None or a Rejection for each; timestamps keep their nanoseconds."""
    import numpy as np
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        ticks = column.cast(pa.int64()).to_pylist()
        return [None if tick is None else np.datetime64(tick, "ns") for tick in ticks]
    if pa.types.is_duration(kind) and kind.unit == "ns":  # no value that anything is asked about
        ticks = column.cast(pa.int64()).to_pylist()
        return [None if tick is None else np.timedelta64(tick, "ns") for tick in ticks]
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = [_text(data, row) for row, data in enumerate(column.cast(pa.large_binary()).to_pylist())]
    except (OverflowError, ValueError, KeyError):  # years beyond 9999, zones that nobody knows
        unit: Any = kind.unit if pa.types.is_timestamp(kind) else "ms"
        ticks = column.cast(pa.int64()).to_pylist()
        values = [None if tick is None else np.datetime64(tick, unit) for tick in ticks]
    return values


def _text(data: bytes | None, row: int) -> str | Rejection | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError as error:
        return Rejection(row, f"text that is not UTF-8: {error.reason}", None, None, None)
