"""Codes of the faults that reading and validation report; geometry/faults.py turns them into sentences."""

import numpy as np

(
    GOOD,
    MISSING,
    EMPTY,
    WRONG_TYPE,
    MALFORMED,
    NOT_FINITE,
    MAGNITUDE,
    FEW_VERTICES,
    ZERO_AREA,
    SELF_INTERSECTION,
    HOLE_OUTSIDE,
    HOLE_CROSSES,
    HOLES_OVERLAP,
    DISCONNECTED,
    PARTS_OVERLAP,
    SHARED_EDGE,
    NESTED,
) = (np.int64(k) for k in range(17))
