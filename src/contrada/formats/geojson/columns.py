"""Read GeoJSON features as Arrow columns: typed properties, geometry as WKB; bad features with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from contrada.doors import input_errors, reason_of
from contrada.errors import FormatError
from contrada.formats.geojson.shapes import crs_of, geometry_of, is_feature, wkb_of_geojson
from contrada.formats.records import Record
from contrada.formats.tables.schema_merge import plain_type, text_of, united_type
from contrada.geometry.crs import is_same_crs

_JSON_TYPES = {type(None): pa.null(), bool: pa.bool_(), float: pa.float64(), str: pa.string()}
MAX_PROPERTY_DEPTH = 32  # properties nested deeper become text
_Row = tuple[int, dict[str, Any], bytes | None, str]  # a feature: its number, properties, geometry as WKB, text


class Features(NamedTuple):
    """Features as columns: number of each, properties, geometry, texts; and the rejected records with reasons."""

    numbers: list[int]
    properties: Any
    wkb: Any
    raws: list[str]
    rejected: list[tuple[int, str, str]]


class FeatureSchema(NamedTuple):
    """The number of features, the columns of their properties, and their CRS."""

    rows: int
    schema: Any
    crs: str | None


def describe_features(records: Iterable[Record]) -> FeatureSchema:
    """Count records; return the columns of their properties, and the first CRS that a record names."""
    count, crs = 0, None
    kinds: dict[str, Any] = {}
    for record in records:
        count += 1
        try:
            value = _members(record)
            crs = crs or crs_of(value)
            for name, inner in _properties(value).items():
                kinds[name] = united_type(kinds.get(name, pa.null()), kind_of(inner))
        except input_errors():
            continue  # rejected with the reason when the file is read
    return FeatureSchema(count, pa.schema([(name, plain_type(kind)) for name, kind in kinds.items()]), crs)


def _members(record: Record) -> Mapping[str, Any]:
    value: Mapping[str, Any] = record.value()
    if not is_feature(value):
        raise FormatError("need a GeoJSON Feature with properties and geometry")
    return value


def _properties(value: Mapping[str, Any]) -> dict[str, Any]:
    properties, name = value.get("properties") or {}, value.get("id")
    if not isinstance(properties, Mapping):
        raise FormatError(f"properties: need an object or null, got {type(properties).__name__}")
    return {**properties, "id": name} if name is not None and "id" not in properties else dict(properties)


def read_features(records: Iterable[Record], kinds: Any, crs: str | None) -> Features:
    """Read features as columns of the schema `kinds`; a feature that names a CRS other than `crs` is rejected.

    The id of a feature becomes the property `id` unless a property has that name.
    """
    good: list[_Row] = []
    rejected: list[tuple[int, str, str]] = []
    for record in records:
        raw = record.data.decode(errors="replace")
        try:
            value = _members(record)
            geometry, named = geometry_of(value), crs_of(value)
            if named is not None and crs is not None and not is_same_crs(named, crs):
                raise FormatError(f"the GeoJSON member crs is {named[:60]}, but the file is in {crs}")
            wkb = None if geometry is None else wkb_of_geojson(geometry)
            good.append((record.number, _properties(value), wkb, raw))
        except input_errors() as error:
            rejected.append((record.number, reason_of(error), raw))
    try:
        return _as_columns(good, kinds, rejected)
    except input_errors():  # a value that Arrow cannot hold, such as a lone surrogate
        fitting = []
        for row in good:
            try:
                _as_columns([row], kinds, [])
                fitting.append(row)
            except input_errors() as error:
                rejected.append((row[0], reason_of(error), row[-1]))
        return _as_columns(fitting, kinds, sorted(rejected))


def _as_columns(good: list[_Row], kinds: Any, rejected: list[tuple[int, str, str]]) -> Features:
    """Return the properties and the geometry of features as Arrow columns."""
    numbers, properties, wkb, raws = map(list, zip(*good, strict=True)) if good else ([], [], [], [])
    columns = {}
    for field in kinds:
        values = [_fitted(own.get(field.name), field.type) for own in properties]
        columns[field.name] = pa.array(values, field.type)
    return Features(numbers, columns, pa.array(wkb, pa.binary()), raws, rejected)


def kind_of(value: Any, depth: int = 0) -> Any:
    """Return the Arrow type of a JSON value; integers beyond 64 bits and deeply nested values are text.

    >>> kind_of({"a": [1, 2.5]})
    StructType(struct<a: list<item: double>>)
    """
    if type(value) in _JSON_TYPES:
        return _JSON_TYPES[type(value)]
    if isinstance(value, int):
        return pa.int64() if -(2**63) <= value < 2**63 else pa.string()
    if isinstance(value, list) and depth < MAX_PROPERTY_DEPTH:
        kind = pa.null()
        for item in value:
            kind = united_type(kind, kind_of(item, depth + 1))
        return pa.list_(kind)
    if isinstance(value, Mapping) and value and depth < MAX_PROPERTY_DEPTH:
        return pa.struct([(name, kind_of(inner, depth + 1)) for name, inner in value.items()])
    return pa.string()


def _fitted(value: Any, kind: Any) -> Any:
    """Convert a JSON value for Arrow, to a type that is wide enough."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        return text_of(value)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_list(kind):
        return [_fitted(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: _fitted(value.get(field.name), field.type) for field in kind}
    return value
