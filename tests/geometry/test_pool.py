"""Work in threads: every item once, in order, also when the work fails or waits for more work in threads."""

import pytest

from contrada.geometry.pool import cores, map_threaded


@pytest.mark.parametrize("threads", [1, 2, 3, None])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_results_come_in_order(threads, count):
    assert map_threaded(lambda item: 10 * item, range(count), threads) == [10 * k for k in range(count)]


@pytest.mark.parametrize("bad", [0, 1, 4])
def test_an_error_reaches_the_caller(bad):
    def work(item):
        if item == bad:
            raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match=f"item {bad}"):
        map_threaded(work, range(5), cores())


def test_work_in_threads_may_ask_for_more_of_it():
    found = map_threaded(lambda k: map_threaded(lambda item: item + k, range(3), cores()), range(4), cores())
    assert found == [[k, k + 1, k + 2] for k in range(4)]
