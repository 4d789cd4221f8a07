"""Name the relation of messages to the regions of subscriptions that they matched, by exact relations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import LineArray
from contrada.geometry.arrow.mixed import sift_mixed
from contrada.geometry.relate import relate_rows

UNKNOWN = 255  # no relation: one side has no valid region or point


class Located(NamedTuple):
    """A geometry column: its columns of regions and points, and for each row the part and the place in it."""

    columns: list[Any]
    part: NDArray[np.int64]  # -1: nothing
    place: NDArray[np.int64]


def located(wkb: Any) -> Located:
    """Read a column of WKB (Arrow) of regions, points, circles and nulls; lines and bad values are left out."""
    part, place = np.full(len(wkb), -1, np.int64), np.zeros(len(wkb), np.int64)
    columns = []
    parts = sift_mixed(wkb, circles=True).with_circles
    for number, (column, rows) in enumerate(one for one in parts if not isinstance(one.column, LineArray)):
        part[rows], place[rows] = number, np.arange(len(rows))
        columns.append(column)
    return Located(columns, part, place)


def relations_of(a: Located, a_rows: NDArray[np.int64], b: Located) -> NDArray[np.uint8]:
    """Return the relation codes of row `a_rows[k]` of `a` to row k of `b`; UNKNOWN where one side is missing.

    >>> import pyarrow as pa
    >>> from contrada import Point, Region
    >>> messages = located(pa.array([Region.box(0, 0, 4, 4).to_wkb(), Point(1, 1).to_wkb()]))
    >>> regions = located(pa.array([Region.box(1, 1, 2, 2).to_wkb(), None, Region.box(0, 0, 4, 4).to_wkb()]))
    >>> relations_of(messages, np.array([0, 0, 1]), regions).tolist()
    [5, 255, 4]
    """
    codes = np.full(len(a_rows), UNKNOWN, np.uint8)
    for number, column in enumerate(a.columns):
        for other, regions in enumerate(b.columns):
            pairs = np.flatnonzero((a.part[a_rows] == number) & (b.part == other))
            codes[pairs] = relate_rows(column, regions, a.place[a_rows[pairs]], b.place[pairs])
    return codes
