"""The mixed work through the command line on newline JSON, and through Spark, each beside what only passes the data."""

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import contrada as ct
from benchmarks.columns.work import MIXED, messages, subscription_rows, table_for
from benchmarks.report import Report, Row
from benchmarks.timing import say, take_turns, time_cold

LINES = "contrada match on newline JSON, 20,000 mixed subscriptions"
SPARK = "Spark local[2], 20,000 mixed subscriptions"
LINE = '{"id":%d,"severity":%d,"kind":"%s","area":{"type":"Point","coordinates":[%r,%r]}}\n'


def write_lines(path: Path, batch: pa.Table) -> None:
    """Write messages as newline JSON."""
    points = ct.PointArray.from_wkb(batch.column("area")).xy.tolist()
    scalars = zip(batch.column("severity").to_pylist(), batch.column("kind").to_pylist(), strict=True)
    with path.open("w") as file:
        for number, ((x, y), (severity, kind)) in enumerate(zip(points, scalars, strict=True)):
            file.write(LINE % (number, severity, kind, x, y))


def newline_json(report: Report) -> Iterator[Row]:
    """Measure a process that matches all lines, less one that matches one line, beside a loop that decodes them."""
    count = 50_000 if report.quick else 1_000_000
    batch = messages(report.seed, count)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lines(folder / "all.ndjson", batch)
        write_lines(folder / "one.ndjson", batch.slice(0, 1))
        pq.write_table(subscription_rows(report.seed), folder / "subscriptions.parquet")
        contenders = {
            "all": partial(_matched, folder, "all"), "one": partial(_matched, folder, "one"),
            "decoding": partial(_decoded, folder / "all.ndjson"),
        }  # fmt: skip
        found = take_turns(contenders, 3 if report.quick else 5)
    table = table_for(MIXED, report.seed)
    expected = len(table.match_many(batch, by="subscription").rows)
    different = abs(found["all"].answer - expected)
    ours = found["all"].seconds - found["one"].seconds
    work = f"{count:,} messages, start and loading apart"
    counts = {"compared": expected, "different": different}
    decoding = found["decoding"].seconds
    yield Row(LINES, work, "msgspec decoding the lines", ours, decoding, ours / decoding, "times the time",
              at_most=3, **counts)  # fmt: skip


def _matched(folder: Path, name: str) -> int:
    """Run the command; return the number of matches."""
    program = Path(sys.executable).with_name("contrada")
    command = [program, "match", folder / f"{name}.ndjson", folder / "subscriptions.parquet"]
    options = ["--template", MIXED, "--output", folder / "out.ndjson", "--quiet"]
    subprocess.run([*command, *options], check=True)
    return (folder / "out.ndjson").read_bytes().count(b"\n")


def _decoded(path: Path) -> int:
    decode, count = msgspec.json.Decoder().decode, 0
    with path.open("rb") as file:
        for line in file:
            decode(line)
            count += 1
    return count


def on_spark(report: Report) -> Iterator[Row]:
    """Measure matching beside a `mapInArrow` that passes the same columns and emits as many rows, on warm workers."""
    from benchmarks.spark.jobs import Bench, drain, session, stored, work_directory
    from contrada import pipeline

    count = 100_000 if report.quick else 10_000_000
    table = table_for(MIXED, report.seed)
    with session() as spark:
        bench = Bench(spark, work_directory(), report)
        made = messages(report.seed, count).append_column("message_id", pa.array(np.arange(count)))
        frame = stored(spark, made, bench.directory / f"mixed-{count}", 16)
        artifact = bench.artifact(table)
        expected = len(table.match_many(made.drop_columns("message_id"), by="subscription").rows)
        say(f"{count:,} messages, {expected:,} matches")

        def ours() -> int:
            found = pipeline.match(frame, artifact, by="subscription")
            drain(found.matches)
            found.unpersist()
            return 0

        def theirs() -> None:
            drain(frame.mapInArrow(partial(passed, share=expected / count), "message_id long, key long"))

        counted = pipeline.match(frame, artifact, by="subscription").matches.count()
        time_cold(theirs)
        found = take_turns({"ours": ours, "theirs": theirs}, 1 if report.quick else 3)
    mine, peer = found["ours"].seconds, found["theirs"].seconds
    counts = {"compared": expected, "different": abs(counted - expected)}
    yield Row(SPARK, f"{count:,} messages, workers warm", "mapInArrow that passes the columns", mine, peer,
              mine / peer, "times the time", at_most=1.5, **counts)  # fmt: skip


def passed(batches: Iterable[Any], share: float) -> Iterator[Any]:
    """Read all columns, and emit the given share of the rows."""
    owed = 0.0
    for batch in batches:
        batch.validate()
        owed += share * batch.num_rows
        ids = batch.column("message_id").slice(0, int(owed))
        owed -= int(owed)
        yield pa.record_batch({"message_id": ids, "key": ids})
