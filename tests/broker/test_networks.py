"""Random networks: who asks before a message is published gets it exactly once, and nobody else gets it."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.broker import LinkOptions, Send
from contrada.broker.frames import Publish
from contrada.broker.simulation.topologies import chain, random_tree
from contrada.cql2 import parse
from effort import FULL, examples, thorough
from oracles.checked_network import CheckedNetwork
from oracles.network_runs import RandomRun
from oracles.plain import predicate_holds

MODES = {
    "withdraw": LinkOptions(withdraw=True),
    "covering": LinkOptions(withdraw=False),
    "flooding": LinkOptions(mode="flooding"),
    "merging": LinkOptions(mode="merging", share=0.5),
}
modes = pytest.mark.parametrize("mode", MODES)


@modes
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 1 << 32), brokers=st.integers(1, 12), wire=st.booleans())
def test_settled_subscriptions_get_messages_once_while_no_state_is_lost(mode, seed, brokers, wire):
    checked = RandomRun(seed, MODES[mode], brokers, wire=wire).steps(40)
    assert not checked.missed
    assert not checked.network.missing


@modes
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 1 << 32), brokers=st.integers(1, 12), wire=st.booleans())
def test_with_advertisements_the_same_messages_arrive(mode, seed, brokers, wire):
    checked = RandomRun(seed, MODES[mode], brokers, advertises=True, wire=wire).steps(40)
    assert not checked.missed


@modes
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 1 << 32), brokers=st.integers(1, 12), advertises=st.booleans())
def test_a_loss_of_state_loses_only_messages_that_were_nowhere_else(mode, seed, brokers, advertises):
    """Every message that is not delivered is counted in `missing`; after quiet nothing more goes missing."""
    checked = RandomRun(seed, MODES[mode], brokers, losses=True, advertises=advertises).steps(40)
    assert len(checked.missed) == 0 or checked.network.counts.missing > 0
    before = len(checked.missed)
    run = [(broker, {"size": 1.0, "flag": True}) for broker in checked.running()]
    for broker, message in run:
        checked.publish(broker, [message])
    checked.settle()
    assert len(checked.missed) == before


@modes
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 1 << 32))
def test_no_message_is_lost_while_coverage_changes_hands(mode, seed):
    """Messages flow all the time while wider subscriptions come and go over one that stays."""
    rng = random.Random(seed)
    checked = CheckedNetwork(seed, MODES[mode])
    checked.build(chain(4))
    checked.subscribe("b3", "stays", "stays", parse("size = 3"))
    checked.settle()
    wider = ["size >= 3", "size >= 2", "size <= 3", "size BETWEEN 2 AND 4", "size = 3"]
    for number in range(20):
        broker = f"b{rng.randint(1, 3)}"
        if number % 3 == 0:
            checked.subscribe(broker, f"{broker}.{number}", number, parse(rng.choice(wider)))
        elif number % 3 == 1 and len(checked.live) > 1:
            checked.unsubscribe(rng.choice([key for key in checked.live if key != "stays"]))
        for _ in range(4):
            checked.publish("b0", [{"size": 3.0}])
            checked.network.run(checked.network.now + rng.uniform(0, 0.01))
    checked.settle()
    assert sum(client == "stays" for client, _ in checked.network.delivered) == 80


@modes
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 1 << 32))
def test_messages_wait_for_a_broker_that_lost_its_state(mode, seed):
    """Messages flow all the time; a broker routes none before all its neighbours have told what they ask for."""
    rng = random.Random(seed)
    links = random_tree(5, seed)
    checked = CheckedNetwork(seed, MODES[mode])
    checked.build(links)
    for number in range(6):
        broker = f"b{rng.randrange(5)}"
        checked.subscribe(broker, f"{broker}.{number}", number, parse(f"size >= {rng.randrange(4)}"))
    checked.settle()
    for _ in range(4):
        late = rng.choice(links)
        checked.cut(*late)
        checked.lose(f"b{rng.randrange(5)}")
        for step in range(12):
            if step == 6:
                checked.heal(*late)
            checked.publish(f"b{rng.randrange(5)}", [{"size": float(rng.randrange(5))}])
            checked.network.run(checked.network.now + rng.uniform(0, 0.04))
    checked.settle()


@modes
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 1 << 32), brokers=st.integers(2, 12))
def test_a_message_passes_a_link_once_and_only_if_somebody_beyond_it_asks(mode, seed, brokers):
    """Merging lets further messages through, up to a share."""
    run = RandomRun(seed, MODES[mode], brokers)
    checked = run.steps(20)
    passed = []

    def watch(id, effects):
        sent = [effect for effect in effects if isinstance(effect, Send) and isinstance(effect.frame, Publish)]
        passed.extend((id, effect.neighbour, message) for effect in sent for message in effect.frame.ids)

    before = checked.network.counts
    checked.network.watch = watch
    for broker in checked.running():
        run.publish_at(broker)
    checked.network.run()
    assert len({(frozenset(pair), message) for *pair, message in passed}) == len(passed)
    if mode == "merging":
        return
    for sender, receiver, message in passed:
        beyond = [asked for asked in checked.live.values() if sender not in checked.path(receiver, asked.broker)]
        assert any(predicate_holds(asked.predicate, checked.messages[message]) for asked in beyond)
    assert checked.network.counts.since(before).false_positives == 0


@modes
@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *map(thorough, range(1, 12))])
def test_hundreds_of_trees_with_up_to_fifty_brokers(part, mode):
    """Hundreds in `make verify`."""
    for seed in range(9 if FULL else 3):
        number = seed * len(MODES) + list(MODES).index(mode)
        advertises, losses = number % 4 == 3, number % 5 == 4
        brokers = 1 + (seed * 17 + part * 7) % 50
        RandomRun(1000 * part + seed, MODES[mode], brokers, losses, advertises=advertises).steps(80)
