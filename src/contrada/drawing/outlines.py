"""Outlines of regions and points, placed in a picture: clipped to it, and thinned to what it can show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]
Placed = tuple[NDArray[np.int64], NDArray[np.int64]]  # vertices in whole units, and offsets of the rings

UNITS = 10  # units of the picture per pixel: whole numbers are then exact to a tenth of a pixel
MAX_VERTICES = 4_000  # drawn in one picture, about 30 KB of SVG
MAX_READ_VERTICES = 200_000  # of longer outlines every second, third, ... vertex is read
MAX_CLIPPED_RINGS = 2_000  # further rings across the edge of a picture are cut off less well, but at once
LEAST_RING = 8  # vertices of a ring that thinning leaves
RIM = 8.0 * UNITS  # around the box that is shown, and beyond the picture where outlines are cut
LEAST_SIDE = 48.0 * UNITS  # of a picture


class Outline(NamedTuple):
    """Rings of one region: ring r is xy[offsets[r]:offsets[r + 1]], closed. A point is a ring of one vertex.

    Shells and holes are told apart by filling with the even-odd rule.
    """

    xy: NDArray[np.float64]
    offsets: NDArray[np.int64]
    box: Box


class PathData(NamedTuple):
    """An outline as SVG path data: rings, and dots in place of rings that are too small."""

    shape: str
    dots: str


class Frame(NamedTuple):
    """A picture of `width` by `height` units with the point `centre` in its middle, `scale` units per coordinate."""

    centre: tuple[float, float]
    scale: float
    width: int
    height: int

    def place(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return coordinates in units of the picture, y downwards."""
        away = (xy - self.centre) * self.scale
        return np.stack([away[:, 0] + self.width / 2, self.height / 2 - away[:, 1]], axis=1)


def frame_of(box: Box, pixels: tuple[int, int]) -> Frame:
    """Return a frame that shows `box` and a rim around it in at most so many pixels, wide and high.

    >>> frame_of((0, 0, 4, 2), (216, 216))
    Frame(centre=(2.0, 1.0), scale=500.0, width=2160, height=1160)
    """
    xmin, ymin, xmax, ymax = box
    inner = [side * UNITS - 2 * RIM for side in pixels]
    spans = xmax - xmin, ymax - ymin
    scale = min((room / span for room, span in zip(inner, spans, strict=True) if span > 0), default=1.0)
    width, height = (max(LEAST_SIDE, math.ceil(span * scale) + 2 * RIM) for span in spans)
    return Frame((xmin / 2 + xmax / 2, ymin / 2 + ymax / 2), scale, int(width), int(height))


def union_box(boxes: Sequence[Box]) -> Box:
    """Return the box around several.

    >>> union_box([(0, 0, 1, 1), (3, -1, 4, 0)])
    (0, -1, 4, 1)
    """
    xmins, ymins, xmaxs, ymaxs = zip(*boxes, strict=True)
    return min(xmins), min(ymins), max(xmaxs), max(ymaxs)


def longer_side(box: Box) -> float:
    """Return the longer side of a box."""
    return max(box[2] - box[0], box[3] - box[1])


def place_within(outline: Outline) -> tuple[float, float]:
    """Return a place inside of an outline, for a label: half way up, in the middle of the widest stretch.

    >>> ring = [(0, 0), (9, 0), (9, 9), (0, 9), (0, 0), (1, 1), (1, 8), (5, 8), (5, 1), (1, 1)]
    >>> place_within(Outline(np.array(ring, float), np.array([0, 5, 10]), (0, 0, 9, 9)))
    (7.0, 4.5)
    """
    xmin, ymin, xmax, ymax = outline.box
    y = ymin / 2 + ymax / 2
    starts = np.delete(np.arange(len(outline.xy)), outline.offsets[1:] - 1)
    a, b = outline.xy[starts], outline.xy[starts + 1] if len(starts) else outline.xy[starts]
    across = (a[:, 1] > y) != (b[:, 1] > y)
    a, b = a[across], b[across]
    x = np.sort(a[:, 0] + (y - a[:, 1]) / (b[:, 1] - a[:, 1]) * (b[:, 0] - a[:, 0]))
    if len(x) < 2:
        return xmin / 2 + xmax / 2, y
    widest = 2 * int(np.argmax(x[1::2] - x[: len(x) - 1 : 2]))
    return float(x[widest] / 2 + x[widest + 1] / 2), y


