"""Merger: forwarded filters cover all members, with little extra area and few messages, whatever comes and goes."""

from itertools import count

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada import Constraint, Filter, Point, Predicate, Region, Relation, RelationSet
from contrada.broker.clustering.box_grid import BoxGrid
from contrada.broker.clustering.unions import box_unions
from contrada.broker.merging import Merger, spatial_constraint
from contrada.covering.packing import filter_covers
from effort import examples
from generators.strategies import circles, points, regions, relation_sets
from oracles.plain import predicate_holds

FIRST_MERGED = 1_000_000
sides = st.sampled_from([(0, 1), (0, 2), (1, 2), (2, 3), (0, 4), (1, 3), (5, 6)])
boxes = st.builds(lambda x, y: Region.box(x[0], y[0], x[1], y[1]), sides, sides)
operators = st.sampled_from([RelationSet.S_INTERSECTS, RelationSet.S_WITHIN, RelationSet.S_TOUCHES]) | relation_sets()
KIND_A = Constraint("kind", "=", "a")
others = st.sampled_from([(), (), (KIND_A,), (KIND_A, Constraint("x", ">", 1))])


def spatial(operator, region, others=(), attribute="area"):
    return Predicate([Filter([Constraint(attribute, operator, region), *others])])


mergeable = st.builds(spatial, operators, boxes | regions(), others)
PREDICATES = st.one_of(
    mergeable,
    mergeable,
    st.builds(spatial, operators, boxes | points(), others, st.sampled_from(["area", "place"])),
    st.builds(lambda one, other: Predicate([*one, *other]), mergeable, mergeable),
    st.builds(lambda one, other: Predicate([Filter([*one.filters[0], *other.filters[0]])]), mergeable, mergeable),
    st.just(ct.parse("x > 3")),
)
MESSAGES = st.fixed_dictionaries(
    {"area": regions() | boxes | points() | circles()}, optional={"kind": st.sampled_from("ab"), "x": st.integers(0, 4)}
)
REMOVALS = st.tuples(st.sampled_from(["remove", "settle", "again"]), st.integers(0, 30))
STEPS = st.lists(st.tuples(st.just("add"), PREDICATES) | REMOVALS, max_size=40)
SHARES, SHAPES = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9]), st.sampled_from(["box", "region"])


class Neighbour:
    """A neighbour that applies changes in order, and what the members are: judges a merger after each settle."""

    def __init__(self, share, shape="box"):
        self.merger = Merger(share, shape, new_id=count(FIRST_MERGED).__next__)
        self.members, self.has, self.messages = {}, {}, 0

    def add(self, id, predicate):
        self.merger.add(id, predicate)
        self.members[id] = predicate

    def remove(self, id):
        self.merger.remove(id)
        del self.members[id]

    def settle(self):
        change = self.merger.settle()
        for id, predicate in change.forward:
            assert id not in self.has
            self.has[id] = predicate
        for id in change.withdraw:
            del self.has[id]
        assert self.has == self.merger.forwarded
        assert len(self.merger) == len(self.members)
        self.messages += len(change.forward) + len(change.withdraw)
        return change

    def check(self):
        """Raise AssertionError if a law is broken."""
        assert not self.merger.settle()
        for id, predicate in self.members.items():
            covers = [other for other in self.has.values() if covers_one(other, predicate)]
            assert covers, (id, predicate)
        for id, predicate in self.has.items():
            if id in self.members and self.members[id] == predicate:
                continue
            inside = [one for one in self.members.values() if covers_one(predicate, one)]
            assert inside, f"{id} has no member"
            if predicate not in inside:  # merged
                self.check_share(predicate, inside)

    def check_share(self, merged, inside):
        wide = spatial_constraint(merged)
        assert wide.relations == RelationSet.S_INTERSECTS
        others = set(merged.filters[0]) - {wide}
        found = [(spatial_constraint(one), set(one.filters[0])) for one in inside]
        asked = [one.value.to_shapely() for one, whole in found if one is not None and whole - {one} == others]
        assert shapely.union_all(asked).area >= (1 - self.merger.share - 1e-9) * wide.value.area


def covers_one(wide, narrow):
    """Whether a predicate covers another, filter by filter, by the exact relation."""
    return all(any(filter_covers(one, other) for one in wide) for other in narrow)


