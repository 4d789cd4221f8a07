"""Mixed filters in DuckDB (an environment of its own, see match_engines.py) and in Python with one STRtree."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import mixed_ours
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from match_engines import PEERS
from match_report import MatchReport
from mixed_sets import Filters, Messages, message_columns, scalar_columns, settle
from mixed_work import prepared
from report import Row
from timing import Timed, say, take_turns

SECTION = "Mixed filters, about 100 answers: against DuckDB and Python (time per message)"
BAR = 20


def run(report: MatchReport) -> Iterator[Row]:
    """Our match_keys against the plans in Python and DuckDB's best one."""
    work = prepared(report)
    if work is None:
        return
    filters, messages, python, table = work
    ask = partial(mixed_ours.ask, table, mixed_ours.as_dicts(messages))
    plans = {name: partial(plan, messages) for name, plan in python.plans().items()}
    found = take_turns({"ours": ask, **plans}, 3 if report.quick else 5)
    ours = found.pop("ours")
    for name, peer in found.items():
        yield row(report, filters, messages, ours, peer, name)
    answer = ask_duckdb(filters, messages)
    if isinstance(answer, str):
        report.skipped.append(f"DuckDB: {answer}")
        return
    say(f"DuckDB: {answer['plans']}")
    rows = [np.array(one, np.int64) for one in answer["rows"]]
    ours = take_turns({"ours": ask}, 5)["ours"]  # once more: the machine may have changed its pace
    peer = Timed(answer["seconds"] * len(messages), rows)
    yield row(report, filters, messages, ours, peer, f"DuckDB: {answer['plan']}")


def row(report: MatchReport, filters: Filters, messages: Messages, ours: Timed, peer: Timed, against: str) -> Row:
    """The row of one peer."""
    work = f"{len(filters):,} filters, match_keys, one by one"
    settled = settle((work, against), filters, messages, ours.answer, peer.answer)
    each = ours.seconds / len(messages), peer.seconds / len(messages)
    return report.compare(SECTION, work, against, *each, settled, BAR)


def ask_duckdb(filters: Filters, messages: Messages) -> dict[str, Any] | str:
    """What DuckDB's script writes, or why it fails."""
    if not PEERS.exists():
        return "there is no environment in build/peers"
    assert filters.polygons is not None
    with tempfile.TemporaryDirectory(prefix="contrada-mixed-") as folder:
        paths = [str(Path(folder) / name) for name in ("filters.parquet", "messages.parquet", "answers.json")]
        pq.write_table(pa.table({**scalar_columns(filters), "geometry": filters.polygons.wkb}), paths[0])
        pq.write_table(pa.table({**message_columns(messages), "geometry": list(messages.regions or ())}), paths[1])
        command = [str(PEERS), str(Path(__file__).with_name("mixed_duckdb.py")), *paths]
        done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or ["failed"])[-1]
        answer: dict[str, Any] = json.loads(Path(paths[2]).read_text())
        return answer
