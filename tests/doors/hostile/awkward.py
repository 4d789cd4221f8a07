"""Values that no parameter expects, by name: wrong types, extremes, odd arrays, objects that lie."""

from __future__ import annotations

import io
from collections import UserDict
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

import contrada as ct

FLOOD = {"severity": 4, "kind": "flood"}
LIES: dict[str, Callable[[], Any]] = {
    "__len__": lambda: 1000,
    "__iter__": lambda: iter(["no", "such", "name"]),
    "__contains__": lambda: True,
    "__getitem__": object,
    "get": lambda: [object()],
    "keys": lambda: ["no", "such", "name", 5],
    "values": lambda: None,
    "items": lambda: [("a", 1, 2), 5],
}


def lying(content: Any, method: str = "__len__", is_raising: bool = False) -> Any:
    """The content as an object of a derived class, one of whose methods lies or raises."""
    kind = type(content)

    def answer(name: str) -> Callable[..., Any]:
        def call(self: Any, *arguments: Any) -> Any:
            if name != method:
                return getattr(kind, name)(self, *arguments)
            if is_raising:
                raise KeyError(name)
            return LIES[name]()

        return call

    return type("Lying", (kind,), {name: answer(name) for name in LIES if hasattr(kind, name)})(content)


LYING: dict[str, Callable[[], Any]] = {
    f"dict whose {method.strip('_')} {how}": partial(lying, FLOOD, method, is_raising=how == "raises")
    for method in LIES
    for how in ("lies", "raises")
}


class Shape:
    """An object whose __geo_interface__ leads to itself."""

    @property
    def __geo_interface__(self) -> Any:
        return {"type": "Feature", "geometry": self}


class Own(ct.ValueType):
    """A type of values that is not finished: it has no name and no operators."""


def deep(wrap: Callable[[Any], Any], depth: int = 100_000, value: Any = 1) -> Any:
    """A value wrapped so many times."""
    for _ in range(depth):
        value = wrap(value)
    return value


def _itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def _broken_binary() -> pa.Array:
    """Arrow binary whose offsets lead out of its buffer."""
    offsets = pa.py_buffer(np.array([0, 1 << 20, 5], np.int32).tobytes())
    return pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"abcde")])


