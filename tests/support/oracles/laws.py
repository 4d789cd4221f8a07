"""Check a way to relate regions against Shapely and the rationals, and against its own laws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import shapely

from contrada.geometry import PointArray, relate
from contrada.geometry.reading import read_regions
from generators.rings import Floats, Geometries, Ints, redescribe
from oracles import relations
from oracles.relations import INVERSE, NAMES, UNKNOWN, Codes, wkt

MANY = 100  # regions that one is related to at once
ONE_TO_MANY = 200  # pairs of a chunk for each time that is done
JUDGED_VERTICES = 150  # agreeing pairs with more vertices together are not sampled: the judge is quadratic


class Engine(Protocol):
    """A way to relate regions, under test."""

    def read(self, regions: Geometries) -> tuple[Any, dict[int, str]]:
        """Return a column of the regions it accepts, and the reason for each row that it rejects."""

    def relate(self, a: Any, b: Any) -> Codes:
        """Return the relation codes of two columns, row by row."""

    def relate_one(self, a: Any, row: int, b: Any, rows: Ints) -> tuple[Codes, Codes]:
        """Return the relation codes of one row of a to some rows of b, and of these to that one."""

    def relate_points(self, points: Floats, regions: Any) -> Codes:
        """Return the relation codes of points against a column, row by row."""


class Product:
    """Contrada itself, on one thread."""

    def read(self, regions: Geometries) -> tuple[Any, dict[int, str]]:
        """Return a column of the regions it accepts, and the reason for each row that it rejects."""
        sifted = read_regions(regions)
        return sifted.regions, {rejection.row: rejection.reason for rejection in sifted.rejected}

    def relate(self, a: Any, b: Any) -> Codes:
        """Return the relation codes of two columns, row by row."""
        return np.asarray(relate(a, b, threads=1), dtype=np.uint8)

    def relate_one(self, a: Any, row: int, b: Any, rows: Ints) -> tuple[Codes, Codes]:
        """Return the relation codes of one row of a to some rows of b, and of these to that one."""
        return self.relate(a[row], b[rows]), self.relate(b[rows], a[row])

    def relate_points(self, points: Floats, regions: Any) -> Codes:
        """Return the relation codes of points against a column, row by row."""
        return np.asarray(relate(PointArray(points), regions, threads=1), dtype=np.uint8)


class Failure(NamedTuple):
    """A wrong answer: what was asked, of which regions, what was expected and what came."""

    what: str
    a: str
    b: str
    expected: str
    got: str


@dataclass
class Tally:
    """What was checked: pairs per relation, what needed the judge, who was wrong."""

    counts: Ints = field(default_factory=lambda: np.zeros(len(NAMES), np.int64))
    judged: int = 0
    shapely_wrong: int = 0
    shapely_wrong_validity: int = 0
    wrong: int = 0
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Tally, keep: int = 5) -> None:
        """Take in another tally, with no more than keep failures in all."""
        for name in ("counts", "judged", "shapely_wrong", "shapely_wrong_validity", "wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failures = (self.failures + other.failures)[:keep]

    def fail(self, *failure: str) -> None:
        """Note a wrong answer."""
        self.wrong += 1
        self.failures.append(Failure(*failure))


def check_pairs(engine: Engine, rng: np.random.Generator, a: Geometries, b: Geometries, sample: float = 0.01) -> Tally:
    """Relate pairs of regions, valid to Shapely, and check the answers and the laws.

    Where engine and Shapely differ the judge decides; of the rest it looks at a sample.
    """
    tally = Tally()
    a, b, column_a, column_b = accepted(engine, a, b, tally)
    if not len(a):
        return tally
    ours = engine.relate(column_a, column_b)
    truth = settle(tally, rng, ours, relations.shapely_codes(a, b), sample, Question("relate", a, b))
    tally.counts += np.bincount(truth, minlength=len(NAMES))[: len(NAMES)]
    back = engine.relate(column_b, column_a)
    expect(tally, "relate(b, a)", INVERSE[truth], back, a, b)
    check_redescribed(engine, rng, a, b, truth, tally)
    check_one_to_many(engine, rng, a, b, (column_a, column_b), tally, sample)
    check_points(engine, rng, a, b, column_a, tally, sample)
    return tally


def check_redescribed(
    engine: Engine, rng: np.random.Generator, a: Geometries, b: Geometries, truth: Codes, tally: Tally
) -> None:
    """Relate the same regions again with other ring starts, directions and order of parts and holes."""
    wrong_before = tally.wrong
    columns = []
    again_a, again_b = redescribe(rng, a), redescribe(rng, b)
    for regions in (again_a, again_b):
        column, rejected = engine.read(regions)
        columns.append(column)
        for row, reason in rejected.items():
            tally.fail("validate the same rings in another order", wkt(regions[row]), "", "valid", reason)
    if tally.wrong == wrong_before:
        ours = engine.relate(*columns)
        expect(tally, "relate the same rings in another order", truth, ours, again_a, again_b)


class Question(NamedTuple):
    """What is asked of rows of two columns; the second holds regions, the first regions or points."""

    what: str
    a: Any
    b: Geometries

    def verdict(self, row: int) -> int:
        """Return the right answer for a row."""
        ask = relations.judge if self.a.dtype == object else relations.judge_point
        return ask(self.a[row], self.b[row])

    def vertices(self) -> Ints:
        """Return the number of vertices of each row, in both columns together."""
        of_a = shapely.get_num_coordinates(self.a) if self.a.dtype == object else 1
        return np.asarray(shapely.get_num_coordinates(self.b) + of_a)


def accepted(engine: Engine, a: Geometries, b: Geometries, tally: Tally) -> tuple[Geometries, Geometries, Any, Any]:
    """Return the pairs that the engine accepts, and their columns; what it rejects must be invalid."""
    good = np.ones(len(a), bool)
    columns = []
    for regions in (a, b):
        column, rejected = engine.read(regions)
        columns.append(column)
        for row, reason in rejected.items():
            good[row] = False
            tally.judged += 1
            if relations.judge_validity(regions[row]) is None:
                tally.fail("validate", wkt(regions[row]), "", "valid", reason)
            else:
                tally.shapely_wrong_validity += 1
    if not good.all():
        a, b = a[good], b[good]
        columns = [engine.read(regions)[0] for regions in (a, b)]
    return a, b, columns[0], columns[1]


def settle(
    tally: Tally, rng: np.random.Generator, ours: Codes, theirs: Codes, sample: float, question: Question
) -> Codes:
    """Return the right codes: where both agree theirs, but for the sample and the rest the judge's."""
    small = question.vertices() <= JUDGED_VERTICES
    doubtful = (ours != theirs) | (theirs == UNKNOWN) | (small & (rng.random(len(ours)) < sample))
    truth = theirs.copy()
    for row in np.flatnonzero(doubtful):
        truth[row] = question.verdict(int(row))
    tally.judged += int(doubtful.sum())
    tally.shapely_wrong += int((truth != theirs).sum())
    expect(tally, question.what, truth, ours, question.a, question.b)
    return truth


