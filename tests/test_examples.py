"""The examples do what they say."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module")
def figure_1():
    return runpy.run_path(str(EXAMPLES / "figure_1.py"))


def test_the_message_of_figure_1_goes_to_i2(figure_1):
    table, message = figure_1["table"], figure_1["message"]
    assert set(table.match(message)) == {"I2"}
    why = table.explain(message, "predicate of I2")
    assert [part.truth for part in why.filters] == [None, True], "by the second of its filters"
    table.pack()
    assert set(table.match(message)) == {"I2"}


@pytest.mark.parametrize(
    "changed", [{"warning": "leak"}, {"concentration": 100}, {"hazard": 3}, {"hazard": "4"}, {"area": None}]
)
def test_a_message_that_misses_one_constraint_goes_nowhere(figure_1, changed):
    assert not figure_1["table"].match(figure_1["message"] | changed)


def test_an_area_that_is_not_disjoint_goes_nowhere(figure_1):
    assert not figure_1["table"].match(figure_1["message"] | {"area": figure_1["RESERVE"]})
