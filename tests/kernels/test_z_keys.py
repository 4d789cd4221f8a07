"""Keys along the Z-curve: their order, their bits, and what they tell of dominance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.kernels.cover import z_keys
from contrada.papers.cover.z_curve import cell_key

pytestmark = pytest.mark.jitless


def plain(kernel):
    return getattr(kernel, "py_func", kernel)


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
