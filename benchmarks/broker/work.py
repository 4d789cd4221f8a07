"""Subscriptions and messages of the load: polygons of owners, points and polygons near them, and who gets which."""

import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from benchmarks.peers.geos import Geometries
from benchmarks.report import Report

SUBSCRIPTIONS, OWNERS = 100_000, 1_000
VERTICES, MATCHES = 12, 2.0  # of a message that is a polygon: its vertices, and how many subscriptions it satisfies
TEMPLATE = "S_INTERSECTS(geometry, $geometry)"
FILE = "natural_socal.parquet"
GEO = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}

Event = tuple[int, int]  # the number of a message, and the place of a subscription


class Messages(NamedTuple):
    """Messages as GeoJSON, numbered from `first`, and the events that they cause, by independent geometry."""

    first: int
    shapes: Geometries
    bodies: list[bytes]
    expected: set[Event]

    @property
    def mean(self) -> float:
        """The mean number of subscriptions that a message satisfies."""
        return len(self.expected) / len(self.bodies)

    def batches(self, size: int) -> list[bytes]:
        """Return the bodies as newline JSON."""
        return [b"\n".join(self.bodies[start : start + size]) for start in range(0, len(self.bodies), size)]


class Workload:
    """Polygon subscriptions; subscription k has the key `s<k>` and belongs to owner k modulo `owners`."""

    def __init__(self, report: Report, count: int = SUBSCRIPTIONS) -> None:
        self._rng = np.random.default_rng(report.seed)
        self.count = 5_000 if report.quick else count
        self.owners = 100 if report.quick else OWNERS
        self.shapes, self.source = _polygons(self._rng, self.count)
        self._next = 0

    @cached_property
    def _tree(self) -> shapely.STRtree:
        return shapely.STRtree(self.shapes)

    @cached_property
    def _reach(self) -> float:
        """The radius of messages that satisfy MATCHES subscriptions in the mean, by halving."""
        low, high = 1e-6, 1.0
        centres = self._centres(4_000)
        for _ in range(20):
            middle = (low * high) ** 0.5
            found = self._tree.query(_rings(centres, middle), predicate="intersects").shape[1] / len(centres)
            low, high = (low, middle) if found > MATCHES else (middle, high)
        return low

    def _centres(self, count: int) -> Any:
        """Return places next to random subscriptions: half within one, half at a vertex of one."""
        chosen = self.shapes[self._rng.integers(0, self.count, count)]
        corners = shapely.get_coordinates(shapely.get_point(shapely.get_exterior_ring(chosen), 0))
        inner = shapely.get_coordinates(shapely.point_on_surface(chosen))
        return np.where((np.arange(count) % 2 == 0)[:, None], inner, corners)

    def points(self, count: int) -> Messages:
        """Return messages that are points."""
        return self._messages(shapely.points(self._centres(count)))

    def polygons(self, count: int) -> Messages:
        """Return messages that are polygons of VERTICES vertices."""
        return self._messages(_rings(self._centres(count), self._reach, self._rng))

    def _messages(self, shapes: Geometries) -> Messages:
        first = self._next
        self._next += len(shapes)
        rows, subscriptions = self._tree.query(shapes, predicate="intersects").tolist()
        bodies = [
            json.dumps({"type": "Feature", "properties": {"n": number}, "geometry": shapely.geometry.mapping(shape)},
                       separators=(",", ":")).encode()
            for number, shape in enumerate(shapes, first)
        ]  # fmt: skip
        return Messages(first, shapes, bodies, {(first + row, at) for row, at in zip(rows, subscriptions, strict=True)})

    def uploads(self, owners: int | None = None, size: int = 20_000) -> Iterator[bytes]:
        """Yield the subscriptions as GeoParquet with the columns key, subscriber and geometry."""
        owners = owners or self.owners
        for start in range(0, self.count, size):
            rows = range(start, min(start + size, self.count))
            columns = {
                "key": [f"s{row}" for row in rows],
                "subscriber": [owner_name(row % owners) for row in rows],
                "geometry": shapely.to_wkb(self.shapes[start : rows.stop]),
            }
            table = pa.table(columns).replace_schema_metadata({"geo": json.dumps(GEO)})
            sink = BytesIO()
            pq.write_table(table, sink)
            yield sink.getvalue()


def owner_name(owner: int) -> str:
    """Return the name of a subscriber."""
    return f"owner-{owner}"


def _polygons(rng: np.random.Generator, count: int) -> tuple[Geometries, str]:
    """Return land cover of southern California, or made-up polygons of its size where there is none."""
    path = Path(os.environ.get("CONTRADA_DATA") or "nowhere") / FILE
    if path.exists():
        wkb = pq.read_table(path, columns=["geometry"])["geometry"]
        chosen = np.sort(rng.permutation(len(wkb))[:count])
        return shapely.from_wkb(wkb.take(pa.array(chosen)).to_numpy(zero_copy_only=False)), "land cover"
    centres = rng.uniform((-121.3, 32.5), (-114.1, 35.8), (count, 2))
    return _rings(centres, 0.0015, rng, 20), "made-up polygons"


def _rings(centres: Any, radius: float, rng: np.random.Generator | None = None, vertices: int = VERTICES) -> Geometries:
    """Return a star-shaped polygon around each centre; a regular one without a generator."""
    angles = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    shape = (len(centres), vertices)
    reach = radius * (np.full(shape, 1.0) if rng is None else rng.uniform(0.7, 1.3, shape))
    xy = centres[:, None] + reach[..., None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return shapely.polygons(np.concatenate([xy, xy[:, :1]], axis=1))


def difference(expected: set[Event], received: Sequence[Event]) -> tuple[int, int]:
    """Return how many events are missing, and how many came that should not have, or twice."""
    once = set(received)
    return len(expected - once), len(received) - len(expected & once)
