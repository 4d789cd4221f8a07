"""What benchmarks.mixed matches: filters with scalar constraints, with and without a region, messages, our tables.

Filters are columns: string attributes s0, s1, ... with the number of a value or -1 (any), numeric attributes n0, n1,
... with bounds, both inclusive, or 0 and SCALE (any). Numbers are whole, as one peer has no floats but decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

import contrada as ct
from benchmarks.answers import INTERSECTS, Answer, settle, with_answers
from benchmarks.polygons import PolygonSet, small_messages
from benchmarks.report import Settle
from oracles.relations import judge

SCALE = 1_000_000  # numbers of messages and bounds are in 0 .. SCALE - 1
VALUES = 1_000
MIXED = 3, 3  # string and numeric attributes
SCALAR = 10, 10
BATCH = "match_many, 1 thread"
CHUNK = 10_000  # filters made at a time
Kind = Literal["equality", "range"]
Ints = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Filters:
    """One row per filter; row k of every contender is filter k."""

    values: Ints  # (filters, string attributes): the number of the value, or -1
    low: Ints  # (filters, numeric attributes)
    high: Ints  # the same; SCALE: not constrained
    polygons: PolygonSet | None  # one region each, S_INTERSECTS

    def constraints(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield attribute, filter, and value twice or bounds of each scalar constraint; equalities first."""
        for k, column in enumerate(self.values.T):
            rows = np.flatnonzero(column >= 0)
            chosen = column[rows].tolist()
            yield from zip([f"s{k}"] * len(rows), rows.tolist(), chosen, chosen, strict=True)
        for k, (low, high) in enumerate(zip(self.low.T, self.high.T, strict=True)):
            rows = np.flatnonzero(high < SCALE)
            yield from zip([f"n{k}"] * len(rows), rows.tolist(), low[rows].tolist(), high[rows].tolist(), strict=True)

    def part(self, start: int, stop: int) -> Filters:
        """Return some consecutive filters."""
        rows = np.arange(start, min(stop, len(self)))
        polygons = self.polygons.take(rows) if self.polygons is not None else None
        return Filters(self.values[rows], self.low[rows], self.high[rows], polygons)

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Messages:
    """Messages with all attributes of a set."""

    values: Ints
    numbers: Ints
    regions: Sequence[bytes] | None  # WKB

    def scalars(self) -> list[dict[str, str | int]]:
        """Return the scalar attributes of each message."""
        texts = [{f"s{k}": f"v{value}" for k, value in enumerate(row)} for row in self.values.tolist()]
        numbers = [{f"n{k}": number for k, number in enumerate(row)} for row in self.numbers.tolist()]
        return [{**text, **number} for text, number in zip(texts, numbers, strict=True)]

    def __len__(self) -> int:
        return len(self.values)


def mixed_set(polygons: PolygonSet, count: int, seed: int) -> Filters:
    """Return filters of 2 to 5 scalar constraints on different attributes and one region each."""
    rng = np.random.default_rng((seed, count))
    is_asked = choose(rng, rng.integers(2, 6, count), sum(MIXED))
    # Filters with the same attributes stand together, so that one template each makes subscriptions of them.
    is_asked = is_asked[np.argsort(is_asked @ (1 << np.arange(sum(MIXED))), kind="stable")]
    chosen = polygons.take(np.sort(rng.permutation(len(polygons.shapes))[:count]))
    return replace(constrain(rng, is_asked[:, : MIXED[0]], is_asked[:, MIXED[0] :]), polygons=chosen)


def scalar_set(count: int, kind: Kind, seed: int) -> Filters:
    """Filters without regions: 2 to 5 constraints, mostly equalities; or 2 to 5 ranges, half with an equality."""
    rng = np.random.default_rng((seed, count, ("equality", "range").index(kind)))
    many = rng.integers(2, 6, count)
    one = rng.random(count) < (0.3 if kind == "equality" else 0.5)
    equal, ranged = (many - one, one) if kind == "equality" else (one, many)
    return constrain(rng, choose(rng, equal, SCALAR[0]), choose(rng, ranged, SCALAR[1]))


def choose(rng: np.random.Generator, counts: npt.ArrayLike, attributes: int) -> Mask:
    """Return which attributes each filter constrains: as many as it should, at random."""
    order = rng.random((np.size(counts), attributes), np.float32).argsort(axis=1)
    is_chosen = np.empty(order.shape, bool)
    np.put_along_axis(is_chosen, order, np.arange(attributes) < np.reshape(counts, (-1, 1)), axis=1)
    return is_chosen


