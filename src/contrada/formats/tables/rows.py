"""Read rows of Arrow tables as messages: a column is an attribute; a struct field has a dotted name."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from contrada.errors import ContradaError, CrsError, FormatError
from contrada.formats.spatial import UNCHANGED, Spatial
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.checks import MAX_ERROR_CHARS, check_column
from contrada.geometry.arrow.circles import is_circle_type
from contrada.geometry.arrow.mixed import crs_of_type, is_geometry, is_null, is_spatial, is_vertex
from contrada.geometry.crs import LONGITUDE_LATITUDE, Crs, loaded
from contrada.geometry.faults import FaultCode, Rejection

EXTENSION, EXTENSION_METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"
LINE_ENCODINGS = ("geoarrow.linestring", "geoarrow.multilinestring")
GEOARROW_ENCODINGS = ("geoarrow.wkb", "geoarrow.point", "geoarrow.polygon", "geoarrow.multipolygon", *LINE_ENCODINGS)


def attributes_of(table: Any, only: Collection[str] | None = None, is_checked: bool = False) -> Any:
    """Return a table with one column per attribute, for `ForwardingTable.match_many`; `only` selects attributes.

    Structs become columns with dotted names, dictionary-encoded values are decoded, and geometry columns carry the
    CRS that GeoParquet or GeoArrow metadata name. Boxes that GeoParquet keeps of a geometry column, its covering, are
    no attributes unless they are selected. Nothing else changes, and other columns are not read. A column whose
    offsets or indices point outside of it is a FormatError; `is_checked` says that `check_table` was called.

    >>> import pyarrow as pa
    >>> attributes_of(pa.table({"id": [7], "wind": [{"speed": 12.5, "from": "NW"}]})).column_names
    ['id', 'wind.speed', 'wind.from']
    """
    check_names(table.schema)
    geo = geo_columns(table.schema.metadata or {})
    columns: dict[str, Any] = {}
    is_same, hidden = True, covering_columns(geo) if only is None else set()
    for place, field in enumerate(table.schema):
        if field.name in hidden or (only is not None and not _is_asked(field.name, only)):
            is_same = False
            continue
        column = table.column(place)
        if not is_checked:
            check_column(column, f"column {field.name!r}")
        for name, values in _plain_columns(field, column, geo.get(field.name)):
            if name in columns:
                raise FormatError(f"duplicate attribute {name!r}")
            is_same = is_same and values is column
            columns[name] = values
    if is_same:
        return table
    if not columns:  # a table made of no columns would have no rows
        return table.select([])
    return pa.table(columns)


def table_of(rows: Any) -> Any:
    """Return an Arrow table of an object with an Arrow interface; an unreadable one is a FormatError."""
    if isinstance(rows, pa.Table):
        return rows
    try:  # a GeoDataFrame exports geometry by to_arrow only
        return pa.table(rows.to_arrow() if hasattr(rows, "to_arrow") else rows)
    except (pa.ArrowException, TypeError, ValueError, KeyError, OSError) as error:
        raise FormatError(f"a {type(rows).__name__} cannot be read as an Arrow table: {error}") from error


def check_table(table: Any) -> None:
    """Raise FormatError if an Arrow table or one of its columns is damaged."""
    try:
        table.validate()
    except pa.ArrowException as error:
        raise FormatError(f"the table is damaged: {error}") from error
    check_names(table.schema)
    for place, field in enumerate(table.schema):
        check_column(table.column(place), f"column {field.name!r}")


def check_names(schema: Any) -> None:
    """Raise FormatError if the name of a column or of a nested field is not UTF-8."""
    kinds = [schema]
    while kinds:
        kind = kinds.pop()
        for place, field in enumerate(kind if isinstance(kind, pa.Schema) else map(kind.field, range(kind.num_fields))):
            try:
                str(field.name)
            except UnicodeDecodeError as error:
                raise FormatError(f"the name of column {place} is not UTF-8: {error}") from error
            if pa.types.is_struct(field.type):
                kinds.append(field.type)


class GeometryColumns(NamedTuple):
    """The geometry columns in the metadata of a schema, with their CRS, and the primary one."""

    primary: str | None
    crs: dict[str, Crs | None]


def geometry_columns(schema: Any) -> GeometryColumns:
    """Return the geometry columns of GeoParquet and GeoArrow metadata; an unsupported encoding is a FormatError.

    >>> import pyarrow as pa
    >>> geo = b'{"primary_column": "area", "columns": {"area": {"encoding": "WKB"}}}'
    >>> geometry_columns(pa.schema([("area", pa.binary())], metadata={b"geo": geo}))
    GeometryColumns(primary='area', crs={'area': 'OGC:CRS84'})
    """
    metadata = schema.metadata or {}
    geo = geo_columns(metadata)
    found: dict[str, Crs | None] = {}
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


def geo_columns(metadata: dict[bytes, bytes]) -> dict[str, Any]:
    """Return the GeoParquet metadata of a schema, by column."""
    if b"geo" not in metadata:
        return {}
    try:
        about = loaded(metadata[b"geo"], "GeoParquet metadata")
        return {str(name): dict(own) for name, own in about["columns"].items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FormatError(f"GeoParquet metadata cannot be read: {error}") from error


def covering_columns(geo: dict[str, Any]) -> set[str]:
    """Return the columns with the boxes of geometry columns, from the GeoParquet metadata of columns.

    >>> covering_columns({"area": {"covering": {"bbox": {"xmin": ["bbox", "xmin"], "ymin": ["bbox", "ymin"]}}}})
    {'bbox'}
    """
    coverings = [own.get("covering") for own in geo.values()]
    boxes = [covering.get("bbox") for covering in coverings if isinstance(covering, dict)]
    paths = [path for box in boxes if isinstance(box, dict) for path in box.values()]
    return {path[0] for path in paths if isinstance(path, list) and len(path) == 2 and isinstance(path[0], str)}


def parquet_schema(file: Any) -> Any:
    """Return the Arrow schema of a `ParquetFile`; GEOMETRY columns are marked as GeoArrow with their CRS.

    PyArrow reads such a column as plain bytes. Columns in the GeoParquet metadata are left unchanged.
    """
    schema = file.schema_arrow
    described = geo_columns(schema.metadata or {})
    for place in range(len(file.schema)):
        column = file.schema.column(place)
        kind = json.loads(column.logical_type.to_json())
        if kind.get("Type") not in ("Geometry", "Geography") or column.path not in schema.names:
            continue
        if kind["Type"] == "Geography":
            raise CrsError(f"column {column.name!r} is GEOGRAPHY, with geodesic edges; only planar edges are supported")
        if column.name in described:
            continue
        about = json.dumps({"crs": _system(column.name, kind.get("crs"), schema.metadata or {})})
        number = schema.names.index(column.name)
        field = schema.field(number).with_metadata({EXTENSION: b"geoarrow.wkb", EXTENSION_METADATA: about.encode()})
        schema = schema.set(number, field)
    return schema


def _system(name: str, text: str | None, metadata: dict[bytes, bytes]) -> Crs | None:
    """Return the CRS of a GEOMETRY column: longitude and latitude by default, None for `srid:0`."""
    form, _, what = (text or LONGITUDE_LATITUDE).partition(":")
    try:
        if form.lower() == "srid":
            return Crs.of(int(what) or None)
        if form.lower() == "projjson":
            return Crs.of(metadata[what.encode()].decode())
        return Crs.of(text or LONGITUDE_LATITUDE)
    except (ContradaError, KeyError, ValueError) as error:
        raise CrsError(f"column {name!r}: unknown coordinate reference system {str(text)[:60]!r}") from error


def _plain_columns(field: Any, column: Any, geo: dict[str, Any] | None) -> Iterator[tuple[str, Any]]:
    """Yield a column as plain ones: decoded, flattened, with its CRS."""
    name, extension = field.name, (field.metadata or {}).get(EXTENSION, b"").decode(errors="replace")
    if isinstance(column.type, pa.BaseExtensionType):
        _check_encoding(name, column, column.type.extension_name)
        yield name, column
        return
    column = _decoded(column)
    if geo is not None or extension.startswith("geoarrow."):
        from contrada.geometry.arrow.geoarrow import with_crs
        from contrada.geometry.arrow.lines import as_lines

        encoding = extension or f"geoarrow.{str(geo and geo.get('encoding')).lower()}"
        _check_encoding(name, column, encoding)
        crs = _column_crs(name, field, geo)
        yield name, as_lines(column, crs) if encoding in LINE_ENCODINGS else with_crs(column, crs)
    elif pa.types.is_struct(column.type) and not (is_vertex(column.type) or is_circle_type(column.type)):
        for place, values in enumerate(column.flatten()):
            for below, plain in _plain_columns(column.type.field(place), values, None):
                yield f"{name}.{below}", plain
    else:
        yield name, column


def _check_encoding(name: str, column: Any, encoding: str) -> None:
    """Raise FormatError for other GeoArrow than WKB, points, lines, polygons: some types differ in names only."""
    if encoding.startswith("geoarrow.") and not (encoding in GEOARROW_ENCODINGS and is_geometry(column)):
        supported = ", ".join(GEOARROW_ENCODINGS)
        raise FormatError(f"column {name!r}: unsupported {encoding} in {column.type}; supported: {supported}")


def _decoded(column: Any) -> Any:
    """Decode dictionaries, run ends and views of a column."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _decoded(column.cast(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        decoded = [pa.compute.run_end_decode(chunk) for chunk in column.chunks]
        return _decoded(pa.chunked_array(decoded, kind.value_type))
    if kind == pa.string_view():  # by way of binary: a cast to text fails for the whole column if one text is not UTF-8
        wide = [chunk.view(pa.binary_view()).cast(pa.large_binary()).view(pa.large_string()) for chunk in column.chunks]
        return pa.chunked_array(wide, pa.large_string())
    return column.cast(pa.large_binary()) if kind == pa.binary_view() else column


