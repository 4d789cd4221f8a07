"""Read and write GeoArrow: polygons and multipolygons as nested Arrow lists."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.codes import GOOD, MALFORMED, MISSING
from contrada.errors import RegionError
from contrada.geometry.arrays import compact
from contrada.geometry.arrow.checks import bad_texts, whole_array
from contrada.geometry.arrow.mixed import crs_of_type, is_vertex, nesting
from contrada.geometry.column import RegionArray
from contrada.geometry.crs import Crs, common_crs, metadata_crs
from contrada.geometry.interchange import part_offsets
from contrada.geometry.sources import RawRegions, raw_from_wkb, raw_from_wkt

_METADATA = b"ARROW:extension:metadata"  # key in the metadata of a field
_NAMES = MappingProxyType({0: "geoarrow.point", 2: "geoarrow.polygon", 3: "geoarrow.multipolygon"})


class GeoArrowType(pa.ExtensionType):  # type: ignore[misc]
    """GeoArrow extension type, named after its storage; not registered, so that other libraries' types stay in use."""

    names = _NAMES  # by the number of nested lists

    def __init__(self, storage: pa.DataType, metadata: str) -> None:
        self._metadata = metadata
        depth, inner = nesting(storage)
        is_wkb = pa.types.is_binary(inner) or pa.types.is_large_binary(inner)
        super().__init__(storage, "geoarrow.wkb" if is_wkb else self.names[depth])

    def __arrow_ext_serialize__(self) -> bytes:
        return self._metadata.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> GeoArrowType:
        return cls(storage_type, serialized.decode())


def metadata_of(crs: Crs | None) -> str:
    """Return the metadata of an extension type that names a CRS."""
    if crs is None:
        return "{}"
    return json.dumps({"crs": json.loads(crs) if crs.startswith("{") else crs})


def with_crs(column: Any, crs: Any) -> Any:
    """Return a column of WKB or GeoArrow points or polygons with `crs` in its type; unchanged if `crs` is None.

    >>> with_crs(pa.chunked_array([[b""]]), "EPSG:4326").type.extension_name
    'geoarrow.wkb'
    """
    crs = Crs.of(crs)
    if crs is None:
        return column
    own = type(column.type) if isinstance(column.type, GeoArrowType) else GeoArrowType
    if isinstance(column.type, pa.BaseExtensionType):
        common_crs(crs_of_type(column.type), crs)
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    kind = own(column.type, metadata_of(crs))
    return pa.chunked_array([pa.ExtensionArray.from_storage(kind, chunk) for chunk in column.chunks], kind)


def column_to_arrow(column: RegionArray) -> Any:
    """Return a GeoArrow multipolygon array, interleaved, with the CRS in its type."""
    a = compact(column.arrays)
    starts, regions = part_offsets(a)
    rings = list_array(a.ring_offsets, vertex_array(a.xy), "vertices")
    parts = list_array(starts, rings, "rings")
    storage = list_array(regions, parts, "polygons")
    kind = GeoArrowType(storage.type, metadata_of(column.crs))
    return pa.ExtensionArray.from_storage(kind, storage)


def vertex_array(xy: NDArray[np.float64]) -> Any:
    """Return an Arrow array of vertices, interleaved."""
    return pa.FixedSizeListArray.from_arrays(pa.array(xy.reshape(-1)), type=pa.list_(pa.field("xy", pa.float64()), 2))


def list_array(offsets: NDArray[np.int64], values: Any, name: str) -> Any:
    """Return a list array with 32-bit offsets where they suffice, as most readers expect."""
    is_small = len(values) < 2**31
    make, list_of = (pa.ListArray, pa.list_) if is_small else (pa.LargeListArray, pa.large_list)
    kind = list_of(pa.field(name, values.type, nullable=False))
    return make.from_arrays(pa.array(offsets.astype(np.int32 if is_small else np.int64)), values, type=kind)


class _Schema(NamedTuple):
    """Schema capsule, as `pyarrow.field` takes it."""

    capsule: Any

    def __arrow_c_schema__(self) -> Any:
        return self.capsule


def _field_crs(values: Any) -> Crs | None:
    """Return the CRS in the field of another library's array: pyarrow drops types that are not registered with it."""
    if hasattr(values, "__arrow_c_schema__"):
        field = pa.field(values)
    elif hasattr(values, "__arrow_c_array__"):
        field = pa.field(_Schema(values.__arrow_c_array__()[0]))
    else:
        return None
    return metadata_crs((field.metadata or {}).get(_METADATA))


