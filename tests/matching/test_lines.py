"""Lines as messages and as constants of filters, through every way of a table; judged by rational arithmetic."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import shapely

import contrada as ct
from effort import COMPILED, examples
from generators.line_filters import coarse_shape, drawn, holds, of, text_of


def check_everywhere(table: ct.ForwardingTable, messages: list[dict[str, object]], expected: list[set[int]], tmp_path):
    """Compare the answers of a table, one by one and in batches, saved, pickled and simplified."""
    table.check()
    assert [set(table.match_keys(message)) for message in messages] == expected
    many = table.match_many(messages, by="subscription")
    assert not many.rejected
    assert [set(many.keys(k)) for k in range(len(messages))] == expected
    table.save(tmp_path / "table", replace=True)
    for other in (ct.ForwardingTable.open(tmp_path / "table"), pickle.loads(pickle.dumps(table))):
        other.check()
        assert [set(other.match_keys(message)) for message in messages] == expected
        assert dict(other.predicates()) == dict(table.predicates())
    table.simplify()
    assert [set(table.match_keys(message)) for message in messages] == expected
    many = table.match_many(messages, by="subscription")
    assert [set(many.keys(k)) for k in range(len(messages))] == expected


@pytest.mark.parametrize("seed", range(examples(6) if COMPILED else 1))
@pytest.mark.parametrize("packed", [False, True])
def test_single_constraints_answer_as_the_rationals(seed, packed, tmp_path):
    rng = np.random.default_rng(seed)
    given = [*(coarse_shape(rng) for _ in range(25)), None]
    asked = drawn(rng, 60)
    table = ct.ForwardingTable()
    for k, one in enumerate(asked):
        table.subscribe("s", text_of(*one), key=k)
    if packed:
        table.pack()
    messages = [{} if one is None else {"area": of(one)} for one in given]
    expected = [{k for k, one in enumerate(asked) if holds(one, message)} for message in given]
    check_everywhere(table, messages, expected, tmp_path)


@pytest.mark.parametrize("seed", range(examples(6) if COMPILED else 1))
@pytest.mark.parametrize("packed", [False, True])
def test_lines_among_other_constraints_answer_as_the_rationals(seed, packed, tmp_path):
    rng = np.random.default_rng(100 + seed)
    given = [(coarse_shape(rng), int(rng.integers(0, 4))) for _ in range(25)]
    table, asked = ct.ForwardingTable(), []
    for k in range(60):
        filters = [(drawn(rng, rng.integers(1, 3)), int(rng.integers(-1, 3))) for _ in range(rng.integers(1, 3))]
        parts = [
            [*(text_of(*one) for one in some), *([f"level > {least}"] if least >= 0 else [])] for some, least in filters
        ]
        table.subscribe("s", " OR ".join(f"({' AND '.join(part)})" for part in parts), key=k)
        asked.append(filters)
    if packed:
        table.pack()
    messages = [{"area": of(message), "level": level} for message, level in given]
    expected = [
        {
            k for k, filters in enumerate(asked)
            if any(level > least and all(holds(one, message) for one in some) for some, least in filters)
        }
        for message, level in given
    ]  # fmt: skip
    check_everywhere(table, messages, expected, tmp_path)


def test_eight_relations_alone_are_unknown_of_lines_within():
    box = ct.Region.box(0, 0, 4, 4)
    table = ct.ForwardingTable()
    table.subscribe("s", ct.Constraint("area", ct.Relation.INSIDE, box), key="inside")
    table.subscribe("s", ct.Constraint("area", ~ct.RelationSet(ct.Relation.INSIDE), box), key="not inside")
    within, apart = ct.Line([(1, 1), (2, 2)]), ct.Line([(8, 8), (9, 9)])
    assert table.match_keys({"area": within}) == set()
    assert table.match_keys({"area": apart}) == {"not inside"}
    shown = str(table.explain({"area": within}, "inside"))
    assert "unknown" in shown
    assert "area is within it; it is a line, and the operator relates regions" in shown


def test_explanation_names_the_relation():
    table = ct.ForwardingTable()
    table.subscribe("s", "S_CROSSES(area, LINESTRING (0 0, 4 4))", key="k")
    shown = table.explain({"area": ct.Line([(0, 4), (4, 0)])}, "k")
    assert shown.truth is True
    assert "area crosses it" in str(shown)
    assert table.explain({"area": 5}, "k").truth is None
    assert "not a region, point or line" in str(table.explain({"area": 5}, "k"))


@pytest.mark.parametrize("seed", range(examples(6) if COMPILED else 1))
def test_simplification_of_any_masks_keeps_the_answers_for_lines(seed):
    rng = np.random.default_rng(200 + seed)
    places = [coarse_shape(rng) for _ in range(4)]
    places = [one for one in places if "Line" not in one.geom_type] or [shapely.box(0, 0, 4, 4)]
    table = ct.ForwardingTable()

    def constraint() -> ct.Constraint:
        mask = ct.RelationSet.from_mask(int(rng.integers(1, 256)))
        words = [ct.RelationSet.S_WITHIN, ct.RelationSet.S_INTERSECTS, ct.RelationSet.S_TOUCHES]
        return ct.Constraint(
            "area", rng.choice([mask, *words, *(~w for w in words)]), of(places[rng.integers(len(places))])
        )

    for k in range(80):
        table.subscribe(
            "s", ct.Predicate([ct.Filter([constraint() for _ in range(rng.integers(1, 4))]) for _ in range(3)]), key=k
        )
    messages = [{"area": of(coarse_shape(rng))} for _ in range(40)]
    before = [set(table.match_keys(message)) for message in messages]
    table.simplify()
    assert [set(table.match_keys(message)) for message in messages] == before


def test_geometry_of_the_index_is_checked():
    table = ct.ForwardingTable()
    for k in range(200):
        table.subscribe("s", ct.Constraint("area", ct.LineRelationSet.S_CROSSES, ct.Line([(k, 0), (k, 5)])), key=k)
    table.pack()
    table.check()
    assert set(table.match_keys({"area": ct.Region.box(10.5, 1, 13.5, 2)})) == {11, 12, 13}
    assert table.asked_kinds() == {"area": ["region or point"]}


WORDS = ("crosses", "touches", "within", "intersects", "disjoint")


def star(rng: np.random.Generator, vertices: int) -> shapely.Polygon:
    """Return a rough polygon around (50, 50) with whole coordinates in thousandths."""
    angles = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    reach = rng.uniform(20, 50, vertices) if rng.random() < 0.5 else 40 + 3 * np.sin(angles * rng.integers(2, 40))
    xy = np.stack([np.cos(angles), np.sin(angles)], axis=1) * reach[:, None] + 50
    made = shapely.Polygon(np.round(xy, 3))
    return made if made.is_valid else shapely.Polygon(np.round(xy / reach[:, None] * 40, 3))


def wander(rng: np.random.Generator, vertices: int, polygon: shapely.Polygon) -> shapely.LineString:
    """Return a line from anywhere, or from a vertex of the polygon; some follow a piece of its boundary."""
    corners = shapely.get_coordinates(polygon)[:-1]
    kind = rng.integers(0, 4)
    if kind == 0:  # along the boundary
        first = int(rng.integers(0, len(corners) // 2))
        return shapely.LineString(corners[first : first + max(2, vertices // 2)])
    start = corners[rng.integers(0, len(corners))] if kind == 1 else rng.uniform(0, 100, 2)
    steps = rng.normal(0, 0.5 if kind == 2 else 4, (vertices, 2))
    return shapely.LineString(np.round(start + np.cumsum(np.vstack([[0, 0], steps]), axis=0), 3))


@pytest.mark.parametrize("seed", range(examples(4) if COMPILED else 1))
def test_large_shapes_answer_as_whole_matrices_and_shapely(seed):
    rng = np.random.default_rng(seed)
    sizes = (5, 60, 700, 3000) if COMPILED else (5, 200)
    polygons = [star(rng, size) for size in sizes for _ in range(3)]
    lines = [wander(rng, int(rng.choice([2, 40, 600])), polygon) for polygon in polygons for _ in range(6)]
    regions, column = [ct.Region.from_shapely(each) for each in polygons], ct.LineArray.from_shapely(lines)
    answers = set()
    for word in WORDS:
        table = ct.ForwardingTable()
        for k, line in enumerate(lines):
            table.subscribe("s", f"S_{word.upper()}(area, {line.wkt})", key=k)
        table.pack()
        function = getattr(ct, word)
        for region, polygon in zip(regions, polygons, strict=True):
            found = set(table.match_keys({"area": region}))
            # The message is the first operand in filters: S_WITHIN asks for the region in the line.
            assert found == set(np.flatnonzero(function(region, column)).tolist())
            if word in ("crosses", "intersects", "disjoint"):
                judged = set(np.flatnonzero(getattr(shapely, word)(polygon, lines)).tolist())
                at_odds = found ^ judged  # by the rounding of GEOS
                assert all(shapely.distance(polygon.boundary, lines[k]) < 1e-9 for k in at_odds)
            answers.add((word, bool(found)))
        backwards = ct.ForwardingTable()
        for k, polygon in enumerate(polygons):
            backwards.subscribe("s", f"S_{word.upper()}(route, {polygon.wkt})", key=k)
        for k in range(0, len(lines), 5):
            whole = [function(column[k], region) for region in regions]
            assert set(backwards.match_keys({"route": column[k]})) == set(np.flatnonzero(whole).tolist())
            answers.add((f"{word} of a line", any(whole)))
    assert {(word, True) for word in ("crosses", "touches", "intersects", "crosses of a line")} <= answers
