"""Simplification: for every message a predicate says what it said before, and nothing redundant is left that shows."""

from itertools import product

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import Constraint, Filter, Point, Predicate, Region, Relation, RelationSet, parse, relate, simplify
from contrada.geometry import RegionArray
from contrada.geometry.composition import LINE_MASKS, LINE_TABLES
from contrada.model.implication import conflicts, covers
from contrada.simplification.conjunctions import reduced
from contrada.simplification.interning import ConstraintPool, PairLimits
from contrada.simplification.redundancy import Redundancy, filter_covers, uncovered
from contrada.simplification.simplifying import conflict_in, simplified_groups
from effort import examples
from generators import scalars
from generators.strategies import mosaic, relation_sets, relations, shapes
from oracles.plain import predicate_holds

ATTRIBUTES = ("x", "y", "area")
SQUARE, FAR = Region.box(0, 0, 4, 4), Region.box(10, 10, 14, 14)
BOX, TURNED = "BBOX(0, 0, 4, 4)", "POLYGON((4 4, 0 4, 0 0, 2 0, 4 0, 4 4))"  # equal, with a vertex more
ANY_RELATION = f"relation(a, {BOX}, {', '.join(repr(str(relation)) for relation in Relation)})"
RING = Region.from_wkt("POLYGON((0 0, 6 0, 6 6, 0 6, 0 0), (2 2, 4 2, 4 4, 2 4, 2 2))")


def operands_of(predicate):
    """Values that sit on the edges of what a predicate asks, by attribute."""
    for part in predicate:
        for constraint in part:
            many = constraint.value if type(constraint.value) is tuple else (constraint.value,)
            yield from ((constraint.attribute, value) for value in many if value is not None)


def spots(shape):
    """Regions and points on the edges, at the corners and in the holes of a region."""
    geometry = shape.to_shapely()
    found = [Point(*xy) for xy in shapely.get_coordinates(geometry)[:6]]
    for polygon in getattr(geometry, "geoms", [geometry]):
        rings = [polygon.exterior, *polygon.interiors]
        found += [Region.from_shapely(shapely.Polygon(ring)) for ring in rings]  # a hole filled to its edge
        found.append(Point.from_shapely(polygon.representative_point()))
        middle = shapely.get_coordinates(polygon.exterior)[:2].mean(axis=0)
        found.append(Point(*middle))
        xmin, ymin, xmax, ymax = polygon.bounds
        found += [Region.box(xmin, ymin, xmax, ymax), Region.box(xmax, ymin, xmax + 1, ymax)]
    return found


def on_edges(predicate, messages):
    """Messages, and some of them with the values that a predicate asks for."""
    edges = [{**message, name: value} for name, value in operands_of(predicate) for message in (*messages[:2], {})]
    return [*messages, *edges]


def assert_same(predicate, simpler, messages):
    for message in messages:
        assert predicate_holds(simpler, message) == predicate_holds(predicate, message), (message, str(simpler))


@settings(max_examples=examples(400))
@given(
    st.lists(scalars.filters(ATTRIBUTES), min_size=1, max_size=6), st.lists(scalars.messages(ATTRIBUTES), max_size=8)
)
def test_predicates_of_every_type_say_what_they_said(filters, messages):
    predicate = Predicate(filters)
    assert_same(predicate, simplify(predicate), on_edges(predicate, messages))


@settings(max_examples=examples(300))
@given(
    st.lists(st.lists(scalars.filters(ATTRIBUTES), min_size=1, max_size=5), min_size=1, max_size=4),
    st.lists(scalars.messages(ATTRIBUTES), max_size=8),
)
def test_filters_too_long_to_be_compared_say_what_they_said(drawn, messages):
    """Several filters joined by AND, and the limits beyond which no pairs are compared lowered to two."""
    predicate = Predicate(Filter([constraint for part in parts for constraint in part]) for parts in drawn)
    (simpler,) = simplified_groups([predicate.filters], limits=PairLimits(constraints=2, filter_pairs=2))
    assert_same(predicate, simpler.filters, on_edges(predicate, messages))


