"""Relations and sets of relations."""

import pickle

import pytest
from hypothesis import given

import contrada as ct
from contrada.geometry.relation import relation_set
from generators.strategies import relation_sets, relations
from oracles.relations import INVERSE

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
