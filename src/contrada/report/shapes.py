"""Write regions and points as compact JSON for the map of a report.

For display only: coordinates are rounded, and no relation is ever computed from them. A point is `[x, y]`. A region is
`[x, y, step, parts]`; a part is a list of rings, the shell first, and a ring is a list of whole numbers `dx, dy`: the
steps from vertex to vertex, of which the first starts at x, y. The closing vertex is left out.
"""

from __future__ import annotations

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


class ShapeEncoder:
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
        >>> texts, boxes = ShapeEncoder(None).encode(wkb)
        >>> texts
        ['[3.0,2.0,1e-05,[[[0,0,0,400000,-200000,0,0,-400000]]]]', '[1.5,2.0]', 'null']
        >>> boxes[0].tolist()
        [1.0, 2.0, 3.0, 6.0]
        """
        shapes = self.shapes(wkb)
        boxes = shapely.bounds(shapes) if len(shapes) else np.empty((0, 4))
        digits = None if self.crs is None else DEGREE_DIGITS
        kinds = shapely.get_type_id(shapes)
        regions = np.flatnonzero(kinds > 0)
        texts = ["null"] * len(shapes)
        for row in np.flatnonzero(kinds == 0).tolist():
            texts[row] = _point_text(boxes[row].tolist(), digits)
        for row, text in zip(regions.tolist(), _region_texts(shapes[regions], boxes[regions], digits), strict=True):
            texts[row] = text
        return texts, boxes


def _point_text(box: list[float], digits: int | None) -> str:
    x, y = box[:2] if digits is None else (round(box[0], digits), round(box[1], digits))
    return f"[{x!r},{y!r}]"


def _region_texts(shapes: NDArray[np.object_], boxes: NDArray[np.float64], digits: int | None) -> list[str]:
    """Return the texts of regions; a step is the largest power of ten with STEPS steps along the longer side."""
    if not len(shapes):
        return []
    parts, owners = shapely.get_parts(shapes, return_index=True)
    rings, part_of_ring = shapely.get_rings(parts, return_index=True)
    xy, ring_of_vertex = shapely.get_coordinates(rings, return_index=True)
    starts = np.flatnonzero(np.diff(ring_of_vertex, prepend=-1))
    sizes = np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
    places = np.floor(np.log10(np.maximum(sizes, np.finfo(float).tiny) / STEPS))
    exponents = (places if digits is None else np.maximum(places, -digits)).astype(np.int64)
    steps = np.array([float(f"1e{exponent}") for exponent in exponents.tolist()])  # NumPy's powers are not exact
    owner_of_vertex = owners[part_of_ring[ring_of_vertex]]
    firsts = xy[np.flatnonzero(np.diff(owner_of_vertex, prepend=-1))]
    # Fifteen digits: without the last bits, which the product of whole numbers and a step has too many of.
    origins = [[float(f"{value:.15g}") for value in row] for row in np.round(firsts / steps[:, None]) * steps[:, None]]
    placed = np.round((xy - np.array(origins)[owner_of_vertex]) / steps[owner_of_vertex, None]).astype(np.int64)
    deltas = np.diff(placed, axis=0, prepend=np.zeros((1, 2), np.int64))
    deltas[starts] = placed[starts]
    ends = np.append(starts[1:], len(xy)) - 1  # without the closing vertex
    numbers = deltas.tolist()
    of_parts: list[list[str]] = [[] for _ in parts]
    for part, start, end in zip(part_of_ring.tolist(), starts.tolist(), ends.tolist(), strict=True):
        of_parts[part].append("[" + ",".join(f"{dx},{dy}" for dx, dy in numbers[start:end]) + "]")
    of_regions: list[list[str]] = [[] for _ in shapes]
    for owner, texts in zip(owners.tolist(), of_parts, strict=True):
        of_regions[owner].append("[" + ",".join(texts) + "]")
    return [
        f"[{x!r},{y!r},{step!r},[{','.join(texts)}]]"
        for (x, y), step, texts in zip(origins, steps.tolist(), of_regions, strict=True)
    ]


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