MANY = 2_000  # constraints; comparing each with each would take minutes


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (" AND ".join(f"x <> {k}" for k in range(MANY)), f"x NOT IN ({', '.join(map(str, range(MANY)))})"),
        (" AND ".join(f"x > {k}" for k in range(MANY)), f"x > {MANY - 1}"),
        (" AND ".join(f"x IN ({k}, {k + 1}, -1)" for k in range(MANY)), "x = -1"),
        (" OR ".join(f"x = {k}" for k in range(MANY)), f"x IN ({', '.join(map(str, range(MANY)))})"),
        (" AND ".join(f"name LIKE '%{k}%'" for k in range(MANY)), None),
        (" AND ".join(f"x{k} = {k}" for k in range(MANY)), None),
        (" AND ".join(f"overlaps(area, BBOX({k}, 0, {k + 1000}, 1))" for k in range(MANY)), None),
    ],
    ids=["not equal", "ranges", "sets", "alternatives", "patterns", "attributes", "regions"],
)
def test_very_many_constraints(asked, expected):
    asked = parse(asked)
    assert str(simplify(asked)) == (str(asked) if expected is None else expected)


@st.composite
def spatial_predicates(draw):
    """Predicates over regions of one mosaic, which share edges and corners, and a few others; and further values."""
    cells = mosaic(draw(st.integers(1, 3)), draw(st.integers(0, 3)))
    masks = st.lists(st.booleans(), min_size=len(cells), max_size=len(cells)).filter(any)
    drawn = np.array([draw(masks) for _ in range(draw(st.integers(2, 5)))])
    pool = [Region.from_shapely(shape) for shape in [*cells.regions(drawn), draw(shapes())]] + [Point(1, 1)]
    operators = relations() | relation_sets()
    constraint = st.builds(Constraint, st.just("area"), operators, st.sampled_from(pool))
    parts = st.lists(st.lists(constraint, min_size=1, max_size=3).map(Filter), min_size=1, max_size=16)
    further = np.array([draw(masks) for _ in range(3)])
    return Predicate(draw(parts)), [*pool, *map(Region.from_shapely, cells.regions(further))]


@settings(max_examples=examples(160))
@given(spatial_predicates())
def test_predicates_over_regions_say_what_they_said(drawn):
    predicate, values = drawn
    simpler = simplify(predicate)
    values = [*values, *(spot for value in values if isinstance(value, Region) for spot in spots(value))]
    assert_same(predicate, simpler, [{"area": value} for value in values])
    assert simplify(simpler) == simpler


@settings(max_examples=examples(150))
@given(spatial_predicates(), st.lists(scalars.filters(ATTRIBUTES), max_size=20))
def test_indexes_find_what_a_scan_finds(drawn, others):
    both = [Filter([*one, *other]) for one, other in zip(drawn[0], others, strict=False)]
    pool = ConstraintPool([[*drawn[0], *others, *both]])
    filters = [terms for terms, conflict, *_ in (reduced(pool, one) for one in pool.filters) if conflict is None]
    found = Redundancy(pool, list(dict.fromkeys(filters))).left()
    for part in found:
        assert not any(filter_covers(pool, other, part) for other in found if other is not part)
    for part in filters:
        assert part in found or any(filter_covers(pool, other, part) for other in found)


def witnesses():
    """For relations p of x to y and q of y to z, and every r of x to z that can follow, regions x, y, z."""
    sides = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3), (0, 4), (1, 4), (3, 4))
    pool = [Region.box(a, c, b, d) for a, b in sides for c, d in ((0, 4), (1, 3), (1, 2), (0, 2))]
    pool += [Region.box(-1, -1, 5, 5), Region.box(9, 9, 10, 10), Region.box(-2, 1, 2, 3), Region.box(2, -1, 7, 6)]
    pool += [Region.box(0.2, 1.2, 0.8, 1.8), Region.box(2.2, 1.2, 2.8, 1.8), Region.box(0.5, 1.1, 3.5, 1.9)]
    pool += [Region.box(0, 4, 1, 5), Region.box(6, 1, 8, 2), Region.box(5.5, 0, 9, 3)]
    codes = [relate(region, RegionArray.from_regions(pool)).tolist() for region in pool]
    found = {}
    for x, y, z in product(range(len(pool)), repeat=3):
        found.setdefault((codes[x][y], codes[y][z], codes[x][z]), (pool[x], pool[y], pool[z]))
    return found


def is_known_of_lines(more: Constraint, given: Constraint, between: Relation) -> bool:
    """Return whether all that follows for lines from a constraint on one region is in another's mask."""
    of_lines, asked = LINE_MASKS[0, given.relations.mask], int(LINE_MASKS[0, more.relations.mask])
    cells = LINE_TABLES[False, False][between]
    return all(cell & ~asked == 0 for bit, cell in cells.items() if of_lines & bit)


