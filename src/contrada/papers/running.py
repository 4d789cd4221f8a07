"""Run exhibits: measure the rows that are missing, in this process or as Spark jobs, and write them as tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from contrada.errors import ContradaError, FormatError
from contrada.papers import row_file
from contrada.papers.exhibit import Exhibit, ExperimentError, Grid, Measurement, NotAvailableError, Row
from contrada.papers.row_file import Measured, Run, key_of

Tell = Callable[[int, int, Run], None]
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Choice:
    """The runs of an exhibit that were asked for, and where their rows and pictures go."""

    exhibit: Exhibit
    grid: Grid
    seeds: tuple[int, ...]
    output: Path
    data: Path | None = None
    master: str | None = None  # of Spark; None: all cores of this machine, if there are several seeds

    def __post_init__(self) -> None:
        if self.exhibit.needs_data and self.data is None:
            raise ExperimentError(
                f"{self.exhibit.name} needs region sets: name their directory with --data or CONTRADA_DATA"
            )

    @property
    def log(self) -> Path:
        """The file of all rows of the measurement."""
        return self.output / "rows" / f"{self.exhibit.measurement.name}.ndjson"

    def runs(self) -> list[Run]:
        """Return all settings, each with every seed."""
        return [(setting, seed) for setting in self.exhibit.settings(self.grid, self.data) for seed in self.seeds]

    def rows(self) -> list[Row]:
        """Return the rows that were measured, in the order of the runs."""
        known = row_file.read_rows(self.log)
        return [known[key] for key in map(key_of, self.runs()) if key in known]


def run(choice: Choice, tell: Tell = lambda *_: None, warn: Warn = lambda _: None) -> list[Row]:
    """Measure the rows of a choice that its file does not have; write and return all its rows.

    A run that needs a program which this machine lacks is left out; `warn` gets each reason once.
    """
    measurement = choice.exhibit.measurement
    row_file.add_rows(choice.log, choice.runs(), partial(_measured, measurement, choice, warn), tell)
    rows = choice.rows()
    write_tables(choice, rows)
    return rows


def write_tables(choice: Choice, rows: list[Row]) -> list[Path]:
    """Write rows as Parquet and CSV; in CSV, lists are JSON texts."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    stem = choice.output / choice.exhibit.name
    table = pa.Table.from_pylist([{name: _cell(value) for name, value in row.items()} for row in rows])
    about = {"exhibit": choice.exhibit.name, "parameters": json.dumps(choice.grid), "seeds": json.dumps(choice.seeds)}
    stem.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata(about), stem.with_suffix(".parquet"))
    pa_csv.write_csv(table, stem.with_suffix(".csv"))
    return [stem.with_suffix(".parquet"), stem.with_suffix(".csv")]


def _cell(value: object) -> object:
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _measured(measurement: Measurement, choice: Choice, warn: Warn, runs: list[Run]) -> Measured:
    """Measure runs: timed ones one at a time here, others as Spark jobs if it pays or a master is named."""
    is_spark_wanted = choice.master is not None or (len(choice.seeds) > 1 and find_spec("pyspark") is not None)
    if measurement.is_timed or len(runs) == 1 or not is_spark_wanted:
        yield from _measured_here(measurement, choice, warn, runs)
    else:
        yield from _measured_by_spark(measurement, choice, runs)


def _measured_here(measurement: Measurement, choice: Choice, warn: Warn, runs: list[Run]) -> Measured:
    """Measure runs one at a time, except those that are not available on this machine."""
    reasons: set[str] = set()
    for run in runs:
        try:
            row = measurement.measure(*run, choice.data)
        except NotAvailableError as error:
            if str(error) not in reasons:
                reasons.add(str(error))
                warn(f"skipped some runs of {choice.exhibit.name}: {error}")
        else:
            yield run, row


def _measured_by_spark(measurement: Measurement, choice: Choice, runs: list[Run]) -> Measured:
    """Measure each run as a Spark job of its own, as many at once as there are cores; a row is there when it is done.

    One job for all runs would return no row before the slowest is done, and an interrupted sweep would lose them all.
    """
    from contrada.pipeline.session import session

    context = session(choice.master).sparkContext
    measure, data = measurement.measure, choice.data

    def job(run: Run) -> tuple[Run, Row]:
        return context.parallelize([run], 1).map(lambda one: (one, measure(*one, data))).collect()[0]

    with ThreadPoolExecutor(context.defaultParallelism) as pool:
        jobs = [pool.submit(job, run) for run in runs]
        try:
            for done in as_completed(jobs):
                yield done.result()
        except Exception as error:
            if isinstance(error, ContradaError):
                raise
            raise ExperimentError(f"{measurement.name}: a Spark job failed: {_first_line(error)}") from error
        finally:
            for waiting in jobs:
                waiting.cancel()
            context.cancelAllJobs()


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if "Error" in line and "Py4J" not in line]
    return (lines or [type(error).__name__])[-1].strip()


def require_rows(choice: Choice) -> list[Row]:
    """Return the rows of a choice; raise FormatError if none were measured."""
    rows = choice.rows()
    if not rows:
        raise FormatError(f"{choice.log} has no rows of {choice.exhibit.name} with these parameters and seeds")
    return rows
