"""The work of these benchmarks: mixed subscriptions, messages, and a tree of brokers in one process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

import contrada as ct
from benchmarks.cover.mixed import UNIVERSE, buildings
from benchmarks.report import Report
from contrada.broker import Broker, Effect, LinkOptions, Send
from contrada.broker.frames import Frame, LinkCommand

SEVERITIES, KINDS = 10, 20
WIDE_SHARE, WIDE = 0.1, 0.01  # share of subscriptions to whole quarters, and half their side in degrees, about 1 km
BUILDINGS = 1_000_000
COMMANDS_PER_TICK = 1_000
WORKLOADS = ("apart", "nested")


def subscriptions(report: Report, count: int, workload: str) -> Iterator[ct.Filter]:
    """Yield filters on a building, a severity and a kind; `nested`: a tenth ask for whole quarters and any severity."""
    yield from filters_on(buildings(report, BUILDINGS), report.seed, count, workload)


def filters_on(read: Callable[[int], ct.Region], seed: int, count: int, workload: str) -> Iterator[ct.Filter]:
    """Yield such filters on the regions that `read` returns."""
    rng = np.random.default_rng((seed, count))
    kinds = KINDS if workload == "apart" else 2
    for place in rng.choice(BUILDINGS, count, replace=False).tolist():
        region, severity = read(place), int(rng.integers(SEVERITIES))
        if workload == "nested" and rng.random() < WIDE_SHARE:
            x, y, _, _ = region.bounds
            region, severity = ct.Region.box(x - WIDE, y - WIDE, x + WIDE, y + WIDE), 0
        yield ct.Filter(
            [
                ct.Constraint("area", ct.RelationSet.S_INTERSECTS, region),
                ct.Constraint("severity", ">=", severity),
                ct.Constraint("kind", "=", f"a{rng.integers(kinds)}"),
            ]
        )


def messages(report: Report, count: int) -> pa.Table:
    """Return messages about boxes among the buildings."""
    rng = np.random.default_rng((report.seed, count, 1))
    corners = rng.uniform(UNIVERSE[:2], UNIVERSE[2:], (count, 2)).tolist()
    areas = [ct.Region.box(x, y, x + 0.03, y + 0.03).to_wkb() for x, y in corners]
    severities, kinds = rng.integers(0, SEVERITIES, count), [f"a{kind}" for kind in rng.integers(0, KINDS, count)]
    return pa.table({"area": pa.array(areas, pa.binary()), "severity": severities, "kind": kinds})


class Tree:
    """A balanced binary tree of brokers; frames arrive at once, in the order of sending."""

    def __init__(self, size: int, options: LinkOptions) -> None:
        self.brokers = [Broker(str(k), incarnation=k + 1) for k in range(size)]
        self.commands = 0  # at each broker that they reach
        self._frames: deque[tuple[str, str, Frame]] = deque()
        for child in range(1, size):
            for one, other in ((child, (child - 1) // 2), ((child - 1) // 2, child)):
                self._take(str(one), self.brokers[one].link_up(str(other), options))
            self._calm()
        self.commands = 0

    def subscribe(self, broker: int, key: str, what: ct.Filter) -> None:
        """Let a client subscribe, and wait until all brokers know what they should."""
        self.commands += 1
        self._take(str(broker), self.brokers[broker].subscribe("client", key, what))
        self._calm()

    def unsubscribe(self, broker: int, key: str) -> None:
        """Let a client unsubscribe, and wait likewise."""
        self.commands += 1
        self._take(str(broker), self.brokers[broker].unsubscribe(key))
        self._calm()

    def tick(self) -> None:
        """Let time pass: brokers acknowledge what arrived."""
        for broker in self.brokers:
            self._take(broker.id, broker.tick())
        self._calm()

    def take(self, broker: int, effects: list[Effect]) -> None:
        """Take the effects of a broker, and wait until all brokers know what they should."""
        self._take(str(broker), effects)
        self._calm()

    def _take(self, broker: str, effects: list[Effect]) -> None:
        self._frames.extend((broker, effect.neighbour, effect.frame) for effect in effects if isinstance(effect, Send))

    def _calm(self) -> None:
        while self._frames:
            sender, receiver, frame = self._frames.popleft()
            self.commands += isinstance(frame, LinkCommand)
            self._take(receiver, self.brokers[int(receiver)].receive(sender, frame))
