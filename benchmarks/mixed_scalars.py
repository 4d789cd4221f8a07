"""Scalar filters alone, against the npm package Koncorde and the Rust crate a-tree, each in a process of its own.

Koncorde needs node, and `npm install koncorde` in build/node. a-tree needs cargo; it is built into build/atree.
What is not there is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import mixed_ours
import numpy as np
from match_points import NODE
from match_report import MatchReport
from mixed_sets import Filters, Kind, Messages, filter_lines, message_lines, scalar_messages, scalar_set, settle
from report import ROOT, Row
from timing import say, take_turns

SECTION = "Scalar filters alone, 2 to 5 constraints each (time per message)"
HERE = Path(__file__).parent
TARGET = ROOT / "build" / "atree"
KINDS: tuple[Kind, ...] = ("equality", "range")
PER_TREE = 20_000
LIMIT = 900  # seconds for loading and matching


def run(report: MatchReport, largest: int) -> Iterator[Row]:
    """Both kinds and all sizes, against each peer that is there; a peer that takes too long is named as skipped."""
    peers = {name: found for name in ("Koncorde", "a-tree") if (found := command(name, report))}
    for kind in KINDS:
        for count in (1_000, 10_000) if report.quick else (10_000, 1_000_000):
            if count > largest:
                continue
            yield from one_set(kind, count, peers, report)


def one_set(kind: Kind, count: int, peers: dict[str, list[str]], report: MatchReport) -> Iterator[Row]:
    """Our match_keys and match_many against each peer; a bar for match_keys, as peers take messages one by one."""
    filters = scalar_set(count, kind, report.seed)
    messages = scalar_messages(filters, min(1_000, 30_000_000 // count), report.seed)
    table, asked = mixed_ours.table_of(filters), mixed_ours.as_dicts(messages)
    contenders = {
        "match_keys, one by one": partial(mixed_ours.ask, table, asked),
        "match_many, 1 thread": partial(mixed_ours.ask_many, table, asked, 1),
    }
    for peer, program in peers.items():
        before = take_turns(contenders, 3)
        answer = ask_peer(program, filters, messages)
        found = take_turns(contenders, 3)  # once more: the machine may have changed its pace
        if isinstance(answer, str):
            report.skipped.append(f"{peer}, {kind}, {count:,} filters: {answer}")
            continue
        rate, loading = 1 / answer["seconds"], answer["registering"]
        say(f"{peer}, {kind}, {count:,} filters: {rate:,.1f} messages/s, loaded in {loading:.1f} s")
        theirs = [np.array(sorted(rows), np.int64) for rows in answer["rows"]]
        for name, ours in found.items():
            work, against = f"{kind}-heavy, {count:,} filters, {name}", f"{peer}: {answer['form']}"
            settled = settle((work, against), filters, messages, ours.answer, theirs)
            seconds = (before[name].seconds + ours.seconds) / 2 / len(messages)
            bar = 1 if name.startswith("match_keys") else None
            yield report.compare(SECTION, work, against, seconds, answer["seconds"], settled, bar)


def command(name: str, report: MatchReport) -> list[str] | None:
    """How a peer's program is called, or None, with the reason among the skipped."""
    if name == "Koncorde":
        node = shutil.which("node")
        if node and (NODE / "node_modules" / "koncorde").exists():
            memory = "--max-old-space-size=16000"  # its own limit is too low for a million filters
            return [node, memory, str(HERE / "mixed_koncorde.js"), str(NODE)]
        report.skipped.append("Koncorde: needs node, and `npm install koncorde` in build/node")
        return None
    return atree(report)


def atree(report: MatchReport) -> list[str] | None:
    """The program with a-tree, built if need be."""
    path = os.pathsep.join([os.environ.get("PATH", ""), str(Path.home() / ".cargo" / "bin")])
    cargo = shutil.which("cargo", path=path)
    if cargo is None:
        report.skipped.append("a-tree: needs cargo")
        return None
    manifest = str(HERE / "mixed_atree" / "Cargo.toml")
    environment = {**os.environ, "PATH": path, "CARGO_TARGET_DIR": str(TARGET), "RUSTFLAGS": "-C target-cpu=native"}
    build = [cargo, "build", "--release", "--quiet", "--manifest-path", manifest]
    done = subprocess.run(build, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        report.skipped.append(f"a-tree: does not build: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return [str(TARGET / "release" / "mixed_atree")]


def ask_peer(program: list[str], filters: Filters, messages: Messages) -> dict[str, Any] | str:
    """What a peer's program writes, or why it fails."""
    with tempfile.TemporaryDirectory(prefix="contrada-mixed-") as folder:
        paths = [Path(folder) / name for name in ("filters", "messages", "answers.json")]
        paths[0].write_text(filter_lines(filters))
        paths[1].write_text(message_lines(messages))
        arguments = [*map(str, paths), "5"] + [str(PER_TREE)] * program[0].endswith("mixed_atree")
        try:
            done = subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return f"took more than {LIMIT} seconds"
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or ["failed"])[-1]
        answer: dict[str, Any] = json.loads(paths[2].read_text())
        return answer
