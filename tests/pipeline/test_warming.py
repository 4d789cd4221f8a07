"""Kernels are compiled in other processes, and a process that needs them afterwards only loads them."""

import os

import pytest

from console import python
from contrada.errors import ContradaError
from contrada.pipeline.warming import Warming, not_cached

QUICK = ["largest_box", "met_owners", "mark_firsts"]  # kernels that take a second to compile

COMPILE = f"""
import sys
from contrada.pipeline.warming import Warming, not_cached

with Warming([], 2) as warming:
    warming.wait()
print(not_cached({QUICK}))
with Warming({QUICK}, 2) as warming:
    warming.wait({QUICK[:1]})
    print({QUICK[0]!r} in not_cached({QUICK}))
    warming.wait()
    print(not_cached({QUICK}), sorted(warming.ready()))
print("numba" in sys.modules)
"""


def test_other_processes_compile_and_this_one_finds_the_result(tmp_path):
    env = os.environ | {"CONTRADA_CACHE_DIR": str(tmp_path)}
    found = python("-c", COMPILE, env=env)
    assert found.stdout.splitlines() == [str(QUICK), "False", f"[] {sorted(QUICK)}", "False"]
    assert found.stderr == ""
    use = "from contrada import kernels; kernels.largest_box"
    assert python("-c", use, env=env).stderr == ""


def test_a_kernel_that_fails_is_an_error_for_those_who_ask_and_stops_nobody_who_waits():
    with Warming(["no_such_kernel", "nor_this"], 1) as warming:
        warming.wait()
        with pytest.raises(ContradaError, match=r"kernel (no_such_kernel|nor_this) was not compiled"):
            list(warming.ready())
    assert not_cached(["no_such_kernel"]) == ["no_such_kernel"]


def test_leaving_the_block_ends_the_processes():
    with Warming(["match_scalars"], 1):
        pass  # were it to wait for the end, this would take as long as compiling
