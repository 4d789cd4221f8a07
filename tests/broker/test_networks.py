"""Random networks: who asks before a message is published gets it exactly once, and nobody else gets it."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.broker import LinkOptions
from effort import examples
from oracles.network_runs import RandomRun

MODES = {
    "withdraw": LinkOptions(),
    "covering": LinkOptions(withdraw=False),
    "flooding": LinkOptions(mode="flooding"),
}
modes = pytest.mark.parametrize("mode", MODES)


@modes
@settings(max_examples=examples(40))
@given(seed=st.integers(0, 1 << 32), brokers=st.integers(1, 12), wire=st.booleans())
def test_settled_subscriptions_get_messages_once_while_no_state_is_lost(mode, seed, brokers, wire):
    checked = RandomRun(seed, MODES[mode], brokers, wire=wire).steps(40)
    assert not checked.missed
    assert not checked.network.missing


@modes
@settings(max_examples=examples(40))
@given(seed=st.integers(0, 1 << 32), brokers=st.integers(1, 12), wire=st.booleans())
def test_with_advertisements_the_same_messages_arrive(mode, seed, brokers, wire):
    checked = RandomRun(seed, MODES[mode], brokers, advertises=True, wire=wire).steps(40)
    assert not checked.missed


@modes
@settings(max_examples=examples(40))
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


@pytest.mark.slow
@pytest.mark.parametrize("part", range(12))
def test_hundreds_of_trees_with_up_to_fifty_brokers(part):
    cases = product(range(30), MODES.values())
    for number, (seed, options) in enumerate(cases):
        advertises, losses = number % 4 == 3, number % 5 == 4
        run = RandomRun(1000 * part + seed, options, 1 + (seed * 17 + part) % 50, losses, advertises=advertises)
        run.steps(100)