@settings(max_examples=examples(300), deadline=None)
@given(STEPS, SHARES, SHAPES, st.lists(MESSAGES, max_size=6))
def test_forwarded_filters_cover_all_members_after_every_settle(steps, share, shape, messages):
    neighbour, twin = Neighbour(share, shape), Merger(share, shape, new_id=count(FIRST_MERGED).__next__)
    for number, (step, what) in enumerate([*steps, ("settle", 0)]):
        live = list(neighbour.members)
        if step == "add":
            neighbour.add(number, what)
            twin.add(number, what)
        elif step == "remove" and live:
            neighbour.remove(live[what % len(live)])
            twin.remove(live[what % len(live)])
        elif step == "again" and live:  # the id of one that left, with another predicate or the same one
            id, other = live[what % len(live)], live[-1]
            predicate = neighbour.members[other]
            for merger in (neighbour, twin):
                merger.remove(id)
                merger.add(id, predicate)
        elif step == "settle":
            assert neighbour.settle() == twin.settle()
            neighbour.check()
    for message in messages:
        if any(predicate_holds(one, message) for one in neighbour.members.values()):
            assert any(predicate_holds(one, message) for one in neighbour.has.values())


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(regions() | boxes, min_size=2, max_size=12), regions() | boxes, SHAPES)
def test_a_member_that_arrives_inside_a_merged_region_causes_no_traffic(given, inner, shape):
    neighbour = Neighbour(0.5, shape)
    for id, region in enumerate(given):
        neighbour.add(id, spatial(RelationSet.S_INTERSECTS, region))
    neighbour.settle()
    merged = [predicate for id, predicate in neighbour.has.items() if id >= FIRST_MERGED]
    new = spatial(RelationSet.S_WITHIN, inner)
    is_inside = any(covers_one(predicate, new) for predicate in merged)
    neighbour.add(100, new)
    change = neighbour.settle()
    assert not (is_inside and change)
    neighbour.remove(100)
    change = neighbour.settle()
    assert not (is_inside and change)
    neighbour.check()


