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


class Feature(NamedTuple):
    """A feature of a record: its properties, its geometry as WKB, and the CRS that it names."""

    properties: dict[str, Any]
    wkb: bytes | None
    crs: str | None


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


def feature_of(record: Record) -> Feature:
    """Return the feature of a record; its id becomes the property `id` unless a property has that name.

    >>> feature_of(Record("line", 1, b'{"type": "Feature", "id": 7, "properties": {"a": 1}, "geometry": null}'))
    Feature(properties={'a': 1, 'id': 7}, wkb=None, crs=None)
    """
    value = _members(record)
    geometry = geometry_of(value)
    return Feature(_properties(value), None if geometry is None else wkb_of_geojson(geometry), crs_of(value))


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
    """Read features as columns of the schema `kinds`; a feature that names a CRS other than `crs` is rejected."""
    good: list[tuple[int, Feature, str]] = []
    rejected: list[tuple[int, str, str]] = []
    for record in records:
        raw = record.data.decode(errors="replace")
        try:
            feature = feature_of(record)
            if feature.crs is not None and crs is not None and not is_same_crs(feature.crs, crs):
                raise FormatError(f"the GeoJSON member crs is {feature.crs[:60]}, but the file is in {crs}")
        except input_errors() as error:
            rejected.append((record.number, reason_of(error), raw))
        else:
            good.append((record.number, feature, raw))
    try:
        return _as_columns(good, kinds, rejected)
    except input_errors():  # a value that Arrow cannot hold, such as a lone surrogate
        fitting = []
        for number, feature, raw in good:
            try:
                _as_columns([(number, feature, raw)], kinds, [])
                fitting.append((number, feature, raw))
            except input_errors() as error:
                rejected.append((number, reason_of(error), raw))
        return _as_columns(fitting, kinds, sorted(rejected))


def _as_columns(good: list[tuple[int, Feature, str]], kinds: Any, rejected: list[tuple[int, str, str]]) -> Features:
    """Return the properties and the geometry of features as Arrow columns."""
    numbers, features, raws = map(list, zip(*good, strict=True)) if good else ([], [], [])
    columns = {}
    for field in kinds:
        values = [_fitted(feature.properties.get(field.name), field.type) for feature in features]
        columns[field.name] = pa.array(values, field.type)
    return Features(numbers, columns, pa.array([feature.wkb for feature in features], pa.binary()), raws, rejected)


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
