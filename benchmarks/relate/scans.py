"""One message region against thousands of synthetic regions, one after the other, on one thread."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

import contrada as ct
from benchmarks.peers.geos import Codes, relation_codes, settle
from benchmarks.report import Report, Row, Shown
from benchmarks.timing import say, take_turns
from contrada.papers.spatial.sampled import fill_sampled, relate_sampled
from generators import synthetic

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


@dataclass(frozen=True)
class Contender:
    """A way to do the scan, and how its answers compare with ours."""

    name: str
    scan: Callable[[Any, ct.Region], Any]  # (shapely message, our message) -> answers
    bar: float | None
    answers: str  # "relations", "intersects" or "sampled"


def contenders(constraints: ct.RegionArray, shapes: Any) -> list[Contender]:
    """Return the peers, in the order of the table."""
    points = density(PER_HALF_LENGTH)

    def boxes_first(_: Any, message: ct.Region) -> Codes:
        out = np.empty(len(constraints), np.uint8)
        fill_sampled(message._column, constraints, points, False, False, True, out)
        return out

    return [
        Contender("shapely.relate", lambda shape, _: shapely.relate(shape, shapes), 25, "relations"),
        Contender(PREPARED, lambda shape, _: shapely.intersects(shape, shapes), 5, "intersects"),
        Contender(
            "relate_sampled (Algorithm 1, no halo)",
            lambda _, message: relate_sampled(message, constraints, points, halo=False),
            30,
            "sampled",
        ),
        Contender("the same after a box test", boxes_first, None, "sampled"),
    ]


def compare(kind: str, messages: list[ct.Region], constraints: ct.RegionArray, repeats: int) -> Iterator[Row]:
    """Yield one row per contender for one kind of message; each repetition scans with every message."""
    shapes = np.asarray(constraints.to_shapely())
    pairs = [(message.to_shapely(), message) for message in messages]
    for shape, _ in pairs:
        shapely.prepare(shape)
    peers = contenders(constraints, shapes)
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: [ct.relate(message, constraints, threads=1) for _, message in pairs]
    }
    for peer in peers:
        calls[peer.name] = lambda scan=peer.scan: [scan(shape, message) for shape, message in pairs]
    found = take_turns(calls, repeats, len(pairs))
    ours = found["ours"]
    for peer in peers:
        theirs = found[peer.name]
        different, wrong = differences(peer, pairs, shapes, ours.answer, theirs.answer)
        counts = {"compared": len(pairs) * len(constraints), "different": different, "wrong": wrong}
        work = f"message of kind {kind}" if len(kind) == 1 else f"message of {kind}"
        section = SECTION.format(len(constraints))
        yield Row.versus(section, work, peer.name, ours.seconds, theirs.seconds, peer.bar, **counts)


def differences(peer: Contender, pairs: list[Any], shapes: Any, ours: Any, theirs: Any) -> tuple[int, int | None]:
    """Return how many answers differ, and how many of ours are wrong (None where the peer only approximates)."""
    different, wrong = 0, 0
    for (shape, _), mine, other in zip(pairs, ours, theirs, strict=True):
        if peer.answers == "relations":
            more, bad = settle(np.array(shape, dtype=object), shapes, mine, relation_codes(other))
            different, wrong = different + more, wrong + bad
        elif peer.answers == "intersects":
            different += int(((mine != ct.Relation.DISJOINT) != other).sum())
        else:
            different += int((mine != other).sum())
    return different, wrong if peer.answers == "relations" else None


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
