"""Seven processes in a tree: links are cut and healed, brokers killed and started again."""

import asyncio

import pytest

from verification.link_tree import run_tree


@pytest.mark.slow
def test_seven_processes_deliver_what_plain_matching_says(tmp_path):
    run = asyncio.run(run_tree(tmp_path, brokers=7, subscriptions=10_000, rounds=4, batch=15))
    assert run.faults[:10] == []
    assert (run.messages, run.kills, run.cuts) == (420, 2, 4)
    assert run.events > 1_000
    assert run.suppressed > 10_000


@pytest.mark.slow
def test_three_processes_with_postgresql_as_their_store(tmp_path, postgres_process):
    work = run_tree(tmp_path, brokers=3, subscriptions=1_000, rounds=4, batch=15, postgres=postgres_process)
    run = asyncio.run(work)
    assert run.faults[:10] == []
    assert (run.messages, run.kills, run.cuts) == (180, 2, 4)
    assert run.events > 40  # how many there are depends on who was killed when