def expect(tally: Tally, what: str, truth: Codes, ours: Codes, a: Any, b: Geometries) -> None:
    """Note every row whose answer is not the right one."""
    for row in np.flatnonzero(truth != ours):
        first = wkt(a[row]) if a.dtype == object else wkt(shapely.Point(a[row]))
        tally.fail(what, first, wkt(b[row]), named(truth[row]), named(ours[row]))


def named(code: Any) -> str:
    """Return the name of a relation code, or the number if it is none."""
    return NAMES[code] if code < len(NAMES) else str(code)


def check_one_to_many(
    engine: Engine,
    rng: np.random.Generator,
    a: Geometries,
    b: Geometries,
    columns: tuple[Any, Any],
    tally: Tally,
    sample: float,
) -> None:
    """Relate some regions of a to many of b at once, those made together with them first."""
    for row in rng.integers(0, len(a), -(-len(a) // ONE_TO_MANY)):
        rows = np.arange(len(b))[max(0, row - MANY // 2) :][:MANY]
        ones = np.repeat(a[row : row + 1], len(rows))
        ours, back = engine.relate_one(columns[0], int(row), columns[1], rows)
        question = Question("relate one to many", ones, b[rows])
        truth = settle(tally, rng, ours, relations.shapely_codes(ones, b[rows]), sample / 4, question)
        expect(tally, "relate many to one", INVERSE[truth], back, ones, b[rows])


def check_points(
    engine: Engine, rng: np.random.Generator, a: Geometries, b: Geometries, column_a: Any, tally: Tally, sample: float
) -> None:
    """Relate to each region of a a vertex of b, one of its own, and the middles of an edge of each."""
    for points in contact_points(rng, a, b):
        ours = engine.relate_points(points, column_a)
        settle(tally, rng, ours, relations.shapely_point_codes(points, a), sample, Question("relate point", points, a))


def contact_points(rng: np.random.Generator, *columns: Geometries) -> Iterator[Floats]:
    """Yield for each column a random vertex of each region, then the middle of the edge from there."""
    for regions in columns:
        xy, owner = shapely.get_coordinates(regions, return_index=True)
        ends = np.searchsorted(owner, np.arange(len(regions) + 1))
        vertex = rng.integers(ends[:-1], ends[1:] - 1)  # of many parts it may be a jump to the next ring
        yield xy[vertex]
        yield (xy[vertex] + xy[vertex + 1]) / 2
