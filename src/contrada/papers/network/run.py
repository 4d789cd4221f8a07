"""One run of the network experiment: subscribe, publish, unsubscribe a part, publish again; count what travels.

Deliveries are compared with an expectation that knows nothing of brokers: one ForwardingTable with all subscriptions.
From it also follows which links a message must cross at least; what crosses further links is false-positive traffic.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.broker.effects import Deliver, Effect
from contrada.broker.forwarding import LinkOptions
from contrada.broker.simulation.simulator import NetworkSimulator
from contrada.broker.simulation.topologies import Links, balanced_tree, chain, star
from contrada.errors import BrokerError
from contrada.matching.table import ForwardingTable
from contrada.papers.network.peers import PEER_MODES, measure_peers
from contrada.papers.network.plan import NetworkSetting, Plan, plan_of

MODES = {
    "flooding": LinkOptions(mode="flooding"),
    "covering": LinkOptions(withdraw=False),
    "withdrawal": LinkOptions(withdraw=True),
    "merging 0.1": LinkOptions(mode="merging", share=0.1),
    "merging 0.3": LinkOptions(mode="merging", share=0.3),
    "advertisements": LinkOptions(withdraw=True),
}
TOPOLOGIES: dict[str, Callable[[int], Links]] = {"tree": balanced_tree, "chain": chain, "star": star}
DELAY = 0.01, 0.05  # seconds that a frame takes
RATE = 100  # subscriptions and unsubscriptions a second
BATCH = 25  # messages published at once
SAMPLE = 50  # subscriptions, the last ones, that settle one by one
DRAWN_BROKERS = 15  # of the largest network that is drawn
Row = dict[str, Any]
Delivered = Counter[tuple[str, str, int]]  # client, message and key of the subscription


def measure(setting: NetworkSetting, data: Path | None = None) -> Row:
    """Return one row of results; raise BrokerError if deliveries differ from the expectation.

    >>> row = measure(NetworkSetting("parcels 25:75", "covering", brokers=7, subscriptions=100, messages=20))
    >>> row["deliveries"] > 0, row["false_crossings"]
    (True, 0)
    """
    plan = plan_of(setting, data)
    return measure_peers(setting, plan) if setting.mode in PEER_MODES else Run(setting, plan).row()


class Run:
    """A network, its plan, and what was delivered in it."""

    def __init__(self, setting: NetworkSetting, plan: Plan) -> None:
        self.setting, self.plan = setting, plan
        self.network = network_of(setting)
        self.network.watch = self._watch
        self.expected = Expectation(plan, self.network.links)
        self._delivered: Delivered = Counter()
        self._published: Counter[str] = Counter()  # messages, by broker
        self._entries_met = 0  # entries of the tables that messages were matched against
        self._settling: list[float] = []  # seconds until the last broker has taken what follows from a subscription

    def row(self) -> Row:
        """Do all steps and return what they took."""
        start = time.process_time()
        advertising = self._counted(self._advertise)
        subscribing = self._counted(self._subscribe)
        tables = self._tables()
        first = self._counted(lambda: self._publish(0))
        leaving = self._counted(self._unsubscribe)
        second = self._counted(lambda: self._publish(1))
        control = {"advertising": advertising, "subscribing": subscribing, "unsubscribing": leaving}
        matched, crossings = first["matched"] + second["matched"], first["messages"] + second["messages"]
        needed = self.expected.needed
        return {
            **asdict(self.setting),
            **{f"control_{name}": counts["control"] for name, counts in control.items()},
            "control": sum(counts["control"] for counts in control.values()),
            "control_bytes": sum(counts["bytes"] for counts in control.values()),
            **tables,
            "entries_after": self.network.counts.entries,
            "settling": {"mean": float(np.mean(self._settling)), "max": max(self._settling)},
            "matched_per_message": matched / self.setting.messages,
            "passing_share": 1 - self.expected.wanting / matched,
            "entries_met_per_message": self._entries_met / self.setting.messages,
            "message_bytes": first["bytes"] + second["bytes"],
            "crossings": crossings,
            "needed_crossings": needed,
            "false_crossings": crossings - needed,
            "false_share": (crossings - needed) / crossings if crossings else 0.0,
            "hops": self.expected.hops,
            "deliveries": first["deliveries"] + second["deliveries"],
            "cpu_seconds": round(time.process_time() - start, 2),
        }

    # --- steps ---

    def _advertise(self) -> None:
        if self.setting.mode == "advertisements":
            for at, publisher in self.plan.publishers:
                self.network.advertise(at, f"publisher/{at}", at, publisher.advertisement)
            self.network.run()

    def _subscribe(self) -> None:
        """Subscribe all but the sample at a steady rate, and then the sample, each when the network is quiet."""
        first = max(0, self.setting.subscriptions - SAMPLE)
        for row in range(first):
            self._subscribe_one(row)
            self._pause()
        for row in range(first, self.setting.subscriptions):
            self.network.run()
            begun = self.network.now
            self._subscribe_one(row)
            self.network.run()
            self._settling.append(max(0.0, self.network.settled_at - begun))

    def _subscribe_one(self, row: int) -> None:
        plan = self.plan
        self.network.subscribe(plan.homes[row], plan.client(row), row, plan.work.filters[row])

    def _unsubscribe(self) -> None:
        for row in self.plan.leaving.tolist():
            self.network.unsubscribe(self.plan.homes[row], row)
            self._pause()
        self.network.run()
        self.expected.unsubscribe(self.plan.leaving.tolist())

    def _pause(self) -> None:
        self.network.run(self.network.now + 1 / RATE)

    def _publish(self, half: int) -> None:
        """Publish every other message, and compare what is delivered."""
        self._delivered.clear()
        before = self._visits()
        for at, publisher in self.plan.publishers:
            rows = publisher.rows[half::2]
            for start in range(0, len(rows), BATCH):
                part = rows[start : start + BATCH]
                batch = self.plan.work.messages.take(pa.array(part))
                self._published[at] += len(part)
                self.network.publish(at, batch, [f"m{row}" for row in part.tolist()], f"publisher/{at}")
                self.network.run()
        visits = self._visits() - before
        self._entries_met += sum(visits[id] * len(broker) for id, broker in self.network.brokers.items())
        wanted = self.expected.deliveries(half)
        if self._delivered != wanted:
            wrong = sorted(((self._delivered - wanted) + (wanted - self._delivered)).items())
            raise BrokerError(f"{self.setting}: {len(wrong)} deliveries are missing or too many, such as {wrong[0]}")

    # --- counts ---

    def _watch(self, _: str, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                for id, keys in zip(effect.ids, effect.keys, strict=True):
                    self._delivered.update((effect.client, id, int(key)) for key in keys)

    def _counted(self, step: Callable[[], None]) -> dict[str, int]:
        before = self.network.counts
        step()
        return self.network.counts.since(before)._asdict()

    def _tables(self) -> Row:
        """Return sizes of tables, and what links forward and suppress: of a small network each of them."""
        sizes = [len(broker) for broker in self.network.brokers.values()]
        links = [
            {"from": id, "to": link.neighbour, "told": link.told, "suppressed": link.suppressed}
            for id, broker in self.network.brokers.items()
            for link in broker.links()
        ]
        return {
            "nodes": len(sizes),
            "entries": sum(sizes),
            "entries_largest": max(sizes),
            "told": sum(link["told"] for link in links),
            "suppressed": sum(link["suppressed"] for link in links),
            "links": links if len(sizes) <= DRAWN_BROKERS else None,
        }

    def _visits(self) -> Counter[str]:
        """Return how many messages have come to each broker so far, from clients and neighbours."""
        visits = self._published.copy()
        for (_, to), counts in self.network.link_counts.items():
            visits[to] += counts.messages
        return visits


def network_of(setting: NetworkSetting) -> NetworkSimulator:
    """Return a quiet network without subscriptions."""
    network = NetworkSimulator(
        setting.seed, DELAY, MODES[setting.mode], advertises=setting.mode == "advertisements", sizes=True, durable=False
    )
    network.add("b0")
    network.build(TOPOLOGIES[setting.topology](setting.brokers))
    return network


class Expectation:
    """What should be delivered and which links must be crossed, from one table with all subscriptions."""

    def __init__(self, plan: Plan, links: Links) -> None:
        self._plan = plan
        self._parents = {at: parents_from(at, links) for at, _ in plan.publishers}
        self._table = ForwardingTable()
        for row, filter_ in enumerate(plan.work.filters):
            self._table.subscribe(plan.client(row), filter_, key=row)
        self.needed = self.wanting = 0  # crossings of links that messages need, brokers at which somebody wants them
        self._hops: Counter[int] = Counter()  # from the publisher's broker to each client

    def unsubscribe(self, rows: Iterable[int]) -> None:
        """Forget subscriptions."""
        for row in rows:
            self._table.unsubscribe(row)

    def deliveries(self, half: int) -> Delivered:
        """Return what clients should get of every other message."""
        found: Delivered = Counter()
        for at, publisher in self._plan.publishers:
            rows = publisher.rows[half::2].tolist()
            answer = self._table.match_many(self._plan.work.messages.take(pa.array(rows)), by="subscription")
            for place, row in enumerate(rows):
                keys = [int(key) for key in answer.keys(place)]
                found.update((self._plan.client(key), f"m{row}", key) for key in keys)
                self._cross(at, {self._plan.client(key) for key in keys})
        return found

    def _cross(self, at: str, clients: set[str]) -> None:
        """Count the links between a publisher and the brokers of clients."""
        crossed: set[str] = set()
        homes = Counter(client.partition("/")[0] for client in clients)
        for home, count in homes.items():
            way = list(self._way(at, home))
            crossed.update(way)
            self._hops[len(way)] += count
        self.needed += len(crossed)
        self.wanting += len(homes)

    def _way(self, at: str, to: str) -> Iterator[str]:
        while to != at:
            yield to
            to = self._parents[at][to]

    @property
    def hops(self) -> dict[str, float]:
        """Links between a publisher and a client that gets a message: mean and largest number."""
        total = self._hops.total()
        mean = sum(hops * count for hops, count in self._hops.items()) / total if total else 0.0
        return {"mean": mean, "max": max(self._hops, default=0)}


def parents_from(root: str, links: Links) -> dict[str, str]:
    """Return the next broker on the way to `root`, for every other one.

    >>> parents_from("b1", [("b0", "b1"), ("b0", "b2")])
    {'b0': 'b1', 'b2': 'b0'}
    """
    near: dict[str, list[str]] = {}
    for a, b in links:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    parents: dict[str, str] = {}
    waiting = [root]
    while waiting:
        at = waiting.pop()
        for other in near.get(at, ()):
            if other != root and other not in parents:
                parents[other] = at
                waiting.append(other)
    return parents
