"""Names by row, whatever they came in: one by one, in Arrow columns, in ranges."""

import numpy as np
import pyarrow as pa
import pytest

from contrada.matching.names import Names
from contrada.matching.store.tuning import DEFAULT_TUNING

MANY = DEFAULT_TUNING.min_column_names + 5
TEXTS = pa.array([f"t{k}" for k in range(MANY)])
NUMBERS = pa.array(np.arange(MANY, dtype=np.int32) + 10**6)
LARGE = pa.array(np.arange(MANY, dtype=np.uint64) + 2**63)


@pytest.mark.parametrize(
    ("parts", "is_arrow"),
    [
        ([NUMBERS, range(MANY)], True),
        ([[-1, -2], NUMBERS, [-3]], True),
        ([TEXTS, ["a", "é"]], True),
        ([TEXTS, NUMBERS], False),
        ([["a"], NUMBERS], False),
        ([[7], TEXTS], False),
        ([NUMBERS, LARGE], False),
        ([[2**70], NUMBERS], False),
        ([["a", 1]], False),
        ([NUMBERS], True),
    ],
)
def test_names_of_chosen_rows(parts, is_arrow):
    names, listed = Names(), []
    for part in parts:
        if isinstance(part, list):
            for name in part:
                names.append(name)
            listed += part
        else:
            names.extend(part)
            listed += part if isinstance(part, range) else part.to_pylist()
    for rows in (np.arange(len(listed)), np.array([len(listed) - 1, 0, len(listed) // 2])):
        found = names.chosen(rows)
        assert isinstance(found, pa.Array) == is_arrow
        plain = found.to_pylist() if is_arrow else found
        assert plain == [listed[row] for row in rows]
        assert [type(name) for name in plain] == [type(listed[row]) for row in rows]


def test_no_names():
    assert len(Names().chosen(np.empty(0, np.int64))) == 0
