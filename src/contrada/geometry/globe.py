"""Regions on the globe: across the date line, around a pole, and with edges along geodesics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.errors import ArgumentError, CrsError, LimitError, RegionError
from contrada.geometry.crs import Crs, is_geographic
from contrada.limits import limit, variable

Wrap = Literal["longitude", "shorter"]
WRAPS: tuple[Wrap, Wrap] = ("longitude", "shorter")
HALF, WHOLE, POLE = 180.0, 360.0, 90.0
LONGEST_EDGE = 1_000_000.0  # metres; longer edges are halved before their distance from the geodesic is judged
FINEST = 0.001  # metres; far below, the distance of edges from geodesics is that of rounding
SAFETY = 0.5  # the largest distance found at three places is at least this share of the largest of all


class Globe(NamedTuple):
    """How regions in longitude and latitude are read: `wrap`, and metres that edges may be away from geodesics."""

    wrap: Wrap | None = None
    densify: float | None = None

    @classmethod
    def of(cls, wrap: Any, densify: Any) -> Globe | None:
        """Return the options, checked; None if there are none."""
        if wrap is None and densify is None:
            return None
        if wrap is not None and not (isinstance(wrap, str) and wrap in WRAPS):
            raise ArgumentError(f"wrap: need 'longitude' or 'shorter', got {wrap!r:.60}")
        if densify is not None and not (isinstance(densify, int | float) and FINEST <= densify < float("inf")):
            raise ArgumentError(f"densify: need a number of metres, at least {FINEST}, got {densify!r:.60}")
        return cls(wrap, densify)

    def check_crs(self, crs: Crs | None) -> None:
        """Raise a CrsError if the coordinates are known not to be longitude and latitude."""
        if crs is not None and not is_geographic(crs):
            option = "wrap" if self.wrap is not None else "densify"
            raise CrsError(f"{option}: {crs.label} is not in degrees of longitude and latitude")


def globes_of(wrap: Any) -> dict[str, Globe]:
    """Return how attributes are wrapped, by attribute, from a mapping to "longitude" or "shorter"; None is none.

    >>> globes_of({"area": "longitude"})
    {'area': Globe(wrap='longitude', densify=None)}
    """
    if wrap is None:
        return {}
    if not isinstance(wrap, Mapping):
        raise ArgumentError(f"wrap: need a mapping from attributes to 'longitude' or 'shorter', got {wrap!r:.60}")
    made: dict[str, Globe] = {}
    for name, mode in wrap.items():
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"wrap: need names of attributes, got {name!r:.60}")
        if not isinstance(mode, str) or mode not in WRAPS:
            raise ArgumentError(f"wrap: attribute {name!r:.60}: need 'longitude' or 'shorter', got {mode!r:.60}")
        made[name] = Globe(WRAPS[WRAPS.index(mode)])
    return made


def wraps_of(globes: Mapping[str, Globe]) -> dict[str, str]:
    """Return the mapping from attributes to modes that `globes_of` takes."""
    return {name: globe.wrap for name, globe in globes.items() if globe.wrap is not None}


def may_need_wrap(bounds: NDArray[np.float64], wrap: Wrap) -> NDArray[np.bool_]:
    """Return which regions with these boxes may have to be wrapped; the others stay as they are."""
    width = bounds[:, 2] - bounds[:, 0]
    is_wide = width > HALF if wrap == "shorter" else width >= WHOLE
    return np.asarray(is_wide | ~((bounds[:, 0] >= -HALF) & (bounds[:, 2] <= HALF)))


def needs_wrap(xy: NDArray[np.float64], ring_offsets: NDArray[np.int64], wrap: Wrap) -> NDArray[np.bool_]:
    """Return which rings leave longitude -180..180, have an edge that takes the longer way, or surround a pole."""
    far = ~(np.abs(xy[:, 0]) <= HALF)
    ends = ring_offsets[1:][np.diff(ring_offsets) > 0]
    starts = ring_offsets[:-1][np.diff(ring_offsets) > 0]
    if wrap == "shorter":
        steps = np.zeros(len(xy), bool)
        is_pole = np.abs(xy[:, 1]) == POLE
        steps[1:] = (np.abs(np.diff(xy[:, 0])) > HALF) & ~(is_pole[1:] & is_pole[:-1])
        steps[ring_offsets[:-1][ring_offsets[:-1] < len(xy)]] = False  # no edge leads from one ring to the next
        steps[starts] |= (np.abs(xy[ends - 1, 0] - xy[starts, 0]) > HALF) & ~(is_pole[ends - 1] & is_pole[starts])
        far |= steps
    else:
        first, last, before = xy[starts], xy[ends - 1], xy[np.maximum(ends - 2, starts)]
        is_around = _are_a_turn_apart(first, last) | (_are_a_turn_apart(first, before) & (first == last).all(axis=1))
        for start, end in zip(starts[is_around].tolist(), ends[is_around].tolist(), strict=True):
            far[start] |= _once_around(xy[start:end]) is not None
    counts = np.concatenate([[0], np.cumsum(far)])
    return np.asarray(counts[ring_offsets[1:]] > counts[ring_offsets[:-1]])


def _are_a_turn_apart(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray((np.abs(a[:, 0] - b[:, 0]) == WHOLE) & (a[:, 1] == b[:, 1]))


def _once_around(ring: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the outline of a ring that goes once around the globe by its longitudes; None for other rings.

    Such a ring is left open, and ends one turn away from its first vertex. A ring that was closed is one of the plane,
    such as the box -180..180 by 60..90, unless it runs along one parallel: then it has no area in the plane.
    """
    if len(ring) > 3 and (ring[0] == ring[-1]).all() and (ring[:, 1] == ring[0, 1]).all():
        ring = ring[:-1]
    if len(ring) < 3 or not _are_a_turn_apart(ring[:1], ring[-1:])[0]:
        return None
    return None if np.abs(np.diff(ring[:, 0])).max() >= WHOLE else ring


