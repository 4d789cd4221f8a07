"""Distances of lines through tables: constants and messages, alone and among others; judged by the rationals."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct
from effort import COMPILED, examples
from generators.line_filters import coarse_shape, of
from oracles.distance import doubles_around_root, is_within, square_of_distance
from oracles.ogc import word_holds

SEEDS = range(examples(5) if COMPILED else 1)
FEW, MANY = (25, 60) if COMPILED else (12, 24)


class Asked(NamedTuple):
    """A distance from a shape, or that from a point in which the whole of a value lies; and whether it is negated."""

    shape: Any
    distance: float
    word: str

    def text(self) -> str:
        """Return the constraint as CQL2 text."""
        wkt = of(self.shape).to_wkt()
        if "CIRCLE" in self.word:
            return f"{self.word.removesuffix(' CIRCLE')}(area, CIRCLE({wkt}, {self.distance!r}))"
        return f"{self.word}(area, {wkt}, {self.distance!r})"

    def holds(self, message: Any) -> bool:
        """Return whether a value satisfies the constraint, by rational arithmetic."""
        if message is None:
            return False
        if "S_WITHIN" in self.word:
            squares = [square_of_vertex(vertex, self.shape) for vertex in shapely.get_coordinates(message.value)]
            inside = all(is_within(square, self.distance, -message.radius) for square in squares)
            return inside != self.word.startswith("NOT")
        square = square_of_distance(message.value, self.shape)
        is_near = is_within(square, self.distance, message.radius)
        return is_near == (self.word in ("within_distance", "NOT beyond_distance", "S_INTERSECTS CIRCLE"))


class Message(NamedTuple):
    """A value of a message: a Shapely shape, grown by a radius if that is positive."""

    value: Any
    radius: float = 0.0

    def ours(self) -> Any:
        """Return the value as ours."""
        return ct.Circle((self.value.x, self.value.y), self.radius) if self.radius else of(self.value)


def square_of_vertex(vertex: Any, point: Any) -> Any:
    return square_of_distance(shapely.Point(*vertex), point)


def messages_of(rng: np.random.Generator, count: int) -> list[Message | None]:
    """Return lines, regions, points, circles and nulls."""
    found: list[Message | None] = [None]
    for _ in range(count):
        shape = coarse_shape(rng)
        if rng.random() < 0.15:
            found.append(Message(shapely.Point(*rng.integers(0, 9, 2)), float(rng.choice([0.5, 1.0, 2.5]))))
        else:
            found.append(Message(shape))
    return found


def asked_of(rng: np.random.Generator, messages: list[Message | None], count: int) -> list[Asked]:
    """Return constraints on shapes of all kinds, many at the very distance of a message or next to it."""
    found = []
    values = [one for one in messages if one is not None]
    for _ in range(count):
        shape, near = coarse_shape(rng), values[rng.integers(len(values))]
        words = ["within_distance", "beyond_distance", "NOT within_distance", "NOT beyond_distance"]
        if shape.geom_type == "Point":
            words += ["S_WITHIN CIRCLE", "NOT S_WITHIN CIRCLE", "S_INTERSECTS CIRCLE", "S_DISJOINT CIRCLE"]
        root = doubles_around_root(square_of_distance(near.value, shape))
        choices = (*root, max(0.0, root[0] - near.radius), float(rng.integers(0, 5)), 1e6, 0.0)
        found.append(Asked(shape, float(choices[rng.integers(len(choices))]), str(rng.choice(words))))
    return found


def check_everywhere(table: Any, messages: list[Any], expected: list[set[int]], tmp_path: Any) -> None:
    """Compare the answers of a table: one by one, in batches, saved, pickled and simplified."""
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


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("packed", [False, True])
def test_single_constraints_answer_as_the_rationals(seed, packed, tmp_path):
    rng = np.random.default_rng(seed)
    drawn = messages_of(rng, FEW)
    asked = asked_of(rng, drawn, MANY)
    table = ct.ForwardingTable()
    for k, one in enumerate(asked):
        table.subscribe("s", one.text(), key=k)
    if packed:
        table.pack()
    messages = [{} if one is None else {"area": one.ours()} for one in drawn]
    expected = [{k for k, one in enumerate(asked) if one.holds(message)} for message in drawn]
    for message, keys in list(zip(messages, expected, strict=True))[:5]:
        assert {k for k in range(len(asked)) if table.explain(message, k).truth} == keys
    plain = [k for k, one in enumerate(drawn) if one is not None and not one.radius]
    column = pa.array([None, *(shapely.to_wkb(drawn[k].value) for k in plain)], pa.binary())
    for rows, numbers in ((pa.table({"area": column}), plain), (pa.table({"area": column.slice(1)}), None)):
        found = table.match_many(rows, by="subscription")
        first = 0 if numbers is None else 1
        assert [set(found.keys(first + k)) for k in range(len(plain))] == [expected[k] for k in plain]
        assert numbers is None or not len(found.keys(0))
    check_everywhere(table, messages, expected, tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("packed", [False, True])
def test_distances_among_other_constraints_answer_as_the_rationals(seed, packed, tmp_path):
    rng = np.random.default_rng(100 + seed)
    drawn = [(one, int(rng.integers(0, 4))) for one in messages_of(rng, FEW) if one is None or not one.radius]
    table, filters = ct.ForwardingTable(), []
    for k in range(MANY):
        several = []
        for _ in range(rng.integers(1, 3)):
            near = asked_of(rng, [one for one, _ in drawn], rng.integers(1, 3))
            related = (
                [(str(rng.choice(["S_INTERSECTS", "S_DISJOINT"])), coarse_shape(rng))] if rng.random() < 0.4 else []
            )
            several.append((near, related, int(rng.integers(-1, 3))))
        parts = [
            " AND ".join([
                *(one.text() for one in near),
                *(f"{word}(area, {of(shape).to_wkt()})" for word, shape in related),
                *([f"level > {least}"] if least >= 0 else []),
            ])
            for near, related, least in several
        ]  # fmt: skip
        table.subscribe("s", " OR ".join(f"({part})" for part in parts), key=k)
        filters.append(several)
    if packed:
        table.pack()
    messages = [{"level": level} | ({} if one is None else {"area": one.ours()}) for one, level in drawn]
    expected = [
        {
            k for k, several in enumerate(filters)
            if any(
                level > least
                and all(each.holds(one) for each in near)
                and all(one is not None and word_holds(word, one.value, shape) for word, shape in related)
                for near, related, least in several
            )
        }
        for one, level in drawn
    ]  # fmt: skip
    check_everywhere(table, messages, expected, tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tree_of_many_lines_answers_as_a_scan(seed):
    """Constraints of all kinds, enough for a tree of several levels, against `within_distance` of each pair."""
    rng = np.random.default_rng(300 + seed)
    count, many = (1200, 40) if COMPILED else (60, 5)
    lines = []
    for k in range(count):
        start = rng.integers(0, 60, 2)
        steps = [[0, 0], [1, k % 3], [3, 1], *([[70, k]] if k % 40 == 0 else [])]  # some reach far
        lines.append(of(shapely.LineString(start + np.array(steps))))
    distances = rng.choice([0.0, 1.0, 2.5, 5.0, 12.0], count)
    within = rng.random(count) < 0.8
    table = ct.ForwardingTable()
    rows = pa.table({"key": range(count), "geometry": ct.LineArray.from_lines(lines).to_wkb(), "d": distances})
    table.subscribe_many(rows.filter(within), "within_distance(area, $geometry, $d)")
    table.subscribe_many(rows.filter(~within), "beyond_distance(area, $geometry, $d)")
    table.pack()
    table.check()
    column = ct.LineArray.from_lines(lines)
    shapes = [coarse_shape(rng) for _ in range(many)]
    values = [of(shapely.transform(shape, lambda xy: xy * 6)) for shape in shapes]
    many_found = table.match_many([{"area": value} for value in values], by="subscription")
    for k, value in enumerate(values):
        expected = set(np.flatnonzero(ct.within_distance(column, value, distances) == within).tolist())
        assert set(table.match_keys({"area": value})) == set(many_found.keys(k)) == expected


def test_templates_with_a_column_of_lines():
    lines = ct.LineArray.from_wkt(
        ["LINESTRING(0 0, 4 0)", "LINESTRING(0 9, 4 9)", "MULTILINESTRING((0 20, 1 20), (9 9, 9 8))"]
    )
    for geometry in (lines.to_wkb(), lines.to_arrow()):
        rows = pa.table({"key": ["a", "b", "c"], "geometry": geometry, "d": [3, 4, 5]})
        for text in ("within_distance(area, $geometry, $d)", "S_INTERSECTS(area, CIRCLE($geometry, $d))"):
            table = ct.ForwardingTable()
            table.subscribe_many(rows, text)
            assert set(table.match_keys({"area": ct.Point(5, 9)})) == {"b", "c"}
            assert set(table.match_keys({"area": ct.Line([(2, 3), (2, 4)])})) == {"a"}
            table.pack()
            assert set(table.match_keys({"area": ct.Region.box(0, 3, 4, 5)})) == {"a", "b"}
        far = ct.ForwardingTable()
        far.subscribe_many(rows, "NOT within_distance(area, $geometry, 4)")
        assert set(far.match_keys({"area": ct.Line([(2, 3), (2, 4)])})) == {"b", "c"}
        with pytest.raises(ct.FilterError, match="distances in metres are between regions and points"):
            ct.ForwardingTable().subscribe_many(rows, "within_distance(area, $geometry, $d, 'm')")


def test_metres_stay_unknown_of_lines():
    with pytest.raises(ct.FilterError, match="distances in metres are between regions and points"):
        ct.Constraint("area", ct.WithinDistance(5, "m"), ct.Line([(0, 0), (1, 1)]))
    table = ct.ForwardingTable()
    for k, word in enumerate(("within_distance", "beyond_distance")):
        table.subscribe("s", f"{word}(area, POINT(0 0), 5, 'm')", key=k)
        table.subscribe("s", f"{word}(area, POINT(0 0), 5, 'm') AND level > 0", key=2 + k)
        table.subscribe("s", f"{word}(area, POINT(0 0), 5, 'm') AND within_distance(area, POINT(0 0), 5)", key=4 + k)
    message = {"area": ct.Line([(0, 0), (1, 1)]), "level": 1}
    for _ in range(2):
        assert set(table.match_keys(message)) == set()
        assert not len(table.match_many([message], by="subscription").keys(0))
        table.pack()
    assert table.explain(message, 0).truth is None
    assert "not a region or point of longitude and latitude" in str(table.explain(message, 0))


def test_explanations_print_the_distance():
    table = ct.ForwardingTable()
    table.subscribe("s", "within_distance(area, LINESTRING(0 0, 4 0), 4.5)", key="k")
    for value in (ct.Point(7, 4), ct.Line([(7, 4), (9, 9)]), ct.Circle((10, 8), 5)):
        why = table.explain({"area": value}, "k")
        assert why.truth is False
        assert "area is 5 away from it" in str(why)
        assert why.to_dict()["filters"][0]["constraints"][0]["distance"] == 5.0
    assert "area is 5, not a region, point or line" in str(table.explain({"area": 5}, "k"))
