"""Workloads of the network experiment: filters, messages in columns, and who publishes what.

A workload is named by its kind (`rectangles`, or a set of regions) and, with X:Y, by the share of subscriptions that
need not lie within another one.
`rectangles` are drawn as in [COVER], with X:Y as in the overlay paper. Of regions, each filter asks for a kind, a least
severity and a region that the message's area meets; with X:Y the first X % have wide regions, and each other one lies
within a random wide one: it asks for the same kind, at least the same severity, and a region of the set that is within
the wide one. Subscriptions come in random order: what covers another one comes before or after it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contrada.errors import FormatError
from contrada.geometry import Region, RegionArray, RelationSet, relate
from contrada.model import Constraint, Filter
from contrada.papers.cover.commands import ATTRIBUTES, rectangle_commands
from contrada.papers.network.region_sets import FILES, PARCELS, check_set, file_of, region_set
from contrada.papers.overlay.workload import Boxes, distribution_of, draw_messages, draw_subscriptions

CONTAINED = ("25:75", "10:90")
DIMENSIONS = 3  # of rectangles drawn as in the overlay paper
KINDS = tuple(f"kind {number}" for number in range(1, 13))  # the k-th is k times rarer than the first
SEVERITIES = 5
WIDE = 0.05, 0.15  # radius of a wide region, as a share of the diagonal of the set
SMALL = 0.0005, 0.005  # half the side of a message's area, likewise
RECTANGLES = ("rectangles", *(f"rectangles {share}" for share in CONTAINED))
WORKLOADS = (
    *RECTANGLES,
    *(f"{PARCELS} {share}" for share in CONTAINED),
    *FILES,
    *(f"{name} {share}" for name in FILES for share in CONTAINED),
)


class Publisher(NamedTuple):
    """The messages of one publisher, by row, and an advertisement that all of them satisfy."""

    rows: npt.NDArray[np.int64]
    advertisement: Filter


class Workload(NamedTuple):
    """Filters and messages; of rectangles also the boxes and points, for the overlay."""

    filters: list[Filter]
    messages: pa.RecordBatch
    places: npt.NDArray[np.float64]  # (messages, 4 or 2 d): lows then highs
    boxes: Boxes | None

    def publishers(self, count: int) -> list[Publisher]:
        """Share the messages among publishers from low to high along the first axis."""
        order = np.argsort(self.places[:, 0], kind="stable")
        shares = np.array_split(order, min(count, len(order)))
        return [Publisher(np.sort(rows), self._advertisement(rows)) for rows in shares]

    def _advertisement(self, rows: npt.NDArray[np.int64]) -> Filter:
        axes = self.places.shape[1] // 2
        low, high = self.places[rows, :axes].min(axis=0).tolist(), self.places[rows, axes:].max(axis=0).tolist()
        if self.boxes is not None:
            return Filter([Constraint("a0", "between", (low[0], high[0]))])
        return Filter([Constraint("area", RelationSet.S_WITHIN, Region.box(*low, *high))])


def parts_of(name: str) -> tuple[str, str]:
    """Return the kind of a workload, and the share of contained subscriptions, if any.

    >>> parts_of("my set 25:75"), parts_of("London")
    (('my set', '25:75'), ('London', ''))
    """
    kind, _, share = name.rpartition(" ")
    return (kind, share) if share in CONTAINED else (name, "")


def file_of_workload(name: str) -> str | None:
    """Return the file of regions that a workload reads; None if it needs none."""
    kind, _ = parts_of(name)
    return None if kind in (RECTANGLES[0], PARCELS) else file_of(kind)


def check_workload(name: str) -> None:
    """Raise FormatError for a name that is neither rectangles nor that of a set or of a file of regions."""
    kind, _ = parts_of(name)
    check_set(kind)
    if ":" in kind:
        raise FormatError(f"workload {name!r:.60}: shares of contained subscriptions are {', '.join(CONTAINED)}")


def workload_of(name: str, subscriptions: int, messages: int, seed: int, data: Path | None) -> Workload:
    """Return the workload of a name; raise FormatError if its regions are not in `data`.

    >>> drawn = workload_of("parcels 25:75", 100, 10, seed=1, data=None)
    >>> len(drawn.filters), drawn.messages.num_rows, len(drawn.publishers(4))
    (100, 10, 4)
    """
    check_workload(name)
    rng = np.random.default_rng([seed, crc32(name.encode())])
    kind, share = parts_of(name)
    if kind == "rectangles":
        return _rectangles(share, subscriptions, messages, rng)
    return _mixed(region_set(kind, data), share, subscriptions, messages, rng)


def _rectangles(share: str, subscriptions: int, messages: int, rng: np.random.Generator) -> Workload:
    if share:
        boxes = draw_subscriptions(subscriptions, DIMENSIONS, f"uniform-{share}", rng)
        points = draw_messages(messages, DIMENSIONS, rng)
    else:
        _, ends = rectangle_commands(subscriptions, ATTRIBUTES, 0.0, int(rng.integers(1 << 30)))
        boxes, points = np.hstack([-ends[:, ::2], ends[:, 1::2]]), rng.random((messages, ATTRIBUTES))
    axes = points.shape[1]
    filters = [
        Filter([Constraint(f"a{axis}", "between", (box[axis], box[axes + axis])) for axis in range(axes)])
        for box in boxes.tolist()
    ]
    columns = {f"a{axis}": pa.array(points[:, axis]) for axis in range(axes)}
    return Workload(filters, pa.RecordBatch.from_pydict(columns), np.tile(points, 2), boxes)


def _mixed(regions: RegionArray, share: str, count: int, messages: int, rng: np.random.Generator) -> Workload:
    """Return filters with kind, severity and region, and messages that have all three."""
    asked = _contained(regions, share, count, rng) if share else _apart(regions, count, rng)
    filters = [
        Filter([
            Constraint("kind", "=", KINDS[kind]),
            Constraint("severity", ">=", severity),
            Constraint("area", RelationSet.S_INTERSECTS, region),
        ])
        for kind, severity, region in asked
    ]  # fmt: skip
    centres = _vertices(regions, messages, rng)
    half = _diagonal(regions) * rng.uniform(*SMALL, (messages, 2))
    places = np.hstack([centres - half, centres + half])
    columns = {
        "kind": pa.array([KINDS[kind] for kind in _kinds(messages, rng)]),
        "severity": pa.array(rng.integers(1, SEVERITIES, messages, endpoint=True)),
        "area": pa.array([Region.box(*place).to_wkb() for place in places.tolist()], pa.binary()),
    }
    return Workload(filters, pa.RecordBatch.from_pydict(columns), places, None)


Asked = tuple[int, int, Region]  # kind, least severity, region


def _apart(regions: RegionArray, count: int, rng: np.random.Generator) -> list[Asked]:
    """Return filters with regions of the set, each once as long as there are enough."""
    rows = np.concatenate([rng.permutation(len(regions)) for _ in range(-(-count // len(regions)))])[:count]
    severities = rng.integers(1, SEVERITIES, count, endpoint=True)
    return [
        (kind, severity, regions[row])
        for kind, severity, row in zip(_kinds(count, rng), severities.tolist(), rows.tolist(), strict=True)
    ]


def _contained(regions: RegionArray, share: str, count: int, rng: np.random.Generator) -> list[Asked]:
    """Return wide filters and others that each lie within one of them, in random order."""
    free = max(1, round(count * distribution_of(f"uniform-{share}").free))
    centres = _vertices(regions, free, rng)
    radii = (_diagonal(regions) * rng.uniform(*WIDE, free)).tolist()
    severities = rng.integers(1, SEVERITIES, free, endpoint=True).tolist()
    wide = [_octagon(x, y, radius) for (x, y), radius in zip(centres.tolist(), radii, strict=True)]
    found = list(zip(_kinds(free, rng), severities, wide, strict=True))
    inner = [_boxed_in(regions, around) for around in wide]
    while len(found) < count:
        row = int(rng.integers(free))
        kind, severity, around = found[row]
        if len(inner[row]):
            region = regions[int(rng.choice(inner[row]))]
            if relate(region, around) in RelationSet.S_WITHIN:
                found.append((kind, int(rng.integers(severity, SEVERITIES, endpoint=True)), region))
    return [found[row] for row in rng.permutation(count).tolist()]


def _boxed_in(regions: RegionArray, around: Region) -> npt.NDArray[np.int64]:
    """Return the rows of regions whose boxes lie within the box of another."""
    bounds, (xmin, ymin, xmax, ymax) = regions.bounds, around.bounds
    rows = np.flatnonzero((bounds[:, 0] >= xmin) & (bounds[:, 2] <= xmax))
    is_within: npt.NDArray[np.bool_] = (bounds[rows, 1] >= ymin) & (bounds[rows, 3] <= ymax)
    return rows[is_within]


def _kinds(count: int, rng: np.random.Generator) -> list[int]:
    weights = 1 / np.arange(1, len(KINDS) + 1)
    return [int(kind) for kind in rng.choice(len(KINDS), count, p=weights / weights.sum())]


def _vertices(regions: RegionArray, count: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the first vertex of random regions."""
    arrays = regions.arrays
    rings = arrays.region_offsets[rng.integers(0, len(regions), count)]
    found: npt.NDArray[np.float64] = arrays.xy[arrays.ring_offsets[rings]]
    return found


def _diagonal(regions: RegionArray) -> float:
    return float(np.hypot(*(regions.bounds[:, 2:].max(axis=0) - regions.bounds[:, :2].min(axis=0))))


def _octagon(x: float, y: float, radius: float) -> Region:
    turns = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    corners = np.column_stack([x + radius * np.cos(turns), y + radius * np.sin(turns)])
    return Region(corners.tolist())
