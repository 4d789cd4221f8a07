"""Read geometry as regions and points, reprojected and buffered if asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.errors import ContradaError, CrsError, FormatError, RegionError
from contrada.formats.geojson.shapes import POINT, POLYGONAL, coordinates_of, shape_of, wkb_of_geojson
from contrada.geometry import Point, Region, Rejection
from contrada.geometry.arrow.mixed import crs_of_type, parts_by_crs
from contrada.geometry.crs import Crs, common_crs, is_geographic
from contrada.geometry.faults import FaultCode
from contrada.geometry.wellknown import shapes_from_wkb

NO_CRS = "none"
OTHER_TYPES = (FaultCode.POINT, FaultCode.WRONG_TYPE)  # a buffer makes regions of these


class Spatial:
    """How geometry is read: its CRS, the CRS to reproject to, and the buffer around points and lines.

    `crs` is the CRS of input that names none; "none" means no CRS (GeoJSON is then plain coordinates). All geometry is
    reprojected to `to_crs`, vertex by vertex. `buffer`, in units of the resulting CRS, turns points and lines into
    regions. Polygons are never buffered.

    >>> Spatial(crs="none", buffer=1.0).of_geojson({"type": "Point", "coordinates": [5, 5]}).bounds
    (4.0, 4.0, 6.0, 6.0)
    """

    def __init__(self, crs: Any = None, to_crs: Any = None, buffer: float | None = None) -> None:
        if buffer is not None and not 0 < buffer < float("inf"):
            raise FormatError(f"buffer: need a positive number, got {buffer}")
        self.crs: str | None = NO_CRS if crs is NO_CRS or crs == NO_CRS else Crs.of(crs)
        self.to_crs, self.buffer = Crs.of(to_crs), buffer
        target = self.to_crs or self.input_crs(None)
        if target is not None and is_geographic(target) and buffer is not None:
            raise _degrees(target)

    @property
    def is_changing(self) -> bool:
        """Return True if geometry may be changed, or its CRS set."""
        return self.to_crs is not None or self.buffer is not None or self.crs is not None

    def input_crs(self, default: str | None) -> Crs | None:
        """Return the CRS of input that names none, given the default of its format."""
        return Crs.of(default if self.crs is None else None if self.crs == NO_CRS else self.crs)

    def of_geojson(self, value: Mapping[str, Any], default: str | None = None) -> Region | Point:
        """Return the region or point of a GeoJSON geometry object."""
        crs, kind = self.input_crs(default), value["type"]
        if kind in POLYGONAL:
            return self._projected_region(Region.from_wkb(wkb_of_geojson(value), crs=crs))
        if kind == POINT and self.buffer is None:
            x, y, *_ = coordinates_of(kind, value.get("coordinates"))
            return self._projected_point(_checked_point(Point(x, y, crs=crs)))
        return self.of_shapely(shape_of(value), crs)

    def of_shapely(self, geometry: Any, crs: Crs | None) -> Region | Point:
        """Return the region or point of a Shapely geometry; points, lines and collections are buffered if asked."""
        kind = geometry.geom_type
        if kind in POLYGONAL:
            return self._projected_region(Region.from_shapely(geometry, crs=crs))
        if kind == POINT and self.buffer is None:
            return self._projected_point(_checked_point(Point.from_shapely(geometry, crs=crs)))
        if self.buffer is None:
            raise _no_region(kind)
        return self._widened(geometry, crs)

    def of_column(self, column: Any) -> Iterator[tuple[int, Region | Point | Rejection]]:
        """Yield the regions and points of an Arrow column of WKB or GeoArrow with their rows, and rejections."""
        mixed, is_changing = parts_by_crs(column), self.is_changing
        for part in mixed.parts:
            for row, value in zip(part.rows.tolist(), part.column, strict=True):
                yield row, self._tried(row, value) if is_changing else value
        for item in mixed.rejected:
            is_other = self.buffer is not None and item.fault in OTHER_TYPES
            yield item.row, self._tried_wkb(item, column) if is_other else item

    def changed(self, value: Region | Point) -> Region | Point:
        """Reproject a region or point, and buffer a point."""
        crs = self.input_crs(None) if value.crs is None else value.crs
        if isinstance(value, Region):
            if value.crs is None and crs is not None:
                value = Region.from_shapely(value.to_shapely(), crs=crs)
            return self._projected_region(value)
        point = _checked_point(Point(value.x, value.y, crs=crs))
        return self._projected_point(point) if self.buffer is None else self._widened(point.to_shapely(), crs)

    def _tried(self, row: int, value: Region | Point) -> Region | Point | Rejection:
        try:
            return self.changed(value)
        except ContradaError as error:
            return Rejection(row, str(error), FaultCode.VALUE)

    def _tried_wkb(self, item: Rejection, column: Any) -> Region | Point | Rejection:
        """Buffer a line, a multipoint or a collection of a column."""
        data = column[item.row].as_py()
        geometry = shapes_from_wkb([data]).geometries[0] if isinstance(data, bytes) else None
        if geometry is None:
            return item
        try:
            srid = int(shapely.get_srid(geometry)) % (1 << 32)
            return self.of_shapely(geometry, common_crs(crs_of_type(column.type), srid or None) or self.input_crs(None))
        except ContradaError as error:
            return Rejection(item.row, str(error), item.fault)

    def _projected_point(self, point: Point) -> Point:
        if self.to_crs is None:
            return point
        ((x, y),) = self._projected(np.array([[point.x, point.y]]), point.crs)
        return Point(x, y, crs=self.to_crs)

    def _projected_region(self, region: Region) -> Region:
        if self.to_crs is None:
            return region
        moved = shapely.transform(region.to_shapely(), lambda xy: self._projected(xy, region.crs))
        return Region.from_wkb(shapely.to_wkb(moved), crs=self.to_crs)

    def _projected(self, xy: NDArray[np.float64], crs: Crs | None) -> NDArray[np.float64]:
        """Reproject vertices; one that cannot be reprojected is a RegionError that names it."""
        assert self.to_crs is not None
        if crs is None:
            raise CrsError(f"cannot reproject to {self.to_crs.label}: the input names no CRS; pass crs=")
        moved = self.moved(xy, crs)
        lost = ~np.isfinite(moved).all(axis=1)
        if lost.any():
            raise RegionError(self.no_place(xy[int(np.argmax(lost))]))
        return moved

    def moved(self, xy: NDArray[np.float64], crs: Crs) -> NDArray[np.float64]:
        """Reproject vertices; those that cannot be reprojected become non-finite."""
        assert self.to_crs is not None
        transformer = _transformer(crs, self.to_crs)
        return np.column_stack(transformer.transform(xy[:, 0], xy[:, 1], errcheck=False))

    def no_place(self, vertex: NDArray[np.float64]) -> str:
        """Return why a vertex cannot be reprojected."""
        return f"vertex {vertex.tolist()} cannot be reprojected to {None if self.to_crs is None else self.to_crs.label}"

    def _widened(self, geometry: Any, crs: Crs | None) -> Region:
        """Return the region of a geometry whose points and lines are buffered."""
        if shapely.is_empty(geometry) or not np.isfinite(shapely.get_coordinates(geometry)).all():
            raise RegionError("empty geometry, or coordinates that are not finite")
        geometry = shapely.set_srid(geometry, 0)  # the CRS is passed separately, and may change
        target = crs if self.to_crs is None else self.to_crs
        if target is not None and is_geographic(target):
            raise _degrees(target)
        if self.to_crs is not None:
            geometry = shapely.transform(geometry, lambda xy: self._projected(xy, crs))
        try:
            parts = [
                part if part.geom_type == "Polygon" else shapely.buffer(part, self.buffer, quad_segs=16)
                for part in shapely.get_parts(_flat(geometry))
            ]
            whole = parts[0] if len(parts) == 1 else shapely.unary_union(parts)
        except shapely.errors.ShapelyError as error:
            raise RegionError(f"the buffer is not a valid region: {error}") from error
        return Region.from_shapely(whole, crs=target)


UNCHANGED = Spatial()


def _checked_point(point: Point) -> Point:
    inside = -180 <= point.x <= 180 and -90 <= point.y <= 90
    if not inside and point.crs is not None and is_geographic(point.crs):
        raise RegionError(f"({point.x}, {point.y}) is outside longitude -180..180, latitude -90..90")
    return point


def _flat(geometry: Any) -> Any:
    """Flatten multi-geometries and nested collections into one collection of single geometries."""
    parts = [geometry]
    while any(part.geom_type.startswith(("Multi", "GeometryCollection")) for part in parts):
        parts = [inner for part in parts for inner in shapely.get_parts(part)]
    return shapely.GeometryCollection(parts)


@lru_cache(maxsize=64)
def _transformer(crs: Crs, to_crs: Crs) -> Any:
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    try:
        return Transformer.from_crs(str(crs), str(to_crs), always_xy=True)
    except ProjError as error:
        raise CrsError(f"cannot reproject from {crs.label} to {to_crs.label}: {error}") from error


def _degrees(crs: Crs) -> CrsError:
    return CrsError(f"buffer: the units of {crs.label} are degrees; pass to_crs= to reproject to a CRS in metres")


def _no_region(kind: str) -> RegionError:
    return RegionError(f"need a region or point, got {kind}; buffer= makes a region of it")
