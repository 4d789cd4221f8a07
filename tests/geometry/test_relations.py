"""Relations, sets of relations and their laws: one of eight, inverses, composition; only point sets count."""

import pickle
from functools import cache

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import contrada as ct
from contrada.geometry import PointArray
from contrada.geometry.relation import relation_set
from effort import examples
from generators.families import FAMILIES, family
from generators.families.mosaic import UNIT, Mosaic
from generators.rings import redescribe
from generators.strategies import points, regions, relation_sets, relations, shape_pairs, shapes
from oracles.relations import INVERSE, judge_point

Relation, RelationSet = ct.Relation, ct.RelationSet


def test_codes_and_names_are_fixed():
    assert [relation.name for relation in Relation] == [
        "DISJOINT", "MEETS", "OVERLAPS", "EQUALS", "INSIDE", "CONTAINS", "COVERS", "COVERED_BY",
    ]  # fmt: skip
    assert [int(relation) for relation in Relation] == list(range(8))
    assert [int(relation.inverse) for relation in Relation] == INVERSE.tolist()
    assert f"{Relation.COVERED_BY}" == "covered-by"


def test_ogc_words_are_unions():
    assert set(RelationSet.S_WITHIN) == {Relation.INSIDE, Relation.COVERED_BY, Relation.EQUALS}
    assert set(RelationSet.S_CONTAINS) == {Relation.CONTAINS, Relation.COVERS, Relation.EQUALS}
    assert set(RelationSet.S_INTERSECTS) == set(Relation) - {Relation.DISJOINT}
    assert list(RelationSet.S_TOUCHES) == [Relation.MEETS]
    assert list(RelationSet.S_OVERLAPS) == [Relation.OVERLAPS]
    assert list(RelationSet.S_EQUALS) == [Relation.EQUALS]
    assert list(RelationSet.S_DISJOINT) == [Relation.DISJOINT]
    assert repr(RelationSet.S_WITHIN) == "RelationSet.S_WITHIN"


@given(relation_sets(), relation_sets())
def test_sets_behave_as_sets(a, b):
    assert set(a | b) == set(a) | set(b)
    assert set(a & b) == set(a) & set(b)
    assert set(a - b) == set(a) - set(b)
    assert set(~a) == set(Relation) - set(a)
    assert (a <= b) == (set(a) <= set(b))
    assert len(a) == len(set(a)) == a.mask.bit_count()
    assert bool(a) == bool(set(a))
    assert a.inverse.inverse == a
    assert (a | b).inverse == a.inverse | b.inverse
    assert (a == b) == (a.mask == b.mask)
    assert pickle.loads(pickle.dumps(a)) == a
    assert hash(RelationSet.from_mask(a.mask)) == hash(a)
    assert eval(repr(a), {"RelationSet": RelationSet, **Relation.__members__}) == a


@given(relations(), relation_sets())
def test_a_relation_joins_sets(relation, chosen):
    assert relation | chosen == chosen | relation == RelationSet(relation) | chosen
    assert chosen & relation == relation & chosen == (RelationSet(relation) if relation in chosen else RelationSet.NONE)
    assert ~relation == ~RelationSet(relation)
    assert relation_set([relation]) == relation_set(relation)


@pytest.mark.parametrize("mask", [-1, 256])
def test_masks_have_eight_bits(mask):
    with pytest.raises(ValueError, match="from 0 to 255"):
        RelationSet.from_mask(mask)


def test_only_relations_belong():
    with pytest.raises(TypeError, match="need a Relation, got 'meets'"):
        RelationSet("meets")
    with pytest.raises(TypeError):
        RelationSet.S_WITHIN | 3
    with pytest.raises(AttributeError, match="cannot be changed"):
        RelationSet.S_WITHIN.mask = 3


EIGHT = list(Relation)
SAME = ct.RelationSet(ct.Relation.EQUALS)
region_triples = shape_pairs(3).map(lambda triple: tuple(map(ct.Region.from_shapely, triple)))


def column(shapes):
    return ct.RegionArray.from_shapely(np.asarray(shapes))


@cache
def composition():
    """Whether the table allows r of a and b, s of b and c and t of a and c together: (8, 8, 8) booleans."""
    composed = [[ct.compose(ct.RelationSet(r), ct.RelationSet(s)) for s in EIGHT] for r in EIGHT]
    return np.array([[[t in both for t in EIGHT] for both in row] for row in composed])


@given(shapes(), shapes(), st.integers(0, 2**32 - 1))
def test_only_point_sets_count(a, b, seed):
    rng = np.random.default_rng(seed)
    before = ct.relate(ct.Region.from_shapely(a), ct.Region.from_shapely(b))
    again_a, again_b = redescribe(rng, np.array([a, b]))
    assert ct.relate(ct.Region.from_shapely(again_a), ct.Region.from_shapely(again_b)) is before
    assert ct.relate(ct.Region.from_shapely(a), ct.Region.from_shapely(again_a)) is ct.Relation.EQUALS


