"""Rectangles become points so that one covers another exactly if its point dominates the other's.

Every index of points finds what a plain loop finds, whatever was added and removed before.
"""

from math import nextafter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from contrada.errors import CoveringError, KeyInUseError, UnknownKeyError
from contrada.papers.cover import KdTree, Range, Scan, ZCurve, rectangle_point
from contrada.papers.cover.commands import rectangle_commands
from contrada.papers.cover.z_curve import cell_key
from effort import examples
from generators.strategies import coarse_coordinates, coarse_points
from oracles.covering_law import INDEXES, covers

every_index = pytest.mark.parametrize("make", INDEXES.values(), ids=INDEXES)


def found_as_it_should_be(index, model, point, k, before):
    """The rows found are covers, distinct, and as many as there are or as were asked for."""
    rows = index.find_covers(point, k, before).tolist()
    expected = {row for row, member in model.items() if covers(member, (list(point), before))}
    assert set(rows) <= expected
    assert len(set(rows)) == len(rows) == (len(expected) if k is None else min(k, len(expected)))


class IndexMachine(RuleBasedStateMachine):
    """Adds, removes and searches; a dictionary, scanned, must give the same."""

    make = Scan

    def points(self):
        return coarse_points(self.dimensions) if self.dimensions < 64 else coarse_coordinates.map(lambda x: [x] * 64)

    @initialize(dimensions=st.sampled_from([1, 2, 3, 64]))
    def start(self, dimensions):
        self.dimensions = min(dimensions, 2) if dimensions == 64 and self.make is Scan else dimensions
        self.index = self.make(self.dimensions)
        self.model, self.arrival = {}, 0

    @rule(data=st.data(), copies=st.integers(1, 6))
    def add(self, data, copies):
        point = data.draw(self.points())
        for _ in range(copies):
            row = data.draw(st.integers(0, 200).filter(lambda row: row not in self.model))
            self.index.add(row, point, self.arrival)
            self.model[row] = point, self.arrival
            self.arrival += 1

    @rule(data=st.data(), count=st.integers(1, 6))
    def remove(self, data, count):
        for _ in range(min(count, len(self.model))):
            row = data.draw(st.sampled_from(sorted(self.model)))
            self.index.remove(row)
            del self.model[row]

    @rule(data=st.data(), k=st.sampled_from([1, 2, 5, None]))
    def search(self, data, k):
        anywhere = self.points()
        there = st.sampled_from([point for point, _ in self.model.values()]) if self.model else anywhere
        before = data.draw(st.integers(0, self.arrival + 1))
        found_as_it_should_be(self.index, self.model, data.draw(anywhere | there), k, before)
        assert len(self.index) == len(self.model)


@pytest.mark.jitless
@every_index
def test_random_updates(make):
    machine = type("Machine", (IndexMachine,), {"make": staticmethod(make)})
    run_state_machine_as_test(machine, settings=settings(max_examples=examples(40), stateful_step_count=25))