def test_simplification_knows_every_cell_of_the_composition_table():
    """For relations p of x to y and q of y to z, the relations of x to z are those that occur: no more, no fewer."""
    found = witnesses()
    for (p, _, r), (x, y, z) in found.items():
        both = Filter([Constraint("area", Relation(r), z), Constraint("area", Relation(p), y)])
        assert predicate_holds(simplify(both), {"area": x}), both
    for p, q in product(Relation, repeat=2):
        occurring = RelationSet(*(Relation(r) for r in Relation if (p, q, r) in found))
        _, y, z = next(found[p, q, r] for r in occurring)
        given = Constraint("area", p, y)
        for r in Relation:
            one, more = Constraint("area", r, z), Constraint("area", occurring | r, z)  # equal ones need no table
            assert conflicts(one, given) == (conflict_in(Filter([one, given])) is not None) == (r not in occurring)
            if is_known_of_lines(more, given, q):
                assert covers(more, given)
                assert simplify(Filter([more, given])) == Predicate([Filter([given])])
            else:
                assert not covers(more, given)
            less = Constraint("area", occurring & ~r, z)
            assert covers(less, given) == (r not in occurring and is_known_of_lines(less, given, q))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("x != 0 AND x > 10", "x > 10"),  # the example of the paper
        ("x > 3 AND x < 2", "x > 3 AND x < 2"),  # never: it stays as it is
        ("x >= 3 AND x <= 5", "x BETWEEN 3 AND 5"),
        ("x > 3 AND x < 5", "x > 3 AND x < 5"),  # no operator says this
        ("x IN (1, 2, 3) AND x > 1", "x IN (2, 3)"),
        ("x <> 1 AND x <> 2", "x NOT IN (1, 2)"),
        ("x = 1 OR x = 2 OR x = 5", "x IN (1, 2, 5)"),
        ("x <= 3 OR x BETWEEN 3 AND 8", "x <= 8"),
        ("x = TRUE OR x = FALSE OR x = 3 OR x = 4", "x = TRUE OR x = FALSE OR x IN (3, 4)"),
        ("x < 3 OR x >= 3", "x < 3 OR x >= 3"),  # a test of presence and type, which has no other form
        ("x > 3 AND y = 1 OR x > 2", "x > 2"),
        ("x IS NOT NULL AND x > 3", "x > 3"),
        ("x IS NOT NULL OR x > 3", "x IS NOT NULL"),
        ("name LIKE 'a%' AND name LIKE 'ab%'", "name LIKE 'ab%'"),
        ("name LIKE 'a%' OR name LIKE 'ab%c'", "name LIKE 'a%'"),
        ("x = 1 AND y = 2 OR x = 3 AND y = 2 OR y = 5 AND x = 1", "x IN (1, 3) AND y = 2 OR y = 5 AND x = 1"),
        (f"relation(a, {BOX}, 'meets', 'overlaps') AND NOT S_TOUCHES(a, {TURNED})", f"overlaps(a, {BOX})"),
        (f"meets(a, {BOX}) OR inside(a, {TURNED})", f"relation(a, {BOX}, 'meets', 'inside')"),
        (f"S_INTERSECTS(a, {BOX}) OR S_DISJOINT(a, {BOX})", ANY_RELATION),  # a test of presence
        (ANY_RELATION, ANY_RELATION),
    ],
)
def test_worked_examples(asked, expected):
    assert simplify(asked) == parse(expected), str(simplify(asked))


def test_the_conflict_of_the_paper_is_none():
    """Section 4.2: covered-by A and disjoint from B, where A overlaps B, can both hold."""
    a, b = Region.box(0, 0, 4, 4), Region.box(2, 0, 6, 4)
    asked = Filter([Constraint("x", Relation.COVERED_BY, a), Constraint("x", Relation.DISJOINT, b)])
    assert predicate_holds(simplify(asked), {"x": Region.box(0, 0, 1, 1)})
    assert conflict_in(asked) is None


def test_what_never_holds_keeps_two_constraints_that_say_so():
    apart = [Constraint("area", Relation.INSIDE, region) for region in (SQUARE, FAR)]
    empty = Filter([Constraint("x", "between", (5, 3))])
    asked = Predicate([Filter([Constraint("x", ">", 1), *apart]), empty])
    (left,) = simplify(asked).filters
    assert {constraint.value for constraint in left} == {SQUARE, FAR}
    assert conflict_in(empty) == empty.constraints * 2


