"""How fast subscriptions come in as text: templates bound to columns, and texts that are parsed.

    python -m benchmarks.match.templates [--quick] [--only templates,parsing] [--seed 7] [--write]

A template is parsed once and bound to the rows of an Arrow table; beside the time of `subscribe_many` stands what of it
goes into reading and validating regions, and the rows a second are counted without that. Writes
build/bench/templates.json.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import shapely

import contrada as ct
from benchmarks.command import run_sections
from benchmarks.report import Report, Row
from benchmarks.timing import measured, take_turns

TEMPLATES = (
    "overlaps(area, $geometry)",
    "overlaps(area, $geometry) AND severity >= $least",
    "severity BETWEEN $low AND 9 AND kind = $kind",
    "kind IN ($kind, $name, 'fire') OR severity < $low",
    "name PREFIX $name",
    "name LIKE $pattern",
    "S_INTERSECTS(area, $geometry) AND at > $at OR S_INTERSECTS(place, $geometry) AND CASEI(kind) = CASEI($kind)",
)
BAR = 100_000  # rows a second
LONGEST = 2.0  # seconds for a megabyte


def subscriptions(rows: int, seed: int) -> pa.Table:
    """Return boxes, numbers, times, a thousand kinds, and names and patterns of which no two are alike."""
    rng = np.random.default_rng(seed)
    low, size = rng.uniform(0, 1000, (rows, 2)), rng.uniform(0.1, 2, (rows, 2))
    return pa.table({
        "geometry": pa.array(shapely.to_wkb(shapely.box(*low.T, *(low + size).T)), type=pa.binary()),
        "least": rng.integers(0, 10, rows),
        "low": rng.uniform(0, 9, rows),
        "kind": rng.choice([f"kind {k}" for k in range(1000)], rows),
        "name": [f"name {k}" for k in range(rows)],
        "pattern": [f"%{k} via_{k % 7}%" for k in range(rows)],
        "at": pa.array(rng.integers(0, 10**15, rows), type=pa.timestamp("us")),
    })  # fmt: skip


def templates(report: Report) -> Iterator[Row]:
    """Yield rows a second for each template."""
    table = subscriptions(10_000 if report.quick else 200_000, report.seed)
    section = f"Templates, {table.num_rows:,} subscriptions (peer: reading and validating their regions)"

    def subscribe(template: str) -> None:
        ct.ForwardingTable().subscribe_many(table, template)

    for template in TEMPLATES:
        calls = {"ours": partial(subscribe, template)}
        if "$geometry" in template:
            calls["validation"] = partial(ct.RegionArray.from_arrow, table["geometry"])
        found = {name: timed.seconds for name, timed in take_turns(calls, 3).items()}
        validation = found.get("validation")
        rate = table.num_rows / (found["ours"] - (validation or 0.0))
        name = "regions" if validation else ""
        yield Row(section, f"`{template}`", name, found["ours"], validation, rate, "rows a second", at_least=BAR)


def _polygon(count: int) -> str:
    turns = [2 * math.pi * k / count for k in (*range(count), 0)]
    return "inside(area, POLYGON((" + ", ".join(f"{math.cos(turn)!r} {math.sin(turn)!r}" for turn in turns) + ")))"


TEXTS: dict[str, Callable[[int], str]] = {
    "one polygon": _polygon,
    "IN, numbers": lambda n: f"x IN ({', '.join(str(k) for k in range(n))})",
    "IN, texts": lambda n: "x IN (" + ", ".join(f"'name {k}'" for k in range(n)) + ")",
    "AND of comparisons": lambda n: " AND ".join(f"x <> {k}" for k in range(n)),
    "AND of small polygons": lambda n: " AND ".join(f"meets(a, POLYGON((0 {k}, 1 {k}, 0 {k + 1})))" for k in range(n)),
}


def parsing(report: Report) -> Iterator[Row]:
    """Yield seconds for texts of 10 kB, 100 kB and 1 MB; the peer is a tenth of the text."""
    for kind, make in TEXTS.items():
        before = None
        for size in (10_000, 100_000) if report.quick else (10_000, 100_000, 1_000_000):
            count = size // 8
            while len(make(count)) > size:
                count = count * size // len(make(count)) - 1
            seconds = measured(partial(ct.parse, make(count)), 3).seconds
            bar = LONGEST if size == 1_000_000 and not kind.startswith("AND") else None
            work = f"{kind}, {size // 1000:,} kB"
            yield Row("Parsing", work, "a tenth" if before else "", seconds, before, seconds, "s", at_most=bar)
            before = seconds


SECTIONS = {"templates": templates, "parsing": parsing}

if __name__ == "__main__":
    run_sections("templates", __doc__, SECTIONS)
