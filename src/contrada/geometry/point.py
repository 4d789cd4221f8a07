"""Point and PointArray: one point, and a column of points."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from contrada import kernels
from contrada.arguments import checks_methods
from contrada.codes import GOOD, MAX_MAGNITUDE, MIN_MAGNITUDE, MISSING, PLAIN_SIZE, WRONG_TYPE
from contrada.errors import ArgumentError, CrsError, RegionError
from contrada.geometry.arrays import frozen
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.crs import Crs, crs_member, named_by_srids, named_by_values, resolved, srid_of
from contrada.geometry.faults import FaultCode, Rejection, rejection
from contrada.geometry.immutable import Immutable
from contrada.geometry.interchange import number_text
from contrada.geometry.wellknown import arrow_buffers, shapes_from_wkt, split_ewkt

if TYPE_CHECKING:
    from contrada.geometry.reading import SourceKind


_NEEDED = "need finite coordinates within 1e-120..1e120 in magnitude"


class SiftedPoints(NamedTuple):
    """Good rows of a batch as a column of points, and the rejected rows with reasons; rows[k] is the input row."""

    points: PointArray
    rows: NDArray[np.int64]
    rejected: tuple[Rejection, ...]


class PlainPoints(NamedTuple):
    """Coordinates (n, 2) without -0.0, and whether all are in range."""

    xy: NDArray[np.float64]
    are_good: bool


def are_in_range(xy: NDArray[np.float64]) -> bool:
    """Return True only if `in_range` holds of all points and no coordinate is zero; quick."""
    size = np.abs(xy)
    return bool(size.size and size.min() >= MIN_MAGNITUDE and size.max() <= MAX_MAGNITUDE)  # False if there is a NaN


def in_range(xy: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether each point has finite coordinates that are zero or within 1e-120..1e120 in magnitude."""
    size = np.abs(xy)
    with np.errstate(invalid="ignore"):
        is_good = (size == 0) | ((size >= MIN_MAGNITUDE) & (size <= MAX_MAGNITUDE))
    return np.asarray(is_good[:, 0] & is_good[:, 1])


def sift_plain(plain: PlainPoints, crs: Crs | None) -> SiftedPoints:
    """Split plain points into those in range and rejected rows."""
    if plain.are_good:
        return SiftedPoints(PointArray.of_checked(plain.xy, crs), np.arange(len(plain.xy)), ())
    return sift_coordinates(plain.xy, crs)


def sift_coordinates(xy: NDArray[np.float64], crs: Crs | None) -> SiftedPoints:
    """Split coordinates into valid points and rejected rows; a row of NaN only is an empty point."""
    if are_in_range(xy) or (good := in_range(xy)).all():
        return SiftedPoints(PointArray.of_checked(xy + 0.0, crs), np.arange(len(xy)), ())
    rejected = []
    for row in np.flatnonzero(~good):
        empty = bool(np.isnan(xy[row]).all())
        reason = "empty geometry" if empty else f"{xy[row].tolist()}: {_NEEDED}"
        rejected.append(Rejection(int(row), reason, FaultCode.EMPTY if empty else FaultCode.BAD_COORDINATE))
    return SiftedPoints(PointArray(xy[good], crs=crs), np.flatnonzero(good), tuple(rejected))


def sift_points(array: NDArray[np.object_], faults: NDArray[np.int64], crs: Crs | None) -> SiftedPoints:
    """Read points from Shapely geometries; None is missing, or has the fault of its row.

    A point whose SRID names another system than the column's is rejected.
    """
    crs, foreign = resolved(named_by_srids(shapely_srids(array)), crs)
    kinds = shapely.get_type_id(array)
    is_point = kinds == shapely.GeometryType.POINT
    # Every other row, and every empty point, counts as a point of NaN.
    points = np.where(is_point & ~shapely.is_empty(array), array, shapely.Point(np.nan, np.nan))
    sifted = sift_coordinates(shapely.get_coordinates(points).reshape(-1, 2), crs)
    rejected = {bad.row: bad for bad in sifted.rejected}
    for row in np.flatnonzero(~is_point).tolist():
        if kinds[row] < 0:
            rejected[row] = rejection(row, (int(faults[row] or MISSING), 0, 0))
        else:
            reason = f"wrong geometry type {array[row].geom_type}; need a Point"
            rejected[row] = Rejection(row, reason, FaultCode.WRONG_TYPE)
    if foreign:
        stays = ~np.isin(sifted.rows, list(foreign))
        sifted = sifted._replace(points=sifted.points[stays], rows=sifted.rows[stays])
        rejected = {**foreign, **rejected}
    return sifted._replace(rejected=tuple(rejected[row] for row in sorted(rejected)))


