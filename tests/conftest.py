"""Hypothesis profiles: HYPOTHESIS_PROFILE chooses how many examples every property gets. And how Java runs in tests."""

import os

import pytest
from hypothesis import HealthCheck, settings

from contrada import limits
from contrada.model import types
from effort import COMPILED, examples

SLOW_START = [HealthCheck.too_slow]  # the first example of a session may compile kernels

settings.register_profile("quick", max_examples=10, deadline=None, suppress_health_check=SLOW_START)
settings.register_profile("default", max_examples=examples(100), deadline=None, suppress_health_check=SLOW_START)
settings.register_profile("thorough", max_examples=5000, deadline=None, suppress_health_check=SLOW_START)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default" if COMPILED else "quick"))

# Jobs of tests are over before code that Java optimises at length pays: without that they take a sixth less time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture
def own_types():
    """No type is registered, and what a test registers is gone with it."""
    before = types.forget_types()
    yield
    types.forget_types()
    for one in before:
        types.register_type(one)


@pytest.fixture
def limited(monkeypatch):
    """Sets limits for one test."""

    def set_limits(**values):
        for name, value in values.items():
            monkeypatch.setenv(limits.variable(name), str(value))
        limits.limit.cache_clear()

    yield set_limits
    monkeypatch.undo()
    limits.limit.cache_clear()
