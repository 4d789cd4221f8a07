"""PostGIS's side of benchmarks.match: starts a server of its own, loads polygons, answers messages, stops.

python -m benchmarks.peers.postgis POLYGONS.parquet MESSAGES.parquet ANSWERS.json
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow.parquet as pq

from benchmarks.peers.answering import Plan, ask_each, write_quickest
from benchmarks.peers.duckdb import question

SETTINGS = "-c listen_addresses='' -c shared_buffers=2GB -c work_mem=256MB -c jit=off -c fsync=off"


def program(name: str) -> str:
    """Return the path of one of the server's programs."""
    found = shutil.which(name) or next(map(str, sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), None)
    if found is None:
        raise SystemExit(f"there is no {name}")
    return found


@contextmanager
def server() -> Iterator[str]:
    """Yield a fresh server behind a socket in a temporary folder; it does not run as root, so root becomes postgres."""
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="contrada-postgis-") as folder:
        if as_user:
            shutil.chown(folder, "postgres")
        control = [*as_user, program("pg_ctl"), "-D", f"{folder}/data", "-w", "-l", f"{folder}/log"]
        quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
        subprocess.run([*as_user, program("initdb"), "-D", f"{folder}/data", "-U", "postgres", "-A", "trust"], **quiet)
        subprocess.run([*control, "-o", f"{SETTINGS} -k {folder}", "start"], **quiet)
        try:
            yield folder
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)


def load(connection: Any, path: str) -> None:
    """A table with a GiST index for each operator."""
    connection.execute("CREATE EXTENSION postgis")
    table = pq.read_table(path)
    rows, operators = table["row"].to_numpy(), table["operator"].to_numpy()
    wkb = table["geometry"].to_pylist()
    for k in range(8):
        connection.execute(f"CREATE TABLE t{k} (row int, g geometry)")
        with connection.cursor().copy(f"COPY t{k} FROM STDIN") as copy:
            for at in np.flatnonzero(operators == k).tolist():
                copy.write_row((int(rows[at]), wkb[at].hex()))
        connection.execute(f"CREATE INDEX ON t{k} USING gist (g)")
        connection.execute(f"VACUUM ANALYZE t{k}")


def ask_all(connection: Any, messages: list[bytes], workers: int) -> Plan:
    """Return the seconds and rows of all messages; rows come packed as bytes."""
    connection.execute(f"SET max_parallel_workers_per_gather = {workers}")
    parts = question(is_indexed=False)

    def ask(wkb: bytes) -> Any:
        text = parts.replace("$m", f"'{wkb.hex()}'::geometry")
        cursor = connection.cursor(binary=True)
        packed = cursor.execute(f"SELECT string_agg(int4send(row), ''::bytea) FROM ({text}) AS found").fetchone()[0]
        return np.frombuffer(packed or b"", ">i4").astype(np.int64)

    return ask_each(ask, messages)


def main() -> None:
    """Load, answer every message, keep the quickest plan's times."""
    polygons, messages, answers = sys.argv[1:]
    wkb = pq.read_table(messages)["geometry"].to_pylist()
    with server() as folder, psycopg.connect(host=folder, user="postgres", autocommit=True) as connection:
        load(connection, polygons)
        plans = {f"GiST per operator, {n} parallel workers": ask_all(connection, wkb, n) for n in (0, 2)}
    write_quickest(plans, answers)


if __name__ == "__main__":
    main()
