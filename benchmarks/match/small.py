"""Points and small messages, one relation for all subscriptions: us and one STRtree, and Koncorde for points."""

import json
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import shapely

import contrada as ct
from benchmarks.answers import INTERSECTS, Ask, Relations, ask_plan, ask_points, ask_regions, settle_answers, table_of
from benchmarks.peers.programs import ask_program, koncorde, rows_of
from benchmarks.peers.shapely_plans import single_plan
from benchmarks.polygons import PolygonSet, point_messages, read_sets, small_messages, with_operators
from benchmarks.report import Report, Row, SkippedError
from benchmarks.timing import Timed, say, take_turns
from contrada.papers.spatial import drawn_regions as synthetic

SECTION = "Small messages, each relation alone (time per message)"
AGAINST = "Shapely: one STRtree, prepared predicate"
SHARES = (1e-6, 1e-5, 1e-4, 2.5e-3)  # of the universe
ALONE: tuple[Relations, ...] = (INTERSECTS, *ct.Relation)
OF_POINTS = (INTERSECTS, ct.Relation.DISJOINT, ct.Relation.MEETS, ct.Relation.INSIDE)
MANY = 100  # answers from which on we want to be five times faster


def run(report: Report) -> Iterator[Row]:
    """Yield rows for both sets, every relation and size, one table and one tree at a time."""
    for polygons in read_sets(report, ("SoCal", "LA"), 1):
        rng, count = np.random.default_rng(report.seed), 60 if report.quick else 150
        works = {"points": point_messages(polygons, count, rng)}
        works |= {f"{share * 100:g} %": small_messages(polygons, share, count, rng) for share in SHARES}
        for relations in ALONE:
            table, plan = table_of(polygons, relations), single_plan(polygons.shapes, relations)
            name = relations.name.lower() if isinstance(relations, ct.Relation) else "S_INTERSECTS"
            say(f"{polygons.name}, {name} alone")
            for size, messages in works.items():
                if size != "points" or relations in OF_POINTS:
                    ask = partial(ask_points if size == "points" else ask_regions, table)
                    asks = {"ours": ask, "peer": partial(ask_plan, plan)}
                    yield from one_size(f"{name}, {size}", polygons, relations, asks, messages, report)


def one_size(
    name: str, polygons: PolygonSet, relations: Relations, asks: dict[str, Ask], messages: list[bytes], report: Report
) -> Iterator[Row]:
    """One relation and size; for `disjoint`, with its long answers, also the time that only copying them takes."""
    is_large = relations is ct.Relation.DISJOINT
    messages = messages[: 20 if is_large else None]
    ours, theirs = (ask(messages) for ask in asks.values())
    size = np.mean([len(rows) for rows in ours])
    title = f"{polygons.name}, {name}, {size:,.1f} matches"
    settled = settle_answers(polygons, messages, relations)((title, AGAINST), ours, theirs)
    if is_large:
        asks["copy"] = lambda messages, some=ours[0]: [some.copy() for _ in messages]
    del ours, theirs
    ask_all = partial(one_by_one, messages=messages) if is_large else lambda ask: ask(messages)
    calls = {name: partial(ask_all, ask) for name, ask in asks.items()}
    found = take_turns(calls, 3 if report.quick else 5, len(messages))
    bar = 5 if size >= MANY else 1
    yield report.compare(SECTION, title, AGAINST, found["ours"], found["peer"], lambda *_: settled, bar)
    if is_large:
        yield Row.versus(SECTION, f"{title}: only to copy the answer", AGAINST, found["copy"], found["peer"])


def one_by_one(ask: Ask, messages: Sequence[bytes]) -> None:
    """Ask, and let go of each answer before the next, as users do: memory for all of them would be what is measured."""
    for message in messages:
        ask((message,))


MISSES = "Messages that hit nothing, S_INTERSECTS, from WKB (time per message)"
MISSED, CORNERS = 1_000, 6


