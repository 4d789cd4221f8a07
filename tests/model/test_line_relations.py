"""Relations where a line takes part: partition, words, language, implication; judged by rational arithmetic."""

from __future__ import annotations

import pickle
from itertools import product

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada.broker import wire
from contrada.cql2 import parse_json, to_json
from contrada.geometry.composition import LINE_MASKS, LINE_TABLES
from contrada.geometry.line_relating import line_relation
from contrada.model.evaluate import truth
from contrada.model.implication import conflicts, covers
from effort import examples
from generators.lines import line_shapes, lines_along, mixed_pairs
from generators.strategies import mosaic_shapes, shape_pairs, shapes
from oracles.ogc import WORDS, word_holds

Set, Relation = ct.LineRelationSet, ct.LineRelation


def of(shape: object) -> object:
    """Return a Shapely shape as a value of ours."""
    kinds = {"Point": ct.Point, "LineString": ct.Line, "MultiLineString": ct.Line}
    return kinds.get(shape.geom_type, ct.Region).from_shapely(shape)


@settings(max_examples=examples(600), deadline=None)
@given(mixed_pairs())
def test_one_relation_holds_and_is_the_judges(pair):
    for a, b in (pair, pair[::-1]):
        found = line_relation(of(a), of(b))
        assert {word: found in getattr(Set, word) for word in WORDS} == {word: word_holds(word, a, b) for word in WORDS}


@st.composite
def lines_at_regions(draw: st.DrawFn) -> tuple[object, object, object]:
    """Two regions, or a point for one of them, and a line that may follow the outline of one."""
    first, second = draw(shape_pairs())
    line = draw(line_shapes() | lines_along(first) | lines_along(second))
    vertices = [*first.boundary.representative_point().coords, *shapely.get_coordinates(second).tolist()]
    point = shapely.Point(*draw(st.sampled_from([*vertices, *shapely.get_coordinates(line).tolist()])))
    chosen = draw(st.sampled_from([(first, second), (first, point), (point, first), (point, second)]))
    return line, *chosen


@settings(max_examples=examples(1500), deadline=None)
@given(lines_at_regions())
def test_composition_of_lines_is_sound(drawn):
    line, y, z = map(of, drawn)
    before, after = line_relation(line, y), line_relation(line, z)
    kinds = isinstance(y, ct.Point), isinstance(z, ct.Point)
    assert LINE_TABLES[kinds][ct.relate(y, z)][1 << before] >> after & 1


@settings(max_examples=examples(1500), deadline=None)
@given(lines_at_regions(), st.integers(1, 255), st.integers(1, 255), st.booleans())
def test_implication_is_sound_for_lines(drawn, one, other, are_words):
    line, y, z = map(of, drawn)
    words = [mask for mask in range(256) if LINE_MASKS[0, mask]]
    masks = (words[one % len(words)], words[other % len(words)]) if are_words else (one, other)
    first, second = (ct.Constraint("x", ct.RelationSet.from_mask(m), s) for m, s in zip(masks, (z, y), strict=True))
    if covers(first, second) and truth(second, line):
        assert truth(first, line)
    assert not (conflicts(first, second) and truth(first, line) and truth(second, line))


@settings(max_examples=examples(300), deadline=None)
@given(shapes() | mosaic_shapes().map(lambda found: found[0]), st.data())
def test_a_line_satisfies_a_set_by_its_words(region, data):
    line, place = of(data.draw(line_shapes() | lines_along(region))), of(region)
    for word in ("S_DISJOINT", "S_TOUCHES", "S_OVERLAPS", "S_EQUALS", "S_WITHIN", "S_CONTAINS", "S_INTERSECTS"):
        asked = ct.Constraint("x", getattr(ct.RelationSet, word), place)
        expected = line_relation(line, place) in getattr(Set, word)
        assert truth(asked, line) is expected
        assert truth(asked.negated, line) is not expected
    for relation in ct.Relation:
        asked = ct.Constraint("x", relation, place)
        assert (truth(asked, line), truth(asked.negated, line)) in ((None, None), (True, False), (False, True))


