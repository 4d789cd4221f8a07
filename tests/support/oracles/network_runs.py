"""Random runs of a checked network: clients come and go, links are cut, brokers crash, all from one seed."""

from __future__ import annotations

import random
from typing import Any

from contrada.broker import LinkOptions
from contrada.broker.simulation.topologies import Links, random_tree
from generators.networks import message, predicate
from oracles.checked_network import CheckedNetwork

PAUSES = [0, 0, 0.01, 0.05, 0.3, 2]  # seconds between two steps; a frame takes 0.01 to 0.05


class RandomRun:
    """Random steps on a checked network; `losses` also lets brokers lose their state."""

    def __init__(self, seed: int, options: LinkOptions, brokers: int, losses: bool = False, **settings: Any) -> None:
        self.rng = random.Random(seed)
        self.links: Links = random_tree(brokers, seed)
        self.checked = CheckedNetwork(seed, options, **settings)
        self.checked.build(self.links)
        self.losses = losses
        self.keys = 0

    def steps(self, count: int) -> CheckedNetwork:
        """Do random steps; then settle, publish everywhere, and settle again."""
        choices = [self.subscribe] * 12 + [self.replace, self.unsubscribe, self.unsubscribe] + [self.publish] * 6
        choices += [self.unsubscribe] * 2 + [self.cut, self.heal, self.crash, self.restart, self.checked.settle]
        choices += [self.lose] * self.losses + [self.advertise] * 3 * self.checked.advertises
        network = self.checked.network
        for _ in range(count):
            self.rng.choice(choices)()
            network.run(network.now + self.rng.choice(PAUSES))
        self.checked.settle()
        for broker in self.checked.running():
            self.publish_at(broker)
        self.checked.settle()
        return self.checked

    def broker(self) -> str | None:
        running = self.checked.running()
        return self.rng.choice(running) if running else None

    def key(self) -> int | None:
        """A subscription whose broker takes commands."""
        running = self.checked.running()
        keys = [key for key, asked in self.checked.live.items() if asked.broker in running]
        return self.rng.choice(keys) if keys else None

    def subscribe(self) -> None:
        broker = self.broker()
        if broker is not None:
            self.keys += 1
            self.checked.subscribe(broker, f"{broker}.{self.rng.randrange(3)}", self.keys, predicate(self.rng))

    def replace(self) -> None:
        key = self.key()
        if key is not None:
            asked = self.checked.live[key]
            self.checked.subscribe(asked.broker, asked.client, key, predicate(self.rng))

    def unsubscribe(self) -> None:
        key = self.key()
        if key is not None:
            self.checked.unsubscribe(key)

    def advertise(self) -> None:
        broker = self.broker()
        if broker is None:
            return
        own = [key for key, said in self.checked.announced.items() if said.broker == broker]
        if own and self.rng.random() < 0.4:
            self.checked.unadvertise(self.rng.choice(own))
        else:
            self.keys += 1
            self.checked.advertise(broker, self.keys, predicate(self.rng))

    def publish(self) -> None:
        broker = self.broker()
        if broker is not None:
            self.publish_at(broker)

    def publish_at(self, broker: str) -> None:
        self.checked.publish(broker, [message(self.rng) for _ in range(self.rng.randint(1, 4))])

    def cut(self) -> None:
        if self.links:
            self.checked.cut(*self.rng.choice(self.links))

    def heal(self) -> None:
        if self.checked.cuts:
            self.checked.heal(*self.rng.choice(sorted(self.checked.cuts)))

    def crash(self) -> None:
        broker = self.broker()
        if broker is not None:
            self.checked.crash(broker, self.rng.choice([None, 0, 0, 1, 2]))

    def restart(self) -> None:
        down = sorted(self.checked.models.keys() - self.checked.network.brokers.keys())
        if down:
            self.checked.restart(self.rng.choice(down))

    def lose(self) -> None:
        self.checked.lose(self.rng.choice(list(self.checked.models)))
