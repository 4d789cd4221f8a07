"""Points against 10,000 polygons of five vertices: batches and one by one, against Shapely and Koncorde."""

import json
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import shapely

import contrada as ct
from benchmarks.answers import ask_plan, ask_points, settle_answers, table_of
from benchmarks.peers.programs import ask_program, koncorde, rows_of
from benchmarks.peers.shapely_plans import single_plan
from benchmarks.polygons import PolygonSet, with_operators
from benchmarks.report import Report, Row
from benchmarks.timing import Timed, take_turns
from generators import synthetic

SECTION = "Points against 10,000 polygons of five vertices, S_INTERSECTS (time per point)"
INTERSECTS = ct.RelationSet.S_INTERSECTS
COUNT = 10_000
BATCH, ONE_BY_ONE = "match_many, 1 thread", "match_keys, one by one"


def run(report: Report) -> Iterator[Row]:
    """Measure batches, and a tenth of the points one by one."""
    rng = np.random.default_rng(report.seed)
    polygons = pentagons(rng)
    count = 20_000 if report.quick else 100_000
    few = count // 10
    points = shapely.points(rng.uniform((-170, -80), (170, 80), (count, 2)))
    messages = [bytes(wkb) for wkb in shapely.to_wkb(points)]
    column, objects = pa.table({"area": pa.array(messages, pa.binary())}), np.array(messages, object)
    table, tree = table_of(polygons, INTERSECTS), shapely.STRtree(polygons.shapes)
    contenders = {
        "ours": partial(table.match_many, column, threads=1),
        "peer": lambda: tree.query(shapely.from_wkb(objects), "intersects"),
        "single": partial(ask_points, table, messages[:few]),
        "peer single": partial(ask_plan, single_plan(polygons.shapes, INTERSECTS), messages[:few]),
    }
    found = take_turns(contenders, 3 if report.quick else 7)
    ours = np.split(found["ours"].answer.rows, found["ours"].answer.offsets[1:-1])
    batch = Timed(found["ours"].seconds / count, ours)
    pairs = found["peer"].answer
    order = np.lexsort((pairs[1], pairs[0]))
    theirs = np.split(pairs[1][order], np.searchsorted(pairs[0][order], np.arange(1, count)))

    settle = partial(settle_answers, polygons, messages, relations=INTERSECTS)
    peer = Timed(found["peer"].seconds / count, theirs)
    yield report.compare(SECTION, BATCH, "Shapely: STRtree, batch query", batch, peer, settle, 2)
    single, peer = (Timed(found[name].seconds / few, found[name].answer) for name in ("single", "peer single"))
    yield report.compare(SECTION, ONE_BY_ONE, "Shapely: STRtree, one by one", single, peer, settle, 1)
    rings = [shapely.get_coordinates(shape)[:-1].tolist() for shape in polygons.shapes]
    asked = json.dumps({"polygons": rings, "points": shapely.get_coordinates(points)[:few].tolist()})
    told = ask_program("Koncorde", koncorde("koncorde_points.js"), {"asked.json": asked})
    peer = Timed(told["seconds"], rows_of(told))
    batch = batch._replace(answer=ours[:few])
    yield report.compare(SECTION, BATCH, "Koncorde", batch, peer, settle, 5)
    yield report.compare(SECTION, ONE_BY_ONE, "Koncorde", batch._replace(seconds=single.seconds), peer, settle, 0.5)


def pentagons(rng: np.random.Generator) -> PolygonSet:
    """Return round polygons of five vertices and about two degrees' diameter, all over the world."""
    size = rng.uniform(1, 3, (COUNT, 2))
    low = rng.uniform((-170, -80), np.array((170, 80)) - size)
    rings = synthetic.place(synthetic.round_unit_rings(rng, COUNT, 5), np.concatenate([low, low + size], axis=1))
    return with_operators("pentagons", synthetic.as_regions(list(rings)).to_wkb(), rng)
