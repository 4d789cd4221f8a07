"""A machine of random commands on a small network: a failure shrinks to a short script."""

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from contrada.broker import LinkOptions
from effort import examples
from generators.networks import message, predicate
from oracles.checked_network import CheckedNetwork

OPTIONS = [LinkOptions(), LinkOptions(withdraw=True), LinkOptions(mode="flooding"), LinkOptions(mode="merging")]
drawn = st.integers(0, 500).map(random.Random)  # small numbers shrink well
predicates, messages = drawn.map(predicate), drawn.map(message)


class Network(RuleBasedStateMachine):
    """Brokers, links, clients and faults; CheckedNetwork checks deliveries at once and the rest when quiet."""

    @initialize(options=st.sampled_from(OPTIONS), wire=st.booleans(), early=st.booleans(), seed=st.integers(0, 100))
    def begin(self, options, wire, early, seed):
        self.checked = CheckedNetwork(seed, options, wire=wire, relays_early=early)
        self.checked.add("b0")
        self.links, self.keys = [], 0

    def ids(self):
        return list(self.checked.models)

    def running(self, data):
        return data.draw(st.sampled_from(self.checked.running()), label="broker")

    @precondition(lambda self: len(self.checked.models) < 6)
    @rule(data=st.data())
    def add_broker(self, data):
        other = data.draw(st.sampled_from(self.ids()), label="linked to")
        id = f"b{len(self.checked.models)}"
        self.checked.add(id)
        self.checked.link(other, id)
        self.links.append((other, id))

    @precondition(lambda self: self.checked.running())
    @rule(data=st.data(), what=predicates, client=st.integers(0, 1))
    def subscribe(self, data, what, client):
        broker = self.running(data)
        self.keys += 1
        self.checked.subscribe(broker, f"{broker}.{client}", self.keys, what)

    @precondition(lambda self: self.commandable())
    @rule(data=st.data(), what=st.none() | predicates)
    def unsubscribe_or_replace(self, data, what):
        key = data.draw(st.sampled_from(self.commandable()), label="key")
        if what is None:
            self.checked.unsubscribe(key)
        else:
            asked = self.checked.live[key]
            self.checked.subscribe(asked.broker, asked.client, key, what)

    def commandable(self):
        """Subscriptions whose brokers take commands."""
        running = self.checked.running()
        return [key for key, asked in self.checked.live.items() if asked.broker in running]

    @precondition(lambda self: self.checked.running())
    @rule(data=st.data(), batch=st.lists(messages, min_size=1, max_size=3))
    def publish(self, data, batch):
        self.checked.publish(self.running(data), batch)

    @precondition(lambda self: self.links)
    @rule(data=st.data(), heals=st.booleans())
    def cut_or_heal(self, data, heals):
        pair = data.draw(st.sampled_from(self.links), label="link")
        if heals:
            self.checked.heal(*pair)
        else:
            self.checked.cut(*pair)

    @rule(data=st.data(), after=st.none() | st.integers(-1, 3))
    def crash(self, data, after):
        self.checked.crash(data.draw(st.sampled_from(self.ids()), label="broker"), after)

    @rule(data=st.data())
    def restart(self, data):
        self.checked.restart(data.draw(st.sampled_from(self.ids()), label="broker"))

    @rule(data=st.data())
    def lose(self, data):
        self.checked.lose(data.draw(st.sampled_from(self.ids()), label="broker"))

    @rule(seconds=st.sampled_from([0.01, 0.05, 0.5]))
    def run(self, seconds):
        self.checked.network.run(self.checked.network.now + seconds)

    @rule()
    def settle(self):
        self.checked.settle()

    def teardown(self):
        if hasattr(self, "checked"):
            self.checked.settle()


Network.TestCase.settings = settings(max_examples=examples(120), stateful_step_count=25, deadline=None)
TestNetwork = Network.TestCase