def squares(rng, number, side=6, field=60):
    """Random squares on a coarse grid, many with shared edges."""
    corners = rng.integers(0, field, (number, 2)).tolist()
    sizes = rng.integers(side // 2, side + 1, number).tolist()
    return [Region.box(x, y, x + size, y + size) for (x, y), size in zip(corners, sizes, strict=True)]


@pytest.mark.parametrize("shape", ["box", "region"])
def test_many_squares_come_and_go(shape):
    """Filters and messages are fewer than without merging, and the laws hold all the time."""
    rng = np.random.default_rng(3)
    neighbour, plain = Neighbour(0.3, shape), 0
    for tick in range(12):
        for k, region in enumerate(squares(rng, 40)):
            neighbour.add(100 * tick + k, spatial(RelationSet.S_INTERSECTS, region))
        leaving = rng.choice(list(neighbour.members), 15, replace=False).tolist() if tick > 3 else []
        for id in leaving:
            neighbour.remove(id)
        plain += 40 + len(leaving)
        neighbour.settle()
        neighbour.check()
    assert len(neighbour.has) < len(neighbour.members) / 3
    assert neighbour.messages < plain
    for id in list(neighbour.members):
        neighbour.remove(id)
    neighbour.settle()
    assert not neighbour.has


def test_what_differs_is_not_merged():
    """Another attribute, CRS or further constraint, disjoint, points, and several regions."""
    region = Region.box(0, 0, 1, 1)
    asked = [
        spatial(RelationSet.S_INTERSECTS, region),
        spatial(RelationSet.S_INTERSECTS, region, attribute="place"),
        spatial(RelationSet.S_INTERSECTS, Region.box(0, 0, 1, 1, crs="EPSG:4326")),
        spatial(RelationSet.S_INTERSECTS, Region.box(0, 0, 1, 1, crs="EPSG:25832")),
        spatial(RelationSet.S_INTERSECTS, region, [Constraint("kind", "=", "a")]),
        spatial(RelationSet.S_INTERSECTS, region, [Constraint("kind", "=", "b")]),
        spatial(~RelationSet(Relation.EQUALS), region),
        spatial(RelationSet.NONE, region),
        spatial(RelationSet.S_INTERSECTS, Point(0, 0)),
        spatial(RelationSet.S_INTERSECTS, region, [Constraint("area", RelationSet.S_WITHIN, region)]),
    ]
    merger = Merger(0.9, new_id=count(FIRST_MERGED).__next__)
    for id, predicate in enumerate(asked):
        merger.add(id, predicate)
    assert sorted(merger.settle().forward, key=lambda pair: pair[0]) == list(enumerate(asked))
    assert dict(merger.forwarded) == dict(enumerate(asked))


@pytest.mark.parametrize("shape", ["box", "region"])
def test_the_merged_region_has_the_crs_of_its_members(shape):
    merger = Merger(0.5, shape, new_id=count(FIRST_MERGED).__next__)
    for x in (0, 1):
        merger.add(x, spatial(RelationSet.S_WITHIN, Region.box(x, 0, x + 2, 2, crs="EPSG:4326")))
    ((_, predicate),) = merger.settle().forward
    merged = spatial_constraint(predicate).value
    assert merged.crs == "EPSG:4326"
    assert ct.relate(merged, Region.box(0, 0, 3, 2)) == Relation.EQUALS


def test_a_merged_filter_stays_while_enough_of_it_is_asked_for():
    """Two of four quarters are enough for a share of 0.5; one is not, and it is forwarded before the withdrawal."""
    merger = Merger(0.5, new_id=count(FIRST_MERGED).__next__)
    for id, (x, y) in enumerate([(0, 0), (1, 0), (0, 1), (1, 1)]):
        merger.add(id, spatial(RelationSet.S_INTERSECTS, Region.box(x, y, x + 1, y + 1)))
    change = merger.settle()
    assert len(change.forward) == 1
    for id in (0, 1):
        merger.remove(id)
        assert not merger.settle()
    merger.remove(2)
    last = merger.settle()
    assert [id for id, _ in last.forward] == [3]
    assert last.withdraw == (change.forward[0][0],)


def test_an_id_that_is_used_again_is_forwarded_under_another_one():
    merger = Merger(0.0, new_id=count(FIRST_MERGED).__next__)
    old, new = (spatial(RelationSet.S_INTERSECTS, Region.box(x, 0, x + 1, 1)) for x in (0, 50))
    merger.add(1, old)
    merger.settle()
    merger.remove(1)
    merger.add(1, old)
    assert not merger.settle()
    merger.remove(1)
    merger.add(1, new)
    assert merger.settle() == (((FIRST_MERGED, new),), (1,))


def test_errors_name_what_is_wrong():
    with pytest.raises(ct.ArgumentError, match="share"):
        Merger(1.0, new_id=count().__next__)
    with pytest.raises(ct.ArgumentError, match="shape"):
        Merger(0.5, "circle", new_id=count().__next__)
    merger = Merger(0.5, new_id=count().__next__)
    merger.add(1, ct.parse("x > 3"))
    with pytest.raises(ct.KeyInUseError, match="1"):
        merger.add(1, ct.parse("x > 4"))
    with pytest.raises(ct.UnknownKeyError, match="2"):
        merger.remove(2)


def meet(one, other):
    return bool((one[:2] <= other[2:]).all() and (other[:2] <= one[2:]).all())


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e100, 1e-3])
def test_a_grid_finds_all_boxes_that_meet(scale):
    rng = np.random.default_rng(11)
    corners = rng.integers(-40, 40, (300, 2)) * scale
    sizes = 2.0 ** rng.integers(-3, 6, (300, 2)) * scale
    filed, groups = np.hstack([corners, corners + sizes]), rng.integers(0, 2, 300)
    grid = BoxGrid()
    for some in np.array_split(np.arange(200), 7):
        grid.add(some, filed[some], groups[some])
    queries, rows = grid.near(filed[200:], groups[200:])
    found = set(zip(queries.tolist(), rows.tolist(), strict=True))
    for query in range(100):
        for row in range(200):
            if groups[200 + query] == groups[row] and meet(filed[200 + query], filed[row]):
                assert (query, row) in found
    assert len(found) < 100 * 200 * 0.8


def test_areas_of_unions_agree_with_shapely():
    rng = np.random.default_rng(12)
    sizes = np.array([1, 2, 3, 7, 8, 64, 257, 5])
    corners = rng.integers(0, 20, (sizes.sum(), 2))
    filed = np.hstack([corners, corners + rng.integers(1, 6, corners.shape)]).astype(float)
    starts = np.cumsum(sizes) - sizes
    expected = [shapely.union_all(shapely.box(*filed[a : a + n].T)).area for a, n in zip(starts, sizes, strict=True)]
    assert box_unions(filed, sizes) == pytest.approx(expected)


def test_groups_of_members_that_left_are_forgotten():
    """Each tick has filters with another constraint, merged among themselves."""
    neighbour = Neighbour(0.3)
    for tick in range(60):
        for k in (0, 1):
            region = Region.box(k, 0, k + 2, 2)
            neighbour.add(10 * tick + k, spatial(RelationSet.S_INTERSECTS, region, [Constraint("x", "=", tick)]))
        if tick:
            for k in (0, 1):
                neighbour.remove(10 * (tick - 1) + k)
        assert len(neighbour.settle().forward) == 1
        neighbour.check()
