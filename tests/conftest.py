"""Hypothesis profiles: HYPOTHESIS_PROFILE chooses how many examples every property gets. And how Java runs in tests."""

import os

from hypothesis import HealthCheck, settings

from effort import examples

SLOW_START = [HealthCheck.too_slow]  # the first example of a session may compile kernels

settings.register_profile("quick", max_examples=10, deadline=None, suppress_health_check=SLOW_START)
settings.register_profile("default", max_examples=examples(100), deadline=None, suppress_health_check=SLOW_START)
settings.register_profile("thorough", max_examples=5000, deadline=None, suppress_health_check=SLOW_START)
without_compilation = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick" if without_compilation else "default"))

# Jobs of tests are over before code that Java optimises at length pays: without that they take a sixth less time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