@every_index
@pytest.mark.parametrize(
    ("dimensions", "draw"), [(2, "ends:8"), (4, "length:6"), (10, "start:4"), (10, "ends"), (16, "ends:3")]
)
def test_many_points_with_ties(make, dimensions, draw):
    steps, points = rectangle_commands(1500, dimensions // 2, 0.35, dimensions, draw)
    index, live = make(dimensions), np.zeros(len(points), bool)
    for time, step in enumerate(steps):
        if step >= 0:
            index.add(step, points[step])
            live[step] = True
        else:
            index.remove(-1 - step)
            live[-1 - step] = False
        if time % 50 == 0:
            query = points[(time * 7) % len(points)]
            expected = np.flatnonzero(live & (points >= query).all(axis=1) & (points != query).any(axis=1))
            assert sorted(index.find_covers(query, None, before=-1)) == expected.tolist()


LOW = np.nextafter(1.0, 0)
INF = np.inf
# Points, and how many of them cover a query.
CROWDS = {
    "equal": ([[1, 2, 3, 4]] * 500 + [[1, 2, 3, 5]], {(1, 2, 3, 4): 501, (1, 2, 3, 4.5): 1, (0, 0, 0, 0): 501}),
    "rising": ([[row, row / 7] for row in range(700)], {(350, 0): 350}),
    "falling": ([[-row, row / 7] for row in range(700)], {(-350, 0): 351}),
    "infinite": (
        [[INF, INF], [INF, 5], [3, INF], [-INF, 2], [3, 5]] * 30, {(3, 5): 120, (INF, 5): 60, (-INF, -INF): 150}
    ),
    # Cells and ranks cannot tell these apart: the points themselves must decide.
    "different in their last bits": (
        [[1.0 if row % 2 else LOW, 1e300 * (row == 299)] for row in range(300)], {(1.0, 0.0): 150, (LOW, 0.0): 300}
    ),
}  # fmt: skip


@every_index
@pytest.mark.parametrize(("points", "expected"), CROWDS.values(), ids=CROWDS)
def test_crowds_of_points(make, points, expected):
    index = make(len(points[0]))
    for row, point in enumerate(points):
        index.add(row, point)
    for query, count in expected.items():
        assert len(index.find_covers(query, None)) == count
    for row in range(len(points) - 2):
        index.remove(row)
    assert sorted(index.find_covers([-INF] * len(points[0]), None)) == [len(points) - 2, len(points) - 1]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_tree_that_order_made_deep_is_built_anew(sign):
    tree = KdTree(2, overflow=4)
    deepest = 0
    for row in range(8000):
        tree.add(row, [sign * row, sign * (row // 2)])
        deepest = max(deepest, tree.depth)
    assert deepest < 8000 / 4  # left alone, it grows by one for every second or third point
    for row in range(0, 8000, 500):
        expected = 8000 - row if sign > 0 else row + 1
        assert len(tree.find_covers([sign * row, -np.inf], None)) == expected
    for row in range(0, 8000, 7):
        tree.remove(row)
    assert len(tree.find_covers([-np.inf, -np.inf], None)) == len(tree) == 8000 - 1143


@every_index
def test_infinite_ends(make):
    index = make(2)
    for row, point in enumerate([[np.inf, np.inf], [np.inf, 5], [3, np.inf], [-np.inf, 2], [3, 5]] * 30):
        index.add(row, point)
    assert len(index.find_covers([3, 5], None, before=-1)) == 90
    assert len(index.find_covers([np.inf, 5], None)) == 60
    assert len(index.find_covers([-np.inf, -np.inf], None)) == 150


@pytest.mark.parametrize("make", [KdTree, ZCurve])
def test_work_is_counted_and_less_than_a_scan(make):
    steps, points = rectangle_commands(3000, 3, 0.0, 1)
    index, scan = make(6), Scan(6)
    for row in steps:
        index.add(row, points[row])
        scan.add(row, points[row])
    start = index.work
    for query in points[:100] + 0.3:
        assert len(index.find_covers(query)) == len(scan.find_covers(query))
    assert start == (0, 0)
    assert index.work.nodes > 0
    assert 0 < index.work.comparisons < scan.work.comparisons / 2


def test_whole_subtrees_and_cells_are_reported_without_comparisons():
    rng = np.random.default_rng(3)
    for make in (KdTree, ZCurve):
        index = make(2)
        for row, point in enumerate(rng.random((5000, 2))):
            index.add(row, point)
        before = index.work.comparisons
        found = index.find_covers([0.3, 0.3], None)
        assert index.work.comparisons - before < len(found) / 2


@every_index
def test_bad_input_is_refused(make):
    index = make(2)
    index.add(0, [1, 2])
    for point in ([1], [1, 2, 3], [1, np.nan], "ab", [[1, 2]], None, [1, {}]):
        with pytest.raises(CoveringError):
            index.add(1, point)
        with pytest.raises(CoveringError):
            index.find_covers(point)
    with pytest.raises(KeyInUseError, match="row 0"):
        index.add(0, [3, 3])
    for row in (1, -1, 10**9):
        with pytest.raises(UnknownKeyError, match=str(row)):
            index.remove(row)
    for row in (-1, 2**31):
        with pytest.raises(CoveringError, match=f"row {row} is not between"):
            index.add(row, [1, 2])
    with pytest.raises(CoveringError, match="k: need a number of at least 1"):
        index.find_covers([1, 2], k=0)
    assert len(index) == 1
    assert index.find_covers([1, 2]).tolist() == [0]


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [(Scan, (0,), "dimensions"), (Scan, (-1,), "dimensions"), (Scan, (65,), "dimensions"),
     (KdTree, (2, 0, 0), "underflow"), (KdTree, (2, 4, 5), "underflow"), (KdTree, (2, 4, -1), "underflow")],
)  # fmt: skip
def test_dimensions_and_buckets_have_limits(make, arguments, message):
    with pytest.raises(CoveringError, match=message):
        make(*arguments)


def test_keys_are_longer_than_a_word():
    assert ZCurve(16).words * 64 > ZCurve(16).bits * 16 > 64
    assert cell_key([3, 5], 3) == 0b1_011011


ends = st.sampled_from([-np.inf, -1.0, 0.0, 5e-324, 1.0, nextafter(1, 2), 1.7e308, np.inf])
ranges = st.builds(Range, ends, ends, st.booleans(), st.booleans())
NEAR = [nextafter(end, way) for end in (-1.0, 0.0, 1.0, 1.7e308, np.inf) for way in (-np.inf, np.inf)]
VALUES = [*NEAR, -np.inf, np.inf, -1.0, 0.0, 1.0, 1.7e308, 1e-323, nextafter(nextafter(1, 2), 2)]


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
    assert point.tolist() == [np.inf, np.inf, -2, 3, -7, np.inf]
    assert rectangle_point({"a": Range()}, ["a"]).tolist() == rectangle_point({}, ["a"]).tolist()
    assert rectangle_point({"a": Range(4, 4)}, ["a"]).tolist() == [-4, 4]
    assert rectangle_point({"a": Range(0, 1, True, True)}, ["a"]).tolist() == [-5e-324, nextafter(1, 0)]
    assert rectangle_point({"a": Range(np.int64(1), np.float32(2))}, ["a"]).tolist() == [-1, 2]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (Range(2, 1), r"'a': \[2, 1\] is empty"),
        (Range(1, 1, low_open=True), r"'a': \(1, 1\] is empty"),
        (Range(np.inf, np.inf, low_open=True), "is empty"),
        (Range(-np.inf, -np.inf, high_open=True), "is empty"),
        (Range(np.nan, 1), "low end: need a number that fits a double exactly, got nan"),
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
