"""Rectangles become points so that one covers another exactly if its point dominates the other's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import CoveringError
from contrada.papers.cover import Range, rectangle_point

ends = st.sampled_from([-math.inf, -1.0, 0.0, 5e-324, 1.0, math.nextafter(1, 2), 1.7e308, math.inf])
ranges = st.builds(Range, ends, ends, st.booleans(), st.booleans())
NEAR = [math.nextafter(end, way) for end in (-1.0, 0.0, 1.0, 1.7e308, math.inf) for way in (-math.inf, math.inf)]
VALUES = [*NEAR, -math.inf, math.inf, -1.0, 0.0, 1.0, 1.7e308, 1e-323, math.nextafter(math.nextafter(1, 2), 2)]


def holds(given, value):
    above = value > given.low if given.low_open else value >= given.low
    below = value < given.high if given.high_open else value <= given.high
    return above and below


@given(ranges, ranges)
def test_dominance_is_covering(one, other):
    ours = {value for value in VALUES if holds(one, value)}
    theirs = {value for value in VALUES if holds(other, value)}
    for chosen, values in ((one, ours), (other, theirs)):
        if not values:
            with pytest.raises(CoveringError, match="is empty"):
                rectangle_point({"x": chosen}, ["x"])
            return
    dominates = bool((rectangle_point({"x": one}, ["x"]) >= rectangle_point({"x": other}, ["x"])).all())
    assert dominates == (theirs <= ours)


def test_ends_and_absent_attributes():
    point = rectangle_point({"b": Range(2, 3), "c": Range(low=7)}, ["a", "b", "c"])
    assert point.tolist() == [math.inf, math.inf, -2, 3, -7, math.inf]
    assert rectangle_point({"a": Range()}, ["a"]).tolist() == rectangle_point({}, ["a"]).tolist()
    assert rectangle_point({"a": Range(4, 4)}, ["a"]).tolist() == [-4, 4]
    assert rectangle_point({"a": Range(0, 1, True, True)}, ["a"]).tolist() == [-5e-324, math.nextafter(1, 0)]
    assert rectangle_point({"a": Range(np.int64(1), np.float32(2))}, ["a"]).tolist() == [-1, 2]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (Range(2, 1), r"'a': \[2, 1\] is empty"),
        (Range(1, 1, low_open=True), r"'a': \(1, 1\] is empty"),
        (Range(math.inf, math.inf, low_open=True), "is empty"),
        (Range(-math.inf, -math.inf, high_open=True), "is empty"),
        (Range(math.nan, 1), "low end: need a number that fits a double exactly, got nan"),
        (Range(0, 2**53 + 1), "fits a double exactly, got 9007199254740993"),
        (Range(0, 10**400), "fits a double exactly"),
        (Range("0", 1), "the low end: need a number, got str"),
        (Range(0, True), "the high end: need a number, got bool"),
    ],
)
def test_what_is_no_range_is_refused(chosen, message):
    with pytest.raises(CoveringError, match=message):
        rectangle_point({"a": chosen}, ["a"])


def test_unknown_attributes_are_refused():
    with pytest.raises(CoveringError, match="'weight' is not among 'price'"):
        rectangle_point({"weight": Range(0, 1)}, ["price"])
