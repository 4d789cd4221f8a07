"""Our side of benchmarks.mixed: tables of a set, and how messages are asked."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import contrada as ct
from benchmarks.answers import INTERSECTS, Answer
from benchmarks.mixed.sets import SCALE, Filters, Messages

CHUNK = 10_000


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
    calls = {"match_keys, one by one": ask, "match_many, 1 thread": ask_many}
    return {name: partial(call, table, messages) for name, call in calls.items()}
