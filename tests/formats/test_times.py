"""Text that names instants."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import FormatError
from contrada.formats.times import instant_of
from contrada.model.values import scalar_of


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_python_writes_reads_back(moment):
    assert scalar_of(instant_of(moment.isoformat())) == scalar_of(moment)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2024-05-01T12:00:00+02:00", "2024-05-01T10:00:00Z"),
        ("2024-05-01t12:00:00z", "2024-05-01T12:00:00Z"),
        ("2024-05-01 12:00", "2024-05-01T12:00:00Z"),
        ("2024-05-01", "2024-05-01T00:00:00Z"),
        ("2024-05-01T12:00:00.5", "2024-05-01T12:00:00.500000000Z"),
        ("2024-05-01T00:00:00-00:00", "2024-05-01"),
    ],
)
def test_forms(text, same):
    assert scalar_of(instant_of(text)) == scalar_of(instant_of(same))


def test_nanoseconds_are_kept_and_what_is_finer_is_cut():
    assert instant_of("1969-12-31T23:59:59.9999999999Z") == np.datetime64(-1, "ns")
    assert instant_of("9999-01-01T00:00:00.000000001Z") == datetime(9999, 1, 1, tzinfo=UTC)  # no room for more


@pytest.mark.parametrize(
    "text",
    ["", "now", "2024-13-01", "2024-02-30", "2024-05-01T25:00:00Z", "2024-05-01T12:00:60Z", "2024-05-01T12:00:00+99:00",
     "0001-01-01T00:00:00+01:00", "٢٠٢٤-05-01", "1" * 10_000, 17, None, True],
)  # fmt: skip
def test_others_are_refused(text):
    with pytest.raises(FormatError):
        instant_of(text)