@given(region_triples | st.tuples(points(), regions(), regions()))
def test_composition_holds_for_any_triple(triple):
    a, b, c = triple
    first, second = ct.RelationSet(ct.relate(a, b)), ct.RelationSet(ct.relate(b, c))
    assert ct.relate(a, c) in ct.compose(first, second)
    assert ct.relate(c, a) in ct.compose(second.inverse, first.inverse)


@pytest.mark.effort
@pytest.mark.parametrize("name", [chosen.name for chosen in FAMILIES])
def test_composition_is_never_violated(name):
    """Triples of a family: a pair, and a third region that comes from a pair nearby."""
    rng = np.random.default_rng(9)
    shapes = np.stack(family(name).pairs(rng, examples(800)))
    # GEOS takes some triangles without area for valid.
    bad = {rejection.row for side in shapes for rejection in ct.read_regions(side).rejected}
    shapes = np.delete(shapes, list(bad), axis=1)
    a, b = column(shapes[0]), column(shapes[1])
    for step in (0, 1, 2, 7):
        for other in (a, b):
            c = other[np.roll(np.arange(len(a)), step)]
            first, second, both = ct.relate(a, b), ct.relate(b, c), ct.relate(a, c)
            assert composition()[first, second, both].all()


def test_the_table_is_what_occurs():
    """All triples of a few hundred regions: every entry of the table occurs, and nothing beside it."""
    pool = column(np.concatenate([all_boxes(5), scattered_cells(120)]))
    codes = np.stack([ct.relate(pool[k], pool) for k in range(len(pool))])
    holds = [(codes == k).astype(np.float32) for k in range(8)]
    linked = [[holds[r] @ holds[s] > 0 for s in range(8)] for r in range(8)]
    occurs = np.array([[[(both & (codes == t)).any() for t in range(8)] for both in row] for row in linked])
    assert (occurs == composition()).all()
    assert occurs.sum() == 193


def all_boxes(size):
    """All boxes with corners on a grid of 0..size, as large as the mosaic of so many squares."""
    low, high = np.triu_indices(size + 1, 1)
    x, y = (k.ravel() for k in np.meshgrid(np.arange(len(low)), np.arange(len(low))))
    return shapely.box(UNIT * low[x], UNIT * low[y], UNIT * high[x], UNIT * high[y])


def scattered_cells(count):
    """Regions with holes and parts that touch."""
    rng = np.random.default_rng(5)
    mosaic = Mosaic.triangles(rng, 5)
    masks = mosaic.random_masks(rng, count)
    return mosaic.regions(masks[masks.any(axis=1)])


@given(relation_sets(), relation_sets(), relation_sets())
def test_composition_spreads_over_unions_inverses_and_equals(x, y, z):
    assert ct.compose(x | y, z) == ct.compose(x, z) | ct.compose(y, z)
    assert ct.compose(z, x | y) == ct.compose(z, x) | ct.compose(z, y)
    assert ct.compose(x, y).inverse == ct.compose(y.inverse, x.inverse)
    assert ct.compose(SAME, x) == ct.compose(x, SAME) == x


@given(points(), shapes())
def test_points_relate_exactly(point, shape):
    region = ct.Region.from_shapely(shape)
    relation = ct.relate(point, region)
    assert int(relation) == judge_point(np.array([point.x, point.y]), shape)
    assert relation in {ct.Relation.INSIDE, ct.Relation.MEETS, ct.Relation.DISJOINT}
    assert ct.relate(region, point) is relation.inverse


@given(points(), points())
def test_points_are_equal_or_disjoint(p, q):
    assert ct.relate(p, q) is (ct.Relation.EQUALS if (p.x, p.y) == (q.x, q.y) else ct.Relation.DISJOINT)


@pytest.mark.effort
@pytest.mark.parametrize("name", ["coarse grid", "holes at edges", "touching parts", "rotated", "slivers"])
def test_columns_of_points_relate_exactly(name):
    rng = np.random.default_rng(3)
    shapes, _ = family(name).pairs(rng, 150)
    xy, owner = shapely.get_coordinates(shapes, return_index=True)
    middles = (xy[1:] + xy[:-1]) / 2
    places = np.concatenate([xy[:-1], middles, middles * (1 + 2.0**-52)])
    owners = np.concatenate([owner[:-1]] * 3)
    chosen = rng.permutation(len(places))[: examples(3000)]
    places, owners = places[chosen], owners[chosen]
    codes = ct.relate(PointArray(places), column(shapes)[owners])
    expected = [judge_point(place, shapes[row]) for place, row in zip(places, owners, strict=True)]
    assert codes.tolist() == expected
    assert ct.relate(column(shapes)[owners], PointArray(places)).tolist() == INVERSE[codes].tolist()
    one = column(shapes)[0]
    assert ct.relate(PointArray(places), one).tolist() == [int(ct.relate(ct.Point(x, y), one)) for x, y in places]
