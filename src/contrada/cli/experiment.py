"""`contrada experiment`: measure the figures and tables of the papers again, with the papers' parameters or others."""

from __future__ import annotations

import json as json_module
import os
from collections.abc import Iterable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrada.cli.options import argument, plain
from contrada.cli.pages import App
from contrada.cli.progress import ProgressLine
from contrada.cli.summary import summary_of_run
from contrada.errors import ContradaError
from contrada.installation import missing

if TYPE_CHECKING:
    from contrada.papers.exhibit import Exhibit, Row
    from contrada.papers.running import Choice

app = App(help="Measure the papers' figures and tables again.")

Names = Annotated[list[str], argument("Exhibits, or papers: spatial, cover, overlay, network.")]
Quick = Annotated[bool, plain("Run a reduced sweep, to see that everything works.", "--quick")]
Changes = Annotated[
    list[str] | None, plain("Values of a parameter, such as k=1,2,6; may be repeated.", "--set", metavar="NAME=VALUES")
]
Seeds = Annotated[str | None, plain("Random seeds such as 1-5 or 1,2,7; default: those of the exhibit.")]
Data = Annotated[Path | None, plain("Directory of region sets; default: CONTRADA_DATA.")]
Output = Annotated[Path, plain("Directory for rows, tables and pictures.", "--output", "-o")]
MasterOption = Annotated[
    str | None, plain("Spark master for sweeps that count; default: local[*], for many runs.", "--master")
]
Again = Annotated[bool, plain("Measure rows again that sources of another commit measured.", "--again")]
Json = Annotated[bool, plain("Print one JSON object for each exhibit.", "--json")]
OUTPUT = Path("build/experiments")


@app.command("list")
def list_exhibits(json: Json = False) -> None:
    """List all exhibits: name, paper, number and claim."""
    from contrada.papers.registry import EXHIBITS

    summary_of_run().note(exhibits=len(EXHIBITS))
    for exhibit in EXHIBITS.values():
        if json:
            about = {"name": exhibit.name, "paper": exhibit.paper, "number": exhibit.number, "claim": exhibit.claim}
            typer.echo(json_module.dumps(about))
        else:
            typer.echo(f"{exhibit.name:20} {exhibit.labels:20} {exhibit.claim}")


@app.command()
def run(
    names: Names,
    quick: Quick = False,
    changes: Changes = None,
    seeds: Seeds = None,
    data: Data = None,
    output: Output = OUTPUT,
    master: MasterOption = None,
    again: Again = False,
    json: Json = False,
) -> None:
    """Measure exhibits, and print and draw them; rows that are there are not measured again unless --again says so.

    Rows go to Parquet and CSV, pictures to PNG and SVG. The paper's numbers stand beside ours only where the parameters
    are the paper's.

    \b
    One table, as the paper has it:
      contrada experiment run cover-table-1
    With other values:
      contrada experiment run cover-table-1 --set k=1,2 --set draw=ends --seeds 1-5
    """
    from contrada.papers.registry import find_exhibits
    from contrada.papers.running import find_runs

    require_matplotlib()
    choices = [choice_of(e, quick, changes, seeds, data, output, master, again) for e in find_exhibits(names)]
    for choice in choices:  # all options are checked before anything is measured
        find_runs(choice)
    _run(choices, json)


@app.command("all")
def run_all(
    quick: Quick = False,
    seeds: Seeds = None,
    data: Data = None,
    output: Output = OUTPUT,
    master: MasterOption = None,
    again: Again = False,
    json: Json = False,
) -> None:
    """Measure all exhibits; what needs region sets that are not there is skipped with a message."""
    from contrada.papers.exhibit import ExperimentError
    from contrada.papers.registry import EXHIBITS
    from contrada.papers.running import find_runs

    require_matplotlib()
    chosen = []
    for exhibit in EXHIBITS.values():
        choice = choice_of(exhibit, quick, None, seeds, data, output, master, again)
        try:
            find_runs(choice)
        except ExperimentError as error:
            typer.echo(f"skipped {error}", err=True)
        else:
            chosen.append(choice)
    _run(chosen, json)


