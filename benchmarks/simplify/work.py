"""What benchmarks.simplify measures: predicates of two-constraint filters, matched as they are and simplified."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

import contrada as ct
from benchmarks.answers import Answer, count_differences
from benchmarks.polygons import KINDS, PolygonSet, large_messages
from benchmarks.report import Row
from benchmarks.simplify.report import COUNTING, PRINTED_EXAMPLE, TABLE, TIME_TO_SIMPLIFY
from benchmarks.timing import measured, say, take_turns
from contrada.papers.spatial.counting import CountingMatcher
from contrada.simplification.simplifying import Simplification, simplified_groups
from generators import synthetic

Predicates = list[list[ct.Filter]]  # the filters of each
Messages = dict[str, list[ct.Region]]  # by kind
Matcher = ct.ForwardingTable | CountingMatcher


class Section(NamedTuple):
    """Which tables the rows of a workload go to, and how often it is measured."""

    times: str
    removed: str
    repeats: int
    simplifications: int


def constraints_of(polygons: PolygonSet, seed: int) -> list[ct.Constraint]:
    """Return one constraint from each polygon with its operator, in random order."""
    column = ct.RegionArray.from_wkb(polygons.wkb)
    order = np.random.default_rng((seed, 4)).permutation(len(column)).tolist()
    return [ct.Constraint("area", ct.Relation(int(polygons.operators[k])), column[k]) for k in order]


def predicates_of(constraints: Sequence[ct.Constraint], count: int) -> Predicates:
    """Return filters of two constraints each, dealt out to so many predicates."""
    filters = [ct.Filter(pair) for pair in zip(constraints[::2], constraints[1::2], strict=True)]
    return [filters[k::count] for k in range(count)]


def messages_of(polygons: PolygonSet, count: int, seed: int) -> Messages:
    """Return messages of the kinds A, B and C."""
    wkb = {f"kind {kind}": large_messages(polygons, kind, count, seed) for kind in KINDS}
    return {kind: [ct.Region.from_wkb(value) for value in values] for kind, values in wkb.items()}


def synthetic_messages(polygons: PolygonSet, count: int, seed: int) -> Messages:
    """Return these, and regions as the constraints have them, which section 5.1 of the paper speaks of."""
    same = list(synthetic.paper_regions(np.random.default_rng((seed, 1)), count))
    return {"20 points": same} | messages_of(polygons, count, seed)


def measure(section: Section, works: Mapping[str, Predicates], messages: Messages, earlier: Messages) -> Iterator[Row]:
    """Yield how long messages take before simplification and after; what it removes from the predicates, in what time.

    All workloads take turns with each other, so that the machine's drift does not look like growth. Tables see earlier
    messages first, others than those that are timed: they learn from what they see.
    """
    matchers: dict[str, dict[str, Matcher]] = {}
    done: list[Row] = []
    for work, predicates in works.items():
        seconds, simplified, report = simplify(predicates, section.simplifications)
        done += removed(section.removed, work, predicates, report, seconds)
        before, after = table_of(predicates), table_of(simplified)
        for table in (before, after):
            for together in zip(*earlier.values(), strict=True):
                ask(table, list(together))
        tables = {"table before": before, "table after": after}
        matchers[work] = tables | {"counting before": CountingMatcher(before), "counting after": CountingMatcher(after)}
        say(f"{work}: simplified")
    rows = [row for kind, regions in messages.items() for row in timed(section, kind, matchers, works, regions)]
    for work in works:  # kinds of messages together
        yield from (row for row in rows if row.work.startswith(f"{work}, "))
    yield from done


def simplify(predicates: Predicates, repeats: int) -> tuple[float, Predicates, Simplification]:
    """Return the median of some times that simplification takes, what is left, and what was done."""
    few = [filters[:20] for filters in predicates]
    timed = measured(lambda: list(simplified_groups(predicates)), repeats, warm_up=lambda: list(simplified_groups(few)))
    done = Simplification()
    for one in timed.answer:
        done = done.plus(one.report)
    return timed.seconds, [one.filters for one in timed.answer], done


def removed(section: str, work: str, predicates: Predicates, done: Simplification, seconds: float) -> Iterator[Row]:
    """Yield sizes before and after, what each rule removed, and the time."""
    counts = {
        "filters before": done.filters_before,
        "filters after": done.filters_after,
        "constraints before": done.constraints_before,
        "constraints after": done.constraints_after,
        **done.rules,
        PRINTED_EXAMPLE: printed_example(predicates),
    }
    for what, count in counts.items():
        yield Row(section, work, what, None, None, count, "")
    at_most = 10 if work.startswith("SoCal") else None
    yield Row(section, work, TIME_TO_SIMPLIFY, seconds, None, seconds, "s", at_most=at_most)


def printed_example(predicates: Predicates) -> int:
    """Living filters that the example of section 4.2 calls false: covered-by A and disjoint B, where A overlaps B.

    Only a B without holes counts. Some of A's boundary then lies outside B, since B would otherwise hold all of A; a
    small region within A that touches the boundary there satisfies the filter.
    """
    pairs = []
    for part in (part for filters in predicates for part in filters):
        values = {constraint.operator.mask: constraint.value for constraint in part}
        first, second = values.get(1 << ct.Relation.COVERED_BY), values.get(1 << ct.Relation.DISJOINT)
        if first is not None and second is not None and second.is_simple:
            pairs.append((first, second))
    if not pairs:
        return 0
    firsts, seconds = (ct.RegionArray.from_regions(regions) for regions in zip(*pairs, strict=True))
    return int((ct.relate(firsts, seconds, threads=1) == ct.Relation.OVERLAPS).sum())


def table_of(predicates: Predicates) -> ct.ForwardingTable:
    """Return a packed table with one subscription for each predicate, each of its own subscriber."""
    table = ct.ForwardingTable()
    for subscriber, filters in enumerate(predicates):
        table.subscribe(subscriber, ct.Predicate(filters))
    table.pack()
    table.wait_for_compaction()
    return table


def timed(
    section: Section,
    kind: str,
    matchers: Mapping[str, Mapping[str, Matcher]],
    works: Mapping[str, Predicates],
    regions: list[ct.Region],
) -> Iterator[Row]:
    """Measure messages of one kind: the table and the counting matcher, before and after; all answers are compared."""
    contenders = {
        (work, name): partial(ask, matcher, regions)
        for work, named in matchers.items()
        for name, matcher in named.items()
    }
    found = take_turns(contenders, section.repeats, len(regions))
    for work, predicates in works.items():
        right = found[work, "table before"].answer
        title = f"{work}, {kind}, {np.mean([len(rows) for rows in right]):.3g} match"
        asked = len(regions) * len(predicates)
        for name, compared in ((TABLE, ["table after"]), (COUNTING, ["counting before", "counting after"])):
            before, after = (found[work, f"{name} {when}"].seconds for when in ("before", "after"))
            different = sum(count_differences(right, found[work, other].answer) for other in compared)
            counts = {"compared": asked * len(compared), "different": different}
            yield Row.versus(section.times, title, name, after, before, **counts)


def ask(matcher: Matcher, regions: list[ct.Region]) -> list[Answer]:
    """Return the subscribers of each message, from a ready-made region."""
    return [matcher.match({"area": region}).rows for region in regions]
