"""`contrada experiment`: measure the papers' tables and figures again on this machine."""

from __future__ import annotations

import json as json_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from contrada.cli.options import plain
from contrada.cli.pages import App
from contrada.cli.progress import ProgressLine
from contrada.errors import ContradaError
from contrada.installation import missing

app = App(help="Measure the papers' tables and figures again.")

JsonOption = Annotated[bool, plain("Print the results as one JSON object.", "--json")]
OutputOption = Annotated[Path, plain("Directory for results and plots.")]
SeedOption = Annotated[int, plain("Random seed.")]
OUTPUT = Path("build/experiments")


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
    redraw: Annotated[bool, plain("Plot the results of an earlier run, without measuring.", "--redraw")] = False,
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