def constrain(rng: np.random.Generator, is_equal: Mask, is_ranged: Mask) -> Filters:
    """Return Zipf values where a string is constrained, two sorted uniforms where a number is."""
    values = np.where(is_equal, zipf(rng, is_equal.shape), -1).astype(np.int16)
    ends = np.sort(rng.integers(0, SCALE - 1, (2, *is_ranged.shape), np.int32), axis=0)
    ends[1] += ends[0] == ends[1]  # one peer takes no range with equal bounds
    low, high = np.where(is_ranged, ends, np.array([0, SCALE], np.int32)[:, None, None])
    return Filters(values, low, high, None)


def zipf(rng: np.random.Generator, shape: tuple[int, ...]) -> Ints:
    """Return numbers of values; the k-th most frequent one is k times rarer than the first."""
    weights = np.cumsum(1 / np.arange(1, VALUES + 1))
    return np.searchsorted(weights / weights[-1], rng.random(shape)).astype(np.int16)


def scalar_messages(filters: Filters, count: int, seed: int) -> Messages:
    """Return messages from the same distributions."""
    rng = np.random.default_rng((seed, 1))
    values = zipf(rng, (count, filters.values.shape[1]))
    return Messages(values, rng.integers(0, SCALE, (count, filters.low.shape[1])), None)


def mixed_messages(
    filters: Filters, ask: Callable[[Messages], list[Answer]], count: int, seed: int, answers: int
) -> Messages:
    """Return messages whose regions have such a size that so many filters match on average."""
    assert filters.polygons is not None
    make_regions = partial(small_messages, filters.polygons, count=count)
    scalars = scalar_messages(filters, count, seed)
    return with_answers(
        lambda share: replace(scalars, regions=make_regions(share, rng=np.random.default_rng(seed))),
        ask, answers, min(0.2, 100 * answers / len(filters)),
    )  # fmt: skip


def filter_lines(filters: Filters) -> str:
    """Return scalar constraints as the peers' programs read them: `s3=v17 n4:1034:50211`, a line for each filter."""
    lines: list[list[str]] = [[] for _ in range(len(filters))]
    for name, row, low, high in filters.constraints():
        lines[row].append(f"{name}=v{low}" if name[0] == "s" else f"{name}:{low}:{high}")
    return "".join(" ".join(line) + "\n" for line in lines)


def message_lines(messages: Messages) -> str:
    """Return messages in the same form: `s0=v3 ... n0=712 ...`."""
    return "".join(" ".join(f"{name}={value}" for name, value in one.items()) + "\n" for one in messages.scalars())


def scalar_columns(filters: Filters) -> dict[str, pa.Array]:
    """Return the columns row, s0, ..., low0, high0, ... with strings as numbers."""
    columns = {"row": pa.array(np.arange(len(filters), dtype=np.int32))}
    columns |= {f"s{k}": pa.array(column) for k, column in enumerate(filters.values.T)}
    for k in range(filters.low.shape[1]):
        columns[f"low{k}"], columns[f"high{k}"] = pa.array(filters.low[:, k]), pa.array(filters.high[:, k])
    return columns


def message_columns(messages: Messages) -> dict[str, pa.Array]:
    """Return the columns number, s0, ..., n0, ... with strings as numbers."""
    columns = {"number": pa.array(np.arange(len(messages), dtype=np.int32))}
    columns |= {f"s{k}": pa.array(column) for k, column in enumerate(messages.values.T)}
    return columns | {f"n{k}": pa.array(column.astype(np.int32)) for k, column in enumerate(messages.numbers.T)}


def filters_of(filters: Filters) -> Iterator[ct.Filter]:
    """Yield the filters as objects, made a few at a time."""
    for start in range(0, len(filters), CHUNK):
        part = filters.part(start, start + CHUNK)
        constraints: list[list[ct.Constraint]] = [[] for _ in range(len(part))]
        for name, row, low, high in part.constraints():
            constraints[row].append(scalar(name, low, high))
        if part.polygons is not None:
            for row, wkb in enumerate(part.polygons.wkb.to_pylist()):
                constraints[row].append(ct.Constraint("area", INTERSECTS, ct.Region.from_wkb(wkb)))
        yield from map(ct.Filter, constraints)


