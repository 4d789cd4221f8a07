"""What GEOS says, in our terms, and who is right where it says something else."""

import numpy as np
import numpy.typing as npt

from oracles.relations import judge, matrix_code

Codes = npt.NDArray[np.uint8]
Geometries = npt.NDArray[np.object_]


def relation_codes(matrices: npt.ArrayLike) -> Codes:
    """Return the codes of the relations that many DE-9IM matrices of two regions stand for."""
    texts = np.atleast_1d(np.asarray(matrices, dtype=object))
    known = {matrix: matrix_code(matrix) for matrix in set(texts)}
    return np.array([known[matrix] for matrix in texts], np.uint8)


def settle(a: Geometries, b: Geometries, ours: Codes, theirs: Codes) -> tuple[int, int]:
    """Return in how many pairs the two differ, and in how many of these rational arithmetic finds ours wrong."""
    a, b, ours, theirs = np.broadcast_arrays(a, b, ours, theirs)
    rows = np.flatnonzero(ours != theirs)
    return len(rows), sum(judge(a[row], b[row]) != ours[row] for row in rows)
