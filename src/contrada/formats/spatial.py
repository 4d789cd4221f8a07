"""Read geometry as regions and points, reprojected and buffered if asked: single values, and columns as WKB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple, overload

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.errors import ContradaError, CrsError, FormatError, RegionError
from contrada.formats.geojson.shapes import LINEAR, POINT, POLYGONAL, coordinates_of, shape_of, wkb_of_geojson
from contrada.geometry import Circle, Line, LineArray, Point, PointArray, Region, RegionArray, Rejection
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.mixed import ValueRows, crs_of_type, mixed_on_globe, parts_by_crs, sift_mixed
from contrada.geometry.circle import NOT_WRAPPED, leaves_world
from contrada.geometry.circle import TYPE as CIRCLE
from contrada.geometry.crs import Crs, common_crs, is_geographic
from contrada.geometry.faults import FaultCode
from contrada.geometry.globe import HALF, WHOLE, Globe, wrapped_longitudes
from contrada.geometry.globe_reading import region_on_globe, wrapped_column
from contrada.geometry.interchange import polygons_to_wkb
from contrada.geometry.line_column import sift_lines
from contrada.geometry.line_relating import AnyValue
from contrada.geometry.reading import sift_regions
from contrada.geometry.sources import RawRegions, raw_from_geojson, raw_from_shapely, raw_from_wkb
from contrada.geometry.wellknown import shapes_from_wkb

NO_CRS = "none"
_COLLECTIONS = (4, 5, 6, 7)  # Shapely's numbers of the types with several parts
_NO_ROWS = np.empty(0, np.int64)
OTHER_TYPES = (FaultCode.POINT, FaultCode.WRONG_TYPE)  # a buffer makes regions of these


class Spatial:
    """How geometry is read: its CRS, the CRS to reproject to, and the buffer around points and lines.

    `crs` is the CRS of input that names none; "none" means no CRS (GeoJSON is then plain coordinates). All geometry is
    reprojected to `to_crs`, vertex by vertex. `buffer`, in units of the resulting CRS, turns points and lines into
    regions. Polygons are never buffered. `globe` wraps and densifies regions, and wraps points, of columns, before they
    are reprojected. `globes` are those of attributes: `at` returns the reading of one of them, which wraps its values.

    >>> Spatial(crs="none", buffer=1.0).of_geojson({"type": "Point", "coordinates": [5, 5]}).bounds
    (4.0, 4.0, 6.0, 6.0)
    """

    def __init__(
        self,
        crs: Any = None,
        to_crs: Any = None,
        buffer: float | None = None,
        globe: Globe | None = None,
        globes: Mapping[str, Globe] = MappingProxyType({}),
    ) -> None:
        if buffer is not None and not 0 < buffer < float("inf"):
            raise FormatError(f"buffer: need a positive number, got {buffer}")
        self.crs: str | None = NO_CRS if crs is NO_CRS or crs == NO_CRS else Crs.of(crs)
        self.to_crs, self.buffer, self.globe = Crs.of(to_crs), buffer, globe
        self.globes = globes
        self._at = {name: Spatial(crs, to_crs, buffer, own) for name, own in globes.items()}
        target = self.to_crs or self.input_crs(None)
        if target is not None and is_geographic(target) and buffer is not None:
            raise _degrees(target)

    def changes(self, attribute: str, value: Any) -> bool:
        """Return True if a value may be wrapped, as that of an attribute, or is a circle or in another CRS."""
        globe = self.globes[attribute]
        if isinstance(value, Circle):
            return True
        if not isinstance(value, Region | Point) or (value.crs is not None and not is_geographic(value.crs)):
            return isinstance(value, Region | Point)
        return _is_far(value, globe) if isinstance(value, Region) else abs(value.x) > HALF

    def for_input_in(self, crs: Any) -> Spatial:
        """Return the same reading for input of a CRS that is known."""
        return Spatial(crs, self.to_crs, self.buffer, self.globe, self.globes)

    def at(self, attribute: str) -> Spatial:
        """Return the reading of the values of an attribute.

        >>> reading = Spatial(globes={"at": Globe("longitude")})
        >>> reading.at("at").changed(Point(190, 5)), reading.at("other").changed(Point(190, 5))
        (Point(-170.0, 5.0), Point(190.0, 5.0))
        """
        return self._at.get(attribute, self)

    @property
    def is_changing(self) -> bool:
        """Return True if geometry may be changed, or its CRS set."""
        return self._is_moving or self._wrapping is not None

    @property
    def _is_moving(self) -> bool:
        return self.to_crs is not None or self.buffer is not None or self.crs is not None

    @property
    def _wrapping(self) -> Globe | None:
        return None if self.globe is None or self.globe.wrap is None else self.globe

    def input_crs(self, default: str | None) -> Crs | None:
        """Return the CRS of input that names none, given the default of its format."""
        return Crs.of(default if self.crs is None else None if self.crs == NO_CRS else self.crs)

    def of_geojson(self, value: Mapping[str, Any], default: str | None = None) -> AnyValue:
        """Return the region, point or line of a GeoJSON geometry object, or the circle of an object like one."""
        crs, kind = self.input_crs(default), value["type"]
        if kind == CIRCLE:
            return self._placed_circle(Circle.from_geojson(value, crs=crs))
        if kind in POLYGONAL:
            quick = partial(_region_of_geojson, value, crs)
            return self._projected_region(self._region(quick, partial(raw_from_geojson, [value]), crs))
        if kind == POINT and self.buffer is None:
            x, y, *_ = coordinates_of(kind, value.get("coordinates"))
            return self._projected_point(_checked_point(self._wrapped_point(Point(x, y, crs=crs))))
        return self.of_shapely(shape_of(value), crs)

    def of_shapely(self, geometry: Any, crs: Crs | None) -> Region | Point | Line:
        """Return the value of a Shapely geometry; points, lines and collections are buffered if asked."""
        kind = geometry.geom_type
        if kind in POLYGONAL:
            quick = partial(Region.from_shapely, geometry, crs=crs)
            return self._projected_region(self._region(quick, partial(raw_from_shapely, [geometry]), crs))
        if kind == POINT and self.buffer is None:
            point = self._wrapped_point(Point.from_shapely(geometry, crs=crs))
            return self._projected_point(_checked_point(point))
        if kind in LINEAR and self.buffer is None:
            return self._projected_line(self._unwrapped_line(Line.from_shapely(geometry, crs=crs)))
        if self.buffer is None:
            raise RegionError(f"need a region, point or line, got {kind}; buffer= makes a region of it")
        return self._widened(geometry, crs)

    def of_wkb(self, data: bytes) -> Region:
        """Return the region of WKB or EWKB."""
        region = self._region(partial(Region.from_wkb, data), partial(raw_from_wkb, [data]), None)
        return self._moved_region(region) if self._is_moving else region

    def of_column(self, column: Any) -> Iterator[tuple[int, AnyValue | Rejection]]:
        """Yield the regions, points and circles of an Arrow column with their rows, and rejections."""
        mixed = mixed_on_globe(column, self._wrapping, self.to_crs is not None, circles=True)
        is_changing = self.is_changing
        for part in mixed.with_circles:
            values: Iterable[AnyValue] = part.column
            for row, value in zip(part.rows.tolist(), values, strict=True):
                yield row, self._tried(row, value) if is_changing else value
        for item in mixed.rejected:
            is_other = self.buffer is not None and item.fault in OTHER_TYPES
            yield item.row, self._tried_wkb(item, column) if is_other else item

    @overload
    def changed(self, value: Circle) -> Circle: ...
    @overload
    def changed(self, value: Region | Point | Line) -> Region | Point | Line: ...
    def changed(self, value: AnyValue) -> AnyValue:
        """Wrap and reproject a region or point, and buffer points and lines; a circle only gets a CRS."""
        if isinstance(value, Line):
            if not self._is_moving:
                return self._unwrapped_line(value)
            return self.of_shapely(value.to_shapely(), value.crs or self.input_crs(None))
        if isinstance(value, Circle):
            crs = value.crs or self.input_crs(None)
            return self._placed_circle(value if crs is value.crs else Circle(value.center, value.radius, crs=crs))
        if isinstance(value, Region):
            region = self._wrapped_region(value)
            return self._moved_region(region) if self._is_moving else region
        value = self._wrapped_point(value)
        if not self._is_moving:
            return value
        crs = value.crs or self.input_crs(None)
        point = _checked_point(Point(value.x, value.y, crs=crs))
        return self._projected_point(point) if self.buffer is None else self._widened(point.to_shapely(), crs)

    def _moved_region(self, region: Region) -> Region:
        crs = region.crs or self.input_crs(None)
        is_named = region.crs is not None or crs is None
        return self._projected_region(region if is_named else Region.from_shapely(region.to_shapely(), crs=crs))

    def _globe_for(self, crs: Crs | None) -> Globe | None:
        """Return how values in `crs` are wrapped; None if they are not, or only once they are reprojected."""
        globe = self._wrapping
        if globe is None or (crs is not None and self.to_crs is not None and not is_geographic(crs)):
            return None
        globe.check_crs(crs)
        return globe

    def _wrapped_point(self, point: Point) -> Point:
        if self._globe_for(point.crs or self.input_crs(None)) is None or abs(point.x) <= HALF:
            return point
        ((x, y),) = wrapped_longitudes(np.array([[point.x, point.y]])).tolist()
        return Point(x, y, crs=point.crs)

    def _wrapped_region(self, region: Region) -> Region:
        globe = self._globe_for(region.crs or self.input_crs(None))
        if globe is None or not _is_far(region, globe):
            return region
        return Region._from_column(wrapped_column(region._column, globe.wrap, region.crs))

    def _region(self, quick: Callable[[], Region], raw: Callable[[], RawRegions], crs: Crs | None) -> Region:
        """Return the region that `quick` reads; one that may have to be wrapped is read again from raw arrays."""
        if self._wrapping is None:
            return quick()
        try:
            region = quick()
        except RegionError:
            globe = self._globe_for(crs)
            if globe is None:
                raise
        else:
            globe = self._globe_for(region.crs)
            if globe is None or not _is_far(region, globe):
                return region
        return Region._from_column(region_on_globe(raw(), crs, globe))

    def _tried(self, row: int, value: AnyValue) -> AnyValue | Rejection:
        try:
            return self.changed(value)
        except ContradaError as error:
            return Rejection(row, str(error), FaultCode.VALUE)

    def _tried_wkb(self, item: Rejection, column: Any) -> Region | Point | Line | Rejection:
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

    def _placed_circle(self, circle: Circle) -> Circle:
        """Return a circle; raise if it would have to be wrapped or reprojected, after which it is no circle."""
        if self._globe_for(circle.crs or self.input_crs(None)) is not None and leaves_world(circle):
            raise RegionError(NOT_WRAPPED)
        _checked_point(circle.center)
        if self.to_crs is not None and circle.crs != self.to_crs:
            raise CrsError(
                f"a circle cannot be reprojected to {self.to_crs.label}, where it is no circle; give a polygon,"
                " or a point with buffer="
            )
        return circle

    def _projected_point(self, point: Point) -> Point:
        if self.to_crs is None:
            return point
        ((x, y),) = self._projected(np.array([[point.x, point.y]]), point.crs)
        return Point(x, y, crs=self.to_crs)

    def _unwrapped_line(self, line: Line) -> Line:
        """Return a line; raise if it would have to be wrapped: a line that leaves the world is not cut."""
        is_far = max(-line.bounds[0], line.bounds[2]) > HALF
        if is_far and self._globe_for(line.crs or self.input_crs(None)) is not None:
            raise RegionError("the line leaves longitude -180..180, and lines are not wrapped; cut it there")
        return line

    def _projected_line(self, line: Line) -> Line:
        if self.to_crs is None or line.crs == self.to_crs:
            return line
        ends = np.cumsum([len(part) for part in line.parts])[:-1]
        moved = np.split(self._projected(np.concatenate(line.parts), line.crs), ends)
        return Line(*(part.tolist() for part in moved), crs=self.to_crs)

    def _projected_region(self, region: Region) -> Region:
        if self.to_crs is None or region.crs == self.to_crs:
            return region
        rings = [ring for shell, holes in region.parts for ring in (shell, *holes)]
        ends = np.cumsum([len(ring) for ring in rings])[:-1]
        moved = iter(np.split(self._projected(np.concatenate(rings), region.crs), ends))
        parts = [(next(moved), tuple(next(moved) for _ in holes)) for _, holes in region.parts]
        return Region.from_wkb(polygons_to_wkb(parts), crs=self.to_crs)

    def _projected(self, xy: NDArray[np.float64], crs: Crs | None) -> NDArray[np.float64]:
        """Reproject vertices; one that cannot be reprojected is a RegionError that names it."""
        moved = self.moved(xy, crs)
        lost = ~np.isfinite(moved).all(axis=1)
        if lost.any():
            raise RegionError(self.no_place(xy[int(np.argmax(lost))]))
        return moved

    def moved(self, xy: NDArray[np.float64], crs: Crs | None) -> NDArray[np.float64]:
        """Reproject vertices; those that cannot be reprojected become non-finite."""
        assert self.to_crs is not None
        crs = Crs.of(crs)
        if crs is None:
            raise CrsError(f"cannot reproject to {self.to_crs.label}: the input names no CRS; pass crs=")
        if crs == self.to_crs or (crs.epsg is not None and crs.epsg == self.to_crs.epsg):
            return xy  # x comes before y whatever the order of the axes, so PROJ would copy all numbers
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
                for part in _flat(geometry)
            ]
            whole = parts[0] if len(parts) == 1 else shapely.unary_union(parts)
        except shapely.errors.ShapelyError as error:
            raise RegionError(f"the buffer is not a valid region: {error}") from error
        return Region.from_shapely(whole, crs=target)


UNCHANGED = Spatial()


def _is_far(region: Region, globe: Globe) -> bool:
    """Return True if a region may have to be wrapped."""
    xmin, xmax = region._leading_box.item(0), region._leading_box.item(2)  # `may_need_wrap` takes 5 us for one box
    if not (xmin >= -HALF and xmax <= HALF):
        return True
    return bool(xmax - xmin > HALF if globe.wrap == "shorter" else xmax - xmin >= WHOLE)


def _region_of_geojson(value: Mapping[str, Any], crs: Crs | None) -> Region:
    return Region.from_wkb(wkb_of_geojson(value), crs=crs)


def _checked_point(point: Point) -> Point:
    inside = -180 <= point.x <= 180 and -90 <= point.y <= 90
    if not inside and point.crs is not None and is_geographic(point.crs):
        raise RegionError(f"({point.x}, {point.y}) is outside longitude -180..180, latitude -90..90")
    return point


def _flat(geometry: Any) -> NDArray[np.object_]:
    """Return the single geometries of a multi-geometry or a nested collection."""
    parts: NDArray[np.object_] = shapely.get_parts([geometry])
    while np.isin(shapely.get_type_id(parts), _COLLECTIONS).any():
        parts = shapely.get_parts(parts)
    return parts


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


class Kept(NamedTuple):
    """The good rows of a geometry column as an Arrow column of WKB, in order; the others with reasons.

    `rows[k]` is the input row of value k; `repaired` lists the input rows that were repaired.
    """

    wkb: Any
    rows: NDArray[np.int64]
    rejected: tuple[Rejection, ...]
    repaired: NDArray[np.int64]


def sift_column(column: Any, spatial: Spatial, crs: Crs | None = None, repair: bool = False) -> Kept:
    """Sift an Arrow column of WKB or GeoArrow according to `spatial`; nulls are rejected, too.

    `crs` is the CRS of the column; a row whose SRID names another is rejected, unless all are reprojected. Whole
    columns are reprojected at once; points and lines are buffered one by one.

    >>> import pyarrow as pa
    >>> squares = pa.chunked_array([[Region.box(0, 0, 1, 1).to_wkb(), None]])
    >>> kept = sift_column(squares, Spatial())
    >>> kept.rows.tolist(), kept.rejected[0].reason
    ([0], 'no geometry (null)')
    """
    from contrada.geometry.arrow.geoarrow import with_crs

    mixed = (sift_mixed if spatial.to_crs is None else parts_by_crs)(column, crs, repair, spatial.globe)
    rejected, repaired, done = list(mixed.rejected), [mixed.repaired], []
    widened = [_NO_ROWS]
    for part in mixed.parts:
        if isinstance(part.column, PointArray | LineArray) and spatial.buffer is not None:
            widened.append(part.rows)
            continue
        placed, bad, mended = _placed(part, spatial, repair)
        done.append(placed)
        rejected += bad
        repaired.append(mended)
    if spatial.buffer is not None:
        widened.append(np.array([bad.row for bad in rejected if bad.fault in OTHER_TYPES], np.int64))
        rejected = [bad for bad in rejected if bad.fault not in OTHER_TYPES]
        whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        placed, bad = _widened(with_crs(whole, crs), np.concatenate(widened), spatial)
        done.append(placed)
        rejected += bad
    rows = np.concatenate([_NO_ROWS, *(part.rows for part in done)])
    parts = [part.column.to_wkb() for part in done] or [pa.array([], pa.binary())]
    wkb = pa.concat_arrays(parts) if len(parts) > 1 else parts[0]
    mended = np.concatenate(repaired)
    kept_repaired = np.intersect1d(mended, rows) if len(mended) else mended
    if not (rows[1:] > rows[:-1]).all():
        order = np.argsort(rows, kind="stable")
        wkb, rows = wkb.take(pa.array(order)), rows[order]
    return Kept(wkb, rows, tuple(map(_told, sorted(rejected))), kept_repaired)


def _told(bad: Rejection) -> Rejection:
    """Add to the reason of a rejection that a buffer would help."""
    is_other = bad.fault in OTHER_TYPES
    return bad._replace(reason=f"{bad.reason}; buffer= makes a region of it") if is_other else bad


def _placed(part: ValueRows, spatial: Spatial, repair: bool) -> tuple[ValueRows, list[Rejection], NDArray[np.int64]]:
    """Reproject a column to `spatial.to_crs`; return it, rejections, and the rows that were repaired."""
    column, rows = part
    bad: list[Rejection] = []
    if isinstance(column, PointArray) and spatial.globe is not None and spatial.globe.wrap is not None:
        spatial.globe.check_crs(column.crs)
        column = PointArray(wrapped_longitudes(column.xy), crs=column.crs)
    if isinstance(column, PointArray) and column.crs is not None and is_geographic(column.crs):
        outside = (np.abs(column.xy) > [180, 90]).any(axis=1)
        bad = [_rejected(int(rows[k]), f"({x}, {y}) is outside longitude -180..180, latitude -90..90")
               for k, (x, y) in zip(np.flatnonzero(outside), column.xy[outside].tolist(), strict=True)]  # fmt: skip
        column, rows = column[~outside], rows[~outside]
    if spatial.to_crs is None or not len(rows):
        return ValueRows(column, rows), bad, _NO_ROWS
    geometries = shapely.set_srid(column.to_shapely(), 0)
    xy, owners = shapely.get_coordinates(geometries, return_index=True)
    moved = spatial.moved(xy, column.crs)
    lost, first = np.unique(owners[~np.isfinite(moved).all(axis=1)], return_index=True)
    vertices = xy[~np.isfinite(moved).all(axis=1)][first]
    bad += [_rejected(int(rows[k]), spatial.no_place(vertex)) for k, vertex in zip(lost, vertices, strict=True)]
    stays = ~np.isin(np.arange(len(rows)), lost)
    geometries, rows = shapely.set_coordinates(geometries, moved)[stays], rows[stays]
    if isinstance(column, PointArray):
        return ValueRows(PointArray.from_shapely(geometries, crs=spatial.to_crs), rows), bad, _NO_ROWS
    if isinstance(column, LineArray):
        lines = sift_lines("shapely", geometries, spatial.to_crs)
        bad += [item._replace(row=int(rows[item.row])) for item in lines.rejected]
        return ValueRows(lines.lines, rows[lines.rows]), bad, _NO_ROWS
    sifted = sift_regions("shapely", geometries, spatial.to_crs, repair)
    bad += [item._replace(row=int(rows[item.row])) for item in sifted.rejected]
    return ValueRows(sifted.regions, rows[sifted.rows]), bad, rows[sifted.repaired]


def _widened(column: Any, rows: NDArray[np.int64], spatial: Spatial) -> tuple[ValueRows, list[Rejection]]:
    """Return the regions around points, lines and collections."""
    regions: dict[int, Region] = {}  # by row
    bad: list[Rejection] = []
    for k, found in spatial.of_column(column.take(pa.array(rows))):
        if isinstance(found, Rejection):
            bad.append(found._replace(row=int(rows[k])))
        elif isinstance(found, Region):  # nothing else has been buffered
            regions[int(rows[k])] = found
    return ValueRows(RegionArray.from_regions(list(regions.values())), np.array(list(regions), np.int64)), bad


def _rejected(row: int, reason: str) -> Rejection:
    return Rejection(row, reason, FaultCode.OFF_THE_GLOBE)
