"""Points and small messages, one relation for all subscriptions: us and one STRtree with prepared predicates."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

import contrada as ct
from benchmarks.answers import Answer, ask_plan, ask_points, ask_regions, settle_answers, table_of
from benchmarks.peers.shapely_plans import single_plan
from benchmarks.polygons import PolygonSet, point_messages, read_sets, small_messages
from benchmarks.report import Report, Row
from benchmarks.timing import say, take_turns

SECTION = "Small messages, each relation alone (time per message)"
AGAINST = "Shapely: one STRtree, prepared predicate"
SHARES = (1e-6, 1e-5, 1e-4, 2.5e-3)  # of the universe
ALONE: tuple[ct.Relation | ct.RelationSet, ...] = (ct.RelationSet.S_INTERSECTS, *ct.Relation)
OF_POINTS = (ct.RelationSet.S_INTERSECTS, ct.Relation.DISJOINT, ct.Relation.MEETS, ct.Relation.INSIDE)
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
                    calls = {"ours": ask, "peer": partial(ask_plan, plan)}
                    yield from one_size(f"{name}, {size}", polygons, relations, calls, messages, report)


def one_size(
    name: str,
    polygons: PolygonSet,
    relations: ct.Relation | ct.RelationSet,
    contenders: dict[str, Callable[[Sequence[bytes]], list[Answer]]],
    messages: Sequence[bytes],
    report: Report,
) -> Iterator[Row]:
    """One relation and size; for `disjoint`, with its long answers, also the time that only copying them takes."""
    is_large = relations is ct.Relation.DISJOINT
    messages = messages[: 20 if is_large else None]
    ours, theirs = (call(messages) for call in contenders.values())
    size = np.mean([len(rows) for rows in ours])
    title = f"{polygons.name}, {name}, {size:,.1f} matches"
    settled = settle_answers(polygons, messages, (title, AGAINST), ours, theirs, relations)
    if is_large:
        contenders["copy"] = lambda messages, some=ours[0]: [some.copy() for _ in messages]
    del ours, theirs
    ask = partial(one_by_one, messages=messages) if is_large else lambda call: call(messages)
    calls = {name: partial(ask, call) for name, call in contenders.items()}
    found = take_turns(calls, 3 if report.quick else 5, len(messages))
    bar = 5 if size >= MANY else 1
    yield report.compare(SECTION, title, AGAINST, found["ours"], found["peer"], lambda *_: settled, bar)
    if is_large:
        work, each = f"{title}: only to copy the answer", [found[name].seconds for name in ("copy", "peer")]
        yield Row.versus(SECTION, work, AGAINST, *each)


def one_by_one(ask: Callable[[Sequence[bytes]], list[Answer]], messages: Sequence[bytes]) -> None:
    """Ask, and let go of each answer before the next, as users do: memory for all of them would be what is measured."""
    for message in messages:
        ask((message,))
