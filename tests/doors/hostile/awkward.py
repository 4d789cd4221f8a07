"""Values that no parameter expects, by name: wrong types, extremes, odd arrays, objects that lie."""

from __future__ import annotations

import io
from collections import UserDict
from collections.abc import Callable
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


class LyingText(str):
    """Text that says that it is longer than it is."""

    def __len__(self) -> int:
        return 1000


class LyingList(list):  # type: ignore[type-arg]
    """A list that says that it is longer than it is."""

    def __len__(self) -> int:
        return 1000


class LyingDict(dict):  # type: ignore[type-arg]
    """A dict one of whose methods lies or raises."""

    def __init__(self, what: str, how: str) -> None:
        super().__init__({"severity": 4, "kind": "flood"})
        self.what, self.how = what, how

    def _answer(self, what: str, lie: Any, truth: Any) -> Any:
        if what != self.what:
            return truth
        if self.how == "raises":
            raise KeyError(what)
        return lie

    def __len__(self) -> int:
        length: int = self._answer("len", 1000, super().__len__())
        return length

    def __iter__(self) -> Any:
        return self._answer("iter", iter(["no", "such", "name"]), super().__iter__())

    def __contains__(self, name: object) -> bool:
        found: bool = self._answer("contains", True, super().__contains__(name))
        return found

    def __getitem__(self, name: Any) -> Any:
        return self._answer("getitem", object(), super().__getitem__(name))

    def get(self, name: Any, default: Any = None) -> Any:
        """Return a value, or lie."""
        return self._answer("get", [object()], super().get(name, default))

    def keys(self) -> Any:
        """Return the names, or lie."""
        return self._answer("keys", ["no", "such", "name", 5], super().keys())

    def values(self) -> Any:
        """Return the values, or lie."""
        return self._answer("values", None, super().values())

    def items(self) -> Any:
        """Return pairs, or lie."""
        return self._answer("items", [("a", 1, 2), 5], super().items())


METHODS = ("len", "iter", "contains", "getitem", "get", "keys", "values", "items")
LYING: dict[str, Callable[[], Any]] = {
    f"dict whose {what} {how}": partial(LyingDict, what, how) for what in METHODS for how in ("lies", "raises")
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


# Values that cannot be changed, named after their types and places.
PLAIN: tuple[Any, ...] = (
    None, True, 0, 5, -1, 10**400, 10**5000, 1 << 63, 2.5, float("nan"), float("-inf"),
    "", "text", "a\ud800b", "a\0b", "9" * 5000, "ab" * 100_000, "(" * 50_000, "EPSG:4326", "EPSG:25832",
    "EPSG:" + "9" * 30, "POLYGON((0 0, 1 0, 0 1, 0 0))", "severity >= 3", b"", b"\xff\xfe\x00rubbish",
    (1, 2), int, len, ..., slice(-5, 10**30, 0), Decimal("1E+999999"), Decimal("sNaN"), Fraction(1, 3), 1j,
    datetime(2024, 5, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=23))), date(1, 1, 1), timedelta(days=999_999_999),
    Path("not there"), Path("."), np.float32(1.5), np.float16("nan"), np.int8(-5), np.bool_(True), np.str_("text"),
    np.bytes_(b"\xff"), np.datetime64("NaT"), np.datetime64(1 << 60, "as"),
    ct.Relation.OVERLAPS, ct.RelationSet.NONE, ct.Column("severity"),
)  # fmt: skip
VALUES: dict[str, Callable[[], Any]] = {
    **{f"{type(value).__name__} {k}": partial(lambda value: value, value) for k, value in enumerate(PLAIN)},
    "bytearray": lambda: bytearray(b"rubbish"),
    "memoryview": lambda: memoryview(b"rubbish"),
    "empty list": list,
    "list": lambda: [1, "a", None],
    "list of none": lambda: [None],
    "list of lists": lambda: [[], [[]]],
    "list in itself": _itself,
    "deep list": lambda: deep(lambda value: [value]),
    "deep dict": lambda: deep(lambda value: {"a": value}),
    "ragged": lambda: [[1, 2], [3], 4],
    "set": lambda: {1, 2},
    "empty dict": dict,
    "dict": lambda: {"a": 1, 5: None},
    "geojson": lambda: {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]},
    "geojson of none": lambda: {"type": "Polygon", "coordinates": None},
    "geojson of digits": lambda: {"type": "Point", "coordinates": [10**400, 10**5000]},
    "user dict": lambda: UserDict({"severity": 4}),
    "object": object,
    "generator": lambda: (k for k in range(3)),
    "exception": lambda: ValueError("x"),
    "stream": lambda: io.BytesIO(b"rubbish"),
    "text stream": lambda: io.StringIO("rubbish"),
    "array": lambda: np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    "array without dimension": lambda: np.array(5.0),
    "array of one dimension": lambda: np.arange(5),
    "array of five dimensions": lambda: np.zeros((1, 2, 1, 2, 1)),
    "empty array": lambda: np.empty((0, 2)),
    "array of halves": lambda: np.ones((3, 2), np.float16),
    "array in big endian": lambda: np.ones((3, 2), ">f8"),
    "array of complex": lambda: np.ones((3, 2), np.complex128),
    "array of bool": lambda: np.ones((3, 2), bool),
    "array of unsigned": lambda: np.full((3, 2), (1 << 64) - 1, np.uint64),
    "array of objects": lambda: np.array([[None, "a"], [object(), 10**400]], object),
    "array of text": lambda: np.array([["0", "0"], ["1", "x"]]),
    "array of bytes": lambda: np.array([b"\xff", b"abc"]),
    "array of times": lambda: np.array(["NaT", "2024-01-01"], "datetime64[ns]"),
    "array of records": lambda: np.zeros(3, [("x", "f8"), ("y", "i4")]),
    "array with steps": lambda: np.zeros((6, 4))[::2, ::2],
    "array of nan": lambda: np.full((3, 2), np.nan),
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
    "shapely polygon": lambda: shapely.box(0, 0, 1, 1),
    "shapely nothing": shapely.Polygon,
    "shapely bow tie": lambda: shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]),
    "shapely collection": lambda: shapely.GeometryCollection([shapely.Point(0, 0), shapely.box(0, 0, 1, 1)]),
    "shapely line": lambda: shapely.LineString([(0, 0), (1, 1)]),
    "shapely nan": lambda: shapely.Point(float("nan"), float("nan")),
    "shapely z": lambda: shapely.Point(1, 2, 3),
    "shapely array": lambda: np.array([shapely.box(0, 0, 1, 1), None, shapely.Point()], object),
    "region": lambda: ct.Region.box(0, 0, 1, 1),
    "point": lambda: ct.Point(0, 0),
    "region array": lambda: ct.RegionArray.from_regions([ct.Region.box(0, 0, 1, 1)] * 2),
    "empty region array": lambda: ct.RegionArray.from_wkt([]),
    "point array": lambda: ct.PointArray([[0, 0], [1, 1], [2, 2]]),
    "constraint": lambda: ct.Constraint("severity", ">=", 3),
    "template": lambda: ct.Constraint("area", ct.Relation.OVERLAPS, ct.Column("geometry")),
    "filter": lambda: ct.Filter([ct.Constraint("severity", ">=", 3)]),
    "predicate": lambda: ct.Predicate([]),
    "table": ct.ForwardingTable,
    "own type": Own,
    "lying text": lambda: LyingText("POLYGON((0 0, 1 0, 0 1, 0 0))"),
    "lying list": lambda: LyingList([1, 2]),
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