def shapely_srids(array: NDArray[np.object_]) -> NDArray[np.int64]:
    """Return SRIDs, 0 where there is none; Shapely represents SRIDs above 2^31 as negative numbers."""
    srids = np.where(shapely.is_missing(array), 0, shapely.get_srid(array)).astype(np.int64)
    return srids % (1 << 32)


PLAIN_HEADER = b"\x01\x01\x00\x00\x00"  # a little-endian point without Z, M or SRID: 21 bytes in all


def plain_points(values: Any) -> PlainPoints | None:
    """Return the coordinates of an Arrow array of plain WKB points without nulls, read by one kernel; otherwise None.

    Steps in NumPy would each wait for the interpreter, when other threads read other slices.
    """
    if not hasattr(values, "__arrow_c_array__") and not hasattr(values, "__arrow_c_stream__"):
        return None
    try:
        data, positions, missing = arrow_buffers(values, reader_checks_offsets=True)
    except RegionError:
        return None
    if missing.any() or not len(missing):
        return None
    xy = np.empty((len(missing), 2))
    fault = kernels.fill_points(frozen(data), frozen(positions), xy.view(np.uint64))
    return None if fault == WRONG_TYPE else PlainPoints(xy, fault == GOOD)


def _read(kind: SourceKind, values: Any, crs: Any) -> PointArray:
    """Return the column of points that `values` of one kind hold; the first bad row raises."""
    from contrada.geometry.reading import sift_point_rows

    sifted = sift_point_rows(kind, values, crs)
    if sifted.rejected:
        raise sifted.rejected[0].error()
    return sifted.points


