"""TileIndex: the shapes of all subscriptions of a tenant, found by their boxes, and vector tiles of them."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.service.kept_state import KeptState
from contrada.service.map.filter_shapes import FilterShapeReader
from contrada.service.map.schemas import Plane
from contrada.service.map.subscription_views import shapes_within
from contrada.service.map.vector_tile import EXTENT, TileLayer
from contrada.service.views import SubscriptionView

LAYER = "subscriptions"
PIXEL = EXTENT / 512  # units; pages show a tile on 512 pixels
SMALL = 2 * PIXEL  # shapes that are no longer are counted by cells
CELL = int(4 * PIXEL)  # units along a side of a cell
MOST_SHAPES = 4_000  # drawn one by one in a tile, the largest; the others are counted by cells
MARGIN = 8 * PIXEL  # around a tile that is drawn too, so that outlines at its edge do not show
FRESH = 2_000  # shapes that are looked at one by one before the tree is built again
KEPT_TILES = 512
DEEPEST = 30  # zoom
LATITUDE = 85.051128779806  # where the square of the Mercator projection ends


class IndexedShapes(NamedTuple):
    """Shapes by row, with their boxes and attributes in tiles; the tree has the first rows."""

    geometries: NDArray[Any]
    boxes: NDArray[np.float64]
    members: NDArray[Any]
    is_live: NDArray[np.bool_]
    tree: shapely.STRtree
    in_tree: int


class TileIndex:
    """The shapes of the subscriptions of a tenant; `used` is the time of the last request.

    Several threads may use it; one of them reads what has changed.
    """

    def __init__(self, tenant: str, kept: Callable[[], KeptState], reader: FilterShapeReader) -> None:
        self._tenant, self._kept, self._reader = tenant, kept, reader
        self.used = time.monotonic()
        self._lock = threading.Lock()
        self._changed: set[str] = set()
        self._rows: dict[str, list[int]] = {}
        self._shapes: IndexedShapes | None = None
        self._tiles: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()

    def note_changed(self, keys: Iterable[str]) -> None:
        """Take keys of subscriptions that were put or removed."""
        self._changed.update(keys)

    def tile(self, zoom: int, column: int, row: int, plane: Plane | None = None) -> bytes:
        """Return a tile of degrees on the Mercator projection, or of plain coordinates on a plane."""
        with self._lock:
            shapes = self._current()
            name = (zoom, column, row, plane)
            if name not in self._tiles:
                self._tiles[name] = tile_of(shapes, TilePlace(zoom, column, row, plane))
                while len(self._tiles) > KEPT_TILES:
                    self._tiles.popitem(last=False)
            return self._tiles[name]

    def __len__(self) -> int:
        with self._lock:
            return int(self._current().is_live.sum())

    def _current(self) -> IndexedShapes:
        """Return the shapes as they are now."""
        if self._shapes is None:
            self._changed.clear()  # what changes while all are read is read again
            self._rows = {}
            found = list(self._read(view for views in self._kept().all_subscriptions(self._tenant) for view in views))
            self._shapes = self._indexed(found)
        if self._changed:
            keys = list(self._changed)
            self._changed.difference_update(keys)
            self._shapes = self._updated(self._shapes, keys)
            self._tiles.clear()
        return self._shapes

    def _read(self, views: Iterable[SubscriptionView]) -> Iterable[tuple[shapely.Geometry, dict[str, Any]]]:
        for view in views:
            for shape in shapes_within(view, self._reader).shapes:
                definition = view.definition
                yield (
                    shape.geometry,
                    {
                        "key": view.key,
                        "relation": shape.word,
                        "paused": definition.is_paused,
                        "tracked": definition.track is not None,
                        "count": 1,
                    },
                )

    def _indexed(self, found: Sequence[tuple[shapely.Geometry, dict[str, Any]]]) -> IndexedShapes:
        geometries, members = np.empty(len(found), object), np.empty(len(found), object)
        for row, (geometry, told) in enumerate(found):
            geometries[row], members[row] = geometry, told
            self._rows.setdefault(told["key"], []).append(row)
        boxes = shapely.bounds(geometries).reshape(-1, 4)
        return IndexedShapes(
            geometries, boxes, members, np.ones(len(found), np.bool_), shapely.STRtree(geometries), len(found)
        )

    def _updated(self, shapes: IndexedShapes, keys: Sequence[str]) -> IndexedShapes:
        """Return the shapes after changes; the old rows of a key are dead, new ones follow at the end."""
        is_live = shapes.is_live.copy()
        for key in keys:
            is_live[self._rows.pop(key, [])] = False
        added = list(self._read(self._kept().subscriptions(self._tenant, keys)))
        rest = len(shapes.geometries) - shapes.in_tree + len(added)
        if rest > FRESH or int((~is_live).sum()) > max(FRESH, len(is_live) // 2):
            kept = np.flatnonzero(is_live)
            self._rows = {}
            return self._indexed([*((shapes.geometries[row], shapes.members[row]) for row in kept), *added])
        geometries, members = np.empty(len(added), object), np.empty(len(added), object)
        for row, (geometry, told) in enumerate(added):
            geometries[row], members[row] = geometry, told
            self._rows.setdefault(told["key"], []).append(len(shapes.geometries) + row)
        return shapes._replace(
            geometries=np.concatenate([shapes.geometries, geometries]),
            boxes=np.concatenate([shapes.boxes, shapely.bounds(geometries).reshape(-1, 4)]),
            members=np.concatenate([shapes.members, members]),
            is_live=np.concatenate([is_live, np.ones(len(added), np.bool_)]),
        )


class TilePlace(NamedTuple):
    """A tile of the square of the world, of which there are 4^zoom."""

    zoom: int
    column: int
    row: int
    plane: Plane | None

    def box(self) -> tuple[float, float, float, float]:
        """Return the box of the tile with its margin, in coordinates of shapes."""
        margin = MARGIN / EXTENT
        left, right = (self.column - margin) / 2**self.zoom, (self.column + 1 + margin) / 2**self.zoom
        top, bottom = (self.row - margin) / 2**self.zoom, (self.row + 1 + margin) / 2**self.zoom
        if self.plane is not None:
            x, y, span = self.plane.x, self.plane.y, self.plane.span
            return x + (left - 0.5) * span, y + (0.5 - bottom) * span, x + (right - 0.5) * span, y + (0.5 - top) * span
        # The outermost tiles reach up to the poles, whose shapes lie on their edge.
        south = -90.0 if bottom >= 1 else _latitude(bottom)
        north = 90.0 if top <= 0 else _latitude(top)
        return left * 360 - 180, south, right * 360 - 180, north

    def units(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return coordinates of shapes in units of the tile, with y downwards."""
        x, y = places[:, 0], places[:, 1]
        if self.plane is not None:
            across, down = 0.5 + (x - self.plane.x) / self.plane.span, 0.5 - (y - self.plane.y) / self.plane.span
        else:
            sine = np.sin(np.radians(np.clip(y, -LATITUDE, LATITUDE)))
            across, down = (x + 180) / 360, 0.5 - np.log((1 + sine) / (1 - sine)) / (4 * np.pi)
        size = 2.0**self.zoom
        return np.stack([(across * size - self.column) * EXTENT, (down * size - self.row) * EXTENT], axis=1)