def scalar(name: str, low: int, high: int) -> ct.Constraint:
    """Return a constraint on a string, whose value is given by its number, or on a number."""
    return ct.Constraint(name, "=", f"v{low}") if name[0] == "s" else ct.Constraint(name, "between", (low, high))


def table_of(filters: Filters) -> ct.ForwardingTable:
    """Return one subscription per filter, in their order, so that rows are those of the set."""
    table = ct.ForwardingTable()
    if filters.polygons is None:
        for row, asked in enumerate(filters_of(filters)):
            table.subscribe(row, asked)
    else:
        is_asked = np.concatenate([filters.values >= 0, filters.high < SCALE], axis=1)
        changes = np.flatnonzero((is_asked[1:] != is_asked[:-1]).any(axis=1)) + 1
        for rows in np.split(np.arange(len(filters)), changes):
            table.subscribe_many(*template(filters, rows, is_asked[rows[0]]))
    table.pack()
    return table


def template(filters: Filters, rows: Any, is_asked: Any) -> tuple[pa.Table, ct.Filter]:
    """Return filters with the same attributes as a table, and what is asked of its columns."""
    columns: dict[str, Any] = {"geometry": filters.polygons.wkb.take(pa.array(rows))} if filters.polygons else {}
    parts = [ct.Constraint("area", INTERSECTS, ct.Column("geometry"))]
    texts = filters.values.shape[1]
    for k in np.flatnonzero(is_asked[:texts]).tolist():
        columns[f"s{k}"] = pa.array([f"v{value}" for value in filters.values[rows, k].tolist()])
        parts.append(ct.Constraint(f"s{k}", "=", ct.Column(f"s{k}")))
    for k in np.flatnonzero(is_asked[texts:]).tolist():
        columns[f"low{k}"], columns[f"high{k}"] = pa.array(filters.low[rows, k]), pa.array(filters.high[rows, k])
        parts.append(ct.Constraint(f"n{k}", "between", (ct.Column(f"low{k}"), ct.Column(f"high{k}"))))
    return pa.table(columns), ct.Filter(parts)


def as_dicts(messages: Messages) -> list[dict[str, Any]]:
    """Return messages as dictionaries; regions are still WKB."""
    scalars: list[dict[str, Any]] = [dict(one) for one in messages.scalars()]
    for message, wkb in zip(scalars, messages.regions or (), strict=False):
        message["area"] = wkb
    return scalars


def read(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its region read from WKB; this is part of what is timed."""
    return {**message, "area": ct.Region.from_wkb(message["area"])} if "area" in message else message


def ask(matcher: Any, messages: Sequence[dict[str, Any]]) -> list[Answer]:
    """Return the rows for each message, one by one, from a table or a counting matcher."""
    return [matcher.match_keys(read(message)).rows for message in messages]


def ask_many(table: ct.ForwardingTable, messages: Sequence[dict[str, Any]]) -> list[Answer]:
    """Return the same rows, asked in one call, on one thread."""
    found = table.match_many([read(message) for message in messages], by="subscription", threads=1)
    return np.split(found.rows, found.offsets[1:-1])


def both_ways(table: ct.ForwardingTable, messages: Sequence[dict[str, Any]]) -> dict[str, Callable[[], list[Answer]]]:
    """Return calls that ask all messages, by name."""
    calls = {"match_keys, one by one": ask, BATCH: ask_many}
    return {name: partial(call, table, messages) for name, call in calls.items()}


def holds(filters: Filters, row: int, messages: Messages, number: int) -> bool:
    """Return whether a filter matches a message; rational arithmetic decides on the region."""
    value, bounds = filters.values[row], (filters.low[row], filters.high[row])
    is_equal = (value < 0) | (value == messages.values[number])
    is_between = (bounds[0] <= messages.numbers[number]) & (messages.numbers[number] <= bounds[1])
    if not (is_equal.all() and is_between.all()):
        return False
    if filters.polygons is None or messages.regions is None:
        return True
    code = judge(shapely.from_wkb(messages.regions[number]), filters.polygons.shapes[row])
    return ct.Relation(code) in INTERSECTS


def settle_filters(filters: Filters, messages: Messages) -> Settle:
    """Return a comparison of two contenders' rows for the first messages; `holds` says who is right."""

    def is_match(number: int, row: int) -> tuple[bool, str, str]:
        return holds(filters, row, messages, number), str(messages.scalars()[number]), "S_INTERSECTS"

    return partial(settle, is_match, len(filters))
