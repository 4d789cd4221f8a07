"""A simulated network beside a model of who must get which message, who may, and what every table must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from contrada import Predicate
from contrada.broker import Broker, Deliver, Effect, LinkOptions, Persist
from contrada.broker.advertising import may_intersect
from contrada.broker.simulation.simulator import NetworkSimulator
from generators.networks import columns
from oracles.plain import predicate_holds
from oracles.routing_tables import TableModel, are_equivalent, check_told, covers


class Asked(NamedTuple):
    """A live subscription."""

    broker: str
    client: str
    predicate: Predicate


def publisher_at(broker: str) -> str:
    """The client that publishes at a broker."""
    return f"{broker}.publisher"


class CheckedNetwork:
    """Does what a NetworkSimulator does, and checks every delivery at once and everything else when quiet."""

    def __init__(self, seed: int, options: LinkOptions, advertises: bool = False, **settings: Any) -> None:
        self.network = NetworkSimulator(seed, options=options, advertises=advertises, **settings)
        self.network.watch = self._watch
        self.options, self.advertises = options, advertises
        self.models: dict[str, TableModel] = {}
        self.neighbours: dict[str, list[str]] = {}
        self.live: dict[Any, Asked] = {}  # by key
        self.settled: set[Any] = set()  # keys of subscriptions that were there when the network was last quiet
        self.announced: dict[Any, Asked] = {}  # advertisements by key
        self.messages: dict[str, Mapping[str, Any]] = {}
        self.owed: dict[tuple[str, str], set[Any]] = {}  # by client and message: subscriptions because of which
        self.lost_state: set[str] = set()
        self.missed: list[tuple[str, str]] = []  # owed, but lost with the state of a broker
        self.cuts: set[tuple[str, str]] = set()
        self.count = 0

    # --- the network ---

    def build(self, links: Sequence[tuple[str, str]], first: str = "b0") -> None:
        for id in dict.fromkeys([first, *(end for pair in links for end in pair)]):
            self.add(id)
        for pair in links:
            self.link(*pair)
        self.settle()

    def add(self, id: str) -> None:
        self.models[id] = TableModel(self.options.mode, self.options.withdraw)
        self.neighbours[id] = []
        self.network.add(id)

    def link(self, a: str, b: str) -> None:
        self.neighbours[a].append(b)
        self.neighbours[b].append(a)
        self.network.link(a, b)

    def running(self) -> list[str]:
        """The brokers that take commands."""
        return sorted(self.network.brokers)

    # --- clients ---

    def subscribe(self, broker: str, client: str, key: Any, predicate: Predicate) -> None:
        self._forget(key)
        self.live[key] = Asked(broker, client, predicate)  # effects of the command may use it already
        self.network.subscribe(broker, client, key, predicate)

    def unsubscribe(self, key: Any) -> None:
        broker = self.live[key].broker
        self._forget(key)
        del self.live[key]
        self.network.unsubscribe(broker, key)

    def _forget(self, key: Any) -> None:
        self.settled.discard(key)
        for pair, keys in list(self.owed.items()):
            keys.discard(key)
            if not keys:
                del self.owed[pair]

    def advertise(self, broker: str, key: Any, predicate: Predicate) -> None:
        """Let the broker's publisher announce a predicate."""
        self.settled.discard(("advertisement", key))
        self.announced[key] = Asked(broker, publisher_at(broker), predicate)
        self.network.advertise(broker, publisher_at(broker), key, predicate)

    def unadvertise(self, key: Any) -> None:
        self.settled.discard(("advertisement", key))
        self.network.unadvertise(self.announced.pop(key).broker, key)

    def _is_announced(self, broker: str, message: Mapping[str, Any]) -> bool:
        """True if a publisher may send a message since the network was last quiet."""
        return not self.advertises or any(
            said.broker == broker
            and ("advertisement", key) in self.settled
            and predicate_holds(said.predicate, message)
            for key, said in self.announced.items()
        )

    def publish(self, broker: str, messages: Sequence[Mapping[str, Any]]) -> None:
        ids = [f"m{self.count + k}" for k in range(len(messages))]
        self.count += len(messages)
        for id, message in zip(ids, messages, strict=True):
            self.messages[id] = message
            if not self._is_announced(broker, message):
                continue
            for key, asked in self.live.items():
                if predicate_holds(asked.predicate, message) and self._is_settled(broker, key):
                    self.owed.setdefault((asked.client, id), set()).add(key)
        self.network.publish(broker, columns(messages), ids, publisher_at(broker))

    def _is_settled(self, publisher: str, key: Any) -> bool:
        """True if the network was quiet since, or every broker on the way holds what the next one tells it."""
        if {key, ("broker", publisher)} <= self.settled:
            return True
        if self.advertises:
            return False
        path = self.path(publisher, self.live[key].broker)
        wanted = self.live[key].predicate
        return all(any(covers(held, wanted) for held in self.held(*pair)) for pair in pairwise(path))

    def held(self, broker: str, neighbour: str) -> Iterator[Predicate]:
        """Yield what a broker holds from a neighbour that still tells it."""
        records, theirs = self.network.records(broker), self.network.records(neighbour)
        for (kind, *rest), number in records.items():
            if kind == "theirs" and rest[0] == neighbour and ("forwarded", broker, rest[1]) in theirs:
                yield records["subscription", number].predicate

    def path(self, start: str, end: str) -> list[str]:
        """The brokers from one to another."""
        ways = {start: [start]}
        todo = [start]
        while todo:
            here = todo.pop()
            for other in self.neighbours[here]:
                if other not in ways:
                    ways[other] = [*ways[here], other]
                    todo.append(other)
        return ways[end]

    # --- faults ---

    def cut(self, a: str, b: str) -> None:
        self.cuts.add((a, b))
        self.network.cut(a, b)

    def heal(self, a: str, b: str) -> None:
        self.cuts.discard((a, b))
        self.network.heal(a, b)

    def crash(self, id: str, after: int | None = None) -> None:
        self.network.crash(id, after)

    def restart(self, id: str) -> None:
        self.network.restart(id)

    def lose(self, id: str) -> None:
        self.lost_state.add(id)
        self.models[id] = TableModel(self.options.mode, self.options.withdraw)
        self.network.lose(id)

    # --- checks ---

    def _watch(self, broker: str, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                self.models[broker].take(effect.records)
            elif isinstance(effect, Deliver):
                self._check_delivery(broker, effect)

    def _check_delivery(self, broker: str, effect: Deliver) -> None:
        """Raise AssertionError unless a client gets exactly what it asks for, and for the first time."""
        for id, keys in zip(effect.ids, effect.keys, strict=True):
            wanted = {
                key
                for key, asked in self.live.items()
                if (asked.broker, asked.client) == (broker, effect.client)
                and predicate_holds(asked.predicate, self.messages[id])
            }
            assert wanted, (effect.client, id, keys)
            assert set(keys) == wanted, (effect.client, id, keys, wanted)
            pair = effect.client, id
            assert pair not in self.network.delivered or broker in self.lost_state, f"{pair} twice"
            self.owed.pop(pair, None)

    def settle(self) -> None:
        """Heal everything, run until quiet, and check that all is as it should be."""
        for pair in list(self.cuts):
            self.heal(*pair)
        self.network.run()
        while down := self.models.keys() - self.network.brokers.keys():  # crashes may come with the next command
            for id in sorted(down):
                self.restart(id)
            self.network.run()
        self.check()
        self.settled = {*self.live, *(("advertisement", key) for key in self.announced)}
        self.settled |= {("broker", id) for id in self.models}  # one that is added later has been told nothing yet

    def check(self) -> None:
        """Raise AssertionError unless a quiet network has delivered everything and holds what it should."""
        assert not self.network.closed, self.network.closed[:3]
        self.check_owed()
        for id, broker in self.network.brokers.items():
            self.check_restored(id, broker)
            for link in broker.links():
                assert (link.phase, link.unacknowledged) == ("up", 0), (id, link)
                self.check_link(id, link.neighbour)

    def check_owed(self) -> None:
        """Raise AssertionError if a message is missing that no broker has lost with its state."""
        for (client, id), keys in list(self.owed.items()):
            broker = self.live[min(keys, key=repr)].broker
            gaps = [item for item in self.network.missing if item.message == id]
            is_lost = any(item.neighbour is None or item.neighbour in self.path(item.broker, broker) for item in gaps)
            assert is_lost, f"{client} at {broker} has not got {id}, because of {keys}"
            self.missed.append((client, id))
            del self.owed[client, id]

    def check_link(self, id: str, neighbour: str) -> None:
        """Raise AssertionError unless a neighbour is told, and holds, exactly what the definition says."""
        mine, theirs = self.network.records(id), self.network.records(neighbour)
        told: set[Any] = {key[2] for key in mine if key[:2] == ("forwarded", neighbour)}
        held: dict[Any, Predicate] = {
            key[2]: theirs["subscription", number].predicate
            for key, number in theirs.items()
            if key[:2] == ("theirs", id)
        }
        announced = {number for number in told if ("advertisement", number) in mine}
        told -= announced
        assert told == held.keys(), (id, neighbour)
        model = self.models[id].links[neighbour]
        interests = model.live
        if self.advertises:
            heard = self.check_advertised(id, neighbour, announced)
            interests = {
                number: one for number, one in interests.items() if any(may_intersect(one, ad) for ad in heard)
            }
        elif self.options.mode != "merging":
            assert told == model.told, (id, neighbour, told ^ model.told)
        check_told(held, interests, self.options)
        near = [asked.predicate for asked in self.live.values() if self.is_behind(neighbour, id, asked.broker)]
        assert all(any(covers(one, asked) for asked in near) for one in held.values()), "nobody has asked for it"

    def is_behind(self, broker: str, neighbour: str, other: str) -> bool:
        """True if a broker reaches another one through a neighbour."""
        return broker not in self.path(neighbour, other)

    def check_advertised(self, id: str, neighbour: str, told: set[Any]) -> list[Predicate]:
        """Raise AssertionError unless advertisements travel over a link, both ways; return those of the neighbour."""
        mine, theirs = (
            {key[1]: value for key, value in self.network.records(end).items() if key[0] == "advertisement"}
            for end in (id, neighbour)
        )
        taken = {
            one.advertisement.theirs for one in theirs.values() if one.owner == id and one.advertisement.key is None
        }
        assert told == taken
        own = {
            number: one.advertisement.predicate
            for number, one in mine.items()
            if one.advertisement.key is not None or one.owner != neighbour
        }
        check_told({number: own[number] for number in told}, own, LinkOptions(withdraw=True))
        heard = [one.advertisement.predicate for number, one in mine.items() if number not in own]
        said = [ad.predicate for ad in self.announced.values() if self.is_behind(id, neighbour, ad.broker)]
        assert all(any(are_equivalent(one, ad) for ad in said) for one in heard), "nobody has announced it"
        assert all(any(covers(one, ad) for one in heard) for ad in said), "an announcement is missing"
        return heard

    def check_restored(self, id: str, broker: Broker) -> None:
        """Raise AssertionError unless the records of a broker make an equal one that has nothing to say."""
        if not self.network.records(id):
            return  # it has never had a command
        if self.advertises or self.options.mode == "merging":
            return  # subscriptions may have concerned a neighbour, or have been merged, in another order
        restored = Broker.restore(dict(self.network.records(id)))
        assert len(restored) == len(broker)
        for before, after in zip(broker.links(), restored.links(), strict=True):
            assert after == before._replace(phase="down")
        (said,) = restored.stop_waiting()
        assert isinstance(said, Persist)
        assert [key for key, _ in said.records] == [("broker",)], (id, said)
