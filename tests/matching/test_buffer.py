"""What a buffer shows while it grows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import contrada as ct
from contrada.matching.residual import Residual
from contrada.matching.store.buffer import GrowingPoints
from contrada.matching.store.tuning import DEFAULT_TUNING

CONSTRAINT = ct.Constraint("place", ct.Relation.INSIDE, ct.Point(1, 2))


@given(st.integers(0, 50), st.lists(st.tuples(st.integers(1, 600), st.integers(1, 3)), min_size=1, max_size=12))
def test_views_know_where_the_constraints_of_each_filter_stand(first, steps):
    growing, number, views = GrowingPoints(DEFAULT_TUNING, "point"), first, []
    for gap, count in steps:
        for _ in range(count):
            growing.append(number, CONSTRAINT)
        view = growing.checks()
        views.append((view, view.offsets.copy()))
        number += gap
    for view, offsets in views:
        assert view.offsets.tolist() == offsets.tolist() == Residual.of(view.part).offsets.tolist()
        assert np.array_equal(np.diff(offsets) > 0, np.isin(np.arange(len(offsets) - 1) + view.first, view.filters))
