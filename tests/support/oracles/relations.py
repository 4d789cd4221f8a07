"""Shapely for volume, rationals for verdicts: relation codes of many pairs, and of one pair beyond doubt."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

from generators.rings import Floats, Geometries, polygons
from oracles import rational
from oracles.rational import CONTAINS, COVERED_BY, COVERS, DISJOINT, EQUALS, INSIDE, MEETS, OVERLAPS

Codes: TypeAlias = NDArray[np.uint8]

NAMES = ("disjoint", "meets", "overlaps", "equals", "inside", "contains", "covers", "covered-by")
INVERSE: Codes = np.array([DISJOINT, MEETS, OVERLAPS, EQUALS, CONTAINS, INSIDE, COVERED_BY, COVERS], dtype=np.uint8)
UNKNOWN = 255  # Shapely raised an error, or its answer is none of the eight


def shapely_codes(a: Geometries, b: Geometries) -> Codes:
    """Return what Shapely says on each pair of regions."""
    with np.errstate(all="ignore"):  # GEOS overflows on huge coordinates; it is only a witness
        try:
            matrices = np.asarray(shapely.relate(a, b)).astype("U9")
        except shapely.errors.GEOSException:
            matrices = np.array([one_matrix(x, y) for x, y in zip(a, b, strict=True)], dtype="U9")
    kinds, which = np.unique(matrices, return_inverse=True)
    return np.array([matrix_code(str(kind)) for kind in kinds], dtype=np.uint8)[which]


def one_matrix(a: Any, b: Any) -> str:
    """Return Shapely's matrix for one pair, or nothing if it raises an error."""
    try:
        return str(shapely.relate(a, b))
    except shapely.errors.GEOSException:
        return ""


def matrix_code(matrix: str) -> int:
    """Return the code of the relation that a DE-9IM matrix of two regions stands for."""
    if len(matrix) != 9:
        return UNKNOWN
    return rational.relation_code(*(matrix[place] != "F" for place in (0, 2, 6, 4)))


def shapely_point_codes(points: Floats, regions: Geometries) -> Codes:
    """Return what Shapely says on each point against its region: INSIDE, MEETS or DISJOINT."""
    with np.errstate(all="ignore"):
        within = np.asarray(shapely.contains_xy(regions, points[:, 0], points[:, 1]))
        common = np.asarray(shapely.intersects_xy(regions, points[:, 0], points[:, 1]))
    return np.where(within, INSIDE, np.where(common, MEETS, DISJOINT)).astype(np.uint8)


def check_codes(ours: Codes, a: Geometries, b: Geometries) -> None:
    """Raise AssertionError unless every code is the one of Shapely or, where the two differ, of the rationals.

    `a` holds regions or, as an array of coordinates, points.
    """
    theirs = shapely_codes(a, b) if a.dtype == object else shapely_point_codes(a, b)
    first = a if a.dtype == object else shapely.points(a)
    for row in np.flatnonzero(np.asarray(ours) != theirs):
        assert ours[row] == judge(first[row], b[row]), f"{wkt(first[row])} {wkt(b[row])}"


def judge(a: Any, b: Any) -> int:
    """Return the relation of two valid Shapely regions, or of a point and one, decided in rationals."""
    if a.geom_type == "Point":
        return judge_point(shapely.get_coordinates(a)[0], b)
    return rational.relate_rational(polygons(a), polygons(b))


def judge_point(point: Floats, region: Any) -> int:
    """Return the relation of a point and a valid Shapely region, decided in rationals."""
    return rational.point_rational(point.tolist(), polygons(region))


def judge_validity(region: Any) -> str | None:
    """Return what is wrong with a Shapely polygon or multipolygon, in rationals; None if it is valid."""
    return rational.valid_rational(polygons(region))


def wkt(geometry: Any) -> str:
    """Return text from which the same coordinates can be read again."""
    return str(shapely.to_wkt(geometry, rounding_precision=-1, trim=True))
