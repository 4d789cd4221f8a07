"""Slices that threads share: every message is matched once, slow threads are helped, errors end the work."""

import threading

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from contrada.matching.shared_slices import MIN_PART, SharedSlices, SliceWork, shrinking_parts

SIZES = (0, 1, MIN_PART, 2 * MIN_PART, 50_000)
WAIT = 60  # seconds, until a test fails that waits for another thread


@pytest.mark.parametrize("size", SIZES)
def test_parts_make_up_the_slice(size: int) -> None:
    parts = shrinking_parts(size)
    assert [start for start, _ in parts] == [0, *(stop for _, stop in parts[:-1])]
    assert parts[-1][1] == size
    lengths = [stop - start for start, stop in parts]
    assert lengths == sorted(lengths, reverse=True)


@pytest.mark.parametrize("threads", [1, 2, 3, None])
@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_every_message_is_matched_once(count: int, threads: int | None) -> None:
    seen: list[tuple[int, int, int]] = []

    def match(held: int, start: int, stop: int) -> int:
        seen.append((held, start, stop))
        return stop - start

    def finish(number: int, held: int, sizes: list[int]) -> tuple[int, int]:
        assert number == held
        return number, sum(sizes)

    work = SliceWork(lambda number: (number, SIZES[number % len(SIZES)]), match, finish)
    answers = SharedSlices(count, work, threads).run()
    assert answers == [(number, SIZES[number % len(SIZES)]) for number in range(count)]
    for number in range(count):
        own = sorted((start, stop) for held, start, stop in seen if held == number)
        ends = [stop for _, stop in own]
        assert [start for start, _ in own] == [0, *ends[:-1]][: len(own)]


def test_a_thread_takes_parts_of_a_slice_whose_thread_is_held_up() -> None:
    all_others, left = threading.Event(), [2 * len(shrinking_parts(50_000)) - 1]
    lock, is_first = threading.Lock(), [True]

    def match(held: int, start: int, stop: int) -> int:
        with lock:
            waits, is_first[0] = is_first[0], False
        if waits:  # until the other thread has matched everything else
            assert all_others.wait(WAIT)
        else:
            with lock:
                left[0] -= 1
                if not left[0]:
                    all_others.set()
        return stop - start

    work = SliceWork(lambda number: (number, 50_000), match, lambda number, held, sizes: sum(sizes))
    assert SharedSlices(2, work, 2).run() == [50_000, 50_000]


@pytest.mark.parametrize("step", ["read", "match", "finish"])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_step_is_raised(step: str, threads: int) -> None:
    def failing(name: str, number: int) -> None:
        if name == step and number == 2:
            raise ValueError(f"{name} of slice {number}")

    def read(number: int) -> tuple[int, int]:
        failing("read", number)
        return number, 50_000

    def match(held: int, start: int, stop: int) -> int:
        failing("match", held)
        return stop - start

    def finish(number: int, held: int, sizes: list[int]) -> int:
        failing("finish", number)
        return sum(sizes)

    with pytest.raises(ValueError, match=f"{step} of slice 2"):
        SharedSlices(4, SliceWork(read, match, finish), threads).run()


@pytest.mark.parametrize("threads", [2, 3, None])
def test_answers_of_slices_and_parts_are_those_of_one_thread(threads: int | None) -> None:
    rng = np.random.default_rng(3)
    table = ct.ForwardingTable()
    for x, y in rng.integers(0, 8, (60, 2)).tolist():
        area = ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.Region.box(x, y, x + 2, y + 2))
        table.subscribe("ann", ct.Filter([area, ct.Constraint("severity", ">=", (x + y) % 4)]))
    wkb = ct.PointArray(rng.integers(0, 9, (30_000, 2))).to_wkb().to_pylist()
    wkb[5], wkb[70], wkb[20_000] = b"rubbish", None, b""
    batch = pa.table({"area": pa.array(wkb, pa.binary()), "severity": rng.integers(0, 5, 30_000)})
    expected = table.match_many(batch, by="subscription", threads=1)
    found = table.match_many(batch, by="subscription", threads=threads)
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.rejected == expected.rejected
    assert [bad.row for bad in found.rejected] == [5, 20_000]
    assert len(found.rows) > 30_000
