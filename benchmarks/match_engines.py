"""Databases: DuckDB spatial and PostGIS on the same sets and messages, each in a process of its own.

They need an environment in build/peers with duckdb, duckdb-extension-spatial (of the same number), psycopg[binary],
pyarrow and numpy; PostGIS also a PostgreSQL server with the extension. What is not there is skipped.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from match_large import synthetic_set
from match_report import MatchReport
from match_sets import FILES, KINDS, PolygonSet, ask_regions, large_messages, read_set, settle_answers, table_of
from report import ROOT, Row
from timing import say, take_turns

SECTION = "Random operators, messages of 1 to 25 % of the universe, databases (time per message)"
PEERS = ROOT / "build" / "peers" / "bin" / "python"
ENGINES = {"DuckDB spatial": "match_duckdb.py", "PostGIS": "match_postgis.py"}


def run(report: MatchReport) -> Iterator[Row]:
    """Rows for each set and engine."""
    if not PEERS.exists():
        report.skipped.append("DuckDB and PostGIS: there is no environment in build/peers")
        return
    names = list(FILES)[: 3 if report.quick else 4]
    engines = dict(ENGINES)
    for polygons in [*(read_set(name, report) for name in names), synthetic_set(report.seed)]:
        if polygons is not None:
            yield from one_set(polygons, engines, report)


def one_set(polygons: PolygonSet, engines: dict[str, str], report: MatchReport) -> Iterator[Row]:
    """All kinds of messages together; an engine that fails is not asked again."""
    count = 3 if report.quick else 30
    messages = [wkb for kind in KINDS for wkb in large_messages(polygons, kind, count, report.seed)]
    table = table_of(polygons)
    ask = partial(ask_regions, table, messages)
    for engine, script in list(engines.items()):
        before = take_turns({"ours": ask}, 5)["ours"]
        answer = ask_engine(script, polygons, messages)
        ours = take_turns({"ours": ask}, 5)["ours"]  # once more: the machine may have changed its pace
        if isinstance(answer, str):
            report.skipped.append(f"{engine}: {answer}")
            del engines[engine]
            continue
        against = f"{engine}: {answer['plan']}"
        say(f"{polygons.name}: {against} {answer['plans']}")
        work = f"{polygons.name}, {len(polygons.shapes):,} polygons, kinds A, B, C"
        theirs = [np.array(rows, np.int64) for rows in answer["rows"]]
        settled = settle_answers((work, against), polygons, messages, ours.answer, theirs)
        seconds = (before.seconds + ours.seconds) / 2
        each = seconds / len(messages), float(np.mean(answer["seconds"]))
        bar = 20 if polygons.name == "synthetic" else 30
        yield report.compare(SECTION, work, against, *each, settled, bar)


def ask_engine(script: str, polygons: PolygonSet, messages: list[bytes]) -> dict[str, Any] | str:
    """What an engine's script writes, or why it fails."""
    with tempfile.TemporaryDirectory(prefix="contrada-match-") as folder:
        paths = [str(Path(folder) / name) for name in ("polygons.parquet", "messages.parquet", "answers.json")]
        rows = pa.array(np.arange(len(polygons.wkb), dtype=np.int32))
        columns = {"row": rows, "operator": pa.array(polygons.operators), "geometry": polygons.wkb}
        pq.write_table(pa.table(columns), paths[0])
        pq.write_table(pa.table({"geometry": pa.array(messages, pa.binary())}), paths[1])
        command = [str(PEERS), str(Path(__file__).with_name(script)), *paths]
        done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or ["failed"])[-1]
        answer: dict[str, Any] = json.loads(Path(paths[2]).read_text())
        return answer