@checks_methods("__init__", "from_shapely", "from_wkb", "from_arrow", "to_wkb")
class PointArray(Immutable):
    """Immutable column of points: xy (n, 2), finite and within 1e-120..1e120 in magnitude (or zero).

    >>> PointArray([(1, 2), (3, 4)])[1]
    Point(3.0, 4.0)
    """

    __slots__ = ("_crs", "_xy")
    _xy: NDArray[np.float64]
    _crs: Crs | None

    def __init__(self, xy: ArrayLike, *, crs: Any = None) -> None:
        array = np.array(xy, np.float64, order="C", ndmin=2) + 0.0  # -0.0 becomes 0.0
        if array.size == 0:
            array = array.reshape(0, 2)
        if array.ndim != 2 or array.shape[1] != 2:
            raise RegionError(f"points: need an array of shape (n, 2), got {array.shape}")
        if not (are_in_range(array) or (good := in_range(array)).all()):
            row = int(np.argmin(good))
            raise RegionError(f"point {row} is {array[row].tolist()}; {_NEEDED}", row=row)
        array.setflags(write=False)
        object.__setattr__(self, "_xy", array)
        object.__setattr__(self, "_crs", Crs.of(crs))

    @classmethod
    def of_checked(cls, xy: NDArray[np.float64], crs: Crs | None) -> PointArray:
        """Wrap an array (n, 2) of coordinates that are known to be in range, with no -0.0."""
        made = cls.__new__(cls)
        xy.setflags(write=False)
        object.__setattr__(made, "_xy", xy)
        object.__setattr__(made, "_crs", Crs.of(crs))
        return made

    @classmethod
    def from_shapely(cls, values: Any, *, crs: Any = None) -> PointArray:
        """Read points from Shapely points; the first bad row raises, `read_points` sets bad rows aside instead.

        The CRS of a GeoSeries, or of another array that has one, is read; if `crs` differs from it, a CrsError is
        raised.
        """
        return _read("shapely", values, crs)

    @classmethod
    def from_wkb(cls, values: Any, *, crs: Any = None) -> PointArray:
        """Read points from WKB or EWKB, an Arrow array or a sequence of bytes.

        >>> PointArray.from_wkb(PointArray([(1, 2)]).to_wkb())[0]
        Point(1.0, 2.0)
        """
        return _read("wkb", values, crs)

    @classmethod
    def from_arrow(cls, values: Any, *, crs: Any = None) -> PointArray:
        """Read points from an Arrow array of GeoArrow points or WKB; the CRS of an extension type is read."""
        return _read("arrow", values, crs)

    def to_shapely(self) -> NDArray[np.object_]:
        """Return Shapely points; the EPSG code of the CRS, if it has one, becomes their SRID."""
        points = np.asarray(shapely.points(self._xy), dtype=object)
        code = None if self._crs is None else self._crs.epsg
        return points if code is None else np.asarray(shapely.set_srid(points, code), dtype=object)

    def to_wkb(self, srid: bool = False) -> Any:
        """Return an Arrow array of WKB; `srid` makes it EWKB, which names the EPSG code of the CRS.

        With `srid`, a CRS without an EPSG code raises a CrsError.
        """

        if srid:
            srid_of(self._crs)  # raises if there is none
        if srid or len(self) * PLAIN_SIZE >= 1 << 31:  # which is too long for 32-bit offsets
            return pa.array(shapely.to_wkb(self.to_shapely(), include_srid=srid), type=pa.binary())
        records = np.empty((len(self), PLAIN_SIZE), np.uint8)
        records[:, :5] = np.frombuffer(PLAIN_HEADER, np.uint8)
        records[:, 5:] = self.xy.astype("<f8", copy=False).view(np.uint8)
        offsets = np.arange(0, records.size + 1, PLAIN_SIZE, dtype=np.int32)
        return pa.Array.from_buffers(pa.binary(), len(self), [None, pa.py_buffer(offsets), pa.py_buffer(records)])

    def to_arrow(self) -> Any:
        """Return a GeoArrow array of points (interleaved coordinates) with the CRS."""
        from contrada.geometry.arrow.geoarrow import points_to_arrow

        return points_to_arrow(self._xy, self._crs)

    @property
    def xy(self) -> NDArray[np.float64]:
        """The coordinates (n, 2), read-only."""
        return self._xy

    @property
    def crs(self) -> Crs | None:
        """The coordinate reference system, if known."""
        return self._crs

    @overload
    def __getitem__(self, item: int) -> Point: ...
    @overload
    def __getitem__(self, item: slice | ArrayLike) -> PointArray: ...
    def __getitem__(self, item: int | slice | ArrayLike) -> Point | PointArray:
        """Return one point, or the points of a slice, of chosen rows or of a boolean mask."""
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

    def __reduce__(self) -> tuple[object, tuple[Any, ...]]:
        return partial(PointArray, crs=self._crs), (self._xy,)

    def __repr__(self) -> str:
        return f"<PointArray of {len(self)} points>"


