"""One run of the overlay paper's evaluation: build a tree by joins, send messages from its root, count deliveries."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from contrada.errors import OverlayError
from contrada.overlay.protocol import Publication
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.simulator import Simulator
from contrada.papers.overlay import workload
from contrada.papers.overlay.tree import degree_of, false_share, shuffled_reach
from contrada.papers.overlay.workload import Boxes, holding

MAX_COUNTED_SUBSCRIPTIONS = 10_000  # above this, uncontained subscriptions are not counted
Tell = Callable[[str, int, int], None]  # what is done, how much of it, and how much there is
MESSAGES_PER_BATCH = 100  # hits are found batch by batch


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters of one run; defaults as in the paper's Table 1."""

    subscriptions: int = 10_000
    messages: int = 2_500
    dimensions: int = 4
    split: str = "quadratic"
    choose: str = "r"
    cover: str = "mbr"
    sketch: int = 0
    least: int = 5
    most: int = 10
    distribution: str = "zipf-25:75"
    seed: int = 1

    def __post_init__(self) -> None:
        for name, least in (("subscriptions", 1), ("messages", 1), ("dimensions", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise OverlayError(f"{name}: need at least {least}, got {getattr(self, name)}")
        workload.distribution_of(self.distribution)
        self.rules()

    def rules(self) -> Rules:
        """Return the rules of the peers; messages come one by one, so few need be remembered."""
        return Rules(self.least, self.most, self.choose, self.split, self.cover, self.sketch, kept=0, remembered=4)


def measure(setting: Setting, tell: Tell = lambda what, done, total: None) -> dict[str, Any]:
    """Return one row of results; `tell` reports progress.

    >>> row = measure(Setting(subscriptions=200, messages=50))
    >>> row["false_negatives"], 0 < row["false_positive_ratio"] < row["control_ratio"] < 1
    (0, True)
    """
    boxes, points = draw_workload(setting)
    start = time.perf_counter()
    simulator = build(boxes, setting, tell)
    built = time.perf_counter()
    found = send(simulator, boxes, points, tell)
    done = time.perf_counter()
    simulator.check()
    _, control = shuffled_reach(simulator, np.random.default_rng([setting.seed, 3]))
    return {
        **asdict(setting),
        **found,
        "control_ratio": false_share(boxes, control, points),
        "height": simulator.peers[simulator.root].state.top,
        "degree": degree_of(simulator)._asdict(),
        "root_degree": sum(map(len, simulator.peers[simulator.root].state.nodes)),
        "degree_once": degree_of(simulator, is_once=True)._asdict(),
        "uncontained": workload.count_uncontained(boxes) if len(boxes) <= MAX_COUNTED_SUBSCRIPTIONS else None,
        # Every receipt of a message, except the root's, was a note too.
        "notes_per_join": (simulator.notes - found["receipts"] + setting.messages) / setting.subscriptions,
        "seconds": round(done - start, 3),
        "seconds_joining": round(built - start, 3),
    }


def draw_workload(setting: Setting) -> tuple[Boxes, Boxes]:
    """Return subscriptions and messages; both have seeds of their own, so that all trees see the same ones."""
    rng = np.random.default_rng([setting.seed, 1])
    boxes = workload.draw_subscriptions(setting.subscriptions, setting.dimensions, setting.distribution, rng)
    return boxes, workload.draw_messages(setting.messages, setting.dimensions, np.random.default_rng([setting.seed, 2]))


def build(boxes: Boxes, setting: Setting, tell: Tell = lambda what, done, total: None) -> Simulator:
    """Build a tree of peers with one subscription each, which join one by one through random peers."""
    simulator = Simulator(setting.rules(), setting.seed)
    for row, box in enumerate(boxes.tolist()):
        simulator.add([box])
        if row % MESSAGES_PER_BATCH == 0:
            tell("peers join", row, len(boxes))
    return simulator


def send(simulator: Simulator, boxes: Boxes, points: Boxes, tell: Tell) -> dict[str, Any]:
    """Send messages from the root; return false positives and negatives, hits, and hops of receipts."""
    root = simulator.root
    counts = []  # for each message: hits, false positives, receipts, false negatives, sum and maximum of hops
    for start in range(0, len(points), MESSAGES_PER_BATCH):
        tell("messages", start, len(points))
        part = points[start : start + MESSAGES_PER_BATCH]
        for row, (point, held) in enumerate(zip(part.tolist(), holding(boxes, part), strict=True)):
            wanted = frozenset(np.nonzero(held)[0].tolist())
            spread = simulator.send_out(Publication(start + row, (*point, *point)), root, wanted)
            hops = spread.reached.values()
            counts.append((len(wanted), spread.bothered, len(hops), len(spread.missed), sum(hops), max(hops)))
    hits, bothered, receipts, missed, walked, _ = np.sum(counts, axis=0).tolist()
    by_hits: dict[int, list[int]] = {}
    for wanted_by, false, *_ in counts:
        by_hits.setdefault(1 << wanted_by.bit_length() >> 1, []).append(false)
    count = len(points)
    return {
        "false_positive_ratio": bothered / (len(boxes) * count),
        "false_receipt_ratio": bothered / receipts,
        "false_negatives": missed,
        "hits": hits / count,
        "receipts": receipts,
        "receipts_per_message": receipts / count,
        "notes_per_message": receipts / count - 1,  # the root has each message without a note
        "hops": {"average": walked / receipts, "max": max(highest for *_, highest in counts)},
        # By powers of two: least number of hits (and fewer than twice as many), messages, mean ratio.
        "by_hits": [[low, len(own), sum(own) / len(own) / len(boxes)] for low, own in sorted(by_hits.items())],
    }
