"""Simplify regions and points for drawing, and write them as SVG paths.

For display only. Nothing here is exact, and no relation is ever computed from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.circles import sift_binary
from contrada.geometry.wellknown import shapes_from_wkb

Box = tuple[float, float, float, float]

MAX_SIMPLIFY_ROUNDS = 16  # each doubles the tolerance: from 1/4000 of the size to 16 times the size


def simplified(wkb: Any, vertices: int = 120) -> Any:
    """Return WKB (Arrow) with at most about `vertices` vertices per geometry; null where there is nothing to draw.

    A value that cannot be read, is empty, holds a NaN or an infinity, or is no region, point or circle becomes null. A
    region that would vanish becomes its bounding box.

    >>> import pyarrow as pa, shapely
    >>> round_one = shapely.Point(0, 0).buffer(1.0, quad_segs=500)
    >>> drawn = simplified(pa.array([shapely.to_wkb(round_one), b"rubbish", None]), vertices=50)
    >>> drawn.is_null().to_pylist(), len(shapely.from_wkb(drawn[0].as_py()).exterior.coords) <= 50
    ([False, True, True], True)
    """
    return pa.array(shapely.to_wkb(simplify_shapes(drawable(wkb), vertices)), type=pa.binary())


def simplify_shapes(shapes: NDArray[np.object_], vertices: int) -> NDArray[np.object_]:
    """Simplify Shapely geometries with more than `vertices` vertices, as `simplified` does; changes the array."""
    tolerance = _extents(shapes) / 4000
    for _ in range(MAX_SIMPLIFY_ROUNDS):
        large = np.flatnonzero(shapely.get_num_coordinates(shapes) > vertices)
        if not len(large):
            break
        thinner = shapely.simplify(shapes[large], tolerance[large], preserve_topology=False)
        gone = shapely.is_empty(thinner)
        thinner[gone] = shapely.envelope(shapes[large[gone]])
        shapes[large] = thinner
        tolerance[large] *= 2
    return shapes


def drawable(wkb: Any) -> NDArray[np.object_]:
    """Return Shapely regions and points of WKB (Arrow); None where there is nothing to draw, as `simplified` says.

    A circle is drawn as a polygon.
    """
    shapes = shapes_from_wkb(wkb).geometries
    for circles, own in sift_binary(wkb, np.flatnonzero(shapely.is_missing(shapes)), None).parts:
        shapes[own] = [circle.to_shapely() for circle in circles]
    with np.errstate(invalid="ignore"):  # Shapely warns about NaN as NumPy does
        coordinates, rows = shapely.get_coordinates(shapes, return_index=True)
    is_bad = ~np.isin(shapely.get_type_id(shapes), (0, 3, 6)) | shapely.is_empty(shapes)
    is_bad[rows[~np.isfinite(coordinates).all(axis=1)]] = True
    shapes[is_bad] = None
    return shapes


def extents(wkb: Any) -> NDArray[np.float64]:
    """Return the longer side of the bounding box of each geometry (Arrow WKB); 0 where there is nothing to draw.

    >>> import pyarrow as pa, shapely
    >>> extents(pa.array([shapely.to_wkb(shapely.box(0, 0, 1, 2)), None])).tolist()
    [2.0, 0.0]
    """
    return _extents(drawable(wkb))


def _extents(shapes: NDArray[np.object_]) -> NDArray[np.float64]:
    bounds = shapely.bounds(shapes)
    return np.asarray(np.nan_to_num(np.maximum(bounds[:, 2] - bounds[:, 0], bounds[:, 3] - bounds[:, 1])))


def common_box(wkb: Any) -> Box | None:
    """Return the bounding box of all geometries (Arrow WKB) together; None if there is none.

    >>> import pyarrow as pa, shapely
    >>> common_box(pa.array([shapely.to_wkb(shapely.box(0, 0, 1, 2)), None, shapely.to_wkb(shapely.Point(5, 1))]))
    (0.0, 0.0, 5.0, 2.0)
    """
    bounds = shapely.total_bounds(shapes) if len(shapes := drawable(wkb)) else np.array([np.nan])
    return None if np.isnan(bounds).any() else tuple(bounds.tolist())


def svg_paths(wkb: Any, box: Box, width: int) -> list[str]:
    """Return SVG path data in whole numbers: `box` is drawn `width` wide, north up. Empty if there is nothing to draw.

    A point becomes a line of length 0, which a round cap shows as a dot.

    >>> import pyarrow as pa, shapely
    >>> shapes = [shapely.box(0, 0, 10, 10), shapely.Point(5, 5), None]
    >>> svg_paths(pa.array(shapely.to_wkb(shapes)), (0, 0, 20, 20), 100)
    ['M50 100v-50h-50v50z', 'M25 75h0', '']
    """
    scale = width / ((box[2] - box[0]) or 1.0)
    return ["" if shape is None else _path(shape, box, scale) for shape in drawable(wkb)]


def _path(shape: Any, box: Box, scale: float) -> str:
    rings = [shape] if shape.geom_type == "Point" else shapely.get_rings(shapely.get_parts(shape))
    return "".join(_ring(_placed(shapely.get_coordinates(ring), box, scale)) for ring in rings)


def _placed(xy: NDArray[np.float64], box: Box, scale: float) -> NDArray[np.int64]:
    turned = np.stack([xy[:, 0] - box[0], box[3] - xy[:, 1]], axis=1)
    return np.round(turned * scale).astype(np.int64)


def _ring(xy: NDArray[np.int64]) -> str:
    steps = np.diff(xy, axis=0)
    steps = steps[steps.any(axis=1)][:-1]  # z draws the last step
    if not len(steps):
        return f"M{xy[0, 0]} {xy[0, 1]}h0"
    words = [f"M{xy[0, 0]} {xy[0, 1]}"]
    for dx, dy in steps.tolist():
        words.append(f"v{dy}" if dx == 0 else f"h{dx}" if dy == 0 else f"l{dx} {dy}")
    return "".join(words) + "z"