def wrapped_polygons(parts: list[list[NDArray[np.float64]]], wrap: Wrap) -> Any:
    """Return the Shapely region of parts (shell, holes) within longitude -180..180; None if a part is not valid."""
    made = []
    for rings in parts:
        outlines = [_unrolled(ring, wrap) for ring in rings if len(ring)]
        if not outlines or any(outline is None or not outline.is_valid for outline in outlines):
            return None
        shell, *holes = outlines
        region = _folded(shell)
        for hole in holes:
            inner = _folded(hole)
            if not shapely.covered_by(inner, region):
                return None
            region = shapely.difference(region, inner)
        made += [part for part in shapely.get_parts(region) if part.geom_type == "Polygon"]
    whole = shapely.union_all(made) if len(parts) > 1 else shapely.MultiPolygon(made)
    parts_left = [part for part in shapely.get_parts(whole) if part.geom_type == "Polygon"]
    return shapely.MultiPolygon(parts_left) if parts_left else None


def _unrolled(ring: NDArray[np.float64], wrap: Wrap) -> Any:
    """Return the polygon of a ring with continuous longitudes; one that goes around a pole is closed over it."""
    if len(ring) < 3 or not np.isfinite(ring).all():
        return None
    around = _once_around(ring) if wrap == "longitude" else None
    if around is not None:
        polygon = _polygon_of(_over_the_pole(around))
        if polygon.is_valid:  # otherwise the outline runs back along a meridian: a shape of the plane, left open
            return polygon
    closed = ring if (ring[0] == ring[-1]).all() else np.concatenate([ring, ring[:1]])
    if wrap == "shorter":
        steps = np.diff(closed[:, 0])
        is_pole = np.abs(closed[:, 1]) == POLE  # an edge along a pole is a place, of any length
        is_long = (np.abs(steps) > HALF) & ~(is_pole[1:] & is_pole[:-1])
        turns = np.where(is_long, -WHOLE * np.round(steps / WHOLE), 0.0)
        shifts = np.concatenate([[0.0], np.cumsum(turns)])
        closed = np.column_stack([closed[:, 0] + shifts, closed[:, 1]])
        if shifts[-1] != 0:
            closed = _over_the_pole(closed)
    return _polygon_of(closed)


def _polygon_of(closed: NDArray[np.float64]) -> Any:
    xmin, xmax = closed[:, 0].min(), closed[:, 0].max()
    if xmax - xmin > WHOLE:
        raise RegionError(f"longitudes {xmin}..{xmax} are more than 360 degrees apart")
    return shapely.Polygon(closed)


