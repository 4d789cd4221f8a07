"""Turn the areas of CAP alerts into regions: polygons, circles, and codes looked up in a table of zones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.errors import FormatError, RegionError
from contrada.formats.cap.xml import Element
from contrada.geometry import Region, RegionArray
from contrada.geometry.crs import LONGITUDE_LATITUDE
from contrada.geometry.globe import Globe
from contrada.geometry.reading import read_regions

Zones = Mapping[tuple[str, str], Region]

CIRCLE_SIDES = 32  # of the polygon around a circle
_BEARINGS = [2 * math.pi * (k + 0.5) / CIRCLE_SIDES for k in range(CIRCLE_SIDES)]
_SINES, _COSINES = np.array([math.sin(b) for b in _BEARINGS]), np.array([math.cos(b) for b in _BEARINGS])
# The least radius of curvature of WGS 84, so that a circle of the same radius on the ellipsoid fits in, too.
MIN_CURVATURE_RADIUS_KM = 6335.43
_PAIR = re.compile(r"([+-]?\d+(?:\.\d*)?|[+-]?\.\d+),([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)\Z", re.ASCII)


class GeodesicCircle(NamedTuple):
    """A centre in degrees, and the angular distance of the vertices of the polygon around a circle, in radians."""

    longitude: float
    latitude: float
    angle: float


def regions_of_area(
    area: Element, zones: Zones, known: dict[str, dict[str, Region]], globe: Globe | None = None
) -> tuple[list[Region], list[str]]:
    """Return the regions of one area: its polygons and circles, or, if it has none, the zones of its codes.

    Also returns the codes without a known zone. An area may be coded in several systems; unknown codes of a system do
    not count if another system has known ones. `known` caches regions by kind and text; `globe` says how polygons are
    wrapped at the date line.
    """
    name = area.first("areaDesc") or "without a name"
    found: list[Region] = []
    try:
        for kind, read in (("polygon", partial(polygons_of, globe=globe)), ("circle", circles_of)):
            texts = [element.text for element in area.all(kind)]
            own = known.setdefault(kind, {})
            new = [text for text in dict.fromkeys(texts) if text not in own]
            own.update(zip(new, read(new), strict=True))
            found += [own[text] for text in texts]
    except (FormatError, RegionError) as error:
        raise FormatError(f"area {name!r}: {error}") from error
    if found:
        return found, []
    given = [(code.first("valueName") or "", code.first("value") or "") for code in area.all("geocode")]
    codes = list(dict.fromkeys(given))
    if not codes:
        raise FormatError(f"area {name!r}: need a polygon, circle or geocode")
    systems = {code[0] for code in codes if code in zones}
    unknown = [code for code in codes if code not in zones and (code[0] in systems or not systems)]
    shown = ", ".join(f"{system}={value}" for system, value in unknown)
    lost = [f"area {name!r}: unknown zones: {shown}"] if unknown else []
    return [zones[code] for code in codes if code in zones], lost


def polygons_of(texts: list[str], globe: Globe | None = None) -> list[Region]:
    """Return the regions of CAP polygons: at least four "lat,lon" pairs, the last equal to the first.

    >>> polygons_of(["38.47,-120.14 38.34,-119.95 38.52,-119.74 38.47,-120.14"])[0].bounds
    (-120.14, 38.34, -119.74, 38.52)
    """
    rings = [_ring_of(text) for text in texts]
    if globe is None:
        return [Region(ring, crs=LONGITUDE_LATITUDE) for ring in rings]
    read = read_regions([{"type": "Polygon", "coordinates": [ring]} for ring in rings], crs=LONGITUDE_LATITUDE,
                        wrap=globe.wrap)  # fmt: skip
    if read.rejected:
        raise RegionError(read.rejected[0].reason)
    return list(read.regions)


def _ring_of(text: str) -> list[tuple[float, float]]:
    ring = [_position(pair) for pair in text.split()]
    if len(ring) < 4:
        raise FormatError(f"polygon: need at least four points, got {len(ring)}")
    if ring[0] != ring[-1]:
        raise FormatError("polygon is not closed: the last point must equal the first")
    return ring


def _position(pair: str) -> tuple[float, float]:
    """Return longitude and latitude of a pair "lat,lon"."""
    found = _PAIR.match(pair)
    if found is None:
        raise FormatError(f"need a pair lat,lon, got {pair[:40]!r}")
    return float(found[2]), float(found[1])


def circles_of(texts: list[str]) -> list[Region]:
    """Return polygons of 32 sides that contain CAP circles "lat,lon radius", the radius in kilometres.

    If the sides were great circles, they would touch the circle on a sphere. They are straight lines in longitude and
    latitude, which run nearer to the equator, so the radius is first widened by more than that difference. The sphere
    has the least radius of curvature of the ellipsoid. All are checked at once: one by one 1,000 of them take 0.3 s.

    >>> [round(bound, 3) for bound in circles_of(["0,0 111.2"])[0].bounds]
    [-1.006, -1.006, 1.006, 1.006]
    """
    if not texts:
        return []
    rings = _around([_parse_circle(text) for text in texts])
    polygons = shapely.polygons(rings)
    for k in np.flatnonzero((np.abs(rings[:, :, 0]) > 180).any(axis=1)):
        polygons[k] = _cut_at_the_antimeridian(rings[k])
    made = read_regions(polygons, crs=LONGITUDE_LATITUDE)
    if made.rejected:
        raise RegionError(made.rejected[0].reason)
    return list(made.regions)


def _parse_circle(text: str) -> GeodesicCircle:
    parts = text.split()
    if len(parts) != 2:
        raise FormatError(f"need a circle such as 32.9,-115.9 10, got {text[:40]!r}")
    longitude, latitude = _position(parts[0])
    try:
        radius = float(parts[1])
    except ValueError as error:
        raise FormatError(f"radius: need a number of kilometres, got {parts[1][:40]!r}") from error
    if not 0 < radius < math.inf:
        raise FormatError(f"radius: need a positive number of kilometres, got {parts[1][:40]}")
    if not (-180 <= longitude <= 180 and -90 <= latitude <= 90):
        raise FormatError(f"the centre {parts[0][:40]} is outside latitude -90..90, longitude -180..180")
    angle = radius / MIN_CURVATURE_RADIUS_KM
    reach = math.radians(abs(latitude)) + 1.02 * angle
    if angle > 0.25 or reach > math.radians(85):
        raise FormatError(f"a circle of {parts[1][:40]} km at latitude {latitude} is too large or too close to a pole")
    angle *= 1 + 0.01 * angle * math.tan(reach) + 1e-9
    return GeodesicCircle(longitude, latitude, math.atan(math.tan(angle) / math.cos(math.pi / CIRCLE_SIDES)))


def _around(circles: list[GeodesicCircle]) -> NDArray[np.float64]:
    """Return the vertices around each centre, at its angular distance on the sphere; longitudes may exceed 180.

    Uses functions from `math`: the last bit of NumPy's depends on the processor.
    """
    centre = [math.radians(circle.latitude) for circle in circles]
    angle = [circle.angle for circle in circles]
    sine_of_centre, cosine_of_centre = _column(math.sin, centre), _column(math.cos, centre)
    sine_of_angle, cosine_of_angle = _column(math.sin, angle), _column(math.cos, angle)
    sine = sine_of_centre * cosine_of_angle + cosine_of_centre * sine_of_angle * _COSINES
    east = _SINES * sine_of_angle * cosine_of_centre
    north = cosine_of_angle - sine_of_centre * sine
    turns = np.degrees(list(map(math.atan2, east.ravel().tolist(), north.ravel().tolist()))).reshape(sine.shape)
    latitudes = np.degrees(list(map(math.asin, sine.ravel().tolist()))).reshape(sine.shape)
    return np.stack([np.array([[circle.longitude] for circle in circles]) + turns, latitudes], axis=2)


def _column(function: Callable[[float], float], values: list[float]) -> NDArray[np.float64]:
    return np.array([[function(value)] for value in values])


def _cut_at_the_antimeridian(ring: NDArray[np.float64]) -> Any:
    globe = shapely.box(-180, -90, 180, 90)
    turns = [np.column_stack([ring[:, 0] + turn, ring[:, 1]]) for turn in (-360, 0, 360)]
    parts = [shapely.intersection(shapely.Polygon(turn), globe) for turn in turns]
    return shapely.MultiPolygon([part for part in parts if part.geom_type == "Polygon" and not part.is_empty])


def united(regions: list[Region]) -> Region:
    """Unite regions into one: separate parts keep their coordinates; parts that overlap or share edges are merged.

    >>> united([Region.box(0, 0, 1, 1), Region.box(4, 0, 5, 1)]).to_wkt()
    'MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)), ((4 0, 5 0, 5 1, 4 1, 4 0)))'
    >>> united([Region.box(0, 0, 2, 1), Region.box(1, 0, 5, 1)]).area
    5.0
    """
    if len(regions) == 1:
        return regions[0]
    crs = regions[0].crs
    parts = list(shapely.get_parts(RegionArray.from_regions(regions).to_shapely()))
    try:
        return Region.from_shapely(shapely.MultiPolygon(parts), crs=crs)
    except RegionError:  # each is valid alone, so they overlap or share edges
        return Region.from_shapely(_merged(parts), crs=crs, repair=True)


def _merged(parts: list[Any]) -> Any:
    """Return the union of parts; a part that touches no other is kept as it is."""
    whole = shapely.get_parts(shapely.unary_union(parts))
    if len(whole) == 1:  # no part is alone, and locating every corner in a long boundary takes seconds
        return shapely.MultiPolygon(list(whole))
    xy, owners = shapely.get_coordinates(parts, return_index=True)
    corners = shapely.points(xy[np.searchsorted(owners, np.arange(len(parts)))])  # the first vertex of each part
    part, piece = shapely.STRtree(whole).query(corners, predicate="intersects")
    times = np.bincount(piece, minlength=len(whole))
    is_alone = times[piece] == 1
    whole[piece[is_alone]] = np.asarray(parts, object)[part[is_alone]]
    return shapely.MultiPolygon(list(whole))
