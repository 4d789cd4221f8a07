"""DuckDB's side of benchmarks/mixed.py; runs in an environment of its own: filters and messages in, answers out.

    python mixed_duckdb.py FILTERS.parquet MESSAGES.parquet ANSWERS.json

Strings are numbers, -1 for any. Message by message with and without R-tree, and all messages in one join; on one and
two threads. The quickest counts.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow.parquet as pq
from match_duckdb import connect

Timed = tuple[float, list[list[int]]]
LIMIT = 60.0  # seconds that a plan may take before it is given up
BOX = "xmin <= {xmax} AND xmax >= {xmin} AND ymin <= {ymax} AND ymax >= {ymin}"


def main() -> None:
    """Load, answer the messages with each plan, keep the quickest plan's time."""
    filters, messages, answers = sys.argv[1:]
    database = connect()
    load(database, filters, messages)
    asked = database.execute("SELECT * EXCLUDE g, ST_AsHEXWKB(g) AS hex FROM messages ORDER BY number")
    names = [column[0] for column in asked.description]
    rows = [dict(zip(names, row, strict=True)) for row in asked.fetchall()]
    names = pq.read_schema(filters).names
    plans: dict[str, Timed] = {}
    for is_indexed in (False, True):
        if is_indexed:
            database.execute("CREATE INDEX tree ON filters USING RTREE (g)")
        for threads in (1, 2):
            database.execute(f"SET threads = {threads}")
            for name, call in plans_of(database, names, rows, is_indexed).items():
                if (found := within(database, call)) is not None:
                    plans[f"{name}, {threads} thread{'s' * (threads > 1)}"] = found
    best = min(plans, key=lambda name: plans[name][0])
    if any(found != plans[best][1] for _, found in plans.values()):
        raise SystemExit("the plans' answers differ")
    times = {name: seconds for name, (seconds, _) in plans.items()}
    with open(answers, "w") as file:
        json.dump({"plan": best, "plans": times, "seconds": plans[best][0], "rows": plans[best][1]}, file)


def load(database: Any, filters: str, messages: str) -> None:
    """Tables in memory: filters along a Hilbert curve, with the box of each region."""
    boxes = ", ".join(f"ST_{axis}{end}(g) AS {axis.lower()}{end.lower()}" for axis in "XY" for end in ("Min", "Max"))
    for table, path in (("filters", filters), ("messages", messages)):
        source = f"(SELECT * EXCLUDE geometry, ST_GeomFromWKB(geometry) AS g FROM read_parquet('{path}'))"
        database.execute(f"CREATE TABLE {table} AS SELECT *, {boxes} FROM {source}")
    extent = database.execute("SELECT min(xmin), min(ymin), max(xmax), max(ymax) FROM filters").fetchone()
    curve = "ST_Hilbert((xmin + xmax) / 2, (ymin + ymax) / 2, ST_Extent(ST_MakeEnvelope({}, {}, {}, {})))"
    ordered = f"SELECT * FROM filters ORDER BY {curve.format(*extent)}"
    database.execute(f"CREATE TABLE sorted AS {ordered}")
    database.execute("DROP TABLE filters")
    database.execute("ALTER TABLE sorted RENAME TO filters")


def conditions(names: list[str], filters: str, value: Callable[[str], str]) -> str:
    """The scalar conditions; `value` says how an attribute of the message is written."""
    strings = [name for name in names if name[0] == "s"]
    numbers = [name[3:] for name in names if name.startswith("low")]
    parts = [f"{filters}{name} IN (-1, {value(name)})" for name in strings]
    parts += [f"{value(f'n{k}')} BETWEEN {filters}low{k} AND {filters}high{k}" for k in numbers]
    return " AND ".join(parts)


def plans_of(database: Any, names: list[str], rows: list[Any], is_indexed: bool) -> dict[str, Callable[[], Timed]]:
    """The plans that make sense with or without the index."""
    single = "SELECT row FROM filters WHERE "
    meets = "ST_Intersects(g, ST_GeomFromHEXWKB('{hex}'))"
    scalars = conditions(names, "", "{{{}}}".format)
    if is_indexed:
        return {"R-tree": lambda: ask(database, f"{single}{meets} AND {scalars}", rows)}
    joined = conditions(names, "f.", "m.{}".format)
    pairs = "SELECT m.number, f.row FROM messages m JOIN filters f ON ST_Intersects(f.g, m.g)"
    return {
        "scan": lambda: ask(database, f"{single}{scalars} AND {meets}", rows),
        "scan of boxes": lambda: ask(database, f"{single}{BOX} AND {scalars} AND {meets}", rows),
        "one join": lambda: join(database, f"{pairs} AND {joined}", len(rows)),
        "spatial join, then conditions": lambda: apart(database, f"{pairs} WHERE {joined}", len(rows)),
    }


def ask(database: Any, text: str, messages: list[dict[str, Any]]) -> Timed:
    """Mean seconds and rows for each message, after the first to warm up."""
    seconds, rows = 0.0, []
    for k, message in enumerate([messages[0], *messages]):
        start = time.perf_counter()
        found = database.execute(text.format(**message)).fetchnumpy()["row"]
        if k:
            seconds += time.perf_counter() - start
            rows.append(sorted(found.tolist()))
    return seconds / len(messages), rows


def join(database: Any, text: str, messages: int) -> Timed:
    """Seconds per message of one query for all, after one to warm up; and the rows of each message."""
    database.execute(text).fetchnumpy()
    start = time.perf_counter()
    found = database.execute(text).fetchnumpy()
    seconds = time.perf_counter() - start
    rows: list[list[int]] = [[] for _ in range(messages)]
    for number, row in zip(found["number"].tolist(), found["row"].tolist(), strict=True):
        rows[number].append(row)
    return seconds / messages, [sorted(one) for one in rows]


def apart(database: Any, text: str, messages: int) -> Timed:
    """The same without pushing conditions into the join, which would make it a cross product."""
    database.execute("SET disabled_optimizers = 'filter_pushdown'")
    try:
        return join(database, text, messages)
    finally:
        database.execute("RESET disabled_optimizers")


def within(database: Any, call: Callable[[], Timed]) -> Timed | None:
    """What a plan finds, or None if it takes too long."""
    timer = threading.Timer(LIMIT, database.interrupt)
    timer.start()
    try:
        return call()
    except duckdb.InterruptException:
        return None
    finally:
        timer.cancel()


if __name__ == "__main__":
    main()
