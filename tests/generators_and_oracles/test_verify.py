"""The command that verifies: it finds every kind of wrong answer, and says so."""

from dataclasses import replace

import numpy as np
import pytest
import shapely

from generators.families import family
from oracles.laws import Engine, check_pairs
from oracles.rational import COVERED_BY, COVERS, DISJOINT, INSIDE, MEETS
from oracles.relations import judge, shapely_codes
from verification import verify as command

# GEOS 3.14 takes these for overlapping: a hole touches its shell within an edge that both share.
MISJUDGED = ("POLYGON((0 0, 0 10, 10 10, 10 0, 0 0), (5 5, 10 5, 5 6, 5 5))", "POLYGON((0 0, 0 10, 10 10, 10 0, 0 0))")


class Judge(Engine):
    """An engine that is always right, and slow."""

    def read(self, regions):
        return regions, {}

    def relate(self, a, b):
        pairs = np.broadcast(np.array(a, object), np.array(b, object))
        return np.array([judge(x, y) for x, y in pairs], dtype=np.uint8)

    def relate_points(self, points, regions):
        return Judge.relate(self, shapely.points(points), regions)


class BelievesShapely(Judge):
    def relate(self, a, b):
        return shapely_codes(a, b)


class TakesInsideForCovered(Judge):
    def relate(self, a, b):
        codes = super().relate(a, b)
        return np.where(codes == COVERS, INSIDE, codes).astype(np.uint8)


class DependsOnTheFirstVertex(Judge):
    def relate(self, a, b):
        first = np.array([shapely.get_coordinates(region)[0, 0] for region in np.atleast_1d(a)])
        return np.where(first > 12, DISJOINT, super().relate(a, b)).astype(np.uint8)


class RejectsTriangles(Judge):
    def read(self, regions):
        few = np.flatnonzero(shapely.get_num_coordinates(regions) == 4)
        return regions, {int(row): "a triangle" for row in few}


class MissesBoundaryPoints(Judge):
    def relate_points(self, points, regions):
        codes = super().relate_points(points, regions)
        return np.where(codes == MEETS, DISJOINT, codes).astype(np.uint8)


def check(engine, name="coarse grid", count=60, sample=0.1):
    rng = np.random.default_rng(8)
    a, b = family(name).pairs(rng, count)
    return check_pairs(engine, rng, a, b, sample)


def check_misjudged(engine, sample=0.01):
    a, b = (np.array([shapely.from_wkt(text)]) for text in MISJUDGED)
    return check_pairs(engine, np.random.default_rng(8), a, b, sample)


def test_right_answers_pass():
    tally = check(Judge())
    assert tally.wrong == 0
    assert tally.failures == []
    assert tally.counts.sum() > 30


def test_shapely_is_not_believed():
    tally = check_misjudged(Judge())
    assert tally.counts[COVERED_BY] == 1
    assert tally.shapely_wrong > 0
    assert tally.wrong == 0


@pytest.mark.parametrize(
    ("engine", "what"),
    [
        (TakesInsideForCovered(), "relate"),
        (DependsOnTheFirstVertex(), "relate the same rings in another order"),
        (RejectsTriangles(), "validate"),
        (MissesBoundaryPoints(), "relate point"),
    ],
)
def test_wrong_answers_are_found(engine, what):
    tally = check(engine)
    assert tally.wrong > 0
    assert what in {failure.what for failure in tally.failures}
    assert all(shapely.from_wkt(failure.a) for failure in tally.failures)


def test_what_both_get_wrong_is_found_in_the_sample():
    assert check_misjudged(BelievesShapely(), sample=0.0).wrong == 0
    assert check_misjudged(BelievesShapely(), sample=1.0).wrong > 0


def test_rare_relations_are_asked_for_again(monkeypatch):
    triangles = family("triangles")
    few = replace(triangles, make=lambda rng, count: [side[:6] for side in triangles.make(rng, count)])
    monkeypatch.setattr(command, "family", lambda name: few)
    (state,) = command.verify([few], 1, seed=3, engine=Judge(), sample=0)
    assert state.rare() == []
    assert state.chunks > 1


def test_a_relation_that_cannot_occur_is_reported():
    strict = replace(family("triangles"), impossible={MEETS: "they never do"})
    states = command.verify([strict], 1, seed=3, engine=Judge(), sample=0)
    assert states[0].surprising() == [MEETS]


def test_the_run_follows_from_the_seed():
    first, second = (command.verify([family("triangles")], 60, seed=4, engine=Judge(), sample=0) for _ in range(2))
    assert (first[0].tally.counts == second[0].tally.counts).all()


def test_the_command_prints_a_table(capsys, monkeypatch):
    monkeypatch.setattr(command.verify, "__defaults__", (*command.verify.__defaults__[:-1], Judge()))
    assert command.main(["--pairs", "50", "--families", "triangles", "coarse grid", "--jobs", "1"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["family", "pairs", "disjoint", "meets"]
    assert [line.partition("  ")[0] for line in lines[:2]] == ["triangles", "coarse grid"]
    assert min(int(count) for count in lines[0].split()[2:10]) >= 1
    assert "wrong answers: 0" in lines[-1]


def test_the_command_fails_with_text_to_reproduce(capsys, monkeypatch):
    wrong = TakesInsideForCovered()
    monkeypatch.setattr(command.verify, "__defaults__", (*command.verify.__defaults__[:-1], wrong))
    code = command.main(["--pairs", "50", "--families", "triangles", "--jobs", "1"])
    printed = capsys.readouterr().out
    assert code == 1
    assert "triangles: relate: expected covers, got inside" in printed
    assert "a = POLYGON" in printed
