"""Filters with every operator, messages with values of every kind, and what a single process says of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import shapely

import contrada as ct
from contrada.formats.tables.rows import attributes_of

WIND = pa.struct({"speed": pa.int64(), "from": pa.string()})
FILTERS = [
    *("size = 1", "size <> 1", "size < 1", "size <= 1", "size > 1", "size >= 1", "size BETWEEN 0 AND 1"),
    *("size NOT BETWEEN 0 AND 1", "size IN (0, 2)", "size NOT IN (0, 2)", "size IS NULL", "size IS NOT NULL"),
    *("name = 'ab'", "name < 'b'", "name LIKE 'a%'", "name LIKE '%b'", "name LIKE '%b%'", "name NOT LIKE 'a_'"),
    *("CASEI(name) = CASEI('AB')", "ACCENTI(name) = ACCENTI('é')", "name IN ('a', 'ab')", "name IS NULL"),
    *("at >= TIMESTAMP('2000-01-01T00:00:00Z')", "at < DATE('2000-01-02')", "day = DATE('2000-01-01')"),
    *("flag = TRUE", "flag <> TRUE", "flag IS NULL", "cost < 0.1", "cost >= 0.1 AND size < 2", "wind.speed > 5"),
    *("\"wind.from\" = 'NW'", "wind.speed IS NULL", "nothing IS NULL", "nothing IS NOT NULL", "nothing < 5"),
    *(f"{name}(area, POLYGON((1 1, 3 1, 3 3, 1 3, 1 1)))" for name in
      ("disjoint", "meets", "overlaps", "equals", "inside", "contains", "covers", "covered_by", "S_INTERSECTS")),
    *("S_WITHIN(area, POLYGON((0 0, 6 0, 6 6, 0 6, 0 0)))", "S_INTERSECTS(area, POINT(2 2))"),
    *("overlaps(area, POLYGON((1 1, 3 1, 3 3, 1 3, 1 1))) AND size > 0", "area IS NULL", "area IS NOT NULL"),
    *("within_distance(area, POINT(2 2), 1)", "beyond_distance(area, POLYGON((1 1, 3 1, 3 3, 1 3, 1 1)), 0.5)"),
    *("within_distance(area, BBOX(0, 0, 1, 1), 1) AND size > 0", "S_WITHIN(area, CIRCLE(POINT(2 2), 2))"),
    *("size < 1 OR size >= 1", "size < 0 OR S_INTERSECTS(area, POLYGON((1 1, 3 1, 3 3, 1 1))) OR name = 'ab'"),
    *("NOT (size < 1 AND name = 'ab')", "size IS NULL OR size IS NOT NULL"),
]  # fmt: skip


def random_messages(count: int, seed: int = 7, bad: bool = True) -> pa.Table:
    """Messages with values that subscriptions ask about, many nulls, and geometries of every kind."""
    rng = np.random.default_rng(seed)

    def some(choices: list[Any], kind: Any) -> Any:
        return pa.array([choices[k] for k in rng.integers(0, len(choices), count)], kind)

    areas = [
        *(shapely.to_wkb(shapely.box(x, y, x + w, y + w)) for x in range(4) for y in range(3) for w in (1, 2)),
        *(shapely.to_wkb(shapely.Point(x, 2)) for x in range(4)),
        shapely.to_wkb(shapely.box(0, 0, 6, 6) - shapely.box(1, 1, 3, 3)),
        *([b"", b"no geometry", shapely.to_wkb(shapely.LineString([(0, 0), (1, 1)]))] if bad else []),
        *[None] * 4,
    ]
    zone = dt.UTC
    instants = [dt.datetime(2000, 1, 1, tzinfo=zone), dt.datetime(1999, 12, 31, 23, 59, 59, 999_999, zone), None]
    winds = [{"speed": 7, "from": "NW"}, {"speed": None, "from": "S"}, {"speed": 2, "from": None}, None]
    return pa.table(
        {
            "message_id": [f"m{k}" for k in range(count)],
            "size": some([0.0, 1.0, 2.0, 0.5, float("nan"), float("inf"), None], pa.float64()),
            "name": some(["a", "ab", "AB", "é", "e", "b", "", None], pa.string()),
            "at": some(instants, pa.timestamp("us", "UTC")),
            "area": some(areas, pa.binary()),
            "flag": some([True, False, None], pa.bool_()),
            "wind": some(winds, WIND),
            "cost": some([Decimal("0.1"), Decimal("0.099"), Decimal("2"), None], pa.decimal128(20, 3)),
            "day": some([dt.date(2000, 1, 1), dt.date(2001, 1, 1), None], pa.date32()),
            "note": some(["never sent", None], pa.string()),
        }
    )


def subscribers_for(count: int, seed: int = 5) -> list[str]:
    """Subscribers of so many subscriptions: a few have many, some have one, and the first two share theirs.

    >>> subscribers_for(5)
    ['s0', 's0', 's0', 's1', 's2']
    """
    drawn = np.random.default_rng(seed).zipf(1.6, max(0, count - 2)) % (1 + count // 2)
    return ["s0"] * min(2, count) + [f"s{number}" for number in drawn.tolist()]


def subscription_rows(filters: Sequence[str | None], keys: Sequence[Any] | None = None) -> pa.Table:
    """Rows of key, subscriber and filter; keys default to numbers, and subscribers have several subscriptions."""
    named = pa.array(range(len(filters)) if keys is None else keys)
    columns = {"key": named, "subscriber": subscribers_for(len(filters)), "filter": pa.array(filters, pa.string())}
    return pa.table(columns)


def table_of(rows: pa.Table) -> tuple[ct.ForwardingTable, list[int]]:
    """A table of such rows in a single process, and the rows that are bad."""
    table, bad = ct.ForwardingTable(), []
    for number, row in enumerate(rows.to_pylist()):
        try:
            if not row["filter"]:
                raise ct.FilterError("no filter")
            table.subscribe(row["subscriber"], row["filter"], row["key"])
        except ct.ContradaError:
            bad.append(number)
    return table, bad


def expected(
    table: ct.ForwardingTable, messages: pa.Table, by: Literal["subscription", "subscriber"] = "subscription"
) -> tuple[list[Any], list[Any]]:
    """The rows of matches and of rejections that a single process gives, sorted."""
    found = table.match_many(attributes_of(messages), by=by)
    ids = messages.column("message_id").to_pylist()
    owners = np.repeat(np.arange(len(ids)), np.diff(found.offsets)).tolist()
    names = [table.subscribers_of(found.rows, by)] + ([table.keys_of(found.rows)] if by == "subscription" else [])
    matches = [(ids[owner], *rest) for owner, *rest in zip(owners, *names, strict=True)]
    return sorted(matches, key=repr), sorted(((ids[item.row], item.reason) for item in found.rejected), key=repr)


def rows_of(matched: Any) -> tuple[list[Any], list[Any]]:
    """The rows of matches and of rejections that Spark gives, sorted; what it keeps for them is freed."""
    matches, rejected = (sorted(map(tuple, part.collect()), key=repr) for part in (matched.matches, matched.rejected))
    matched.unpersist()
    return matches, rejected


def plain_text(predicate: ct.Predicate) -> bool:
    """True for predicates whose CQL2 text can stand in a column of text."""
    try:
        str(predicate).encode()
    except UnicodeEncodeError:  # lone surrogates
        return False
    return True