def paths(outlines: Sequence[Outline], frame: Frame, vertices: int = MAX_VERTICES) -> list[PathData]:
    """Return each outline as SVG path data in whole units, with about `vertices` vertices in all.

    Parts too small to be seen become dots: lines of length 0, which round caps show. An outline outside of the frame
    has no path.

    >>> square = np.array([(0, 0), (4, 0), (4, 4), (0, 4), (0, 0)], float)
    >>> paths([Outline(square, np.array([0, 5]), (0, 0, 4, 4))], frame_of((0, 0, 4, 4), (56, 56)))
    [PathData(shape='M80 480h400v-400h-400z', dots='')]
    """
    stride = max(1, math.ceil(sum(len(outline.xy) for outline in outlines) / MAX_READ_VERTICES))
    placed = [_snapped(*_clipped(*_placed(outline, frame, stride), frame)) for outline in outlines]
    if (found := sum(len(xy) for xy, _ in placed)) > vertices:
        placed = [_thinned(xy, offsets, math.ceil(found / vertices)) for xy, offsets in placed]
    if sum(len(xy) for xy, _ in placed) > vertices:
        placed = [_largest(xy, offsets, vertices // len(placed)) for xy, offsets in placed]
    return [_drawing(xy, offsets) for xy, offsets in placed]


def _drawing(xy: NDArray[np.int64], offsets: NDArray[np.int64]) -> PathData:
    rings = [xy[a:b] for a, b in _spans(offsets)]
    return PathData(
        "".join(_ring_path(ring) for ring in rings if len(ring) > 1),
        "".join(f"M{ring[0, 0]} {ring[0, 1]}h0" for ring in rings if len(ring) == 1),
    )


def _spans(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    return pairwise(offsets.tolist())


def _placed(outline: Outline, frame: Frame, stride: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return about every stride-th vertex of each ring in units of the picture, and the offsets of the rings."""
    if stride == 1:
        return frame.place(outline.xy), outline.offsets
    kept = _every(outline.offsets, stride)
    counts = np.add.reduceat(kept, outline.offsets[:-1], dtype=np.int64)
    return frame.place(outline.xy[kept]), np.append(0, np.cumsum(counts))


def _clipped(
    xy: NDArray[np.float64], offsets: NDArray[np.int64], frame: Frame
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the rings cut off a little outside of the frame, so that no edge along the cut is seen."""
    lows, highs = -RIM, np.array([frame.width, frame.height]) + RIM
    if len(xy) == 0 or bool(((xy >= lows) & (xy <= highs)).all()):
        return xy, offsets
    least, most = np.minimum.reduceat(xy, offsets[:-1]), np.maximum.reduceat(xy, offsets[:-1])
    is_seen = np.all((most >= lows) & (least <= highs), axis=1)
    is_whole = np.all((least >= lows) & (most <= highs), axis=1)
    rings, cut = [], 0
    for (a, b), seen, whole in zip(_spans(offsets), is_seen.tolist(), is_whole.tolist(), strict=True):
        if seen and not whole and cut < MAX_CLIPPED_RINGS:
            rings.append(_clipped_ring(xy[a:b], lows, highs))
            cut += 1
        elif seen:
            rings.append(np.clip(xy[a:b], lows, highs))
    rings = [ring for ring in rings if len(ring)]
    return np.concatenate([np.empty((0, 2)), *rings]), np.append(0, np.cumsum([len(ring) for ring in rings], dtype=int))


def _clipped_ring(ring: NDArray[np.float64], lows: float, highs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cut a ring off at the four sides of a box, one after another (Sutherland and Hodgman)."""
    for axis in (0, 1):
        for bound, sign in ((lows, 1.0), (float(highs[axis]), -1.0)):
            inward = sign * (ring[:, axis] - bound)
            following, is_in = np.roll(ring, -1, axis=0), inward >= 0
            crosses = is_in != np.roll(is_in, -1)
            with np.errstate(invalid="ignore", divide="ignore"):
                at = inward / (inward - np.roll(inward, -1))
                crossings = ring + at[:, None] * (following - ring)
            crossings[:, axis] = bound
            both = np.stack([ring, crossings], axis=1).reshape(-1, 2)
            ring = both[np.stack([is_in, crosses], axis=1).ravel()]
    return np.asarray(np.clip(np.append(ring, ring[:1], axis=0), lows, highs))


def _snapped(xy: NDArray[np.float64], offsets: NDArray[np.int64]) -> Placed:
    """Return the vertices in whole units without repetitions; of rings that became the same dot one is left."""
    if not len(xy):
        return np.empty((0, 2), np.int64), np.zeros(1, np.int64)
    snapped = np.rint(xy).astype(np.int64)
    moves = np.ones(len(snapped), bool)
    moves[1:] = (snapped[1:] != snapped[:-1]).any(axis=1)
    moves[offsets[:-1]] = True
    is_dot = np.add.reduceat(moves, offsets[:-1], dtype=np.int64) == 1
    is_kept = ~is_dot
    if is_dot.any():
        first_of_equals = np.unique(snapped[offsets[:-1]][is_dot], axis=0, return_index=True)[1]
        is_kept[np.flatnonzero(is_dot)[first_of_equals]] = True
    return _kept(snapped, offsets, moves & np.repeat(is_kept, np.diff(offsets)), is_kept)


def _thinned(xy: NDArray[np.int64], offsets: NDArray[np.int64], step: int) -> Placed:
    """Return about every step-th vertex of each ring."""
    return _kept(xy, offsets, _every(offsets, step), np.ones(len(offsets) - 1, bool))


def _every(offsets: NDArray[np.int64], step: int) -> NDArray[np.bool_]:
    """Return which vertices stay: every step-th of each ring, its last one, and at least LEAST_RING if it has them."""
    counts = np.diff(offsets)
    steps = np.maximum(1, np.minimum(step, counts // LEAST_RING))
    kept = (np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)) % np.repeat(steps, counts) == 0
    kept[offsets[1:] - 1] = True
    return np.asarray(kept)


def _largest(xy: NDArray[np.int64], offsets: NDArray[np.int64], vertices: int) -> Placed:
    """Return the rings with the largest boxes, as many as have so many vertices together; at least one."""
    if len(offsets) <= 2:
        return xy, offsets
    sides = np.maximum.reduceat(xy, offsets[:-1]) - np.minimum.reduceat(xy, offsets[:-1])
    order, counts = np.argsort(-sides.sum(axis=1), kind="stable"), np.diff(offsets)
    is_kept = np.zeros(len(counts), bool)
    is_kept[order[: max(1, int(np.searchsorted(np.cumsum(counts[order]), vertices, side="right")))]] = True
    return _kept(xy, offsets, np.repeat(is_kept, counts), is_kept)


def _kept(
    xy: NDArray[np.int64], offsets: NDArray[np.int64], vertices: NDArray[np.bool_], rings: NDArray[np.bool_]
) -> Placed:
    counts = np.add.reduceat(vertices, offsets[:-1], dtype=np.int64)[rings]
    return xy[vertices], np.append(0, np.cumsum(counts))


def _ring_path(ring: NDArray[np.int64]) -> str:
    """Return the path data of a ring, in steps from vertex to vertex."""
    words = [f"M{ring[0, 0]} {ring[0, 1]}"]
    for dx, dy in np.diff(ring, axis=0)[:-1].tolist():  # z draws the last step
        words.append(f"v{dy}" if dx == 0 else f"h{dx}" if dy == 0 else f"l{dx} {dy}")
    return "".join(words) + "z"
