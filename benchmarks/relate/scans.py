"""One message region against thousands of synthetic regions, one after the other, on one thread."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import shapely

import contrada as ct
from benchmarks.peers.geos import Codes, relation_codes, settle
from benchmarks.report import Report, Row, Shown
from benchmarks.timing import say, take_turns
from contrada.papers.spatial import drawn_regions as synthetic
from contrada.papers.spatial.sampled import fill_sampled, relate_sampled

PER_HALF_LENGTH = 2000  # [SPATIAL] section 5: D = 2000 / (UX + UY)
PREPARED = "shapely.intersects, message prepared"
SECTION = "One message against {:,} synthetic regions (time per message)"


def density(per_half_length: int, universe: synthetic.Box = synthetic.UNIVERSE) -> float:
    """Return the linear point density of so many points per half-length of the universe."""
    return per_half_length / (universe[2] - universe[0] + universe[3] - universe[1])


def messages_of(rng: np.random.Generator, count: int, kind: str) -> ct.RegionArray:
    """Return messages from the constraints' own generator ("20 points") or of kind A, B or C."""
    if kind == "20 points":
        return synthetic.paper_regions(rng, count)
    return synthetic.message_regions(rng, count, kind)  # type: ignore[arg-type]


KINDS = ("20 points", "A", "B", "C")


class Contender(NamedTuple):
    """A way to do the scan, and how its answers to a message compare with ours."""

    name: str
    scan: Callable[[Any, ct.Region], Any]  # (shapely message, our message) -> answers
    bar: float | None
    # (shapely message, our answers, its answers) -> how many differ and, unless it only approximates, are wrong in ours
    judge: Callable[[Any, Codes, Any], tuple[int, ...]]


def contenders(constraints: ct.RegionArray, shapes: Any) -> list[Contender]:
    """Return the peers, in the order of the table."""
    points = density(PER_HALF_LENGTH)

    def sampled(_: Any, message: ct.Region) -> Codes:
        return relate_sampled(message, constraints, points, halo=False)

    def boxes_first(_: Any, message: ct.Region) -> Codes:
        out = np.empty(len(constraints), np.uint8)
        fill_sampled(message._column, constraints, points, False, False, True, out)
        return out

    def relations(shape: Any, ours: Codes, theirs: Any) -> tuple[int, ...]:
        return settle(np.array(shape, dtype=object), shapes, ours, relation_codes(theirs))

    def yes_or_no(_: Any, ours: Codes, theirs: Any) -> tuple[int, ...]:
        return (int(((ours != ct.Relation.DISJOINT) != theirs).sum()),)

    def codes(_: Any, ours: Codes, theirs: Codes) -> tuple[int, ...]:
        return (int((ours != theirs).sum()),)

    return [
        Contender("shapely.relate", lambda shape, _: shapely.relate(shape, shapes), 25, relations),
        Contender(PREPARED, lambda shape, _: shapely.intersects(shape, shapes), 5, yes_or_no),
        Contender("relate_sampled (Algorithm 1, no halo)", sampled, 30, codes),
        Contender("the same after a box test", boxes_first, None, codes),
    ]


def compare(kind: str, messages: list[ct.Region], constraints: ct.RegionArray, repeats: int) -> Iterator[Row]:
    """Yield one row per contender for one kind of message; each repetition scans with every message."""
    shapes, prepared = np.asarray(constraints.to_shapely()), [message.to_shapely() for message in messages]
    shapely.prepare(prepared)
    peers = contenders(constraints, shapes)
    calls = {"ours": lambda: [ct.relate(message, constraints, threads=1) for message in messages]}
    calls |= {peer.name: lambda scan=peer.scan: list(map(scan, prepared, messages)) for peer in peers}
    found = take_turns(calls, repeats, len(messages))
    ours, work = found["ours"], f"message of kind {kind}" if len(kind) == 1 else f"message of {kind}"
    for peer in peers:
        theirs = found[peer.name]
        totals = np.sum(list(map(peer.judge, prepared, ours.answer, theirs.answer)), axis=0).tolist()
        counts = dict(zip(("different", "wrong"), totals, strict=False), compared=len(messages) * len(constraints))
        yield Row.versus(SECTION.format(len(constraints)), work, peer.name, ours, theirs, peer.bar, **counts)


def run(report: Report) -> Iterator[Row]:
    """Measure all kinds of messages against the same constraints."""
    rng = np.random.default_rng(report.seed)
    constraints = synthetic.paper_regions(rng, 1_000 if report.quick else 10_000)
    for kind in KINDS:
        messages = list(messages_of(rng, 2 if report.quick else 8, kind))
        yield from compare(kind, messages, constraints, 3 if report.quick else 5)


PAPER = {2_000: 0.00089, 12_000: 0.00015}  # points per half-length of the universe: share of pairs that are wrong
APART = (ct.Relation.DISJOINT, ct.Relation.MEETS)  # a polygon-intersection algorithm answers no
HEADINGS = ("messages", "points per half-length", "halo", "pairs", "wrong yes/no", "wrong", "paper")


def run_accuracy(report: Report) -> Iterator[Shown]:
    """Yield error rates for messages of 20 points, the densities of the paper, halo off and on.

    A pair is wrong as yes/no of polygon intersection, or as one of eight relations.
    """
    rng = np.random.default_rng(report.seed)
    constraints = synthetic.paper_regions(rng, 1_000 if report.quick else 10_000)
    messages = list(messages_of(rng, 3 if report.quick else 20, "20 points"))
    exact = np.stack([ct.relate(message, constraints) for message in messages])
    lines = []
    for per_half_length, paper in PAPER.items():
        for halo in (False, True):
            name = "on" if halo else "off"
            say(f"accuracy: {per_half_length:,} points per half-length, halo {name}")
            points = density(per_half_length)
            sampled = np.stack([relate_sampled(message, constraints, points, halo=halo) for message in messages])
            wrong = (np.isin(sampled, APART) != np.isin(exact, APART)).mean(), (sampled != exact).mean()
            shares = [f"{share:.3%}" for share in (*wrong, paper)]
            lines.append(["20 points", f"{per_half_length:,}", name, f"{exact.size:,}", *shares])
    yield Shown("Error rate of the sampled relation", HEADINGS, lines)
