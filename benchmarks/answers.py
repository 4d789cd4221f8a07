"""Our table of a polygon set, how we and peers are asked, and whose answers are right."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

import contrada as ct
from benchmarks.polygons import PolygonSet
from benchmarks.report import Difference, Settle, Settled
from oracles.relations import judge, judge_point

Answer = npt.NDArray[np.int64]
Messages = TypeVar("Messages")
Ask = Callable[[Sequence[bytes]], list[Answer]]
Relations = ct.Relation | ct.RelationSet
INTERSECTS = ct.RelationSet.S_INTERSECTS
# Whether a row belongs to the answer of a message, given by its number; and the message and the relation as texts.
Judge = Callable[[int, int], tuple[bool, str, str]]


def table_of(polygons: PolygonSet, relations: Relations | None = None, keyed: bool = False) -> ct.ForwardingTable:
    """Return one subscription per polygon: with `relations` for all, or with each one's operator.

    Row k of the table is polygon k; with `keyed` a column of the input says so as well.
    """
    table = ct.ForwardingTable()
    rows = pa.table({"geometry": polygons.wkb} | ({"key": np.arange(len(polygons.wkb))} if keyed else {}))
    groups = {relations: slice(0, None)} if relations is not None else {}
    for relation in ct.Relation if relations is None else ():
        groups[relation] = slice(*np.searchsorted(polygons.operators, [relation, relation + 1]).tolist())
    for asked, part in groups.items():
        if len(some := rows[part]):
            table.subscribe_many(some, ct.Constraint("area", asked, ct.Column("geometry")))
    return table


def ask_plan(match: Callable[[Any], Answer], messages: Sequence[Any]) -> list[Answer]:
    """Return a peer's rows for each message."""
    return [match(message) for message in messages]


def ask_regions(table: ct.ForwardingTable, messages: Sequence[bytes]) -> list[Answer]:
    """Return our rows for each message, from WKB."""
    return [table.match_keys({"area": ct.Region.from_wkb(message)}).rows for message in messages]


def ask_points(table: ct.ForwardingTable, messages: Sequence[bytes]) -> list[Answer]:
    """Return our rows for each point, from WKB."""
    return [table.match_keys({"area": ct.Point.from_wkb(message)}).rows for message in messages]


def with_answers(
    make: Callable[[float], Messages], ask: Callable[[Messages], list[Answer]], answers: int, share: float
) -> Messages:
    """Return messages whose regions take such a share of the universe that they have so many answers on average.

    The share is found by trial, from `share` on.
    """
    for _ in range(8):
        messages = make(share)
        mean = np.mean([len(rows) for rows in ask(messages)])
        if abs(mean - answers) < 0.05 * answers:
            break
        share *= answers / max(mean, 1)
    return messages


def settle(
    is_match: Judge, filters: int, work: tuple[str, str], ours: Sequence[Answer], theirs: Sequence[Answer]
) -> Settled:
    """Compare two contenders' rows for the first messages; `is_match` says who is right where they differ."""
    found = []
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        for row in np.setxor1d(mine, other).tolist():
            is_right, message, relation = is_match(number, row)
            found.append(Difference(*work, message, row, relation, is_right == (row in mine)))
    return len(ours) * filters, found


def settle_answers(polygons: PolygonSet, messages: Sequence[bytes], relations: Relations | None = None) -> Settle:
    """Return a comparison of two contenders' rows; rational arithmetic settles the differences."""

    def is_match(number: int, row: int) -> tuple[bool, str, str]:
        shape, polygon = shapely.from_wkb(messages[number]), polygons.shapes[row]
        is_point = shape.geom_type == "Point"
        code = judge_point(shapely.get_coordinates(shape)[0], polygon) if is_point else judge(shape, polygon)
        wanted = ct.Relation(int(polygons.operators[row])) if relations is None else relations
        relation = ct.Relation(code)
        return relation in ct.RelationSet(wanted), shape.wkt, relation.name

    return partial(settle, is_match, len(polygons.shapes))


def count_differences(ours: Sequence[Answer], theirs: Sequence[Answer]) -> int:
    """Return how many rows one has and the other has not, over all messages."""
    return sum(len(np.setxor1d(mine, other)) for mine, other in zip(ours, theirs, strict=True))
