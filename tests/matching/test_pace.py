"""Batches that one thread matches in little time are not cut; the answers are the same."""

import numpy as np
import pytest

import contrada as ct
from contrada.matching.batch import SHORT_SECONDS, BatchPace


def test_a_batch_is_short_if_the_last_one_says_so():
    pace = BatchPace()
    assert not pace.is_short(1)  # unknown
    pace.note(1_000, 500 * SHORT_SECONDS)
    assert pace.is_short(1)
    assert not pace.is_short(2)
    pace.note(0, 0.0)  # no message, no news
    assert not pace.is_short(2)
    pace.note(10, SHORT_SECONDS)
    assert pace.is_short(9)
    assert not pace.is_short(10)


@pytest.mark.parametrize("size", [1, 40, 300])
def test_answers_do_not_depend_on_the_pace(size):
    rng = np.random.default_rng(size)
    table = ct.ForwardingTable()
    for x, y in rng.integers(0, 8, (60, 2)).tolist():
        area = ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.Region.box(x, y, x + 2, y + 2))
        table.subscribe("ann", ct.Filter([area, ct.Constraint("severity", ">=", (x + y) % 4)]))
    corners = rng.integers(0, 9, (size, 3)).tolist()
    messages = [{"area": ct.Region.box(x, y, x + 1, y + 1), "severity": severity} for x, y, severity in corners]
    expected = [sorted(table.match_keys(message)) for message in messages]
    assert any(expected)
    for threads in (None, None, 1, 2, None):  # the first batch is cut, later ones are not
        answer = table.match_many(messages, by="subscription", threads=threads)
        assert [sorted(answer[k]) for k in range(size)] == expected
