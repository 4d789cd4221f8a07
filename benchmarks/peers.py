"""What GEOS says, in our terms, and who is right where it says something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

import contrada as ct
from generators.rings import polygons
from oracles.rational import relate_rational

Codes = npt.NDArray[np.uint8]
Geometries = npt.NDArray[np.object_]


def relation_of(matrix: str) -> ct.Relation:
    """The relation of two regions with this DE-9IM matrix.

    >>> relation_of("212101212").name
    'OVERLAPS'
    """
    common, touching = matrix[0] != "F", matrix[4] != "F"
    first_leaves, second_leaves = matrix[2] != "F", matrix[6] != "F"
    if not common:
        return ct.Relation.MEETS if touching else ct.Relation.DISJOINT
    if first_leaves and second_leaves:
        return ct.Relation.OVERLAPS
    if first_leaves:
        return ct.Relation.COVERS if touching else ct.Relation.CONTAINS
    if second_leaves:
        return ct.Relation.COVERED_BY if touching else ct.Relation.INSIDE
    return ct.Relation.EQUALS


def relation_codes(matrices: npt.ArrayLike) -> Codes:
    """The codes of many DE-9IM matrices."""
    texts = np.atleast_1d(np.asarray(matrices, dtype=object))
    known = {matrix: int(relation_of(matrix)) for matrix in set(texts)}
    return np.array([known[matrix] for matrix in texts], np.uint8)


def settle(a: Geometries, b: Geometries, ours: Codes, theirs: Codes) -> tuple[int, int]:
    """In how many pairs the two differ, and in how many of these rational arithmetic finds ours wrong."""
    a, b, ours, theirs = np.broadcast_arrays(a, b, ours, theirs)
    rows = np.flatnonzero(ours != theirs)
    wrong = sum(relate_rational(polygons(a[row]), polygons(b[row])) != ours[row] for row in rows)
    return len(rows), wrong


def shapely_version() -> str:
    """Shapely's and GEOS's versions in one string."""
    return f"{shapely.__version__} (GEOS {shapely.geos_version_string})"


def as_objects(geometries: Any) -> Geometries:
    """Geometries as an object array."""
    return np.asarray(geometries, dtype=object)