def test_rings_and_holes():
    """A square that fills the hole of a ring meets it; inside both is impossible, to meet both is not told."""
    hole = Region.box(2, 2, 4, 4)
    assert conflict_in(Filter([Constraint("x", Relation.INSIDE, RING), Constraint("x", Relation.INSIDE, hole)]))
    assert not conflict_in(Filter([Constraint("x", Relation.MEETS, RING), Constraint("x", Relation.EQUALS, hole)]))


def test_groups_do_not_touch_each_other_and_reports_add_up():
    groups = [[Filter([Constraint("x", ">", n)])] * (n + 1) for n in range(3)]
    done = list(simplified_groups(groups))
    assert [len(one.filters) for one in done] == [1, 1, 1]
    assert [one.report.rules["covered"] for one in done] == [0, 1, 2]
    total = done[0].report.plus(done[2].report)
    assert (total.filters_before, total.filters_after, total.constraints_before) == (4, 2, 4)
    assert "covers" in str(total)


def test_what_a_group_becomes_does_not_depend_on_others():
    """Not even which of equal regions stays, or which of two constraints that say the same."""
    a, b = SQUARE, Region([(4, 4), (0, 4), (0, 0), (2, 0), (4, 0)])  # equal, with a vertex more
    first = [Filter([Constraint("area", RelationSet.ALL, a), Constraint("area", RelationSet.ALL, FAR)])]
    others = [[Filter([Constraint("area", Relation.INSIDE, region)])] for region in (FAR, b, a)]
    (alone,) = simplified_groups([first])
    *_, last = simplified_groups([*others, first])
    assert alone.filters == last.filters


def test_coordinate_systems_stay_apart():
    here, there = Region.box(0, 0, 1, 1, crs="EPSG:4326"), Region.box(5, 5, 6, 6, crs="EPSG:3857")
    asked = Filter([Constraint("x", Relation.INSIDE, here), Constraint("x", Relation.INSIDE, there)])
    assert simplify(asked) == Predicate([asked])


def test_large_groups_of_every_kind():
    """Hundreds of filters, found through every kind of head."""
    rng = np.random.default_rng(3)
    parts = []
    for _ in range(300):
        x, y = rng.integers(0, 30, 2).tolist()
        region = Region.box(x, y, x + int(rng.integers(1, 9)), y + int(rng.integers(1, 9)))
        choice = [
            Constraint("area", RelationSet.from_mask(int(rng.integers(1, 256))), region),
            Constraint("x", rng.choice([">", "<=", "!=", "="]), int(rng.integers(0, 9))),
            Constraint("name", rng.choice(["=", "prefix", "contains", "!="]), "ab"[: int(rng.integers(1, 3))])
            if rng.random() < 0.7
            else Constraint("name", "is not null"),
        ]
        parts.append(Filter([choice[k] for k in rng.permutation(3)[: int(rng.integers(1, 4))]]))
    pool = ConstraintPool([parts])
    filters = [terms for terms, conflict, *_ in (reduced(pool, one) for one in pool.filters) if conflict is None]
    found = uncovered(pool, filters)
    assert 0 < len(found) < 250
    for part in filters:
        is_covered = any(filter_covers(pool, other, part) for other in found if other != part)
        assert (part in found) != is_covered
    simpler = simplify(Predicate(parts))
    for _ in range(200):
        x, y = rng.integers(0, 36, 2).tolist()
        name = str(rng.choice(["a", "ab", "cab"]))
        message = {"area": Region.box(x, y, x + 2, y + 3), "x": int(rng.integers(0, 9)), "name": name}
        assert predicate_holds(simpler, message) == predicate_holds(parts, message)


def test_regions_that_all_overlap_are_looked_at_so_often_and_no_more():
    sides = [98 if k % 2 else 100 for k in range(40)]  # every second one lies in the one before
    boxes = [f"S_INTERSECTS(area, BBOX({k}, {k}, {k + side}, {k + side}))" for k, side in enumerate(sides)]
    asked = parse(" OR ".join(boxes))
    whole = simplify(asked)
    assert len(whole.filters) == 20
    (some,) = simplified_groups([asked.filters], limits=PairLimits(near_pairs=1, box_pairs_per_chunk=40))
    assert len(whole.filters) < len(some.filters)
    for k in range(160):
        message = {"area": Region.box(k, 0.5, k + 1, 1.5)}
        assert predicate_holds(some.filters, message) is predicate_holds(whole, message)