@checks_methods("from_shapely", "from_wkb", "from_wkt", "from_geojson", "to_wkb")
class Point(Immutable):
    """A point (x, y). Immutable; equal to points of the same coordinates.

    >>> Point(1, 2)
    Point(1.0, 2.0)
    """

    __slots__ = ("_own_column", "crs", "x", "y")
    x: float
    y: float
    crs: Crs | None
    _own_column: PointArray | None

    def __init__(self, x: float, y: float, *, crs: Any = None) -> None:
        try:
            x, y = float(x) + 0.0, float(y) + 0.0  # -0.0 becomes 0.0
        except OverflowError as error:
            raise RegionError(f"point coordinate is too large: {error}") from error
        except (TypeError, ValueError) as error:
            given = f"{type(x).__name__} and {type(y).__name__}"
            raise ArgumentError(f"a point needs two numbers, got {given}: {error}") from error
        if not (
            (x == 0.0 or MIN_MAGNITUDE <= abs(x) <= MAX_MAGNITUDE)
            and (y == 0.0 or MIN_MAGNITUDE <= abs(y) <= MAX_MAGNITUDE)
        ):
            PointArray([(x, y)])  # raises and says what is wrong, also for NaN
        _set_x(self, x)
        _set_y(self, y)
        _set_crs(self, Crs.of(crs))
        _set_own_column(self, None)

    @property
    def _column(self) -> PointArray:
        """The point as a column of one, the form that kernels take."""
        if self._own_column is None:
            _set_own_column(self, PointArray([(self.x, self.y)], crs=self.crs))
        assert self._own_column is not None
        return self._own_column

    @classmethod
    def from_shapely(cls, point: Any, *, crs: Any = None) -> Point:
        """Return the point of a Shapely Point."""
        return PointArray.from_shapely([point], crs=crs)[0]

    @classmethod
    def from_wkb(cls, data: bytes, *, crs: Any = None) -> Point:
        """Return the point of a WKB or EWKB Point; an SRID becomes the CRS."""
        if len(data) == PLAIN_SIZE and data[:5] == PLAIN_HEADER:
            x, y = _unpack(data, 5)
            return cls(x, y, crs=crs)
        return PointArray.from_wkb([data], crs=crs)[0]

    @classmethod
    def from_wkt(cls, text: str, *, crs: Any = None) -> Point:
        """Return the point of a WKT or EWKT Point; an SRID becomes the CRS.

        >>> Point.from_wkt("POINT (1 2)")
        Point(1.0, 2.0)
        """
        srid, plain = split_ewkt(text)
        geometries, faults = shapes_from_wkt([plain])
        if faults[0]:
            raise RegionError(f"{text[:60]!r}: {rejection(0, (faults[0], 0, 0)).reason}")
        own, foreign = resolved(named_by_srids(np.array([srid])), Crs.of(crs))
        if foreign:
            raise CrsError(foreign[0].reason)
        return cls.from_shapely(geometries[0], crs=own)

    @classmethod
    def from_geojson(cls, value: Any, *, crs: Any = None) -> Point:
        """Return the point of a GeoJSON Point."""
        kind = value.get("type") if isinstance(value, Mapping) else type(value).__name__
        if kind != "Point":
            shown = kind[:60] if isinstance(kind, str) else type(kind).__name__
            raise RegionError(f"need a GeoJSON Point, got {shown}")
        place = value.get("coordinates")
        if not isinstance(place, list | tuple) or not 2 <= len(place) <= 4:
            raise RegionError(f"GeoJSON Point: need coordinates [x, y], got {place!r:.60}")
        own, foreign = resolved(named_by_values([crs_member(value)]), Crs.of(crs))
        if foreign:
            raise CrsError(foreign[0].reason)
        try:
            return cls(place[0], place[1], crs=own)
        except ArgumentError as error:
            raise RegionError(f"GeoJSON Point: {error}") from error

    def to_shapely(self) -> Any:
        """Return a Shapely Point; the EPSG code of the CRS is its SRID."""
        return self._column.to_shapely()[0]

    def to_wkb(self, srid: bool = False) -> bytes:
        """Return little-endian WKB; `srid` makes it EWKB, which names the EPSG code of the CRS.

        >>> Point.from_wkb(Point(1, 2, crs="EPSG:25832").to_wkb(srid=True)).crs
        'EPSG:25832'
        """
        data: bytes = self._column.to_wkb(srid)[0].as_py() if srid else struct.pack("<BIdd", 1, 1, self.x, self.y)
        return data

    def to_wkt(self) -> str:
        """Return WKT whose numbers read back to the same coordinates."""
        return f"POINT ({number_text(self.x)} {number_text(self.y)})"

    def to_geojson(self) -> dict[str, Any]:
        """Return a GeoJSON Point."""
        return {"type": "Point", "coordinates": [self.x, self.y]}

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        return self.to_geojson()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    def __hash__(self) -> int:
        return hash((self.x, self.y))

    def __reduce__(self) -> tuple[object, tuple[Any, ...]]:
        return partial(Point, crs=self.crs), (self.x, self.y)

    def __repr__(self) -> str:
        return f"Point({self.x!r}, {self.y!r})"


_unpack = struct.Struct("<dd").unpack_from
# The setters of the slots, since __setattr__ raises: points are made one at a time, by the thousand.
_set_x, _set_y, _set_crs, _set_own_column = (getattr(Point, name).__set__ for name in ("x", "y", "crs", "_own_column"))