def _column_crs(name: str, field: Any, geo: dict[str, Any] | None) -> Crs | None:
    """Return the CRS of a geometry column; GeoParquet's default is longitude and latitude."""
    about = geo
    if about is None:
        try:
            text = (field.metadata or {}).get(EXTENSION_METADATA) or b"{}"
            about = {"crs": None, **loaded(text, "GeoArrow metadata")}
        except (ValueError, TypeError) as error:
            raise FormatError(f"column {name!r}: GeoArrow metadata cannot be read: {error}") from error
    if about.get("edges", "planar") != "planar":
        raise CrsError(
            f"column {name!r} is GEOGRAPHY, with {about['edges']!s:.40} edges; only planar edges are supported"
        )
    try:
        return Crs.of(about.get("crs", LONGITUDE_LATITUDE))
    except ContradaError as error:
        raise CrsError(f"column {name!r}: {error}") from error


def rows_of(
    table: Any, only: Collection[str] | None = None, spatial: Spatial = UNCHANGED
) -> tuple[list[dict[str, Any]], dict[int, Rejection]]:
    """Return the messages of a table from `attributes_of`, and rejections by row; a null is an absent attribute.

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
        values: Iterable[Any] = (
            spatial.at(name).of_column(column) if is_spatial(column) else enumerate(values_of(column))
        )
        for row, found in values:
            if not isinstance(found, Rejection):
                if found is not None:
                    rows[row][name] = found
            elif not is_null(found):
                bad.setdefault(row, found._replace(reason=f"attribute {name!r}: {found.reason}"))
    return rows, bad


def values_of(column: Any) -> list[Any]:
    """Return the values of a non-geometry column, None or a Rejection for some; timestamps keep nanoseconds."""
    kind = column.type
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns":
        return _numpy_times(column)
    try:
        values: list[Any] = column.to_pylist()
    except Exception:  # text that is not UTF-8, years beyond 9999, unknown zones, times of day beyond 24 hours
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return _numpy_times(column)
        values = [_value(column, row) for row in range(len(column))]
    return values


def _numpy_times(column: Any) -> list[Any]:
    """Return timestamps, dates and durations as NumPy values: they may be beyond Python's range or precision."""
    kind = column.type
    unit: Any = getattr(kind, "unit", "D" if pa.types.is_date32(kind) else "ms")
    make = np.timedelta64 if pa.types.is_duration(kind) else np.datetime64  # no operator tests durations
    ticks = column.cast(pa.int32() if unit == "D" else pa.int64()).to_pylist()
    return [None if tick is None else make(tick, unit) for tick in ticks]


def _value(column: Any, row: int) -> Any:
    """Return one value of a column, or a rejection if Python cannot hold it."""
    try:
        return column[row].as_py()
    except UnicodeDecodeError as error:
        reason = f"text is not UTF-8: {error.reason}"
    except Exception as error:  # any type: Arrow has many
        reason = f"value cannot be read: {str(error)[:MAX_ERROR_CHARS]}"
    return Rejection(row, reason, FaultCode.VALUE)
