"""DuckDB's side of benchmarks.match and benchmarks.mixed, in an environment of its own: files in, answers out.

    python -m benchmarks.peers.duckdb operators POLYGONS.parquet MESSAGES.parquet ANSWERS.json
    python -m benchmarks.peers.duckdb mixed FILTERS.parquet MESSAGES.parquet ANSWERS.json

Strings of mixed filters are numbers, -1 for any. Messages are asked one by one, with and without R-tree, and mixed ones
also in one join; on one and two threads. The quickest plan counts.
"""

import importlib.util
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from benchmarks.peers.answering import Plan, ask_each, write_quickest

LIMIT = 60.0  # seconds that a plan may take before it is given up
BOX = "xmin <= {xmax} AND xmax >= {xmin} AND ymin <= {ymax} AND ymax >= {ymin}"
# The message is $m; the tables t0 to t7 hold the polygons of an operator each, in the order of contrada.Relation.
CONDITIONS = (
    "NOT ST_Intersects(g, $m)",
    "ST_Touches(g, $m)",
    "ST_Overlaps(g, $m)",
    "ST_Equals(g, $m)",
    "ST_ContainsProperly(g, $m)",
    "ST_ContainsProperly($m, g)",
    "ST_Covers($m, g) AND NOT ST_ContainsProperly($m, g) AND NOT ST_Equals($m, g)",
    "ST_CoveredBy($m, g) AND NOT ST_ContainsProperly(g, $m) AND NOT ST_Equals($m, g)",
)


def connect() -> Any:
    """A database in memory with the extension from the package duckdb-extension-spatial, or as installed before."""
    database = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    package = importlib.util.find_spec("duckdb_extension_spatial")
    found = sorted(Path(str(package.origin)).parent.rglob("*.duckdb_extension")) if package else []
    database.execute(f"LOAD '{found[0]}'" if found else "LOAD spatial")
    return database


def question(is_indexed: bool) -> str:
    """Return one query for all operators. With constant geometries the index is used; NOT never uses it."""
    apart = "row NOT IN (SELECT row FROM t0 WHERE ST_Intersects(g, $m))" if is_indexed else CONDITIONS[0]
    conditions = enumerate((apart, *CONDITIONS[1:]))
    return " UNION ALL ".join(f"SELECT row FROM t{k} WHERE {condition}" for k, condition in conditions)


def match_operators(polygons: str, messages: str, answers: str) -> None:
    """Load, answer every message with each plan, keep the quickest plan's times."""
    database = connect()
    wkb = pq.read_table(messages)["geometry"].to_pylist()
    for k in range(8):
        database.execute(
            f"CREATE TABLE t{k} AS SELECT row, ST_GeomFromWKB(geometry) AS g FROM read_parquet('{polygons}') "
            f"WHERE operator = {k}"
        )
    plans: dict[str, Plan] = {}
    for is_indexed, threads in settings(database, [f"CREATE INDEX i{k} ON t{k} USING RTREE (g)" for k in range(8)]):
        ask = partial(ask_operators, database, question(is_indexed))
        plans[f"{'R-tree' if is_indexed else 'scan'}, {threads}"] = ask_each(ask, wkb)
    write_quickest(plans, answers)


def settings(database: Any, indexes: list[str]) -> Iterator[tuple[bool, str]]:
    """Yield whether there are indexes, and the number of threads in words: without and with them, one and two."""
    for is_indexed in (False, True):
        for statement in indexes if is_indexed else ():
            database.execute(statement)
        for threads in ("1 thread", "2 threads"):
            database.execute(f"SET threads = {threads[0]}")
            yield is_indexed, threads


def ask_operators(database: Any, text: str, wkb: bytes) -> Any:
    """Return the rows of a message."""
    return database.execute(text.replace("$m", f"ST_GeomFromHEXWKB('{wkb.hex().upper()}')")).fetchnumpy()["row"]


def match_mixed(filters: str, messages: str, answers: str) -> None:
    """Load, answer the messages with each plan, keep the quickest plan's time."""
    database = connect()
    load(database, filters, messages)
    asked = database.execute("SELECT * EXCLUDE g, ST_AsHEXWKB(g) AS hex FROM messages ORDER BY number")
    names = [column[0] for column in asked.description]
    rows = [dict(zip(names, row, strict=True)) for row in asked.fetchall()]
    names = pq.read_schema(filters).names
    plans: dict[str, Plan] = {}
    for is_indexed, threads in settings(database, ["CREATE INDEX tree ON filters USING RTREE (g)"]):
        for name, call in plans_of(database, names, rows, is_indexed).items():
            if (found := within(database, call)) is not None:
                plans[f"{name}, {threads}"] = found
    if len({json.dumps(rows) for _, rows in plans.values()}) > 1:
        raise SystemExit("the plans' answers differ")
    write_quickest(plans, answers)


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
    """Return the scalar conditions; `value` says how an attribute of the message is written."""
    strings = [name for name in names if name[0] == "s"]
    numbers = [name[3:] for name in names if name.startswith("low")]
    parts = [f"{filters}{name} IN (-1, {value(name)})" for name in strings]
    parts += [f"{value(f'n{k}')} BETWEEN {filters}low{k} AND {filters}high{k}" for k in numbers]
    return " AND ".join(parts)


def plans_of(database: Any, names: list[str], rows: list[Any], is_indexed: bool) -> dict[str, Callable[[], Plan]]:
    """Return the plans that make sense with or without the index."""
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


def ask(database: Any, text: str, messages: list[dict[str, Any]]) -> Plan:
    """Return the seconds and rows of messages, one query each."""
    return ask_each(lambda message: database.execute(text.format(**message)).fetchnumpy()["row"], messages)


def join(database: Any, text: str, messages: int) -> Plan:
    """Return seconds per message of one query for all, after one to warm up; and the rows of each message."""
    database.execute(text).fetchnumpy()
    start = time.perf_counter()
    found = database.execute(text).fetchnumpy()
    seconds = time.perf_counter() - start
    rows: list[list[int]] = [[] for _ in range(messages)]
    for number, row in zip(found["number"].tolist(), found["row"].tolist(), strict=True):
        rows[number].append(row)
    return seconds / messages, [sorted(one) for one in rows]


def apart(database: Any, text: str, messages: int) -> Plan:
    """Return the same without pushing conditions into the join, which would make it a cross product."""
    database.execute("SET disabled_optimizers = 'filter_pushdown'")
    try:
        return join(database, text, messages)
    finally:
        database.execute("RESET disabled_optimizers")


def within(database: Any, call: Callable[[], Plan]) -> Plan | None:
    """Return what a plan finds, or None if it takes too long."""
    timer = threading.Timer(LIMIT, database.interrupt)
    timer.start()
    try:
        return call()
    except duckdb.InterruptException:
        return None
    finally:
        timer.cancel()


if __name__ == "__main__":
    {"operators": match_operators, "mixed": match_mixed}[sys.argv[1]](*sys.argv[2:])
