"""A server that is killed under load, and the judge of such runs."""

import asyncio

import pytest

from effort import slow
from verification.kill_oracle import (
    END,
    Condition,
    Got,
    Lease,
    Sent,
    delivery_faults,
    order_faults,
    sequence_faults,
    slice_faults,
)
from verification.kills import run_rounds

LOG = {sequence: Sent(100 + sequence, sequence, 0) for sequence in range(1, 6)} | {6: Sent(-1, 0, 0)}
ALL = Condition("x >= 0", lambda sent: sent.x >= 0)
GOT = [Got(2, 1, "a", 102), Got(3, 1, "a", 103), Got(4, 1, "a", 104)]


@pytest.mark.parametrize("rounds", [slow(12)])
def test_nothing_that_was_acknowledged_is_lost_by_kills(tmp_path, rounds):
    run = asyncio.run(run_rounds(tmp_path, rounds, seed=rounds))
    assert run.faults == []
    assert run.messages
    assert run.events


@pytest.mark.parametrize("rounds", [slow(3)])
def test_nothing_that_was_acknowledged_is_lost_when_postgresql_is_the_store(tmp_path, postgres_process, rounds):
    run = asyncio.run(run_rounds(tmp_path, rounds, seed=rounds, postgres=postgres_process))
    assert run.faults == []
    assert run.messages
    assert run.events


def test_the_judge_wants_what_a_lease_promises_and_no_more():
    sure = Lease("a", ALL, 2, 4, 4)
    assert not [*delivery_faults("n", GOT, [sure], LOG)]
    assert [*delivery_faults("n", GOT[:2], [sure], LOG)]
    assert [*delivery_faults("n", GOT[1:], [sure], LOG)]
    assert [*delivery_faults("n", [*GOT, Got(5, 1, "a", 105)], [sure], LOG)]
    assert [*delivery_faults("n", [GOT[0]._replace(serial=7), *GOT[1:]], [sure], LOG)]
    unsure = sure._replace(last=2)
    assert not [*delivery_faults("n", GOT[:2], [unsure], LOG)]
    assert not [*delivery_faults("n", [Got(6, 2, "end", -1)], [Lease("end", END, 1)], LOG)]


def test_the_judge_sees_gaps_repeats_and_holes():
    assert not [*sequence_faults([1, 3, 2])]
    assert [*sequence_faults([1, 3])]
    assert [*sequence_faults([1, 1])]
    assert not [*order_faults("n", GOT)]
    assert [*order_faults("n", [GOT[0], GOT[0]])]
    assert [*order_faults("n", GOT[::-1])]
    assert not [*slice_faults("n", GOT[1:], GOT, {(2, 1)})]
    assert [*slice_faults("n", GOT[1:], GOT, {(0, 0)})]
    assert [*slice_faults("n", GOT[::2], GOT, {(0, 0)})]