def test_implication_of_one_line():
    line = ct.Line([(0, 0), (2, 2)])
    crosses, meets = (ct.Constraint("x", one, line) for one in (Set.S_CROSSES, Set.S_INTERSECTS))
    apart = ct.Constraint("x", Set.S_DISJOINT, line)
    assert covers(meets, crosses)
    assert not covers(crosses, meets)
    assert conflicts(crosses, apart)
    assert not conflicts(crosses, meets)
    other = ct.Constraint("x", Set.S_DISJOINT, ct.Line([(0, 0), (3, 3)]))
    assert not covers(meets, other)
    assert not conflicts(crosses, other)
    in_crs = ct.Constraint("x", Set.S_CROSSES, ct.Line([(0, 0), (2, 2)], crs="EPSG:25832"))
    assert not covers(meets, in_crs)


SHAPES = (
    ct.Line([(0, 0), (4, 4)]), ct.Line([(0, 0), (1, 1)], [(5, 5), (6, 5)]), ct.Region.box(0, 0, 1, 1), ct.Point(1, 2),
    ct.Column("g"),
)  # fmt: skip


@pytest.mark.parametrize(("value", "mask"), [*product(SHAPES, (*range(0, 128, 9), 64, 127))])
def test_constraints_are_printed_read_sent_and_pickled(value, mask):
    constraint = ct.Constraint("area", Set.from_mask(mask), value)
    predicate = ct.Predicate([ct.Filter([constraint])])
    assert ct.parse(str(predicate)) == predicate
    assert parse_json(to_json(predicate)) == predicate
    assert pickle.loads(pickle.dumps(constraint)) == constraint
    assert constraint.negated.negated == constraint
    if not isinstance(value, ct.Column):
        assert wire.decoder_of(ct.Predicate).decode(wire.encode(predicate)) == predicate
        assert wire.digest_of(predicate) != wire.digest_of(ct.Predicate([ct.Filter([constraint.negated])]))


def test_words_are_one_operator_under_both_names():
    line, box = ct.Line([(0, 0), (4, 4)]), ct.Region.box(0, 0, 1, 1)
    assert ct.Constraint("x", ct.RelationSet.S_WITHIN, line) == ct.Constraint("x", Set.S_WITHIN, line)
    assert ct.Constraint("x", Set.S_WITHIN, box) == ct.Constraint("x", ct.RelationSet.S_WITHIN, box)
    assert ct.parse("S_CROSSES(x, LINESTRING(0 0, 4 4))") == ct.parse("S_CROSSES(LINESTRING(0 0, 4 4), x)")
    assert str(ct.Constraint("x", ~ct.RelationSet.S_TOUCHES, line)) == "NOT S_TOUCHES(x, LINESTRING (0 0, 4 4))"
    assert str(ct.Constraint("x", Relation.WITHIN, line)) == "line_relation(x, LINESTRING (0 0, 4 4), 'within')"
    assert ct.parse("S_CONTAINS(LINESTRING(0 0, 4 4), x)") == ct.parse("S_WITHIN(x, LINESTRING(0 0, 4 4))")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("inside(x, LINESTRING(0 0, 1 1))", "`inside` relates regions"),
        ("NOT covers(x, LINESTRING(0 0, 1 1))", "`covers` relates regions"),
        ("relation(x, LINESTRING(0 0, 1 1), 'inside', 'meets')", "relates regions"),
        ("line_relation(x, LINESTRING(0 0, 1 1), 'inside')", "need the name of a relation, one of 'disjoint'"),
        ("S_CROSSES(x, LINESTRING(0 0))", "malformed"),
        ("S_CROSSES(x, LINESTRING(0 0, 0 0))", "fewer than two distinct"),
        ("S_CROSSES(x, LINESTRING EMPTY)", "no coordinates|empty"),
        ("S_CROSSES(x, MULTIPOINT(0 0, 1 1))", "MULTIPOINT is not supported"),
        ("S_CROSSES(x, CIRCLE(POINT(0 0), 5))", "circles take part in"),
        ("S_COVERS(x, POLYGON((0 0, 1 0, 1 1, 0 0)))", "S_COVERS is not supported: write S_CONTAINS"),
    ],
)
def test_errors_say_what_to_write(text, reason):
    with pytest.raises(ct.LanguageError, match=reason):
        ct.parse(text)


def test_masks_are_checked():
    with pytest.raises(ct.ArgumentError, match="0 to 127"):
        Set.from_mask(128)
    with pytest.raises(ct.ArgumentError, match="need a LineRelation"):
        Set(ct.Relation.MEETS)
    assert LINE_MASKS[:, ct.RelationSet.S_DISJOINT.mask].tolist() == [1, 1]
    assert repr(Set.S_CROSSES) == "LineRelationSet.S_CROSSES"
    assert len(Set.S_INTERSECTS) == 6