# Values that are named after their types and places; each call gets a copy.
PLAIN: tuple[Any, ...] = (
    None, True, 0, 5, -1, 10**400, 10**5000, 1 << 63, 2.5, float("nan"), float("-inf"),
    "", "text", "a\ud800b", "a\0b", "9" * 5000, "ab" * 100_000, "(" * 50_000, "EPSG:4326", "EPSG:25832",
    "EPSG:" + "9" * 30, "POLYGON((0 0, 1 0, 0 1, 0 0))", "severity >= 3", b"", b"\xff\xfe\x00rubbish",
    (1, 2), int, len, ..., slice(-5, 10**30, 0), Decimal("1E+999999"), Decimal("sNaN"), Fraction(1, 3), 1j,
    datetime(2024, 5, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=23))), date(1, 1, 1), timedelta(days=999_999_999),
    Path("not there"), Path("."), np.float32(1.5), np.float16("nan"), np.int8(-5), np.bool_(True), np.str_("text"),
    np.bytes_(b"\xff"), np.datetime64("NaT"), np.datetime64(1 << 60, "as"),
    ct.Relation.OVERLAPS, ct.RelationSet.NONE, ct.Column("severity"), ct.Region.box(0, 0, 1, 1), ct.Point(0, 0),
    ct.Circle((0, 0), 1),
    ct.Constraint("severity", ">=", 3), ct.Filter([ct.Constraint("severity", ">=", 3)]), ct.parse("a = 1 OR b = 2"),
    bytearray(b"rubbish"), [], [1, "a", None], [None], [[], [[]]], [[1, 2], [3], 4], {1, 2}, {}, {"a": 1, 5: None},
    {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]}, {"type": "Polygon", "coordinates": None},
    {"type": "Point", "coordinates": [10**400, 10**5000]}, UserDict({"severity": 4}), ValueError("x"),
    io.BytesIO(b"rubbish"), io.StringIO("rubbish"),
)  # fmt: skip
# Values of arrays, whose types are theirs.
FILLS = (np.nan, np.float16(1), np.array(1, ">f8"), 1j, True, 1 << 63, 10**400, None, "x", b"x", np.datetime64("NaT"))
SHAPES = (
    "POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))", "POLYGON EMPTY", "POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))", "LINESTRING(0 0, 1 1)",
    "GEOMETRYCOLLECTION(POINT(0 0), POLYGON((0 0, 1 0, 1 1, 0 1, 0 0)))", "POINT(NaN NaN)", "POINT Z(1 2 3)",
)  # fmt: skip
VALUES: dict[str, Callable[[], Any]] = {
    **{f"{type(value).__name__} {k}": partial(deepcopy, value) for k, value in enumerate(PLAIN)},
    "memoryview": lambda: memoryview(b"rubbish"),
    "list in itself": _itself,
    "deep list": lambda: deep(lambda value: [value]),
    "deep dict": lambda: deep(lambda value: {"a": value}),
    "object": object,
    "generator": lambda: (k for k in range(3)),
    "array": lambda: np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    **{f"array of shape {shape}": partial(np.zeros, shape) for shape in ((), (5,), (0, 2), (1, 2, 1, 2, 1))},
    **{f"array of {value!r}"[:40]: partial(np.full, (3, 2), value) for value in FILLS},
    "array of records": lambda: np.zeros(3, [("x", "f8"), ("y", "i4")]),
    "array with steps": lambda: np.zeros((6, 4))[::2, ::2],
    "masked array": lambda: np.ma.masked_array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0, 0], [0, 1], [0, 0]]),
    "arrow nulls": lambda: pa.nulls(3),
    "arrow text": lambda: pa.array(["POLYGON((0 0, 1 0, 0 1, 0 0))", None, ""]),
    "arrow binary": lambda: pa.array([b"", None, b"\x01\x03"]),
    "arrow broken binary": _broken_binary,
    "arrow binary view": lambda: pa.array([b"", None, b"\x01" * 40], pa.binary_view()),
    "arrow fixed binary": lambda: pa.array([b"\x01\x03", None], pa.binary(2)),
    "arrow dictionary": lambda: pa.array(["a", None, "a"]).dictionary_encode(),
    "arrow lists": lambda: pa.array([[[0.0, 0.0]], None, []]),
    "arrow structs": lambda: pa.array([{"x": 0.0, "y": None}, None]),
    "arrow chunks": lambda: pa.chunked_array([], pa.binary()),
    "arrow decimals": lambda: pa.array([Decimal("1e20"), None], pa.decimal256(70, 2)),
    "arrow times": lambda: pa.array([1 << 62, None], pa.timestamp("s")),
    "arrow table": lambda: pa.table({"geometry": pa.array([b"", None]), "severity": pa.array([1, None])}),
    "arrow table of names": lambda: pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
    "empty arrow table": lambda: pa.table({}),
    **{f"shapely {text}": partial(shapely.from_wkt, text) for text in SHAPES},
    "shapely array": lambda: np.array([shapely.box(0, 0, 1, 1), None, shapely.Point()], object),
    "region array": lambda: ct.RegionArray.from_regions([ct.Region.box(0, 0, 1, 1)] * 2),
    "empty region array": lambda: ct.RegionArray.from_wkt([]),
    "point array": lambda: ct.PointArray([[0, 0], [1, 1], [2, 2]]),
    "template": lambda: ct.Constraint("area", ct.Relation.OVERLAPS, ct.Column("geometry")),
    "table": ct.ForwardingTable,
    "own type": Own,
    "lying text": partial(lying, "POLYGON((0 0, 1 0, 0 1, 0 0))"),
    "lying list": partial(lying, [1, 2]),
    **{name: make for name, make in LYING.items() if "items" in name or "len" in name},
    "shape of itself": Shape,
}


def made(spec: Any) -> Any:
    """The value of a spec: a name of VALUES, or lists and dicts of such."""
    if isinstance(spec, list):
        return [made(each) for each in spec]
    if isinstance(spec, dict):
        return {key: made(each) for key, each in spec.items()}
    value = (VALUES.get(spec) or LYING.get(spec)) if isinstance(spec, str) else None
    return spec if value is None else value()