def storage_of(values: Any) -> tuple[Any, Crs | None]:
    """Return the plain Arrow array behind `values`, and the CRS that its extension type names."""
    if not any(hasattr(values, name) for name in ("__arrow_c_array__", "__arrow_c_stream__")):
        raise RegionError(f"from_arrow: need an Arrow array or column, got {type(values).__name__}")
    named = None if isinstance(values, pa.Array | pa.ChunkedArray) else _field_crs(values)
    array = whole_array(values)
    crs = crs_of_type(array.type) or named
    return (array.storage if isinstance(array, pa.ExtensionArray) else array), crs


def points_from_arrow(values: Any) -> tuple[Any, Crs | None, NDArray[np.bool_]]:
    """Return coordinates (n, 2) of GeoArrow points with NaN for nulls, or a WKB array as it is; the CRS; the nulls."""
    array, crs = storage_of(values)
    missing = np.asarray(array.is_null())
    if is_vertex(array.type):
        xy = vertices(array).copy()
        xy[missing] = np.nan
        return xy, crs, missing
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        raise RegionError(f"need GeoArrow points or WKB, got {array.type}")
    return array, crs, missing


def points_to_arrow(xy: NDArray[np.float64], crs: Crs | None) -> Any:
    """Return a GeoArrow point array, interleaved, with the CRS in its type."""
    storage = vertex_array(xy)
    return pa.ExtensionArray.from_storage(GeoArrowType(storage.type, metadata_of(crs)), storage)


def raw_from_arrow(values: Any) -> RawRegions:
    """Return raw arrays from an Arrow array of WKB, WKT or GeoArrow polygons or multipolygons."""
    array, crs = storage_of(values)
    kind = array.type
    if nesting(kind)[0]:
        raw = _raw_from_lists(array)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        bad = bad_texts(array)
        texts = array.cast(pa.large_binary()).to_pylist()
        raw = raw_from_wkt([None if text is None else text.decode(errors="replace") for text in texts])
        raw.faults[bad] = MALFORMED
    else:
        raw = raw_from_wkb(array)
    return raw if crs is None else raw._replace(crs=crs)


def _raw_from_lists(array: Any) -> RawRegions:
    depth, inner = nesting(array.type)
    if depth not in (2, 3) or not is_vertex(inner):
        raise RegionError(f"need GeoArrow polygons or multipolygons, got {array.type}")
    missing = np.asarray(array.is_null()) if array.null_count else np.zeros(len(array), bool)
    offsets, values = [], array
    for _ in range(depth):
        if values is not array and values.null_count:
            raise RegionError("GeoArrow polygons cannot have null parts or null rings")
        offsets.append(np.asarray(values.offsets, np.int64) if len(values) else np.zeros(1, np.int64))
        values = values.values
    if depth == 2:  # polygons: every region has one part
        offsets.insert(0, np.arange(len(array) + 1))
    # Offsets are absolute within the child arrays; a sliced parent starts in their middle.
    regions = offsets[0] - offsets[0][0]
    parts = offsets[1][offsets[0][0] : offsets[0][-1] + 1] if depth == 3 else offsets[1]
    rings = offsets[2][parts[0] : parts[-1] + 1]
    xy = vertices(values)[rings[0] : rings[-1]]
    faults = np.where(missing, MISSING, GOOD).astype(np.int64)
    kinds = np.full(len(array), 3 if depth == 2 else 6, np.int64)
    return RawRegions(xy, rings - rings[0], parts - parts[0], regions, faults, kinds, None)


def vertices(values: Any) -> NDArray[np.float64]:
    """Return coordinates (V, 2) from a struct of x, y or fixed-size lists, NaN for nulls; drop other coordinates."""
    kind = values.type
    if not is_vertex(kind):
        raise RegionError(f"need GeoArrow coordinates, got {kind}")
    if pa.types.is_struct(kind):
        fields = dict(zip([kind.field(k).name for k in range(kind.num_fields)], values.flatten(), strict=True))
        return np.column_stack([np.asarray(fields[name].cast(pa.float64())) for name in "xy"])
    width, first = kind.list_size, values.offset
    flat = np.asarray(values.values.slice(first * width, len(values) * width).cast(pa.float64()))
    xy = flat.reshape(-1, width)[:, :2]
    if values.null_count:
        xy = np.where(np.asarray(values.is_null())[:, np.newaxis], np.nan, xy)
    return xy
