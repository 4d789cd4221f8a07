"""Check a way to relate regions against Shapely and the rationals, and against its own laws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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


class Engine:
    """A way to relate regions: Contrada itself, on one thread. Tests derive others from it."""

    def read(self, regions: Geometries) -> tuple[Any, dict[int, str]]:
        """Return a column of the regions it accepts, and the reason for each row that it rejects."""
        sifted = read_regions(regions)
        return sifted.regions, {rejection.row: rejection.reason for rejection in sifted.rejected}

    def relate(self, a: Any, b: Any) -> Codes:
        """Return the relation codes of two columns row by row, or of one row of a column to all of the other."""
        return np.asarray(relate(a, b, threads=1), dtype=np.uint8)

    def relate_points(self, points: Floats, regions: Any) -> Codes:
        """Return the relation codes of points against a column, row by row."""
        return self.relate(PointArray(points), regions)


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
    check = Check(engine, rng, sample)
    a, b, column_a, column_b = check.accepted(a, b)
    if len(a):
        truth = check.settle("relate", a, b, engine.relate(column_a, column_b), relations.shapely_codes(a, b))
        check.tally.counts += np.bincount(truth, minlength=len(NAMES))[: len(NAMES)]
        check.expect("relate(b, a)", INVERSE[truth], engine.relate(column_b, column_a), a, b)
        check.redescribed(a, b, truth)
        check.one_to_many(a, b, column_a, column_b)
        check.points(a, b, column_a)
    return check.tally


@dataclass
class Check:
    """One check of an engine, and what it has found."""

    engine: Engine
    rng: np.random.Generator
    sample: float
    tally: Tally = field(default_factory=Tally)

    def accepted(self, a: Geometries, b: Geometries) -> tuple[Geometries, Geometries, Any, Any]:
        """Return the pairs that the engine accepts, and their columns; what it rejects must be invalid."""
        good = np.ones(len(a), bool)
        columns = []
        for regions in (a, b):
            column, rejected = self.engine.read(regions)
            columns.append(column)
            for row, reason in rejected.items():
                good[row] = False
                self.tally.judged += 1
                if relations.judge_validity(regions[row]) is None:
                    self.tally.fail("validate", wkt(regions[row]), "", "valid", reason)
                else:
                    self.tally.shapely_wrong_validity += 1
        if not good.all():
            a, b = a[good], b[good]
            columns = [self.engine.read(regions)[0] for regions in (a, b)]
        return a, b, columns[0], columns[1]

    def redescribed(self, a: Geometries, b: Geometries, truth: Codes) -> None:
        """Relate the same regions again with other ring starts, directions and order of parts and holes."""
        again = redescribe(self.rng, a), redescribe(self.rng, b)
        read = [self.engine.read(regions) for regions in again]
        for regions, (_, rejected) in zip(again, read, strict=True):
            for row, reason in rejected.items():
                self.tally.fail("validate the same rings in another order", wkt(regions[row]), "", "valid", reason)
        if not any(rejected for _, rejected in read):
            ours = self.engine.relate(*(column for column, _ in read))
            self.expect("relate the same rings in another order", truth, ours, *again)

    def one_to_many(self, a: Geometries, b: Geometries, column_a: Any, column_b: Any) -> None:
        """Relate some regions of a to many of b at once, those made together with them first."""
        for row in self.rng.integers(0, len(a), -(-len(a) // ONE_TO_MANY)):
            rows = np.arange(len(b))[max(0, row - MANY // 2) :][:MANY]
            ones, others = np.repeat(a[row : row + 1], len(rows)), b[rows]
            one, many = column_a[int(row)], column_b[rows]
            ours, theirs = self.engine.relate(one, many), relations.shapely_codes(ones, others)
            truth = self.settle("relate one to many", ones, others, ours, theirs, self.sample / 4)
            self.expect("relate many to one", INVERSE[truth], self.engine.relate(many, one), ones, others)

    def points(self, a: Geometries, b: Geometries, column_a: Any) -> None:
        """Relate to each region of a a vertex of b, one of its own, and the middles of an edge of each."""
        for points in contact_points(self.rng, a, b):
            ours, theirs = self.engine.relate_points(points, column_a), relations.shapely_point_codes(points, a)
            self.settle("relate point", shapely.points(points), a, ours, theirs)

    def settle(
        self, what: str, a: Geometries, b: Geometries, ours: Codes, theirs: Codes, sample: float | None = None
    ) -> Codes:
        """Return the right codes: where both agree theirs, but for the sample and the rest the judge's.

        `what` is asked of the rows of two columns; the second holds regions, the first regions or points.
        """
        small = shapely.get_num_coordinates(a) + shapely.get_num_coordinates(b) <= JUDGED_VERTICES
        is_sampled = small & (self.rng.random(len(ours)) < (self.sample if sample is None else sample))
        doubtful = (ours != theirs) | (theirs == UNKNOWN) | is_sampled
        truth = theirs.copy()
        for row in np.flatnonzero(doubtful):
            truth[row] = relations.judge(a[row], b[row])
        self.tally.judged += int(doubtful.sum())
        self.tally.shapely_wrong += int((truth != theirs).sum())
        self.expect(what, truth, ours, a, b)
        return truth

    def expect(self, what: str, truth: Codes, ours: Codes, a: Geometries, b: Geometries) -> None:
        """Note every row whose answer is not the right one."""
        for row in np.flatnonzero(truth != ours):
            self.tally.fail(what, wkt(a[row]), wkt(b[row]), named(truth[row]), named(ours[row]))


def named(code: Any) -> str:
    """Return the name of a relation code, or the number if it is none."""
    return NAMES[code] if code < len(NAMES) else str(code)


def contact_points(rng: np.random.Generator, *columns: Geometries) -> Iterator[Floats]:
    """Yield for each column a random vertex of each region, then the middle of the edge from there."""
    for regions in columns:
        xy, owner = shapely.get_coordinates(regions, return_index=True)
        ends = np.searchsorted(owner, np.arange(len(regions) + 1))
        vertex = rng.integers(ends[:-1], ends[1:] - 1)  # of many parts it may be a jump to the next ring
        yield xy[vertex]
        yield (xy[vertex] + xy[vertex + 1]) / 2
