from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.service.access.rates import OpenConnections, Rates
from contrada.service.problems import Problem


def allowed(rates, principal, now) -> bool:
    try:
        rates.take(principal, now)
    except Problem as problem:
        return problem.status != 429
    return True


class Bucket:
    """A token bucket in rational arithmetic: tokens flow in, each request takes one."""

    def __init__(self, rate, burst):
        self.rate, self.burst, self.tokens, self.last = Fraction(rate), burst, Fraction(burst), Fraction(0)

    def take(self, now):
        self.tokens = min(Fraction(self.burst), self.tokens + (Fraction(now) - self.last) * self.rate)
        self.last = Fraction(now)
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@given(
    rate=st.sampled_from([0.25, 0.5, 1.0, 2.0, 8.0, 64.0]),
    burst=st.integers(1, 6),
    steps=st.lists(st.tuples(st.integers(0, 200), st.sampled_from("ab")), max_size=60),
)
def test_rates_agree_with_a_bucket_in_rational_arithmetic(rate, burst, steps):
    # Powers of two, so that neither side rounds.
    rates, buckets, now = Rates(rate, burst), {name: Bucket(rate, burst) for name in "ab"}, 0.0
    for step, name in steps:
        now += step / 64
        assert allowed(rates, name, now) == buckets[name].take(now)


def test_requests_at_the_rate_are_never_refused():
    rates = Rates(rate=3.0, burst=1)
    for count in range(10_000):
        rates.take("ann", 1e6 + count / 3.0)


def test_waiting_as_told_is_enough():
    rates = Rates(rate=7.0, burst=3)
    now = 12.3
    for _ in range(200):
        try:
            rates.take("ann", now)
        except Problem as problem:
            now += problem.members["retry_after"]
            rates.take("ann", now)


def test_a_refused_request_does_not_count():
    rates = Rates(rate=1.0, burst=1)
    assert allowed(rates, "ann", 0.0)
    assert not any(allowed(rates, "ann", now / 10) for now in range(10))
    assert allowed(rates, "ann", 1.0)


def test_an_answer_says_when_to_come_back():
    rates = Rates(rate=0.5, burst=1)
    rates.take("ann", 10.0)
    with pytest.raises(Problem) as caught:
        rates.take("ann", 10.5)
    assert caught.value.members == {"retry_after": 1.5}
    assert caught.value.headers()["Retry-After"] == "2"


def test_no_rate_is_no_limit():
    rates = Rates(rate=None)
    assert all(allowed(rates, "ann", 0.0) for _ in range(1000))
    assert len(rates) == 0


@pytest.mark.parametrize(("rate", "burst"), [(0.1, 1), (1.0, 1), (2.5, 3), (100.0, 100)])
def test_the_default_burst_is_a_second(rate, burst):
    rates = Rates(rate)
    assert sum(allowed(rates, "ann", 0.0) for _ in range(200)) == burst


def test_a_clock_that_goes_back_locks_nobody_out():
    rates = Rates(rate=1.0, burst=2)
    assert allowed(rates, "ann", 1e9)
    assert allowed(rates, "ann", 5.0)
    assert [allowed(rates, "ann", 5.0) for _ in range(3)] == [True, False, False]


def test_full_buckets_are_forgotten():
    rates = Rates(rate=1.0, burst=1, prune_at=10)
    for count in range(10_000):
        rates.take(count, now=count / 2)
    assert len(rates) <= 11


def test_pruning_forgets_no_debt():
    rates = Rates(rate=1.0, burst=1, prune_at=1)
    for name in "abcdefgh":
        rates.take(name, 0.0)
    assert not any(allowed(rates, name, 0.5) for name in "abcdefgh")


def statuses(connections, tenants):
    held, found = [], []
    for tenant in tenants:
        context = connections.hold(tenant)
        try:
            context.__enter__()
            held.append(context)
            found.append(200)
        except Problem as problem:
            found.append(problem.status if "Retry-After" in problem.headers() else 0)
    return held, found


def test_connections_are_counted_per_tenant_and_in_total():
    connections = OpenConnections(most=5, most_per_tenant=2)
    held, found = statuses(connections, "aaabbbccc")
    assert found == [200, 200, 429, 200, 200, 429, 200, 503, 503]
    assert (connections.total, connections.of("a"), connections.of("c")) == (5, 2, 1)
    for context in held:
        context.__exit__(None, None, None)
    assert [connections.total, *map(connections.of, "abc")] == [0, 0, 0, 0]
    assert statuses(connections, "aa")[1] == [200, 200]


def test_a_connection_that_fails_is_counted_off():
    connections = OpenConnections(most=1, most_per_tenant=1)
    for _ in range(3):
        with pytest.raises(RuntimeError), connections.hold("a"):
            raise RuntimeError
    assert connections.total == 0
