"""Points and small messages, one relation for all subscriptions: us and one STRtree with prepared predicates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from match_large import ask_plan
from match_report import MatchReport
from match_sets import (
    Answer,
    PolygonSet,
    ask_points,
    ask_regions,
    point_messages,
    read_set,
    settle_answers,
    small_messages,
    table_of,
)
from match_shapely import single_plan
from report import Row
from timing import say, take_turns

import contrada as ct

SECTION = "Small messages, each relation alone (time per message)"
AGAINST = "Shapely: one STRtree, prepared predicate"
SHARES = (1e-6, 1e-5, 1e-4, 2.5e-3)  # of the universe
ALONE: tuple[ct.Relation | ct.RelationSet, ...] = (ct.RelationSet.S_INTERSECTS, *ct.Relation)
OF_POINTS = (ct.RelationSet.S_INTERSECTS, ct.Relation.DISJOINT, ct.Relation.MEETS, ct.Relation.INSIDE)
MANY = 100  # answers from which on we want to be five times faster


class Workload(NamedTuple):
    """Messages of one size."""

    name: str
    messages: Sequence[bytes]
    is_points: bool


def run(report: MatchReport) -> Iterator[Row]:
    """Rows for both sets, every relation and size."""
    for name in ("SoCal",) if report.quick else ("SoCal", "LA"):
        polygons = read_set(name, report)
        if polygons is not None:
            yield from one_set(polygons, report)


def workloads(polygons: PolygonSet, report: MatchReport) -> list[Workload]:
    """Points, and regions of several sizes."""
    rng = np.random.default_rng(report.seed)
    count = 60 if report.quick else 150
    sizes = [Workload("points", point_messages(polygons, count, rng), True)]
    for share in SHARES:
        sizes.append(Workload(f"{share * 100:g} %", small_messages(polygons, share, count, rng), False))
    return sizes


def one_set(polygons: PolygonSet, report: MatchReport) -> Iterator[Row]:
    """Every relation alone, one table and one tree at a time."""
    works = workloads(polygons, report)
    for relations in ALONE:
        table, plan = table_of(polygons, relations), single_plan(polygons.shapes, relations)
        name = relations.name.lower() if isinstance(relations, ct.Relation) else "S_INTERSECTS"
        say(f"{polygons.name}, {name} alone")
        for work in works:
            if work.is_points and relations not in OF_POINTS:
                continue
            ask = ask_points if work.is_points else ask_regions
            messages = work.messages[: 20 if relations is ct.Relation.DISJOINT else None]
            contenders = {"ours": partial(ask, table), "peer": partial(ask_plan, plan)}
            ours, theirs = (call(messages) for call in contenders.values())
            size = np.mean([len(rows) for rows in ours])
            title = f"{polygons.name}, {name}, {work.name}, {size:,.1f} matches"
            settled = settle_answers((title, AGAINST), polygons, messages, ours, theirs, relations)
            is_large = relations is ct.Relation.DISJOINT
            if is_large:
                contenders["copy"] = copies(ours)
            del ours, theirs
            calls = {
                name: partial(one_by_one, call, messages) if is_large else partial(call, messages)
                for name, call in contenders.items()
            }
            found = take_turns(calls, 3 if report.quick else 5)
            each = found["ours"].seconds / len(messages), found["peer"].seconds / len(messages)
            yield report.compare(SECTION, title, AGAINST, *each, settled, 5 if size >= MANY else 1)
            if "copy" in found:
                copied = found["copy"].seconds / len(messages)
                work_title = f"{title}: only to copy the answer"
                yield Row(SECTION, work_title, AGAINST, copied, each[1], each[1] / copied, "times faster")


def one_by_one(ask: Callable[[Sequence[bytes]], list[Answer]], messages: Sequence[bytes]) -> None:
    """Ask, and let go of each answer before the next, as users do: memory for all of them would be what is measured."""
    for message in messages:
        ask((message,))


def copies(answers: Sequence[Answer]) -> Callable[[Sequence[bytes]], list[Answer]]:
    """What no answer in an array of integers can do without: the time to write it down."""
    some = answers[0]
    return lambda messages: [some.copy() for _ in messages]
