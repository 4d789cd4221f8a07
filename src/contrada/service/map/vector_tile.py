"""Write a vector tile of one layer (Mapbox Vector Tile 2.1), as Protocol Buffers.

The format is small: one layer with names, values and features, whose geometry is a list of integers. A library would
bring the protobuf runtime, and takes milliseconds for each feature.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

EXTENT = 4096  # units along a side of a tile
MOVE_TO, LINE_TO, CLOSE_PATH = 1, 2, 7
POINT, POLYGON = 1, 3

_double = Struct("<d").pack


def varint(number: int) -> bytes:
    """Return a number that is not negative, seven bits in a byte.

    >>> varint(1), varint(300)
    (b'\\x01', b'\\xac\\x02')
    """
    if number < 128:
        return bytes((number,))
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def varints(numbers: Sequence[int]) -> bytes:
    """Return numbers below 2^28, one after the other.

    >>> varints([1, 300]) == varint(1) + varint(300)
    True
    """
    out = bytearray()
    append = out.append
    for number in numbers:
        while number > 127:
            append(number & 127 | 128)
            number >>= 7
        append(number)
    return bytes(out)


def field(number: int, data: bytes) -> bytes:
    """Return a member of a message that has bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


class TileLayer:
    """Collects the features of a layer; coordinates are units of the tile, with y downwards.

    >>> layer = TileLayer("a")
    >>> layer.add_all([shapely.box(0, 0, 10, 10), shapely.box(0, 0, 0.1, 10)], [{"key": "x"}, {"key": "y"}])
    [1]
    >>> layer.to_bytes().hex(" ")[:23]
    '1a 27 78 02 0a 01 61 12'
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._names: dict[str, int] = {}
        self._values: dict[tuple[type, Any], int] = {}
        self._features: list[bytes] = []

    def add_all(self, geometries: Sequence[shapely.Geometry], members: Sequence[dict[str, Any]]) -> list[int]:
        """Add points, polygons and several polygons; return the rows of those of which nothing is left on the grid."""
        shapes = np.empty(len(geometries), object)
        shapes[:] = geometries
        left = set(range(len(shapes)))
        for row, (x, y) in zip(*_points(shapes), strict=True):
            self._add(POINT, varints([MOVE_TO | 1 << 3, _zigzag(x), _zigzag(y)]), members[row])
            left.remove(row)
        for row, commands in _areas(shapes):
            self._add(POLYGON, varints(commands), members[row])
            left.remove(row)
        return sorted(left)

    def add_square(self, x: int, y: int, side: int, members: dict[str, Any]) -> None:
        """Add a square by its upper left corner."""
        step = side << 1  # of a whole number that is not negative; odd ones are negative
        path = [
            MOVE_TO | 1 << 3,
            _zigzag(x),
            _zigzag(y),
            LINE_TO | 3 << 3,
            step,
            0,
            0,
            step,
            step - 1,
            0,
            CLOSE_PATH | 8,
        ]
        self._add(POLYGON, varints(path), members)

    def _add(self, kind: int, geometry: bytes, members: dict[str, Any]) -> None:
        tags: list[int] = []
        for name, value in members.items():
            tags.append(self._names.setdefault(name, len(self._names)))
            tags.append(self._values.setdefault((type(value), value), len(self._values)))
        body = field(2, varints(tags)) + b"\x18" + varint(kind) + field(4, geometry)
        self._features.append(field(2, body))

    def __len__(self) -> int:
        return len(self._features)

    def to_bytes(self) -> bytes:
        """Return the tile; no bytes if there is no feature."""
        if not self._features:
            return b""
        names = [field(3, name.encode()) for name in self._names]
        values = [field(4, _value(value)) for _, value in self._values]
        parts = [b"\x78\x02", field(1, self._name.encode()), *self._features, *names, *values]
        return field(3, b"".join([*parts, b"\x28" + varint(EXTENT)]))


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return field(1, value.encode("utf-8", "replace"))
    if isinstance(value, bool):
        return b"\x38" + varint(int(value))
    return b"\x28" + varint(value) if isinstance(value, int) else b"\x19" + _double(value)


def _points(shapes: NDArray[Any]) -> tuple[list[int], list[list[int]]]:
    """Return the rows of points, and their places on the grid."""
    rows = np.flatnonzero(shapely.get_type_id(shapes) == shapely.GeometryType.POINT)
    rows = rows[~shapely.is_empty(shapes[rows])]
    return rows.tolist(), _rounded(shapely.get_coordinates(shapes[rows])).tolist()


def _areas(shapes: NDArray[Any]) -> Iterator[tuple[int, list[int]]]:
    """Yield the rows of polygons, and their commands; rings that vanish on the grid are left out.

    All coordinates are taken at once: a call of Shapely for each ring takes longer than everything else.
    """
    polygons, of_shape = shapely.get_parts(shapes, return_index=True)
    is_area = shapely.get_type_id(polygons) == shapely.GeometryType.POLYGON  # clipping may leave lines
    polygons, of_shape = polygons[is_area], of_shape[is_area]
    rings, of_polygon = shapely.get_rings(polygons, return_index=True)
    vertices, of_ring = shapely.get_coordinates(rings, return_index=True)
    places = _rounded(vertices)
    starts = np.searchsorted(of_ring, np.arange(len(rings) + 1)).tolist()
    commands: list[int] = []
    at, row, polygon, is_skipped = (0, 0), -1, -1, False
    for owner, start, stop in zip(of_polygon.tolist(), starts[:-1], starts[1:], strict=True):
        if (shape := int(of_shape[owner])) != row:
            if commands:
                yield row, commands
            commands, at, row = [], (0, 0), shape
        is_hole, polygon = owner == polygon, owner
        path = None if is_hole and is_skipped else _ring(places[start:stop], is_hole)
        is_skipped = is_skipped if is_hole else path is None
        if path is not None:
            steps = np.diff(path, axis=0, prepend=[at])
            coded = ((steps << 1) ^ (steps >> 63)).ravel().tolist()
            commands += [MOVE_TO | 1 << 3, *coded[:2], LINE_TO | len(path) - 1 << 3, *coded[2:], CLOSE_PATH | 1 << 3]
            at = (int(path[-1, 0]), int(path[-1, 1]))
    if commands:
        yield row, commands


def _ring(path: NDArray[np.int64], is_hole: bool) -> NDArray[np.int64] | None:
    """Return a ring on the grid, without its last vertex; an outer one has a positive area, a hole a negative one."""
    path = path[:-1][np.any(np.diff(path, axis=0) != 0, axis=1)]
    if len(path) < 3:
        return None
    x, y = path[:, 0], path[:, 1]
    area = int(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    if not area:
        return None
    return path[::-1] if (area > 0) == is_hole else path


def _rounded(vertices: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(vertices).astype(np.int64)


def _zigzag(number: int) -> int:
    return number << 1 ^ number >> 63
