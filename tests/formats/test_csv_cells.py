"""Cells of a CSV line: lines without quotes take a shortcut, and give what the reader of the standard library gives."""

import csv

from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import FormatError
from contrada.formats.csv import _cells
from contrada.formats.records import Record

texts = st.text(st.sampled_from("ab1,,\"' \t;\\\r\u00e9\u2028\0"), min_size=1, max_size=30)


@given(texts)
def test_cells_are_those_of_a_reader(text):
    try:
        expected = next(csv.reader([text], strict=True))
    except (csv.Error, StopIteration):
        expected = None
    try:
        found = _cells(Record("line", 1, text.encode()))
    except (FormatError, StopIteration):
        found = None
    assert found == expected
