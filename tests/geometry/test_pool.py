"""Work in threads: every item once, in order, also when the work fails or waits for more work in threads."""

import threading

import pytest

from contrada.geometry.pool import cores, map_in_stages, map_threaded


@pytest.mark.parametrize("threads", [1, 2, 3, None])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_results_come_in_order_and_the_first_stage_stays_in_the_calling_thread(threads, count):
    readers = set()

    def read(item):
        readers.add(threading.get_ident())
        return item + 1

    assert map_in_stages(read, lambda item: 10 * item, range(count), threads) == [10 * (k + 1) for k in range(count)]
    assert readers <= {threading.get_ident()}
    assert map_threaded(lambda item: 10 * item, range(count), threads) == [10 * k for k in range(count)]


@pytest.mark.parametrize("stage", [0, 1])
@pytest.mark.parametrize("bad", [0, 1, 4])
def test_an_error_of_either_stage_reaches_the_caller(stage, bad):
    def work(at):
        def step(item):
            if at == stage and item == bad:
                raise ValueError(f"item {item}")
            return item

        return step

    with pytest.raises(ValueError, match=f"item {bad}"):
        map_in_stages(work(0), work(1), range(5), cores())


def test_work_in_threads_may_ask_for_more_of_it():
    found = map_threaded(lambda k: map_threaded(lambda item: item + k, range(3), cores()), range(4), cores())
    assert found == [[k, k + 1, k + 2] for k in range(4)]
