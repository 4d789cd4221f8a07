"""Run exhibits: measure the rows that are missing, in this process or as Spark jobs, and write them as tables."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from contrada.errors import ContradaError
from contrada.papers import row_file
from contrada.papers.exhibit import Exhibit, ExperimentError, Grid, Measurement, NotAvailableError, Row, Setting
from contrada.papers.provenance import digest_of, is_of_this_source, provenance
from contrada.papers.row_file import Key, Measured, Run, key_of

SPARK_RUNS = 25  # as many runs as take longer than Spark takes to start
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
    master: str | None = None  # of Spark; None: all cores of this machine, if there are many runs
    is_again: bool = False  # measure rows of other commits again

    @property
    def log(self) -> Path:
        """The file of all rows of the measurement."""
        return self.output / "rows" / f"{self.exhibit.measurement.name}.ndjson"

    def settings(self) -> list[Setting]:
        """Return all settings, also those whose regions are not there."""
        return self.exhibit.settings(self.grid)

    def path_of(self, setting: Setting) -> Path | None:
        """Return the file of regions that a setting reads, None if it reads none; it may not exist."""
        name = self.exhibit.measurement.file_of(setting)
        return None if name is None else (self.data or Path(os.devnull)) / name

    def absent(self) -> list[str]:
        """Return the names of files of regions that settings need and the directory does not have.

        Raise ExperimentError for a file that no default setting reads: it was asked for.
        """
        names = {}
        defaults = self.exhibit.default_files()
        for setting in self.settings():
            path = self.path_of(setting)
            if path is not None and not path.is_file():
                if self.data is not None and path.name not in defaults:
                    raise ExperimentError(f"{self.exhibit.name}: there is no {path}")
                names[path.name] = True
        return list(names)

    def runs(self) -> dict[Key, Run]:
        """Return all settings whose regions are there, each with every seed, by their keys in the file of rows."""
        found: dict[Key, Run] = {}
        for setting in self.settings():
            path = self.path_of(setting)
            if path is None or path.is_file():
                digest = None if path is None else digest_of(path)
                found |= {key_of((setting, seed), digest): (setting, seed) for seed in self.seeds}
        return found

    def rows(self) -> list[Row]:
        """Return the rows that were measured, in the order of the runs."""
        known = row_file.read_rows(self.log)
        return [known[key] for key in self.runs() if key in known]


def find_runs(choice: Choice, warn: Warn = lambda _: None) -> dict[Key, Run]:
    """Return the runs of a choice, and tell `warn` which sets of the paper are not there.

    Raise ExperimentError if no run is left.
    """
    absent, runs = choice.absent(), choice.runs()
    name = choice.exhibit.name
    if not runs and absent:
        where = (
            "name their directory with --data or CONTRADA_DATA" if choice.data is None else f"{choice.data} has none"
        )
        raise ExperimentError(f"{name} needs region sets ({', '.join(absent)}): {where}")
    if absent:
        where = "no directory of regions is named" if choice.data is None else f"not in {choice.data}"
        warn(f"skipped some runs of {name}: {', '.join(absent)}: {where}")
    return runs


def run(choice: Choice, tell: Tell = lambda *_: None, warn: Warn = lambda _: None) -> list[Row]:
    """Measure the rows of a choice that its file does not have; write and return all its rows.

    A run that needs a program or regions which this machine lacks is left out; `warn` gets each reason once. Rows of
    other commits are kept, which `warn` is told too, or measured again if the choice says so.
    """
    measurement = choice.exhibit.measurement
    runs = find_runs(choice, warn)
    if not choice.is_again:
        warn_of_other_commits(choice, choice.rows(), warn)
    is_kept = is_of_this_source if choice.is_again else lambda _: True
    row_file.add_rows(choice.log, runs, partial(_measured, measurement, choice, warn), tell, is_kept)
    rows = choice.rows()
    if rows:
        write_tables(choice, rows)
    return rows


def warn_of_other_commits(choice: Choice, rows: list[Row], warn: Warn) -> None:
    """Tell `warn` how many rows were not measured by the running sources."""
    others = [row for row in rows if not is_of_this_source(row)]
    if others:
        commits = ", ".join(sorted({str(row.get("commit")) for row in others}))
        warn(
            f"{choice.exhibit.name}: {len(others)} of {len(rows)} rows were measured earlier, by sources of {commits}; "
            "run with --again to measure them again"
        )


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
    """Measure runs: timed ones one at a time here, others as Spark jobs if there are many or a master is named."""
    if wants_spark(choice, len(runs)):
        yield from _measured_by_spark(measurement, choice, runs)
    else:
        yield from _measured_here(measurement, choice, warn, runs)


def wants_spark(choice: Choice, runs: int) -> bool:
    """Return True for many runs that are not timed, where Spark is installed, and for several if a master is named."""
    if choice.exhibit.measurement.is_timed or runs == 1:
        return False
    return choice.master is not None or (runs >= SPARK_RUNS and is_spark_there())


def is_spark_there() -> bool:
    """Return True if PySpark and Java are installed."""
    return find_spec("pyspark") is not None and bool(os.environ.get("JAVA_HOME") or shutil.which("java"))


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
            yield run, row, provenance()


def _measured_by_spark(measurement: Measurement, choice: Choice, runs: list[Run]) -> Measured:
    """Measure each run as a Spark job of its own, as many at once as there are cores; a row is there when it is done.

    One job for all runs would return no row before the slowest is done, and an interrupted sweep would lose them all.
    Jobs say themselves where they ran: executors of a cluster are other machines.
    """
    from contrada.pipeline.session import session

    context = session(choice.master).sparkContext
    measure, data = measurement.measure, choice.data

    def job(run: Run) -> tuple[Run, Row, Row]:
        return context.parallelize([run], 1).map(lambda one: (one, measure(*one, data), provenance())).collect()[0]

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
