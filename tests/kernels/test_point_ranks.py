"""Ranks of coordinates: never decreasing, and eight of them compared at a time."""

import numpy as np
import pytest

from contrada.codes import RANK_LEVELS
from contrada.kernels.cover import point_ranks
from contrada.kernels.cover.point_ranks import HIGH_BITS, LOW_BITS

pytestmark = pytest.mark.jitless


def plain(kernel):
    return getattr(kernel, "py_func", kernel)


def thresholds_of(values):
    thresholds = np.empty((1, RANK_LEVELS - 1))
    plain(point_ranks.choose_thresholds)(values[:, None], np.arange(len(values)), len(values), thresholds)
    return thresholds


@pytest.mark.parametrize("count", [64, 100, 3000])
def test_ranks_count_the_thresholds_reached(count):
    rng = np.random.default_rng(count)
    values = np.concatenate([rng.integers(0, 9, count // 2).astype(float), rng.random(count // 2), [np.inf, -np.inf]])
    thresholds = thresholds_of(values)
    ranks = np.zeros((len(values), 1), np.uint8)
    for row in range(len(values)):
        plain(point_ranks.rank_point)(thresholds, values[:, None], row, ranks, row)
    assert ranks[:, 0].tolist() == np.searchsorted(thresholds[0], values, side="right").tolist()
    order = np.argsort(values)
    assert (np.diff(ranks[order, 0].astype(int)) >= 0).all()


def test_a_word_compares_eight_ranks():
    rng = np.random.default_rng(1)
    words = np.zeros((1, 1, 1), np.uint64)
    for _ in range(300):
        ranks, query = rng.integers(0, RANK_LEVELS, 8), int(rng.integers(0, RANK_LEVELS))
        for place, rank in enumerate(ranks):
            plain(point_ranks.write_rank)(words, 0, 0, place, rank)
        marks = int((words[0, 0, 0] | HIGH_BITS) - np.uint64(query) * LOW_BITS)
        assert [marks >> (8 * place + 7) & 1 for place in range(8)] == (ranks >= query).tolist()