@app.command()
def show(
    name: Annotated[str, argument("Name of an exhibit.")],
    quick: Quick = False,
    changes: Changes = None,
    seeds: Seeds = None,
    data: Data = None,
    output: Output = OUTPUT,
    json: Json = False,
) -> None:
    """Describe an exhibit with its parameters; print and draw its rows if some were measured, without measuring."""
    from contrada.papers.registry import find_exhibits
    from contrada.papers.running import warn_of_other_commits

    for exhibit in find_exhibits([name]):
        if not json:
            typer.echo("\n".join(described(exhibit)))
        choice = choice_of(exhibit, quick, changes, seeds, data, output, None, False)
        rows = choice.rows()
        if rows:
            require_matplotlib()
            warn_of_other_commits(choice, rows, partial(typer.echo, err=True))
            _print(choice, rows, json)
        elif not json:
            typer.echo(f"No rows with these parameters in {choice.log}.")


def described(exhibit: Exhibit) -> Iterable[str]:
    """Yield the lines that describe an exhibit: claim, command, parameters with their defaults."""
    yield f"{exhibit.name}: {exhibit.labels}"
    yield exhibit.claim
    seeds = ",".join(map(str, exhibit.seeds))
    yield f"contrada experiment run {exhibit.name} --seeds {seeds}"
    for name, parameter in exhibit.parameters.items():
        values = ",".join(map(str, parameter.values))
        source = "" if parameter.is_printed else " (not in the paper)"
        yield f"  --set {name}={values}  {parameter.about}{source}"


def choice_of(
    exhibit: Exhibit,
    quick: bool,
    changes: list[str] | None,
    seeds: str | None,
    data: Path | None,
    output: Path,
    master: str | None,
    again: bool,
) -> Choice:
    """Return the runs of an exhibit that options choose; raise ExperimentError for options that do not fit."""
    from contrada.papers.exhibit import parse_changes, parse_seeds
    from contrada.papers.running import Choice

    grid = exhibit.grid(quick=quick, changes=parse_changes(exhibit, changes or ()))
    defaults = exhibit.quick_seeds if quick else exhibit.seeds
    chosen = parse_seeds(seeds) if seeds is not None else defaults
    return Choice(exhibit, grid, chosen, output, data_directory(data), master, again)


def data_directory(data: Path | None) -> Path | None:
    """Return the directory of region sets: the option, or CONTRADA_DATA; raise BadParameter if it does not exist."""
    known = os.environ.get("CONTRADA_DATA")
    directory = data if data is not None or not known else Path(known)
    if directory is not None and not directory.is_dir():
        raise typer.BadParameter(f"{directory} is not a directory")
    return directory


def _run(choices: list[Choice], json: bool) -> None:
    """Measure exhibits one after another, and print each when it is done."""
    from contrada.papers import running

    for choice in choices:
        with ProgressLine(is_wanted=True) as progress:

            def tell(done: int, total: int, run: Any, name: str = choice.exhibit.name) -> None:
                progress.step(f"{name}: {', '.join(map(str, run[0].values()))}, seed {run[1]}", done, total)

            rows = running.run(choice, tell, partial(typer.echo, err=True))
        if rows:
            _print(choice, rows, json)


def _print(choice: Choice, rows: list[Row], json: bool) -> None:
    """Draw rows, and print their tables and findings, or everything as JSON."""
    from contrada.papers.drawing import draw
    from contrada.papers.showing import findings, markdown

    exhibit = choice.exhibit
    files = [str(path) for path in draw(exhibit, rows, choice.output)]
    known = summary_of_run().counts
    measured = {"exhibits": known.get("exhibits", 0) + 1, "rows": known.get("rows", 0) + len(rows)}
    summary_of_run().note(outputs=files, **measured)
    if json:
        found = {"exhibit": exhibit.name, "parameters": choice.grid, "seeds": choice.seeds, "rows": rows}
        typer.echo(json_module.dumps(found | {"findings": findings(exhibit, rows), "pictures": files}))
    else:
        typer.echo("\n\n".join([markdown(exhibit, rows), "\n".join(files)]) + "\n")


def require_matplotlib() -> None:
    """Raise an error with the command that installs Matplotlib, before minutes are spent on measurements."""
    if find_spec("matplotlib") is None:
        raise ContradaError(missing("pictures need Matplotlib", "experiments"))
