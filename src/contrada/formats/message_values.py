"""Convert the values of messages (Shapely, GeoJSON, WKB, NumPy, ...) into values that subscriptions can test.

All entry points use this module: `ForwardingTable.match`, `match_many` and `explain`, `message_of`, files, streams
and the overlay. The meaning of a value depends on the value alone, never on the subscriptions of a table, so that
partitions, brokers and simplified tables agree. Text stays text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import shapely

from contrada.doors import input_errors, plain_dict, reason_of
from contrada.errors import ContradaError, FormatError
from contrada.formats.geojson.shapes import POINT, POLYGONAL, is_feature, is_geometry_object
from contrada.formats.spatial import UNCHANGED, Spatial
from contrada.geometry import Circle, Line, Point, Region
from contrada.geometry.crs import Crs
from contrada.geometry.faults import CIRCLE_CODE
from contrada.geometry.line_relating import AnyValue
from contrada.geometry.reading import is_shapely
from contrada.limits import check_limit
from contrada.model.types import has_types, types_accepting

# Exact types of values that are kept as they are: most messages need a single set lookup.
_OF_PYTHON = (type(None), bool, int, float, str, Decimal, datetime, date, list, tuple, timedelta, time)
_OF_NUMPY = (np.bool_, np.int64, np.int32, np.float64, np.float32, np.str_, np.datetime64)
PLAIN_TYPES: frozenset[type] = frozenset((*_OF_PYTHON, *_OF_NUMPY, Region, Point, Circle, Line))
# _TESTED_TYPES: types that operators test. _UNTESTED_TYPES: types of JSON and Arrow that only added types can test.
_TESTED_TYPES = (bool, int, float, str, Decimal, date, np.bool_, np.integer, np.floating, np.datetime64)
_UNTESTED_TYPES = (list, tuple, timedelta, time, np.timedelta64, np.ndarray)
_BYTES_TYPES = (bytes, bytearray, memoryview)
_LINE_CODES = (2, 5)
_POINT_CODE = 1  # of WKB; plus 1000, 2000 or 3000 with Z, M or both
IsAsked = Callable[[str], bool]


def read_message(message: Any, is_asked: IsAsked, spatial: Spatial = UNCHANGED) -> Mapping[str, Any]:
    """Return a message with dotted names and plain values; `spatial` says how geometry is read.

    Nested mappings become dotted names; Shapely and `__geo_interface__` objects, GeoJSON geometry and WKB become
    regions, points and lines. Attributes for which `is_asked` is False are not converted, and may be missing from the
    result. An object that is no value is a FormatError.

    >>> message = {"wind": {"speed": 12}, "at": {"type": "Point", "coordinates": [1, 2]}}
    >>> read_message(message, {"wind.speed", "at"}.__contains__)
    {'wind.speed': 12, 'at': Point(1.0, 2.0)}
    """
    if type(message) is not dict:
        if not isinstance(message, Mapping):
            raise not_a_message(message)
        message = plain_dict(message)
    plain: dict[str, Any] = message
    if PLAIN_TYPES.issuperset(map(type, plain.values())):
        return plain if spatial.globes.keys().isdisjoint(plain) else _wrapped(plain, spatial)
    if is_feature(plain):
        raise FormatError(
            "the message is a GeoJSON Feature; pass contrada.message_of(feature) to match by its properties"
        )
    found: dict[str, Any] = {}
    _collect(plain, "", 0, is_asked, spatial, found)
    return found


def _wrapped(plain: dict[str, Any], spatial: Spatial) -> dict[str, Any]:
    """Return a message of plain values with regions and points wrapped; the same one if none changes."""
    names = [name for name in spatial.globes if spatial.changes(name, plain.get(name))]
    return {**plain, **{name: value_of(name, plain[name], spatial) for name in names}} if names else plain


def not_a_message(value: Any) -> FormatError:
    """Return the error for an object that is not a message."""
    hint = ""
    if isinstance(value, str | bytes):
        hint = "; for JSON text use contrada.message_of(text)"
    elif hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__") or isinstance(value, list | tuple):
        hint = "; for many messages use match_many"
    elif hasattr(value, "to_dict"):
        hint = "; use its to_dict()"
    return FormatError(f"message: need a mapping from attributes to values, got {type(value).__name__}{hint}")


def _collect(
    members: Mapping[str, Any], prefix: str, depth: int, is_asked: IsAsked, spatial: Spatial, found: dict[str, Any]
) -> None:
    """Add the attributes of a mapping and of the mappings within it."""
    for name, value in plain_dict(members).items():
        full = f"{prefix}{name}"
        if isinstance(value, Mapping) and not (has_types() and types_accepting(value)):
            value = plain_dict(value)
        if isinstance(value, Mapping) and not is_value(value):
            check_limit("nesting", depth + 2, f"attribute {full[:60]!r}")
            _collect(value, full + ".", depth + 1, is_asked, spatial, found)
        elif type(value) not in PLAIN_TYPES or prefix or full in found or full in spatial.globes:
            if is_asked(full) and (read := value_of(full, value, spatial)) is not None:
                if full in found:
                    raise FormatError(f"duplicate attribute {full[:60]!r}")
                found[full] = read
        elif value is not None:
            found[full] = value


def is_value(mapping: Mapping[str, Any]) -> bool:
    """Return True if a mapping is one value, not a group of attributes: GeoJSON geometry, or an added type."""
    return is_geometry_object(mapping) or (has_types() and bool(types_accepting(mapping)))


def value_of(name: str, value: Any, spatial: Spatial = UNCHANGED, crs: str | None = None) -> Any:
    """Convert the value of an attribute for subscriptions to test; None if it is absent.

    `spatial.at(name)` says how geometry is read, and `crs` is the CRS of its format. Errors name the attribute.

    >>> import shapely
    >>> value_of("at", shapely.Point(1, 2)), value_of("n", np.array(5)), value_of("tags", ["a"])
    (Point(1.0, 2.0), np.int64(5), ['a'])
    >>> value_of("n", {1, 2})
    Traceback (most recent call last):
    contrada.errors.FormatError: attribute 'n': type 'set' cannot be matched; values are text, numbers, booleans, ...
    """
    if has_types() and types_accepting(value):
        return value
    try:
        return _read(value, spatial.at(name), crs)
    except ContradaError as error:
        raise type(error)(f"attribute {name[:60]!r}: {error}") from error
    except input_errors() as error:
        raise FormatError(f"attribute {name[:60]!r}: {reason_of(error)}") from error


def _read(value: Any, spatial: Spatial, crs: str | None) -> Any:
    if type(value) is dict and is_geometry_object(value):  # the usual one of messages in JSON
        return spatial.of_geojson(value, crs)
    if value is None or isinstance(value, _TESTED_TYPES):
        return value
    if isinstance(value, Region | Point | Circle | Line):
        return spatial.changed(value) if spatial.is_changing else value
    if isinstance(value, _BYTES_TYPES):
        return _geometry_of_wkb(bytes(value), spatial)
    if is_geometry_object(value):
        return spatial.of_geojson(value, crs)
    if is_shapely(value):
        return _geometry_of_shapely(value, spatial, crs)
    if hasattr(value, "__geo_interface__"):
        shown = value.__geo_interface__
        if is_geometry_object(shown):
            return spatial.of_geojson(shown, crs)
        kind = shown.get("type") if isinstance(shown, Mapping) else type(shown).__name__
        raise FormatError(f"__geo_interface__ of {type(value).__name__}: need a geometry, got {kind}")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return _read(value[()], spatial, crs)
    if isinstance(value, _UNTESTED_TYPES):
        return value
    if type(value).__name__ == "NAType":  # pandas' missing value; importing pandas would take a second
        return None
    if hasattr(value, "as_py"):  # an Arrow scalar
        return _read(value.as_py(), spatial, crs)
    raise FormatError(
        f"type {type(value).__name__!r} cannot be matched; values are text, numbers, booleans, timestamps, regions,"
        " points and circles (Shapely, GeoJSON, WKB), and types that register_type adds"
    )


def _geometry_of_wkb(data: bytes, spatial: Spatial) -> AnyValue:
    code = int.from_bytes(data[1:5], "little" if data[:1] == b"\x01" else "big") & 0x0FFFFFFF
    if code == CIRCLE_CODE:
        circle = Circle.from_wkb(data)
        return spatial.changed(circle) if spatial.is_changing else circle
    if code % 1000 in _LINE_CODES:
        line = Line.from_wkb(data)
        return spatial.changed(line) if spatial.is_changing else line
    if code % 1000 != _POINT_CODE:
        return spatial.of_wkb(data)
    read = Point.from_wkb(data)
    return spatial.changed(read) if spatial.is_changing else read


def _geometry_of_shapely(value: Any, spatial: Spatial, crs: str | None) -> AnyValue:
    if crs is not None or spatial.is_changing or value.geom_type not in (POINT, *POLYGONAL):
        srid = int(shapely.get_srid(value)) % (1 << 32)  # 2^31 and above come as negative numbers
        return spatial.of_shapely(value, Crs.of(srid or None) or spatial.input_crs(crs))
    # Faster for one geometry than by columns.
    return _geometry_of_wkb(shapely.to_wkb(value, include_srid=True), spatial)
