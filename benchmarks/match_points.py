"""Points against 10,000 polygons of five vertices: batches and one by one, against Shapely and Koncorde."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from match_large import ask_plan
from match_report import MatchReport
from match_sets import Answer, PolygonSet, ask_points, settle_answers, table_of, with_operators
from match_shapely import single_plan
from report import ROOT, Row
from timing import say, take_turns

import contrada as ct
from generators import synthetic

SECTION = "Points against 10,000 polygons of five vertices, S_INTERSECTS (time per point)"
INTERSECTS = ct.RelationSet.S_INTERSECTS
COUNT = 10_000
NODE = ROOT / "build" / "node"
BATCH, ONE_BY_ONE = "match_many, 1 thread", "match_keys, one by one"


def run(report: MatchReport) -> Iterator[Row]:
    """Batches and single points."""
    rng = np.random.default_rng(report.seed)
    polygons = pentagons(rng)
    points = shapely.points(rng.uniform((-170, -80), (170, 80), (20_000 if report.quick else 100_000, 2)))
    messages = [bytes(wkb) for wkb in shapely.to_wkb(points)]
    table = table_of(polygons, INTERSECTS)
    found = race(table, polygons, messages, 3 if report.quick else 7)
    count, few = len(messages), len(messages) // 10
    batch, single = found["ours"].seconds / count, found["single"].seconds / few
    ours = split(found["ours"].answer.rows, found["ours"].answer.offsets)
    pairs = found["peer"].answer
    order = np.lexsort((pairs[1], pairs[0]))
    theirs = split(pairs[1][order], np.searchsorted(pairs[0][order], np.arange(count + 1)))

    def row(work: str, against: str, ours: float, theirs: float, bar: float, *answers: Any) -> Row:
        settled = settle_answers((work, against), polygons, messages[: len(answers[0])], *answers, INTERSECTS)
        return report.compare(SECTION, work, against, ours, theirs, settled, bar)

    yield row(BATCH, "Shapely: STRtree, batch query", batch, found["peer"].seconds / count, 2, ours, theirs)
    answers, seconds = (found["single"].answer, found["peer single"].answer), found["peer single"].seconds / few
    yield row(ONE_BY_ONE, "Shapely: STRtree, one by one", single, seconds, 1, *answers)
    answer = koncorde(report, polygons, points)
    if answer is not None:
        answers = ours[:few], [np.array(sorted(one), np.int64) for one in answer["rows"]]
        yield row(BATCH, "Koncorde", batch, answer["seconds"], 5, *answers)
        yield row(ONE_BY_ONE, "Koncorde", single, answer["seconds"], 0.5, *answers)


def pentagons(rng: np.random.Generator) -> PolygonSet:
    """Round polygons of five vertices and about two degrees' diameter, all over the world."""
    size = rng.uniform(1, 3, (COUNT, 2))
    low = rng.uniform((-170, -80), np.array((170, 80)) - size)
    rings = synthetic.place(synthetic.round_unit_rings(rng, COUNT, 5), np.concatenate([low, low + size], axis=1))
    return with_operators("pentagons", synthetic.as_regions(list(rings)).to_wkb(), rng)


def race(table: ct.ForwardingTable, polygons: PolygonSet, messages: Sequence[bytes], repeats: int) -> dict[str, Any]:
    """Everybody's times and answers; a tenth of the points one by one."""
    few = messages[: len(messages) // 10]
    column = pa.table({"area": pa.array(messages, pa.binary())})
    objects = np.array(messages, object)
    tree = shapely.STRtree(polygons.shapes)
    plan = single_plan(polygons.shapes, INTERSECTS)
    contenders = {
        "ours": partial(table.match_many, column, threads=1),
        "peer": lambda: tree.query(shapely.from_wkb(objects), "intersects"),
        "single": partial(ask_points, table, few),
        "peer single": partial(ask_plan, plan, few),
    }
    return dict(take_turns(contenders, repeats))


def split(rows: Answer, offsets: Answer) -> list[Answer]:
    """The rows of each message."""
    return np.split(rows, offsets[1:-1])


def koncorde(report: MatchReport, polygons: PolygonSet, points: Any) -> dict[str, Any] | None:
    """What Koncorde answers to a tenth of the points and how long it takes, after the same number to warm up."""
    node = shutil.which("node")
    if node is None or not (NODE / "node_modules" / "koncorde").exists():
        report.skipped.append("Koncorde: needs node, and `npm install koncorde` in build/node")
        return None
    rings = [shapely.get_coordinates(shape)[:-1].tolist() for shape in polygons.shapes]
    xy = shapely.get_coordinates(points)[: len(points) // 10].tolist()
    script = Path(__file__).with_name("match_koncorde.js")
    asked = json.dumps({"polygons": rings, "points": xy})
    done = subprocess.run([node, str(script), str(NODE)], input=asked, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        report.skipped.append(f"Koncorde: {done.stderr.strip().splitlines()[-1:]}")
        return None
    say("Koncorde has answered")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
