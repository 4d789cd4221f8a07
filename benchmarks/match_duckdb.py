"""DuckDB's side of benchmarks/match.py; runs in an environment of its own: polygons and messages in, answers out.

python match_duckdb.py POLYGONS.parquet MESSAGES.parquet ANSWERS.json
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

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
    """One query for all operators. With constant geometries the index is used; NOT never uses it."""
    parts = []
    for k, condition in enumerate(CONDITIONS):
        if is_indexed and k == 0:
            condition = "row NOT IN (SELECT row FROM t0 WHERE ST_Intersects(g, $m))"
        parts.append(f"SELECT row FROM t{k} WHERE {condition}")
    return " UNION ALL ".join(parts)


def main() -> None:
    """Load, answer every message with each plan, keep the quickest plan's times."""
    polygons, messages, answers = sys.argv[1:]
    database = connect()
    wkb = pq.read_table(messages)["geometry"].to_pylist()
    for k in range(8):
        database.execute(
            f"CREATE TABLE t{k} AS SELECT row, ST_GeomFromWKB(geometry) AS g FROM read_parquet('{polygons}') "
            f"WHERE operator = {k}"
        )
    plans: dict[str, tuple[list[float], list[list[int]]]] = {}
    for is_indexed in (False, True):
        if is_indexed:
            for k in range(8):
                database.execute(f"CREATE INDEX i{k} ON t{k} USING RTREE (g)")
        for threads in (1, 2):
            database.execute(f"SET threads = {threads}")
            name = f"{'R-tree' if is_indexed else 'scan'}, {threads} thread{'s' * (threads > 1)}"
            plans[name] = ask(database, question(is_indexed), wkb)
    best = min(plans, key=lambda name: statistics.fmean(plans[name][0]))
    times = {name: statistics.fmean(seconds) for name, (seconds, _) in plans.items()}
    with open(answers, "w") as file:
        json.dump({"plan": best, "plans": times, "seconds": plans[best][0], "rows": plans[best][1]}, file)


def ask(database: Any, text: str, messages: list[bytes]) -> tuple[list[float], list[list[int]]]:
    """Seconds and rows for each message, after the first to warm up."""
    seconds, rows = [], []
    for k, wkb in enumerate([messages[0], *messages]):
        start = time.perf_counter()
        literal = f"ST_GeomFromHEXWKB('{wkb.hex().upper()}')"
        found = database.execute(text.replace("$m", literal)).fetchnumpy()["row"]
        if k:
            seconds.append(time.perf_counter() - start)
            rows.append(sorted(found.tolist()))
    return seconds, rows


if __name__ == "__main__":
    main()
