"""Merge the columns of several files: types that differ are widened, or become text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa

MAX_DECIMAL_DIGITS = 38
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_KEPT = (*_INTEGERS, pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.null(), pa.binary())
_STORED = {kind: kind for kind in _KEPT} | {
    pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(), pa.date64(): pa.date32(), pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary(),
}  # fmt: skip


def plain_type(kind: Any) -> Any:
    """Return the type that values are stored as: one that Spark also has, or null if there are no values yet.

    >>> plain_type(pa.dictionary(pa.int8(), pa.large_string())), plain_type(pa.uint16()), plain_type(pa.null())
    (DataType(string), DataType(int32), DataType(null))
    """
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if t.is_dictionary(kind) or t.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if kind in _STORED:
        return _STORED[kind]
    if t.is_fixed_size_binary(kind):
        return pa.binary()
    if t.is_decimal(kind):
        return pa.decimal128(min(kind.precision, MAX_DECIMAL_DIGITS), kind.scale) if kind.scale >= 0 else pa.float64()
    if t.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    return _nested(kind, plain_type)


def settled_type(kind: Any) -> Any:
    """Replace null types, which no value decided, by text.

    >>> settled_type(pa.list_(pa.null()))
    ListType(list<item: string>)
    """
    return _nested(kind, settled_type) if pa.types.is_nested(kind) else pa.string() if pa.types.is_null(kind) else kind


def _nested(kind: Any, inner: Any) -> Any:
    """Apply `inner` to the types within a list, map or struct; every other type becomes text."""
    t = pa.types
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return pa.list_(inner(kind.value_type))
    if t.is_map(kind):
        return pa.map_(inner(kind.key_type), inner(kind.item_type))
    if t.is_struct(kind) and kind.num_fields:
        return pa.struct([(field.name, inner(field.type)) for field in kind])
    return pa.string()


def united_type(a: Any, b: Any) -> Any:
    """Return the type that holds the values of two types: the wider one, or text. A null type gives way.

    Integers and floats become doubles, which round integers beyond 2**53; a date and a timestamp become a timestamp;
    one without a zone is UTC; structs have the fields of both.

    >>> united_type(pa.int64(), pa.float32()), united_type(pa.int64(), pa.string())
    (DataType(double), DataType(string))
    """
    t = pa.types
    if a == b or t.is_null(b):
        return a
    if t.is_null(a):
        return b
    if a in _INTEGERS and b in _INTEGERS:
        return max(a, b, key=_INTEGERS.index)
    if all(kind in _INTEGERS or t.is_floating(kind) or t.is_decimal(kind) for kind in (a, b)):
        return pa.float64() if not (t.is_decimal(a) and t.is_decimal(b)) else _united_decimal(a, b)
    if all(t.is_timestamp(kind) or t.is_date(kind) for kind in (a, b)):
        return pa.timestamp("us", "UTC" if "UTC" in (getattr(a, "tz", None), getattr(b, "tz", None)) else None)
    if t.is_struct(a) and t.is_struct(b):
        return pa.struct(list(united_schema([pa.schema(list(a)), pa.schema(list(b))])))
    if t.is_list(a) and t.is_list(b):
        return pa.list_(united_type(a.value_type, b.value_type))
    return pa.string()


def _united_decimal(a: Any, b: Any) -> Any:
    whole, scale = max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale)
    return pa.decimal128(whole + scale, scale) if whole + scale <= MAX_DECIMAL_DIGITS else pa.float64()


def united_schema(schemas: Iterable[Any]) -> Any:
    """Merge schemas by column name, in the order of first appearance."""
    kinds: dict[str, Any] = {}
    for schema in schemas:
        for field in schema:
            kinds[field.name] = united_type(kinds.get(field.name, pa.null()), field.type)
    return pa.schema(list(kinds.items()))


def conformed(values: Any, kind: Any) -> Any:
    """Convert an Arrow array to a type that `plain_type` and `united_type` made of its own.

    >>> conformed(pa.array([True, None]), pa.string()).to_pylist()
    ['true', None]
    """
    t = pa.types
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if values.type == kind:
        return values
    if t.is_null(values.type):
        return pa.nulls(len(values), kind)
    if t.is_dictionary(values.type) or t.is_run_end_encoded(values.type):
        return conformed(values.cast(values.type.value_type), kind)
    if t.is_struct(kind):
        return _conformed_struct(values, kind)
    if t.is_nested(values.type) and not t.is_nested(kind):
        return pa.array([None if value is None else text_of(value) for value in values.to_pylist()], kind)
    if t.is_binary(values.type) and t.is_string(kind):
        return pa.array([None if value is None else value.hex() for value in values.to_pylist()], kind)
    return values.cast(kind, safe=False)


def _conformed_struct(values: Any, kind: Any) -> Any:
    """Convert a struct field by field; absent fields become null."""
    own = {field.name: inner for field, inner in zip(values.type, values.flatten(), strict=True)}
    inner = [conformed(own.get(field.name, pa.nulls(len(values))), field.type) for field in kind]
    return pa.StructArray.from_arrays(inner, fields=list(kind), mask=values.is_null())


def text_of(value: Any) -> str:
    """Return text unchanged, any other value as JSON.

    >>> text_of("a"), text_of({"a": [1, None]})
    ('a', '{"a":[1,null]}')
    """
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
