"""Points and columns of points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contrada.errors import RegionError

SMALLEST, LARGEST = 1e-120, 1e120


class PointArray:
    """An immutable column of points: xy (n, 2), finite and within 1e-120..1e120 in magnitude (or zero).

    >>> PointArray([(1, 2), (3, 4)])[1]
    Point(3.0, 4.0)
    """

    __slots__ = ("_crs", "_xy")
    _xy: NDArray[np.float64]
    _crs: str | None

    def __init__(self, xy: ArrayLike, *, crs: str | None = None) -> None:
        array = np.array(xy, np.float64, order="C", ndmin=2) + 0.0  # -0.0 becomes 0.0
        if array.size == 0:
            array = array.reshape(0, 2)
        if array.ndim != 2 or array.shape[1] != 2:
            raise RegionError(f"points have the shape (n, 2), not {array.shape}")
        size = np.abs(array)
        with np.errstate(invalid="ignore"):
            good = (size == 0) | ((size >= SMALLEST) & (size <= LARGEST))
        if not good.all():
            row = int(np.argmin(good.all(axis=1)))
            raise RegionError(
                f"point {row} is {array[row].tolist()}; need finite coordinates within 1e-120..1e120 in magnitude",
                row=row,
            )
        array.setflags(write=False)
        object.__setattr__(self, "_xy", array)
        object.__setattr__(self, "_crs", crs)

    @classmethod
    def from_shapely(cls, values: Any, *, crs: str | None = None) -> PointArray:
        """Points from Shapely points."""
        import shapely

        array = np.atleast_1d(np.asarray(values, dtype=object))
        bad = np.flatnonzero(shapely.get_type_id(array) != shapely.GeometryType.POINT)
        if bad.size:
            raise RegionError(f"row {int(bad[0])}: not a Shapely Point", row=int(bad[0]))
        return cls(np.column_stack([shapely.get_x(array), shapely.get_y(array)]), crs=crs)

    @classmethod
    def from_wkb(cls, values: Any, *, crs: str | None = None) -> PointArray:
        """Points from WKB, an Arrow array or a sequence of bytes."""
        import shapely

        rows = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
        return cls.from_shapely(shapely.from_wkb(np.array(rows, dtype=object)), crs=crs)

    def to_shapely(self) -> NDArray[np.object_]:
        """Shapely points."""
        import shapely

        return np.asarray(shapely.points(self._xy), dtype=object)

    def to_wkb(self) -> Any:
        """An Arrow array of WKB."""
        import pyarrow as pa
        import shapely

        return pa.array(shapely.to_wkb(self.to_shapely()), type=pa.binary())

    @property
    def xy(self) -> NDArray[np.float64]:
        """The coordinates (n, 2), read-only."""
        return self._xy

    @property
    def crs(self) -> str | None:
        """The coordinate reference system, if known."""
        return self._crs

    @overload
    def __getitem__(self, item: int) -> Point: ...
    @overload
    def __getitem__(self, item: slice | ArrayLike) -> PointArray: ...
    def __getitem__(self, item: int | slice | ArrayLike) -> Point | PointArray:
        """One point, or the points of a slice, of chosen rows or of a boolean mask."""
        if isinstance(item, (int, np.integer)):
            x, y = self._xy[item].tolist()
            return Point(x, y, crs=self._crs)
        chosen = item if isinstance(item, slice) else np.asarray(item)
        return PointArray(self._xy[chosen], crs=self._crs)

    def __len__(self) -> int:
        return len(self._xy)

    def __iter__(self) -> Iterator[Point]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointArray) and np.array_equal(self._xy, other._xy)

    def __hash__(self) -> int:
        return hash(self._xy.tobytes())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a PointArray cannot be changed")

    def __reduce__(self) -> tuple[object, tuple[Any, ...]]:
        return _rebuild, (self._xy, self._crs)

    def __repr__(self) -> str:
        return f"<PointArray of {len(self)} points>"


def _rebuild(xy: NDArray[np.float64], crs: str | None) -> PointArray:
    return PointArray(xy, crs=crs)


class Point:
    """A point (x, y). Immutable; equal to points of the same coordinates.

    >>> Point(1, 2)
    Point(1.0, 2.0)
    """

    __slots__ = ("column",)
    column: PointArray

    def __init__(self, x: float, y: float, *, crs: str | None = None) -> None:
        object.__setattr__(self, "column", PointArray([(x, y)], crs=crs))

    @classmethod
    def from_shapely(cls, point: Any, *, crs: str | None = None) -> Point:
        """The point of a Shapely Point."""
        return PointArray.from_shapely([point], crs=crs)[0]

    def to_shapely(self) -> Any:
        """A Shapely Point."""
        return self.column.to_shapely()[0]

    def to_wkt(self) -> str:
        """WKT whose numbers read back to the same coordinates."""
        from contrada.geometry.interchange import number_text

        return f"POINT ({number_text(self.x)} {number_text(self.y)})"

    @property
    def x(self) -> float:
        """The first coordinate."""
        return float(self.column.xy[0, 0])

    @property
    def y(self) -> float:
        """The second coordinate."""
        return float(self.column.xy[0, 1])

    @property
    def crs(self) -> str | None:
        """The coordinate reference system, if known."""
        return self.column.crs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    def __hash__(self) -> int:
        return hash((self.x, self.y))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Point cannot be changed")

    def __reduce__(self) -> tuple[object, tuple[Any, ...]]:
        return _rebuild_point, (self.x, self.y, self.crs)

    def __repr__(self) -> str:
        return f"Point({self.x!r}, {self.y!r})"


def _rebuild_point(x: float, y: float, crs: str | None) -> Point:
    return Point(x, y, crs=crs)