def _latitude(down: float) -> float:
    return math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * down))))


def tile_of(shapes: IndexedShapes, place: TilePlace) -> bytes:
    """Return a tile: large shapes one by one, small ones counted by cells."""
    box = place.box()
    rows = np.sort(shapes.tree.query(shapely.box(*box))) if shapes.in_tree else np.empty(0, np.int64)
    fresh = np.arange(shapes.in_tree, len(shapes.geometries))
    own = shapes.boxes[fresh]
    meets = (own[:, 0] <= box[2]) & (own[:, 2] >= box[0]) & (own[:, 1] <= box[3]) & (own[:, 3] >= box[1])
    rows = np.concatenate([rows, fresh[meets]])
    rows = rows[shapes.is_live[rows]]
    corners = place.units(shapes.boxes[rows].reshape(-1, 2)).reshape(-1, 4)
    lengths = np.maximum(corners[:, 2] - corners[:, 0], corners[:, 1] - corners[:, 3])
    is_point = shapely.get_dimensions(shapes.geometries[rows]) == 0
    is_large = (lengths > SMALL) | (is_point & (len(rows) <= MOST_SHAPES))
    if is_large.sum() > MOST_SHAPES:
        chosen = np.argpartition(-np.where(is_large, lengths, -1.0), MOST_SHAPES)[:MOST_SHAPES]
        is_large = np.zeros(len(rows), np.bool_)
        is_large[chosen] = True
    layer = TileLayer(LAYER)
    vanished = _add_large(layer, shapes, rows[is_large], place)
    is_large[np.flatnonzero(is_large)[vanished]] = False
    _add_cells(layer, (corners[~is_large, :2] + corners[~is_large, 2:]) / 2)
    return layer.to_bytes()


def _add_cells(layer: TileLayer, middles: NDArray[np.float64]) -> None:
    """Add a square for each cell that has small shapes, with their number."""
    inside = np.all((middles >= 0) & (middles < EXTENT), axis=1)  # those beyond are in the next tile
    cells = (middles[inside] // CELL).astype(np.int64)
    across = EXTENT // CELL
    found, counts = np.unique(cells[:, 1] * across + cells[:, 0], return_counts=True)
    for cell, count in zip(found.tolist(), counts.tolist(), strict=True):
        layer.add_square(cell % across * CELL, cell // across * CELL, CELL, {"count": count})


def _add_large(layer: TileLayer, shapes: IndexedShapes, rows: NDArray[np.int64], place: TilePlace) -> list[int]:
    """Add shapes one by one, cut off at the margin of the tile; return places of thin ones that vanish."""
    if not len(rows):
        return []
    moved = shapely.transform(shapes.geometries[rows], place.units)
    moved = shapely.simplify(moved, PIXEL / 2, preserve_topology=False)
    is_point = shapely.get_dimensions(moved) == 0
    edge = (-MARGIN, -MARGIN, EXTENT + MARGIN, EXTENT + MARGIN)
    moved[~is_point] = shapely.clip_by_rect(moved[~is_point], *edge)
    return layer.add_all(moved, shapes.members[rows].tolist())
