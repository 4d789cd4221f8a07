"""Peers that are programs of their own: where they are installed, and how files go in and an answer comes out.

DuckDB and PostGIS need an environment in build/peers with duckdb, duckdb-extension-spatial (of the same number),
psycopg[binary], pyarrow and numpy; PostGIS also a PostgreSQL server with the extension. Koncorde needs node, and
`npm install koncorde` in build/node. a-tree needs cargo, and is built into build/atree. Sections skip what is missing.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import ROOT, SkippedError
from benchmarks.timing import Timed, take_turns

HERE = Path(__file__).parent
PEERS = ROOT / "build" / "peers" / "bin" / "python"
NODE = ROOT / "build" / "node"
ATREE = ROOT / "build" / "atree"
Command = list[str] | str  # a text says why there is no program
Inputs = Mapping[str, pa.Table | str]  # by the names of their files


def beside_program(
    contenders: Mapping[str, Callable[[], Any]], repeats: int, per: int, peer: str, command: Command, inputs: Inputs,
    *further: str, limit: int = 3600,
) -> tuple[dict[str, Timed], Timed, dict[str, Any]]:  # fmt: skip
    """Return our times and answers, those of a program, and all that the program tells.

    Ours are taken before and after the program, as the machine may change its pace. A program that is not there, fails
    or takes more than `limit` seconds is skipped.
    """
    before = take_turns(contenders, repeats, per)
    told = ask_program(peer, command, inputs, *further, limit=limit)
    after = take_turns(contenders, repeats, per)
    ours = {name: Timed((before[name].seconds + timed.seconds) / 2, timed.answer) for name, timed in after.items()}
    return ours, Timed(told["seconds"], rows_of(told)), told


def rows_of(told: dict[str, Any]) -> list[Any]:
    """Return the rows of each message that a program tells, sorted."""
    return [np.array(sorted(rows), np.int64) for rows in told["rows"]]


def ask_program(peer: str, command: Command, inputs: Inputs, *further: str, limit: int = 3600) -> dict[str, Any]:
    """Return the answer of `command INPUT... ANSWERS.json FURTHER...`; raise SkippedError if there is none."""
    if isinstance(command, str):
        raise SkippedError(f"{peer}: {command}")
    with tempfile.TemporaryDirectory(prefix="contrada-peers-") as folder:
        answers = Path(folder) / "answers.json"
        for name, content in inputs.items():
            if isinstance(content, str):
                (Path(folder) / name).write_text(content)
            else:
                pq.write_table(content, Path(folder) / name)
        paths = [*(str(Path(folder) / name) for name in inputs), str(answers)]
        try:
            done = subprocess.run(
                [*command, *paths, *further], capture_output=True, text=True, cwd=ROOT, timeout=limit,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise SkippedError(f"{peer}: took more than {limit} seconds") from None
        if done.returncode != 0:
            raise SkippedError(f"{peer}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        return json.loads(answers.read_text())


def database(module: str, *arguments: str) -> Command:
    """Return the command of a module of this folder in the environment of the databases."""
    if not PEERS.exists():
        return "there is no environment build/peers"
    return [str(PEERS), "-m", f"benchmarks.peers.{module}", *arguments]


def koncorde(script: str) -> Command:
    """Return the command of a script of this folder for Koncorde."""
    node = shutil.which("node")
    if node is None or not (NODE / "node_modules" / "koncorde").exists():
        return "needs node, and `npm install koncorde` in build/node"
    memory = "--max-old-space-size=16000"  # its own limit is too low for a million filters
    return [node, memory, str(HERE / script), str(NODE)]


def atree() -> Command:
    """Return the program with a-tree, built if need be."""
    path = os.pathsep.join([os.environ.get("PATH", ""), str(Path.home() / ".cargo" / "bin")])
    cargo = shutil.which("cargo", path=path)
    if cargo is None:
        return "needs cargo"
    environment = {**os.environ, "PATH": path, "CARGO_TARGET_DIR": str(ATREE), "RUSTFLAGS": "-C target-cpu=native"}
    build = [cargo, "build", "--release", "--quiet", "--manifest-path", str(HERE / "atree" / "Cargo.toml")]
    done = subprocess.run(build, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        return f"does not build: {done.stderr.strip().splitlines()[-1:]}"
    return [str(ATREE / "release" / "mixed_atree")]
