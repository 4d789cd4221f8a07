"""Filters in CQL2 text: one of a new shape, and many of ten shapes, against the same texts parsed one by one."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

import contrada as ct
from benchmarks.report import Report, Row
from benchmarks.timing import measured, take_turns
from contrada.matching.building import TableBuilder

SECTION = "Filters in CQL2 text to subscriptions"
FILTER = "severity >= 3 AND kind = 'a{0}' AND S_INTERSECTS(area, POLYGON(({0} 0, {1} 0, {1} 1, {0} 0)))"
SHAPES = (
    FILTER,
    "kind = 'a{0}'",
    "severity > {0} OR kind = 'b{1}'",
    "S_WITHIN(area, POLYGON(({0} 0, {1} 0, {1} 1, {0} 0)))",
    "kind LIKE 'a{0}%' AND severity BETWEEN {0} AND {1}",
    "kind IN ('a{0}', 'b{1}') AND NOT severity = {0}",
    "S_INTERSECTS(area, POINT({0} {1}))",
    "wind.speed >= {0}.5 AND wind.speed < {1}.5",
    "S_INTERSECTS(area, POLYGON(({0} 0, {1} 0, {1} 1, {0} 0))) AND severity >= {0}",
    "CASEI(kind) = CASEI('A{0}') AND flag = true",
)


def texts(seed: int, number: int) -> list[str]:
    """Return filters of ten shapes in no order."""
    rng = np.random.default_rng(seed)
    shapes, values = rng.integers(0, len(SHAPES), number), rng.integers(0, 1000, number)
    return [
        SHAPES[shape].format(value, value + 1) for shape, value in zip(shapes.tolist(), values.tolist(), strict=True)
    ]


def by_shape(report: Report) -> Iterator[Row]:
    """Measure 100,000 texts as rows of a table, beside `subscribe` of each; and one text that was never seen."""
    number = 5_000 if report.quick else 100_000
    given = texts(report.seed, number)
    rows = pa.table({"key": np.arange(number), "filter": given})

    def by_columns() -> int:
        builder = TableBuilder()
        assert not builder.add(rows)
        return len(builder.table)

    def one_by_one() -> int:
        table = ct.ForwardingTable()
        for key, text in enumerate(given[: number // 10]):
            table.subscribe("all", text, key)
        return len(table)

    found = take_turns({"ours": by_columns, "single": one_by_one}, 3)
    ours, single = found["ours"].seconds / number, found["single"].seconds / (number // 10)
    yield Row.versus(SECTION, f"{number:,} texts of ten shapes, time per text", "subscribe one by one", ours, single)
    yield Row.alone(SECTION, f"{number:,} texts of ten shapes", 1 / ours, "/s", at_least=30_000)
    numbers = count(1)

    def parse_new() -> Any:
        number = next(numbers)
        return ct.parse(FILTER.format(number, number + 1))

    parsed = measured(parse_new, 2_000)
    yield Row.alone(SECTION, "one filter, parsed", parsed.seconds * 1e3, "ms", parsed.seconds, at_most=0.2)
