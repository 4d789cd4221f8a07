"""What benchmarks.simplify measures: predicates of two-constraint filters, matched as they are and simplified."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce

import numpy as np

import contrada as ct
from benchmarks.answers import Answer, count_differences
from benchmarks.polygons import KINDS, PolygonSet, large_messages
from benchmarks.report import Report, Row
from benchmarks.simplify.report import COUNTING, PRINTED_EXAMPLE, TABLE, TIME_TO_SIMPLIFY
from benchmarks.timing import Timed, measured, say, take_turns
from contrada.papers.spatial import drawn_regions as synthetic
from contrada.papers.spatial.counting import CountingMatcher
from contrada.simplification.simplifying import Simplification, simplified_groups

Predicates = list[list[ct.Filter]]  # the filters of each
Messages = dict[str, list[ct.Region]]  # by kind
Matcher = ct.ForwardingTable | CountingMatcher
EARLIER = 40  # messages of each kind that tables see before any is timed


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


def measure(
    report: Report, sections: tuple[str, str], works: Mapping[str, Predicates], make: Callable[[int, int], Messages]
) -> Iterator[Row]:
    """Yield how long messages take before simplification and after; what it removes from the predicates, in what time.

    All workloads take turns with each other, so that the machine's drift does not look like growth. Tables see earlier
    messages first, others than those that are timed: they learn from what they see. `make` returns messages of each
    kind, given their number and a seed.
    """
    count, repeats, simplifications = (6, 5, 1) if report.quick else (30, 11, 3)
    messages, earlier = make(count, report.seed), make(EARLIER, report.seed + 1)
    matchers: dict[tuple[str, str], Matcher] = {}
    done: list[Row] = []
    for work, predicates in works.items():
        seconds, simplified, what = simplify(predicates, simplifications)
        done += removed(sections[1], work, predicates, what, seconds)
        for when, filters in (("before", predicates), ("after", simplified)):
            table = table_of(filters)
            for together in zip(*earlier.values(), strict=True):
                ask(table, list(together))
            matchers[work, f"table {when}"], matchers[work, f"counting {when}"] = table, CountingMatcher(table)
        say(f"{work}: simplified")
    found = {}
    for kind, regions in messages.items():
        calls = {key: partial(ask, matcher, regions) for key, matcher in matchers.items()}
        found[kind] = take_turns(calls, repeats, len(regions))
    for work, predicates in works.items():
        for kind, timed in found.items():
            of_work = {name: one for (whose, name), one in timed.items() if whose == work}
            yield from compared(sections[0], f"{work}, {kind}", of_work, len(messages[kind]) * len(predicates))
    yield from done


def simplify(predicates: Predicates, repeats: int) -> tuple[float, Predicates, Simplification]:
    """Return the median of some times that simplification takes, what is left, and what was done."""
    few = [filters[:20] for filters in predicates]
    timed = measured(lambda: list(simplified_groups(predicates)), repeats, warm_up=lambda: list(simplified_groups(few)))
    done = reduce(Simplification.plus, (one.report for one in timed.answer), Simplification())
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


def compared(section: str, work: str, found: Mapping[str, Timed], asked: int) -> Iterator[Row]:
    """Yield the rows of the table and of the counting matcher, before and after; all answers are compared."""
    right = found["table before"].answer
    title = f"{work}, {np.mean([len(rows) for rows in right]):.3g} match"
    for name, others in ((TABLE, ["table after"]), (COUNTING, ["counting before", "counting after"])):
        different = sum(count_differences(right, found[other].answer) for other in others)
        counts = {"compared": asked * len(others), "different": different}
        yield Row.versus(section, title, name, found[f"{name} after"], found[f"{name} before"], **counts)


def ask(matcher: Matcher, regions: list[ct.Region]) -> list[Answer]:
    """Return the subscribers of each message, from a ready-made region."""
    return [matcher.match({"area": region}).rows for region in regions]
