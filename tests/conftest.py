"""Hypothesis profiles: HYPOTHESIS_PROFILE chooses how many examples a property gets. And how Spark runs in tests."""

import os

import pytest
from hypothesis import HealthCheck, settings

from contrada import limits
from contrada.model import types
from effort import COMPILED, examples

PIPELINE = "tests/pipeline/"
SLOW_START = [HealthCheck.too_slow]  # the first example of a session may compile kernels

settings.register_profile("quick", max_examples=10, deadline=None, suppress_health_check=SLOW_START)
settings.register_profile("default", max_examples=examples(100), deadline=None, suppress_health_check=SLOW_START)
settings.register_profile("thorough", max_examples=5000, deadline=None, suppress_health_check=SLOW_START)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default" if COMPILED else "quick"))

# Jobs of tests are over before code that Java optimises at length pays: without that they take a sixth less time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give all tests of Spark in `make test` to one worker, and it starts with them: a second Java would warm up too.

    Those of `make test-all` start clusters of their own, and there are too many for one worker.
    """
    from xdist.scheduler import LoadFileScheduling

    class OneSpark(LoadFileScheduling):
        """Files stay whole, and those of the pipeline together."""

        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return PIPELINE if file.startswith(PIPELINE) else file

    is_quick = config.option.dist == "loadfile" and config.option.markexpr == "not slow"
    return OneSpark(config, log) if is_quick else None


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
