"""Write regions and points as compact JSON for the map of a report.

For display only: coordinates are rounded, and no relation is ever computed from them. A point is `[x, y]`. A region is
`[x, y, step, parts]`; a part is a list of rings, the shell first, and a ring is a list of whole numbers `dx, dy`: the
steps from vertex to vertex, of which the first starts at x, y. The closing vertex is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from contrada.geometry.crs import LONGITUDE_LATITUDE
from contrada.geometry.outline import drawable, simplify_shapes

MAX_VERTICES = 1000  # of an outline; larger ones are simplified
STEPS = 200_000  # least number of rounding steps along the longer side of a region
MAX_SIZE = 1e120  # of a coordinate, as regions have
DEGREE_DIGITS = 7  # decimals of longitudes and latitudes: about a centimetre


class Drawing:
    """Encode geometry of one CRS: as longitude and latitude, or unchanged if the CRS is unknown."""

    def __init__(self, crs: str | None, max_vertices: int = MAX_VERTICES) -> None:
        self.crs, self.max_vertices = None if crs is None else str(crs), max_vertices  # pyproj takes no subclass
        self._transformer: Any = None

    def shapes(self, wkb: Any) -> NDArray[np.object_]:
        """Return Shapely geometries (of Arrow WKB) in the coordinates of the map; None where nothing can be drawn."""
        shapes = simplify_shapes(drawable(wkb), self.max_vertices)
        if self.crs is not None and self.crs != LONGITUDE_LATITUDE:
            shapes = shapely.transform(shapes, self._to_degrees)
        xy, rows = shapely.get_coordinates(shapes, return_index=True)
        limits = (MAX_SIZE, MAX_SIZE) if self.crs is None else (540.0, 90.0)
        shapes[rows[~(np.abs(xy) <= limits).all(axis=1)]] = None  # NaN and infinity fail the comparison too
        return shapes

    def _to_degrees(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._transformer is None:
            from pyproj import Transformer

            self._transformer = Transformer.from_crs(self.crs, LONGITUDE_LATITUDE, always_xy=True)
        return np.column_stack(self._transformer.transform(xy[:, 0], xy[:, 1]))

    def encode(self, wkb: Any) -> tuple[list[str], NDArray[np.float64]]:
        """Return the JSON text of each geometry (of Arrow WKB), "null" where there is none, and the boxes (n, 4).

        >>> wkb = pa.array(shapely.to_wkb([shapely.box(1, 2, 3, 6), shapely.Point(1.5, 2), None]))
        >>> texts, boxes = Drawing(None).encode(wkb)
        >>> texts
        ['[3.0,2.0,1e-05,[[[0,0,0,400000,-200000,0,0,-400000]]]]', '[1.5,2.0]', 'null']
        >>> boxes[0].tolist()
        [1.0, 2.0, 3.0, 6.0]
        """
        shapes = self.shapes(wkb)
        boxes = shapely.bounds(shapes) if len(shapes) else np.empty((0, 4))
        digits = None if self.crs is None else DEGREE_DIGITS
        kinds = shapely.get_type_id(shapes)
        texts = [
            "null" if kind < 0 else _point_text(box, digits) if kind == 0 else _region_text(shape, box, digits)
            for shape, kind, box in zip(shapes, kinds.tolist(), boxes.tolist(), strict=True)
        ]
        return texts, boxes


def _point_text(box: list[float], digits: int | None) -> str:
    x, y = box[:2] if digits is None else (round(box[0], digits), round(box[1], digits))
    return f"[{x!r},{y!r}]"


def _region_text(shape: Any, box: list[float], digits: int | None) -> str:
    """Return the text of a region; its step is the largest power of ten with STEPS steps along the longer side."""
    size = max(box[2] - box[0], box[3] - box[1])
    place = math.floor(math.log10(size / STEPS)) if size > 0 else 0
    step = 10.0 ** (place if digits is None else max(place, -digits))
    rings = [[shapely.get_coordinates(ring) for ring in shapely.get_rings(part)] for part in shapely.get_parts(shape)]
    first = rings[0][0][0]
    x, y = (float(np.round(value / step) * step) for value in first)
    x, y = float(f"{x:.15g}"), float(f"{y:.15g}")  # without the last bits, which rounding leaves
    parts = [[_ring(xy, x, y, step) for xy in part] for part in rings]
    return f"[{x!r},{y!r},{step!r},{json.dumps(parts, separators=(',', ':'))}]"


def _ring(xy: NDArray[np.float64], x: float, y: float, step: float) -> list[int]:
    placed = np.round((xy[:-1] - (x, y)) / step).astype(np.int64)
    deltas: list[int] = np.diff(placed, axis=0, prepend=np.zeros((1, 2), np.int64)).ravel().tolist()
    return deltas


def several(texts: Iterable[str]) -> str:
    """Return the text of several shapes drawn as one: the shape itself, if there is only one.

    >>> several(["null", "[1,2]"]), several(["[1,2]", "[3,4]"]), several([])
    ('[1,2]', '{"shapes":[[1,2],[3,4]]}', 'null')
    """
    known = [text for text in texts if text != "null"]
    if len(known) < 2:
        return known[0] if known else "null"
    return '{"shapes":[' + ",".join(known) + "]}"


def z_order(x: NDArray[np.float64], y: NDArray[np.float64], box: tuple[float, float, float, float]) -> Any:
    """Return numbers (Arrow) by which places that are close together sort close together; the largest without a place.

    >>> z_order(np.array([0.0, 9.0, np.nan]), np.array([0.0, 9.0, np.nan]), (0, 0, 10, 10)).to_pylist()
    [0, 4231806003, 9223372036854775807]
    """
    keys = np.zeros(len(x), np.int64)
    for values, low, high, shift in ((x, box[0], box[2], 0), (y, box[1], box[3], 1)):
        share = np.clip(np.nan_to_num((values - low) / ((high - low) or 1.0)), 0.0, 1.0)
        cells = (share * 0xFFFF).astype(np.int64)
        for bit in range(16):
            keys |= (cells >> bit & 1) << (2 * bit + shift)
    keys[np.isnan(x) | np.isnan(y)] = np.iinfo(np.int64).max
    return pa.array(keys)
