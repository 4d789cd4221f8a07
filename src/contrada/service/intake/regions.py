"""Read the polygons of a batch as columns: validating one by one takes several times as long."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa

from contrada.formats.geojson.shapes import POLYGONAL
from contrada.formats.spatial import Spatial
from contrada.geometry import Circle, Line, Point, Region
from contrada.geometry.globe import Globe
from contrada.geometry.reading import sift_regions

_Plain = list[list[list[tuple[float, float]]]]
_High = list[list[list[Annotated[list[float], msgspec.Meta(min_length=2)]]]]  # positions may have heights
_KIND = pa.list_(pa.list_(pa.list_(pa.list_(pa.float64(), 2))))


class UnreadRegion(NamedTuple):
    """Stands for a region in a message: place `place` of the column of regions in `crs`."""

    crs: str | None
    place: int


class RegionColumns(Spatial):
    """Reads geometry as `Spatial` does, but collects polygons and multipolygons, for `read` to validate at once."""

    def __init__(self, globes: Mapping[str, Globe] = MappingProxyType({})) -> None:
        super().__init__(globes=globes)
        self._shapes: dict[str | None, list[Any]] = {}
        self._latest: list[UnreadRegion] = []

    def at(self, attribute: str) -> Spatial:
        """Return the reading of an attribute: regions of one that is wrapped are read at once."""
        globe = self.globes.get(attribute)
        return self if globe is None else _WrappedRegions(self, globe)

    def begin(self) -> None:
        """Begin a message."""
        self._latest.clear()

    def cancel(self) -> None:
        """Drop the shapes of the message that began last."""
        for unread in self._latest:
            self.drop(unread)

    def of_geojson(self, value: Mapping[str, Any], default: str | None = None) -> Any:
        """Return an UnreadRegion for polygons, and points as they are; other types are a RegionError."""
        kind = value["type"]
        if kind not in POLYGONAL:
            return super().of_geojson(value, default)
        coordinates = value.get("coordinates")
        return self._add([coordinates] if kind == "Polygon" else coordinates, default)

    def of_region(self, region: Region) -> UnreadRegion:
        """Return an UnreadRegion for a region."""
        parts = [[ring.tolist() for ring in (shell, *holes)] for shell, holes in region.parts]
        return self._add(parts, region.crs)

    def drop(self, unread: UnreadRegion) -> None:
        """Forget a shape, so that it is not validated."""
        self._shapes[unread.crs][unread.place] = []

    def vertices(self, unread: UnreadRegion) -> int:
        """Return the number of vertices of a shape."""
        parts = [part for part in _items(self._shapes[unread.crs][unread.place]) if isinstance(part, list)]
        return sum(len(_items(ring)) for part in parts for ring in part)

    def read(self) -> tuple[dict[str | None, Any], dict[UnreadRegion, str]]:
        """Return the columns by CRS, and the regions that are not valid with reasons."""
        columns: dict[str | None, Any] = {}
        bad: dict[UnreadRegion, str] = {}
        for crs, shapes in self._shapes.items():
            plain, malformed = _checked(shapes)
            columns[crs] = pa.array(plain, _KIND)
            for item in sift_regions("arrow", columns[crs], crs, repair=False).rejected:
                bad[UnreadRegion(crs, item.row)] = malformed.get(item.row, item.reason)
        return columns, bad

    def _add(self, shape: Any, crs: str | None) -> UnreadRegion:
        shapes = self._shapes.setdefault(crs, [])
        unread = tuple.__new__(UnreadRegion, (crs, len(shapes)))  # as in contrada.formats.records
        shapes.append(shape)
        self._latest.append(unread)
        return unread


class _WrappedRegions(Spatial):
    """Reads the geometry of an attribute that is wrapped at the date line, and puts its regions into columns."""

    def __init__(self, columns: RegionColumns, globe: Globe) -> None:
        super().__init__(globe=globe)
        self._columns = columns

    def of_geojson(self, value: Mapping[str, Any], default: str | None = None) -> Any:
        read = super().of_geojson(value, default)
        return self._columns.of_region(read) if isinstance(read, Region) else read


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _checked(shapes: list[Any]) -> tuple[list[Any], dict[int, str]]:
    """Return the coordinates of multipolygons without heights, None for malformed ones, and the faults of these."""
    try:
        return msgspec.convert(shapes, list[_Plain]), {}
    except msgspec.ValidationError:
        pass
    malformed: dict[int, str] = {}
    plain: list[Any] = []
    for place, shape in enumerate(shapes):
        try:
            high = msgspec.convert(shape, _High)
            plain.append([[[position[:2] for position in ring] for ring in part] for part in high])
        except msgspec.ValidationError as error:
            plain.append(None)
            malformed[place] = f"coordinates: {error}"
    return plain, malformed


def line_column(lines: list[Line | None]) -> Any:
    """Return lines as WKB, without their CRS."""
    return pa.array([None if line is None else line.to_wkb() for line in lines], pa.binary())


def point_column(points: list[Point | None]) -> Any:
    """Return points as GeoArrow, without their CRS."""
    return pa.array([None if point is None else (point.x, point.y) for point in points], pa.list_(pa.float64(), 2))


def circle_column(circles: list[Circle | None]) -> Any:
    """Return circles as bytes, without their CRS."""
    return pa.array([None if circle is None else circle.to_wkb() for circle in circles], pa.binary())
