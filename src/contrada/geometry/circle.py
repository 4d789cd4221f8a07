"""Circle: the points at most a radius from a centre; and columns of circles, the form that kernels take."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.arguments import checked_length, checks_methods
from contrada.errors import ArgumentError, CrsError, RegionError
from contrada.geometry.arrays import frozen
from contrada.geometry.column import RegionArray
from contrada.geometry.crs import Crs, common_crs, crs_member, named_by_values, resolved, srid_of
from contrada.geometry.faults import CIRCLE_CODE
from contrada.geometry.immutable import Immutable
from contrada.geometry.interchange import number_text
from contrada.geometry.point import Point, PointArray
from contrada.geometry.region import Region
from contrada.geometry.relation import Relation

WKB_SIZE = 29  # bytes: the order of bytes, the code, x, y and radius
BOX_SLACK = 4e-15  # relative room for rounding of a box
TYPE = "Circle"  # of objects in JSON
NOT_WRAPPED = "the circle leaves longitude -180..180, and circles are not wrapped; give a polygon"
_SRID_FLAG = 0x20000000
_NUMBER = r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"
_TEXT = re.compile(rf"\s*CIRCLE\s*\(\s*POINT\s*\({_NUMBER}\s{_NUMBER}\)\s*,{_NUMBER}\)\s*\Z", re.IGNORECASE | re.ASCII)


@checks_methods("__init__", "from_text", "from_geojson", "from_wkb", "to_shapely", "to_wkb")
class Circle(Immutable):
    """The points at most `radius` from `center`, in the units of the coordinates. Immutable; equal circles are equal.

    The centre is a Point or a pair of numbers, the radius a finite number of at least 0; a circle of radius 0 is
    a point. `relate` and `within_distance` take circles, and so do messages.

    >>> from contrada import Circle, Point, Region, relate, within_distance
    >>> hall = Circle((0, 0), 5)
    >>> hall, hall.bounds
    (Circle(Point(0.0, 0.0), 5.0), (-5.00000000000002, -5.00000000000002, 5.00000000000002, 5.00000000000002))
    >>> relate(hall, Region.box(-5, -5, 5, 5)).name, relate(hall, Region.box(3, 4, 6, 6)).name
    ('COVERED_BY', 'MEETS')
    >>> within_distance(hall, Point(0, 7), 2)
    True
    """

    __slots__ = ("_own_column", "center", "radius")
    center: Point
    radius: float
    _own_column: CircleArray | None

    def __init__(self, center: Any, radius: float, *, crs: Any = None) -> None:
        object.__setattr__(self, "center", _checked_center(center, crs))
        object.__setattr__(self, "radius", _checked_radius(radius))
        object.__setattr__(self, "_own_column", None)

    @property
    def crs(self) -> Crs | None:
        """The coordinate reference system of the centre."""
        return self.center.crs

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """A box (xmin, ymin, xmax, ymax) that holds the circle, rounded outward."""
        xmin, ymin, xmax, ymax = self._column.bounds[0].tolist()
        return xmin, ymin, xmax, ymax

    @property
    def _column(self) -> CircleArray:
        """The circle as a column of one, the form that kernels take."""
        if self._own_column is None:
            object.__setattr__(self, "_own_column", CircleArray(self.center._column, np.array([self.radius])))
        assert self._own_column is not None
        return self._own_column

    @classmethod
    def from_text(cls, text: str, *, crs: Any = None) -> Circle:
        """Return the circle of a text like those in filters.

        >>> Circle.from_text("CIRCLE(POINT(1 2), 500)")
        Circle(Point(1.0, 2.0), 500.0)
        """
        found = _TEXT.match(text)
        if found is None:
            raise RegionError(f"need a circle such as CIRCLE(POINT(1 2), 500), got {text[:60]!r}")
        x, y, radius = map(float, found.groups())
        return cls(Point(x, y), radius, crs=crs)

    @classmethod
    def from_geojson(cls, value: Any, *, crs: Any = None) -> Circle:
        """Return the circle of an object of JSON: its type is Circle, and it has coordinates and a radius.

        GeoJSON has no circles; this form is Contrada's.

        >>> Circle.from_geojson({"type": "Circle", "coordinates": [1, 2], "radius": 500})
        Circle(Point(1.0, 2.0), 500.0)
        """
        if not isinstance(value, Mapping) or value.get("type") != TYPE:
            raise RegionError(f"need an object of type {TYPE}, got {value!r:.60}")
        if "radius" not in value:
            raise RegionError("Circle: need a radius beside the coordinates")
        own, foreign = resolved(named_by_values([crs_member(value)]), Crs.of(crs))
        if foreign:
            raise CrsError(foreign[0].reason)
        try:
            center = Point.from_geojson({"type": "Point", "coordinates": value.get("coordinates")}, crs=own)
            return cls(center, value["radius"])
        except ArgumentError as error:
            raise RegionError(f"Circle: {error}") from error

    @classmethod
    def from_wkb(cls, data: bytes, *, crs: Any = None) -> Circle:
        """Return the circle of bytes as `to_wkb` writes them; an SRID becomes the CRS."""
        made = circle_of_bytes(data)
        if made is None:
            raise RegionError(f"need {WKB_SIZE} bytes of a circle, got {len(data)} bytes of another kind")
        x, y, radius, srid = made
        return cls(Point(x, y, crs=common_crs(srid or None, crs)), radius)

    def to_shapely(self, quad_segs: int = 16) -> Any:
        """Return a Shapely polygon in the circle, of `quad_segs` sides for a quarter, to draw it; a point of radius 0.

        >>> Circle((0, 0), 2).to_shapely().bounds
        (-2.0, -2.0, 2.0, 2.0)
        """
        center = self.center.to_shapely()
        drawn = center if self.radius == 0 else center.buffer(self.radius, quad_segs=quad_segs)
        return center if drawn.is_empty else drawn

    def to_text(self) -> str:
        """Return the circle as filters write it; its numbers read back to the same circle.

        >>> Circle((1, 2.5), 500).to_text()
        'CIRCLE(POINT(1 2.5), 500)'
        """
        x, y, radius = map(number_text, (self.center.x, self.center.y, self.radius))
        return f"CIRCLE(POINT({x} {y}), {radius})"

    def to_geojson(self) -> dict[str, Any]:
        """Return an object of JSON, as `from_geojson` reads it.

        >>> Circle((1, 2), 500).to_geojson()
        {'type': 'Circle', 'coordinates': [1.0, 2.0], 'radius': 500.0}
        """
        return {"type": TYPE, "coordinates": [self.center.x, self.center.y], "radius": self.radius}

    def to_wkb(self, srid: bool = False) -> bytes:
        """Return bytes in the manner of WKB, under a code of our own: 99, then x, y and radius as doubles.

        `srid` adds the EPSG code of the CRS as EWKB does. Other programs cannot read the bytes.
        """
        numbers = self.center.x, self.center.y, self.radius
        code = srid_of(self.crs) if srid else 0
        if code:
            return struct.pack("<BIIddd", 1, CIRCLE_CODE | _SRID_FLAG, code, *numbers)
        return struct.pack("<BIddd", 1, CIRCLE_CODE, *numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Circle) and (self.center, self.radius) == (other.center, other.radius)

    def __hash__(self) -> int:
        return hash((self.center, self.radius))

    def __reduce__(self) -> tuple[object, tuple[Any, ...]]:
        return Circle, (self.center, self.radius)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"Circle({self.center!r}, {self.radius!r})"


class CircleArray:
    """A column of circles: their centres, and a radius for each."""

    __slots__ = ("bounds", "centers", "radii")

    def __init__(self, centers: PointArray, radii: NDArray[np.float64]) -> None:
        """Take checked radii, one for each centre."""
        self.centers, self.radii = centers, frozen(np.ascontiguousarray(radii, np.float64))
        xy = centers.xy
        slack = BOX_SLACK * (np.abs(xy).max(axis=1, initial=0.0) + self.radii)
        with np.errstate(over="ignore"):
            reach = (self.radii + slack)[:, None]
            self.bounds = frozen(np.concatenate([xy - reach, xy + reach], axis=1))

    @classmethod
    def from_circles(cls, circles: Iterable[Circle]) -> CircleArray:
        """Return a column of circles that share one CRS."""
        given = list(circles)
        crs = given[0].crs if given else None
        xy = np.array([(each.center.x, each.center.y) for each in given], np.float64).reshape(-1, 2)
        return cls(PointArray.of_checked(xy, crs), np.array([each.radius for each in given], np.float64))

    @property
    def crs(self) -> Crs | None:
        """The coordinate reference system of all circles."""
        return self.centers.crs

    def __len__(self) -> int:
        return len(self.radii)

    def __getitem__(self, row: int) -> Circle:
        return Circle(self.centers[row], self.radii.item(row))

    def __iter__(self) -> Iterator[Circle]:
        return (self[row] for row in range(len(self)))

    def chosen(self, rows: NDArray[Any]) -> CircleArray:
        """Return the circles in `rows`."""
        return CircleArray(self.centers[rows], self.radii[rows])


NO_CIRCLES = CircleArray(PointArray(np.empty((0, 2))), np.empty(0))


def joined_circles(columns: Sequence[CircleArray]) -> CircleArray:
    """Return the rows of several columns of circles."""
    if len(columns) == 1:
        return columns[0]
    xy = np.concatenate([column.centers.xy for column in columns])
    return CircleArray(PointArray.of_checked(xy, None), np.concatenate([column.radii for column in columns]))


SpatialValue = Region | Point | Circle
SpatialValues = RegionArray | PointArray | CircleArray


def relate_two_circles(a: Circle, b: Circle) -> Relation:
    """Return the exact relation of two circles, by rational arithmetic.

    >>> relate_two_circles(Circle((0, 0), 5), Circle((3, 4), 10))
    <Relation.COVERED_BY: 7>
    """
    common_crs(a.crs, b.crs)
    dx, dy = (Fraction(p) - Fraction(q) for p, q in ((a.center.x, b.center.x), (a.center.y, b.center.y)))
    square, r, s = dx * dx + dy * dy, Fraction(a.radius), Fraction(b.radius)
    if square > (r + s) ** 2:
        return Relation.DISJOINT
    if square == 0 and r == s:
        return Relation.EQUALS
    if square == (r + s) ** 2:  # a point on the boundary of a circle, too
        return Relation.MEETS
    if square > (r - s) ** 2:
        return Relation.OVERLAPS
    if square == (r - s) ** 2:
        return Relation.COVERED_BY if r < s else Relation.COVERS
    return Relation.INSIDE if r < s else Relation.CONTAINS


def are_circles_near(a: Circle, b: Circle, distance: float) -> bool:
    """Return whether two circles have points that are at most `distance` apart, by rational arithmetic."""
    common_crs(a.crs, b.crs)
    dx, dy = (Fraction(p) - Fraction(q) for p, q in ((a.center.x, b.center.x), (a.center.y, b.center.y)))
    return dx * dx + dy * dy <= (Fraction(a.radius) + Fraction(b.radius) + Fraction(distance)) ** 2


def leaves_world(circle: Circle) -> bool:
    """Return True if a circle leaves longitude -180..180.

    >>> leaves_world(Circle((179, 0), 1)), leaves_world(Circle((179, 0), 1.0000000000000002))
    (False, True)
    """
    return abs(Fraction(circle.center.x)) + Fraction(circle.radius) > 180


def circle_of_bytes(data: bytes) -> tuple[float, float, float, int] | None:
    """Return x, y, radius and SRID (0: none) of the bytes of a circle; None for bytes of another kind.

    >>> circle_of_bytes(Circle((1, 2), 3, crs="EPSG:25832").to_wkb(srid=True))
    (1.0, 2.0, 3.0, 25832)
    """
    if len(data) not in (WKB_SIZE, WKB_SIZE + 4) or data[0] > 1:
        return None
    order = "<" if data[0] == 1 else ">"
    (code,) = struct.unpack_from(f"{order}I", data, 1)
    has_srid = len(data) > WKB_SIZE
    if code != (CIRCLE_CODE | _SRID_FLAG if has_srid else CIRCLE_CODE):
        return None
    srid = struct.unpack_from(f"{order}I", data, 5)[0] if has_srid else 0
    x, y, radius = struct.unpack_from(f"{order}ddd", data, len(data) - 24)
    return x, y, radius, srid


def _checked_center(center: Any, crs: Any) -> Point:
    if isinstance(center, Point):
        return center if crs is None else Point(center.x, center.y, crs=common_crs(center.crs, crs))
    if getattr(center, "geom_type", None) == "Point":
        return Point.from_shapely(center, crs=crs)
    try:
        x, y = center
    except (TypeError, ValueError):
        raise ArgumentError(f"circle: need a center, a Point or two numbers, got {type(center).__name__}") from None
    return Point(x, y, crs=crs)


def _checked_radius(radius: Any) -> float:
    """Return a radius as a double; raise RegionError unless it is finite and at least 0.

    >>> _checked_radius(-1)
    Traceback (most recent call last):
    contrada.errors.RegionError: radius: need a finite number of at least 0, got -1
    """
    return checked_length(radius, "radius", of_type=ArgumentError, of_value=RegionError)
