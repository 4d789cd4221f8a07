"""Turn raw arrays into a column of valid regions; invalid rows are rejected with reasons."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import GOOD, MAX_SCANNED_VERTICES
from contrada.geometry.arrays import Arrays, concatenate, frozen, take
from contrada.geometry.column import NO_CHAINS, KernelArrays, RegionArray, Sifted
from contrada.geometry.crs import Crs, common_crs, is_geographic, resolved
from contrada.geometry.faults import MENDABLE, FaultCode, Rejection, rejection
from contrada.geometry.sources import RawRegions, raw_from_shapely
from contrada.limits import limit, variable

_SPLIT = "for a region that crosses the antimeridian use wrap=, or split it into a MultiPolygon (RFC 7946, 3.1.9)"
USUAL_PAIRS_PER_EDGE, EDGES_PER_QUERY = 8, 64  # see _is_tangled


def sift(raw: RawRegions, crs: Any = None, repair: bool = False) -> Sifted:
    """Return the valid rows as a column, the others as rejections; `repair` repairs rows that can be repaired."""
    crs, foreign = resolved(raw.named, common_crs(raw.crs, crs))
    arrays, reports, places = _validate(raw)
    rows = np.flatnonzero(reports[:, 0] == GOOD)
    bad = np.flatnonzero(reports[:, 0] != GOOD)
    repaired = np.empty(0, np.int64)
    tangled: set[int] = set()
    if repair and bad.size:
        mendable = [int(row) for row in bad if reports[row, 0] in MENDABLE]
        tangled = {row for row in mendable if _is_tangled(raw, row)}
        mended, repaired = _repair(raw, [row for row in mendable if row not in tangled])
        order = np.argsort(np.concatenate([rows, repaired]), kind="stable")
        arrays = take(concatenate([arrays, mended]), order)
        rows = np.sort(np.concatenate([rows, repaired]))
        bad = np.setdiff1d(bad, repaired)
    found = (rejection(int(row), reports[row], places[row], int(raw.kinds[row])) for row in bad)
    rejected = tuple(_unrepaired(item) if item.row in tangled else item for item in found)
    sifted = Sifted(RegionArray(arrays, crs), rows, rejected, repaired)
    if foreign:
        is_foreign = np.isin(rows, list(foreign))
        sifted = _without(sifted, is_foreign, [foreign[row] for row in rows[is_foreign].tolist()])
    return _refuse_beyond_the_globe(sifted) if crs is not None else sifted


def _validate(raw: RawRegions) -> tuple[Arrays, NDArray[np.int64], NDArray[np.float64]]:
    """Return arrays of the good rows, and for every row (fault, part, ring) and the place of the fault."""
    n, n_rings = len(raw.faults), len(raw.ring_offsets) - 1
    xy = np.empty((len(raw.xy) + n_rings, 2))  # room to close every ring
    rings = np.empty(n_rings + 1, np.int64)
    flags = np.empty(n_rings, np.uint8)
    ring_bounds = np.empty((n_rings, 4))
    regions = np.empty(n + 1, np.int32)
    bounds = np.empty((n, 4))
    reports = np.zeros((n, 3), np.int64)
    places = np.zeros((n, 2))
    outputs: list[NDArray[Any]] = [xy, rings, flags, ring_bounds]
    inputs = [np.ascontiguousarray(array) for array in raw[:4]]
    kept = kernels.validate_regions(
        *inputs, *outputs, regions, bounds, *(frozen(array) for array in outputs), raw.faults, reports, places
    )
    n_rings = int(regions[kept])
    arrays = Arrays(
        _shrink(xy, int(rings[n_rings])),
        _shrink(rings, n_rings + 1),
        _shrink(regions, kept + 1),
        _shrink(flags, n_rings),
        _shrink(bounds, kept),
    )
    return arrays, reports, places


_ONE_REGION, _ONE_SHELL = frozen(np.array([0, 1], np.int32)), frozen(np.zeros(1, np.uint8))
_ONE_RING = [frozen(np.array([0, end])) for end in range(MAX_SCANNED_VERTICES + 1)]  # indexed by the number of vertices
_HEAD = 13  # bytes before the first vertex of a polygon of one ring


def read_one(data: bytes) -> NDArray[np.float64] | None:
    """Return the box and vertices of one WKB value if it is a valid small simple polygon, otherwise None.

    Messages come one at a time, and most are small: this takes little more time than the kernel. `arrays_of_one` makes
    the arrays that other kernels take, which a message that meets nothing never needs.
    """
    vertices = (len(data) - _HEAD) >> 4
    if not 4 <= vertices <= MAX_SCANNED_VERTICES:
        return None
    read = np.empty(4 + 2 * vertices)
    return read if kernels.read_polygon(np.frombuffer(data, np.uint8), read) else None


def arrays_of_one(read: NDArray[np.float64]) -> KernelArrays:
    """Return the arrays of a region that `read_one` read."""
    read.setflags(write=False)  # so are the views
    xy, bounds = read[4:].reshape(-1, 2), read[:4].reshape(1, 4)
    return xy, _ONE_RING[len(xy)], _ONE_REGION, _ONE_SHELL, bounds, *NO_CHAINS


def is_on_the_globe(box: NDArray[np.float64], crs: Crs) -> bool:
    """Return True if the region in this box is within longitude and latitude, or `crs` is not geographic."""
    xmin, ymin, xmax, ymax = box[:4].tolist()
    return (xmin >= -180 and ymin >= -90 and xmax <= 180 and ymax <= 90) or not is_geographic(crs)


def _shrink(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """Return the first `rows` rows, without keeping the others if they are many.

    Rows after the last one that was written take no memory of their own: the system gives pages when they are touched.
    """
    return array[:rows] if 2 * rows >= len(array) else array[:rows].copy()


def _is_tangled(raw: RawRegions, row: int) -> bool:
    """Return True if more pairs of edges of a row have meeting boxes than make_valid can handle in seconds.

    A ring of 800 random vertices (13 KB) has 280,000 such pairs and takes make_valid 3 s; its time grows with the
    square of the vertices. Pairs are counted in both orders, and each edge with itself too; boundaries that do not
    cross have about 6 pairs per edge.
    """
    rings = [ring for part in parts_of(raw, row) for ring in part]
    stops = [np.roll(ring, -1, axis=0) for ring in rings]
    edges = shapely.linestrings(np.stack([np.concatenate(rings), np.concatenate(stops)], axis=1))
    tree = shapely.STRtree(edges)
    left = limit("repair_pairs") + USUAL_PAIRS_PER_EDGE * len(edges)
    for first in range(0, len(edges), EDGES_PER_QUERY):
        left -= tree.query(edges[first : first + EDGES_PER_QUERY]).shape[1]
        if left < 0:
            return True
    return False


def _unrepaired(rejected: Rejection) -> Rejection:
    """Return the rejection with a note that the row was too tangled to repair."""
    why = f"not repaired: too many edges cross ({variable('repair_pairs')}={limit('repair_pairs')})"
    return rejected._replace(reason=f"{rejected.reason}; {why}")


def _repair(raw: RawRegions, rows: list[int]) -> tuple[Arrays, NDArray[np.int64]]:
    """Return the arrays and row numbers of the rows that make_valid turns into regions."""
    made = np.empty(len(rows), dtype=object)
    for k, row in enumerate(rows):
        try:
            mended = shapely.make_valid(_as_shapely(raw, row), method="structure", keep_collapsed=False)
        except shapely.errors.ShapelyError:  # GEOS fails on some
            continue
        polygons = [part for part in shapely.get_parts(mended) if part.geom_type == "Polygon" and not part.is_empty]
        made[k] = shapely.MultiPolygon(polygons) if polygons else None
    arrays, reports, _ = _validate(raw_from_shapely(made))
    return arrays, np.array(rows, np.int64)[reports[:, 0] == GOOD]


def _as_shapely(raw: RawRegions, row: int) -> Any:
    """Return one raw row as a Shapely multipolygon; rings are closed."""
    polygons = []
    for part in parts_of(raw, row):
        rings = [shapely.LinearRing(np.concatenate([ring, ring[:1]])) for ring in part if len(ring)]
        if rings:
            polygons.append(shapely.Polygon(rings[0], rings[1:]))
    return shapely.MultiPolygon(polygons)


def parts_of(raw: RawRegions, row: int) -> list[list[NDArray[np.float64]]]:
    """Return the rings of each part of a raw row, as given."""
    ends = raw.part_offsets[raw.region_offsets[row] : raw.region_offsets[row + 1] + 1].tolist()
    starts = raw.ring_offsets
    return [[raw.xy[starts[r] : starts[r + 1]] for r in range(first, stop)] for first, stop in pairwise(ends)]


def _refuse_beyond_the_globe(sifted: Sifted) -> Sifted:
    """Reject regions outside longitude -180..180 and latitude -90..90 where the CRS is geographic."""
    column = sifted.regions
    assert column.crs is not None
    outside = (np.abs(column.bounds) > [180, 90, 180, 90]).any(axis=1)
    if not outside.any() or not is_geographic(column.crs):
        return sifted
    why = f"outside longitude -180..180, latitude -90..90; {_SPLIT}"
    rejected = [
        Rejection(int(sifted.rows[k]), f"box {column.bounds[k].tolist()} is {why}", FaultCode.OFF_THE_GLOBE)
        for k in np.flatnonzero(outside)
    ]
    return _without(sifted, np.asarray(outside), rejected)


def _without(sifted: Sifted, unwanted: NDArray[np.bool_], rejected: list[Rejection]) -> Sifted:
    """Return `sifted` with the regions in `unwanted` moved to the rejections."""
    return Sifted(
        sifted.regions[~unwanted],
        sifted.rows[~unwanted],
        tuple(sorted([*sifted.rejected, *rejected], key=lambda bad: bad.row)),
        np.setdiff1d(sifted.repaired, sifted.rows[unwanted]),
    )
