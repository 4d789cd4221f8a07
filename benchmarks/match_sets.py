"""What benchmarks/match.py matches: polygon sets with an operator each, messages as WKB, and our table of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely
from footprints import data_directory, read_column
from peers import Geometries
from report import Report

import contrada as ct
from generators import synthetic
from oracles.relations import judge, judge_point

Answer = npt.NDArray[np.int64]
Operators = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]
FILES = {
    "London": "paper_london_4170",
    "Rhône-Alpes": "paper_rhone_alpes_17048",
    "SoCal": "paper_socal_85550",
    "LA": "buildings_la_1m",
}
KINDS: tuple[synthetic.MessageKind, ...] = ("A", "B", "C")


class PolygonSet(NamedTuple):
    """Polygons of a data set, grouped by the operator that each got; row k of every contender is polygon k."""

    name: str
    wkb: pa.Array
    shapes: Geometries
    operators: Operators

    @property
    def universe(self) -> synthetic.Box:
        """The box of all polygons."""
        xmin, ymin, xmax, ymax = shapely.total_bounds(self.shapes).tolist()
        return xmin, ymin, xmax, ymax


def read_set(name: str, report: Report) -> PolygonSet | None:
    """A real set with random operators, or None, with the reason among the skipped."""
    directory = data_directory()
    path = directory / f"{FILES[name]}.parquet" if directory else None
    if path is None or not path.exists():
        report.skipped.append(f"{name}: CONTRADA_DATA names no directory with {FILES[name]}.parquet")
        return None
    return with_operators(name, read_column(path), np.random.default_rng(report.seed))


def with_operators(name: str, wkb: pa.Array, rng: np.random.Generator) -> PolygonSet:
    """A set whose polygons get one of the eight relations each, at random."""
    operators = rng.integers(0, 8, len(wkb)).astype(np.uint8)
    order = np.argsort(operators, kind="stable")
    wkb = wkb.take(pa.array(order))
    return PolygonSet(name, wkb, shapely.from_wkb(wkb.to_numpy(zero_copy_only=False)), operators[order])


def table_of(polygons: PolygonSet, relations: ct.Relation | ct.RelationSet | None = None) -> ct.ForwardingTable:
    """One subscription per polygon: with the same relations for all, or with each one's operator."""
    table = ct.ForwardingTable()
    if relations is not None:
        rows = pa.table({"geometry": polygons.wkb})
        table.subscribe_many(rows, ct.Constraint("area", relations, ct.Column("geometry")))
        return table
    for relation in ct.Relation:
        start, stop = np.searchsorted(polygons.operators, [relation, relation + 1])
        rows = pa.table({"geometry": polygons.wkb[start:stop]})
        table.subscribe_many(rows, ct.Constraint("area", relation, ct.Column("geometry")))
    return table


def large_messages(polygons: PolygonSet, kind: synthetic.MessageKind, count: int, seed: int) -> list[bytes]:
    """Messages of a kind whose boxes take 1 to 25 % of the universe."""
    rng = np.random.default_rng((seed, KINDS.index(kind)))
    regions = synthetic.message_regions(rng, count, kind, universe=polygons.universe)
    return [bytes(value) for value in regions.to_wkb().to_pylist()]


def small_messages(polygons: PolygonSet, share: float, count: int, rng: np.random.Generator) -> list[bytes]:
    """Messages of all kinds whose boxes take `share` of the universe, around vertices of random polygons."""
    xmin, ymin, xmax, ymax = polygons.universe
    centres = places(polygons, count, rng)
    shapes = []
    for k in range(count):
        least, most, stretch, draw = synthetic.KINDS[KINDS[k % 3]]
        aspect = stretch ** rng.uniform(-1.0, 1.0)
        half = np.sqrt(share * (xmax - xmin) * (ymax - ymin) * np.array([aspect, 1 / aspect])) / 2
        frame = np.concatenate([centres[k] - half, centres[k] + half])[None]
        shapes.append(shapely.Polygon(synthetic.place(draw(rng, 1, int(rng.integers(least, most + 1))), frame)[0]))
    return [bytes(value) for value in shapely.to_wkb(np.array(shapes, object))]


def point_messages(polygons: PolygonSet, count: int, rng: np.random.Generator) -> list[bytes]:
    """Points next to random polygons: one in four is a vertex, the others a little off."""
    xy = places(polygons, count, rng)
    size = np.mean(shapely.bounds(polygons.shapes[:1000])[:, 2:] - shapely.bounds(polygons.shapes[:1000])[:, :2])
    xy[np.arange(count) % 4 != 0] += rng.normal(0, size / 4, (count, 2))[np.arange(count) % 4 != 0]
    return [bytes(value) for value in shapely.to_wkb(shapely.points(xy))]


def places(polygons: PolygonSet, count: int, rng: np.random.Generator) -> FloatArray:
    """The first vertices of random polygons."""
    chosen = polygons.shapes[rng.integers(0, len(polygons.shapes), count)]
    return np.asarray(shapely.get_coordinates(shapely.get_point(shapely.get_exterior_ring(chosen), 0)))


def ask_regions(table: ct.ForwardingTable, messages: Sequence[bytes]) -> list[Answer]:
    """Our rows for each message, from WKB."""
    return [table.match_keys({"area": ct.Region.from_wkb(message)}).rows for message in messages]


def ask_points(table: ct.ForwardingTable, messages: Sequence[bytes]) -> list[Answer]:
    """Our rows for each point, from WKB."""
    return [table.match_keys({"area": ct.Point.from_wkb(message)}).rows for message in messages]


class Difference(NamedTuple):
    """A polygon on which we and a peer disagree, and what rational arithmetic says."""

    work: str
    against: str
    message: str
    row: int
    relation: str
    is_ours_right: bool


class Settled(NamedTuple):
    """How many answers (message, polygon) were compared, differ, and are wrong on our side."""

    compared: int
    different: int
    wrong: int
    differences: list[Difference]


def settle_answers(
    work: tuple[str, str],
    polygons: PolygonSet,
    messages: Sequence[bytes],
    ours: Sequence[Answer],
    theirs: Sequence[Answer],
    relations: ct.Relation | ct.RelationSet | None = None,
) -> Settled:
    """Compare two contenders' rows; rational arithmetic settles the differences."""
    found = []
    for message, mine, other in zip(messages, ours, theirs, strict=True):
        for row in np.setxor1d(mine, other).tolist():
            found.append(_difference(work, polygons, message, row, row in mine, relations))
    wrong = sum(not item.is_ours_right for item in found)
    return Settled(len(messages) * len(polygons.shapes), len(found), wrong, found)


def _difference(
    work: tuple[str, str],
    polygons: PolygonSet,
    message: bytes,
    row: int,
    is_in_ours: bool,
    relations: ct.Relation | ct.RelationSet | None,
) -> Difference:
    shape = shapely.from_wkb(message)
    polygon = polygons.shapes[row]
    is_point = shape.geom_type == "Point"
    code = judge_point(shapely.get_coordinates(shape)[0], polygon) if is_point else judge(shape, polygon)
    wanted = ct.Relation(int(polygons.operators[row])) if relations is None else relations
    is_match = ct.Relation(code) in ct.RelationSet(wanted) if isinstance(wanted, ct.Relation) else code in wanted
    return Difference(*work, shape.wkt, row, ct.Relation(code).name, is_match == is_in_ours)