def run_misses(report: Report) -> Iterator[Row]:
    """Measure messages that lie between the regions of SoCal: reading them is most of the work."""
    for polygons in read_sets(report, ("SoCal",), 1):
        table, plan = table_of(polygons, INTERSECTS), single_plan(polygons.shapes, INTERSECTS)
        missed = missing_messages(
            polygons, MISSED // 10 if report.quick else MISSED, np.random.default_rng(report.seed)
        )
        contenders = {"ours": partial(ask_regions, table, missed), "peer": partial(ask_plan, plan, missed)}
        found = take_turns(contenders, 21, len(missed))
        settle = settle_answers(polygons, missed, INTERSECTS)
        title = f"{polygons.name}, {len(missed):,} messages of {CORNERS} corners"
        yield report.compare(MISSES, title, AGAINST, found["ours"], found["peer"], settle, 1)


def missing_messages(polygons: PolygonSet, count: int, rng: np.random.Generator) -> list[bytes]:
    """Return small hexagons all over the universe that touch no polygon of the set."""
    xmin, ymin, xmax, ymax = polygons.universe
    radius = np.sqrt(SHARES[0] * (xmax - xmin) * (ymax - ymin)) / 2
    tree = shapely.STRtree(polygons.shapes)
    turns = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)
    around = radius * np.column_stack([np.cos(turns), np.sin(turns)])
    found: list[bytes] = []
    while len(found) < count:
        shapes = shapely.polygons(rng.uniform((xmin, ymin), (xmax, ymax), (10 * count, 1, 2)) + around)
        is_hit = np.zeros(len(shapes), bool)
        is_hit[tree.query(shapes, "intersects")[0]] = True
        if is_hit.all():
            raise SkippedError(f"{polygons.name} leaves no room between its regions")
        found += map(bytes, shapely.to_wkb(shapes[~is_hit]))
    return found[:count]


POINTS = "Points against 10,000 polygons of five vertices, S_INTERSECTS (time per point)"
COUNT = 10_000
BATCH, ONE_BY_ONE = "match_many, 1 thread", "match_keys, one by one"


def run_points(report: Report) -> Iterator[Row]:
    """Measure points in batches, and a tenth of them one by one, against Shapely and Koncorde."""
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

    settle = settle_answers(polygons, messages, INTERSECTS)
    peer = Timed(found["peer"].seconds / count, theirs)
    yield report.compare(POINTS, BATCH, "Shapely: STRtree, batch query", batch, peer, settle, 2)
    single, peer = (Timed(found[name].seconds / few, found[name].answer) for name in ("single", "peer single"))
    yield report.compare(POINTS, ONE_BY_ONE, "Shapely: STRtree, one by one", single, peer, settle, 1)
    rings = [shapely.get_coordinates(shape)[:-1].tolist() for shape in polygons.shapes]
    asked = json.dumps({"polygons": rings, "points": shapely.get_coordinates(points)[:few].tolist()})
    told = ask_program("Koncorde", koncorde("koncorde_points.js"), {"asked.json": asked})
    peer = Timed(told["seconds"], rows_of(told))
    yield report.compare(POINTS, BATCH, "Koncorde", batch._replace(answer=ours[:few]), peer, settle, 5)
    yield report.compare(POINTS, ONE_BY_ONE, "Koncorde", single, peer, settle, 0.5)


def pentagons(rng: np.random.Generator) -> PolygonSet:
    """Return round polygons of five vertices and about two degrees' diameter, all over the world."""
    size = rng.uniform(1, 3, (COUNT, 2))
    low = rng.uniform((-170, -80), np.array((170, 80)) - size)
    rings = synthetic.place(synthetic.round_unit_rings(rng, COUNT, 5), np.concatenate([low, low + size], axis=1))
    return with_operators("pentagons", synthetic.as_regions(list(rings)).to_wkb(), rng)