def _over_the_pole(chain: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ring between an outline that goes once around the globe and the pole on its side."""
    if abs(chain[-1, 0] - chain[0, 0]) != WHOLE:
        raise RegionError("the outline goes around the globe more than once")
    low, high = chain[:, 1].min(), chain[:, 1].max()
    if low < 0 < high or low == high == 0:
        raise RegionError(f"the outline goes around the globe on both sides of the equator ({low}..{high})")
    pole = POLE if high > 0 else -POLE
    return np.concatenate([chain, [[chain[-1, 0], pole], [chain[0, 0], pole], chain[0]]])


def _folded(polygon: Any) -> Any:
    """Return a polygon of any longitudes, at most 360 degrees wide, as a region within -180..180."""
    xmin, _, xmax, _ = polygon.bounds
    turn = np.floor((xmin + HALF) / WHOLE)
    seam = HALF + turn * WHOLE
    if xmax <= seam:
        return _moved(polygon, -turn * WHOLE)
    cut = _with_vertices_at(polygon, seam)
    low, high = polygon.bounds[1] - 1, polygon.bounds[3] + 1
    west = shapely.intersection(cut, shapely.box(seam - WHOLE, low, seam, high))
    east = shapely.intersection(cut, shapely.box(seam, low, seam + WHOLE, high))
    pieces = [_moved(west, -turn * WHOLE), _moved(east, -(turn + 1) * WHOLE)]
    return shapely.union_all([p for piece in pieces for p in shapely.get_parts(piece) if p.geom_type == "Polygon"])


def _with_vertices_at(polygon: Any, seam: float) -> Any:
    """Return the polygon with a vertex wherever an edge crosses the meridian, computed once for both sides."""
    xy = shapely.get_coordinates(polygon.exterior)
    a, b = xy[:-1], xy[1:]
    crossing = (a[:, 0] < seam) != (b[:, 0] < seam)
    crossing &= (a[:, 0] != seam) & (b[:, 0] != seam)
    places = np.flatnonzero(crossing)
    # From west to east, so that neighbours, whose rings run the other way, get the same vertex.
    is_eastward = (a[places, 0] < b[places, 0])[:, np.newaxis]
    west, east = np.where(is_eastward, a[places], b[places]), np.where(is_eastward, b[places], a[places])
    share = (seam - west[:, 0]) / (east[:, 0] - west[:, 0])
    new = np.column_stack([np.full(len(places), seam), west[:, 1] + share * (east[:, 1] - west[:, 1])])
    return shapely.Polygon(np.insert(xy, places + 1, new, axis=0))


def _moved(polygon: Any, by: float) -> Any:
    return polygon if by == 0 else shapely.transform(polygon, lambda xy: xy + np.array([by, 0.0]))


def wrapped_longitudes(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points with longitudes within -180..180; those there already, also 180 itself, do not change.

    >>> wrapped_longitudes(np.array([[190.0, 5], [-540.0, 0], [180.0, 1]])).tolist()
    [[-170.0, 5.0], [-180.0, 0.0], [180.0, 1.0]]
    """
    x = xy[:, 0]
    turned = np.fmod(x, WHOLE)  # exact, as is the step of one turn after it
    return np.column_stack([turned - WHOLE * (turned > HALF) + WHOLE * (turned < -HALF), xy[:, 1]])


def densified_ring(ring: NDArray[np.float64], metres: float, crs: Crs | None) -> NDArray[np.float64]:
    """Return a closed ring with vertices added on the geodesics of its edges, which then stay within `metres` of them.

    Edges are straight in longitude and latitude. Along a geodesic as along an edge, the distance of both grows and
    falls once where neither is long, so it is measured at three places of each edge.
    """
    geod = _geod(crs)
    while True:
        a, b = ring[:-1], ring[1:]
        wide = (np.abs(b[:, 0] - a[:, 0]) > HALF) & ~((np.abs(a[:, 1]) == POLE) & (np.abs(b[:, 1]) == POLE))
        if wide.any():
            k = int(np.argmax(wide))
            raise RegionError(
                f"densify: the edge from {a[k].tolist()} to {b[k].tolist()} is longer than 180 degrees, so its geodesic"
                " goes the other way round"
            )
        azimuth, _, length = geod.inv(a[:, 0], a[:, 1], b[:, 0], b[:, 1])
        length = np.asarray(length)
        is_pole = (np.abs(a[:, 1]) == POLE) & (np.abs(b[:, 1]) == POLE)  # one place
        is_meridian = a[:, 0] == b[:, 0]
        off = np.zeros(len(a))
        middle = a
        for share in (0.25, 0.5, 0.75):
            x, y, _ = geod.fwd(a[:, 0], a[:, 1], azimuth, length * share)
            place = a + share * (b - a)
            x = np.asarray(x) + WHOLE * np.round((place[:, 0] - np.asarray(x)) / WHOLE)
            off = np.maximum(off, geod.inv(x, y, place[:, 0], place[:, 1])[2])
            middle = np.column_stack([x, y]) if share == 0.5 else middle
        split = np.flatnonzero(~is_pole & ~is_meridian & ((off > SAFETY * metres) | (length > LONGEST_EDGE)))
        if not len(split):
            return ring
        if len(ring) + len(split) > limit("vertices"):
            raise LimitError(f"densify: more than {limit('vertices')} vertices ({variable('vertices')})")
        ring = np.insert(ring, split + 1, middle[split], axis=0)


def _geod(crs: Crs | None) -> Any:
    from pyproj import CRS, Geod

    return Geod(ellps="WGS84") if crs is None else CRS.from_user_input(str(crs)).get_geod()
