"""Keys of points: ranks that are compared eight at a time, and the order of the Z-curve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.codes import RANK_LEVELS
from contrada.kernels.cover import point_ranks, z_keys
from contrada.kernels.cover.point_ranks import HIGH_BITS, LOW_BITS
from contrada.papers.cover.z_curve import cell_key

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


def key_of(cell, levels, words, sizes=2.0):
    d = len(cell)
    keys, scratch = np.zeros((1, 1, words), np.uint64), np.zeros(d, np.uint64)
    plain(z_keys.write_key)(np.zeros(d), np.full(d, sizes), levels, np.array([cell], float), 0, scratch, keys)
    return keys


def as_number(keys, d, levels):
    whole = 0
    for word in keys[0, 0].tolist():
        whole = whole << 64 | word
    return whole >> (64 * keys.shape[2] - 1 - d * levels)


@given(st.lists(st.integers(0, 31), min_size=1, max_size=20))
def test_keys_are_interleaved_bits_behind_a_one(cell):
    words = (1 + 5 * len(cell) + 63) // 64
    assert as_number(key_of(cell, 5, words), len(cell), 5) == cell_key(cell, 5)


def test_what_lies_outside_the_universe_is_moved_to_its_border():
    inside = key_of([0.0, 31.0], 5, 1)
    assert (key_of([-np.inf, np.inf], 5, 1) == inside).all()
    assert (key_of([-7.0, 99.0], 5, 1) == inside).all()


def test_a_dimension_without_extent_has_one_cell():
    assert as_number(key_of([np.inf, 5.0], 3, 1, sizes=0.0), 2, 3) == cell_key([0, 0], 3)
