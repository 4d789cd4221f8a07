"""`contrada experiment`: measure the papers' tables and figures again on this machine, and networks of brokers."""

from __future__ import annotations

import json as json_module
import os
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from contrada.cli.options import argument, plain
from contrada.cli.pages import App
from contrada.cli.progress import ProgressLine
from contrada.errors import ContradaError, FormatError
from contrada.installation import missing

app = App(help="Measure the papers' tables and figures again.")

JsonOption = Annotated[bool, plain("Print the results as one JSON object.", "--json")]
OutputOption = Annotated[Path, plain("Directory for results and plots.")]
SeedOption = Annotated[int, plain("Random seed.")]
RedrawOption = Annotated[bool, plain("Plot the results of an earlier run, without measuring.", "--redraw")]
OUTPUT = Path("build/experiments")
Experiment = StrEnum("Experiment", ["network"])


@app.command("cover-tables")
def cover_tables(
    json: JsonOption = False,
    output: OutputOption = OUTPUT,
    seed: SeedOption = 7,
    commands: Annotated[int, plain("Number of commands; 60,000 in the paper.", min=1)] = 60_000,
) -> None:
    """Measure tables I and II of the covering paper: nodes visited and points compared by reporting mode k.

    Uses several bucket limits of the k-d tree, since the paper gives none. Takes about half a minute.
    """
    from contrada.papers import result_file
    from contrada.papers.cover import tables as experiment

    with ProgressLine(is_wanted=True) as progress:
        rows = list(experiment.measure(commands, seed, tell=progress.step))
    settings = {"seed": seed, "commands": commands, "attributes": experiment.ATTRIBUTES}
    result = result_file.save(output / "cover_tables.json", experiment.NAME, settings, rows)
    result["trends"] = experiment.trends(rows)
    if json:
        typer.echo(json_module.dumps(result))
    else:
        _show_tables(rows, result["trends"], experiment.COUNTS)


@app.command("cover-figures")
def cover_figures(
    json: JsonOption = False,
    output: OutputOption = OUTPUT,
    seed: SeedOption = 7,
    commands: Annotated[int, plain("Maximum number of commands; 100,000 in the paper.", min=10)] = 100_000,
    repeats: Annotated[int, plain("Number of runs; the fastest counts.", min=1)] = 3,
    redraw: RedrawOption = False,
) -> None:
    """Measure figures 8 to 12 of the covering paper: run time by reporting mode, by dimension, by index.

    Takes a few minutes, mostly for the scan that the indexes are compared with.
    """
    from contrada.papers import result_file
    from contrada.papers.cover import figures as experiment

    require_matplotlib()
    path = output / "cover_figures.json"
    if redraw:
        result = result_file.load(path, experiment.NAME)
    else:
        with ProgressLine(is_wanted=True) as progress:
            rows = list(experiment.measure(commands, seed, repeats, progress.step))
        settings = {"seed": seed, "commands": commands, "repeats": repeats}
        result = result_file.save(path, experiment.NAME, settings, rows)
    drawn = experiment.draw(result["rows"], output)
    if json:
        typer.echo(json_module.dumps(result | {"plots": [str(plot) for plot in drawn]}))
    else:
        typer.echo("\n".join(str(written) for written in (path, *drawn)))


@app.command()
def run(
    name: Annotated[Experiment, argument("The experiment: network.")],
    json: JsonOption = False,
    output: OutputOption = OUTPUT,
    seed: Annotated[int, plain("Random seed; equal seeds give equal runs.", min=0)] = 1,
    quick: Annotated[bool, plain("Run a small version, in less than a minute.", "--quick")] = False,
    redraw: RedrawOption = False,
    data: Annotated[Path | None, plain("Directory of the real regions; default: CONTRADA_DATA.")] = None,
    processes: Annotated[int, plain("Number of simultaneous runs.", min=1)] = 1,
) -> None:
    """Measure an experiment, row by row: what is in the file already is not measured again.

    \b
    network: brokers that flood, cover, merge and advertise, on rectangles and regions, beside the overlay;
    half an hour or more, and real regions only where they are found.
      contrada experiment run network --quick
    """
    assert name == Experiment.network
    from contrada.papers import row_file
    from contrada.papers.network import plots, sweeps
    from contrada.papers.network.run import measure
    from contrada.papers.network.tables import Results, findings, tables

    require_matplotlib()
    sweep = sweeps.QUICK if quick else sweeps.FULL
    path = output / f"{sweep.stem}.ndjson"
    known = os.environ.get("CONTRADA_DATA")
    directory = data if data is not None or not known else Path(known)
    if not redraw:
        with ProgressLine(is_wanted=True) as progress:

            def tell(done: int, total: int, row: dict[str, Any]) -> None:
                progress.step(str(sweeps.setting_of(row)), done, total)

            wanted = sweep.settings(seed, directory)
            row_file.add_rows(path, wanted, sweeps.setting_of, partial(measure, data=directory), processes, tell)
    rows = [row for row in row_file.read_rows(path, sweeps.setting_of) if row["seed"] == seed]
    if not rows:
        raise FormatError(f"{path} has no rows of seed {seed}")
    results = Results(rows, sweep, seed)
    drawn = [str(plot) for plot in plots.draw(results, output)]
    if json:
        found = {"experiment": name.value, "seed": seed, "rows": rows, "findings": findings(results), "plots": drawn}
        typer.echo(json_module.dumps(found))
    else:
        typer.echo("\n".join([tables(results), "", str(path), *drawn]))


def require_matplotlib() -> None:
    """Raise an error with the command that installs Matplotlib, before minutes are spent on measurements."""
    if find_spec("matplotlib") is None:
        raise ContradaError(missing("pictures need Matplotlib", "experiments"))


def _show_tables(rows: list[dict[str, Any]], trends: list[dict[str, Any]], counts: tuple[str, ...]) -> None:
    """Print counts in thousands, the paper's in brackets, and which trends hold."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=max(Console().width, 130))
    for trend in trends:
        chosen = [row for row in rows if (row["p"], row["overflow"]) == (trend["p"], trend["overflow"])]
        limits = f"buckets of at most {trend['overflow']} points, merged below {chosen[0]['underflow']}"
        title = f"p = {trend['p']:.0%}, {limits}: thousands, the paper's in brackets"
        table = Table("k", *counts, "queries_u", title=title)
        for row in chosen:
            ours = [f"{row[count] / 1000:,.0f} ({row['paper'][count] / 1000:,.0f})" for count in counts]
            table.add_row(str(row["k"]), *ours, f"{row['queries_u']:,}")
        console.print(table)
        held = [name for name, holds in trend.items() if holds is True]
        broken = [name for name, holds in trend.items() if holds is False]
        rest = f"; does not hold: {', '.join(broken)}" if broken else ""
        console.print(f"holds: {', '.join(held) or 'nothing'}{rest}")
