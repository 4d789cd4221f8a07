"""The `contrada` command. Commands import their modules when they run, so that `--help` answers at once."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from contrada import __version__
from contrada.cli import (
    artifacts,
    check,
    demo,
    experiment,
    ingest,
    match,
    network,
    overlay,
    serve,
    simplify,
    stream,
    sync,
)
from contrada.cli.ending import finished
from contrada.cli.options import plain
from contrada.cli.pages import App
from contrada.cli.summary import summary_of_run

app = App(name="contrada", help="Content-based publish/subscribe where a region is a value like any other.")
# The docstring of a module with one command is its help page.
app.command(help=match.__doc__)(match.match)
app.command(help=stream.__doc__)(stream.stream)
app.command(help=check.__doc__)(check.check)
app.command(help=simplify.__doc__)(simplify.simplify)
app.command(help=demo.__doc__)(demo.demo)
app.command(help=ingest.__doc__)(ingest.ingest)
app.command(help=serve.__doc__, context_settings=serve.PASS_ON)(serve.serve)
app.command(help=sync.__doc__)(sync.sync)
app.add_typer(artifacts.app, name="artifacts")
app.add_typer(network.app, name="network")
app.add_typer(overlay.app, name="overlay")
app.add_typer(experiment.app, name="experiment")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"contrada {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, plain("Print the version and stop.", "--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Content-based publish/subscribe where a region is a value like any other."""
    if isinstance(sys.stdout, TextIOWrapper):  # a lone surrogate in a filter or a name is printed as \\udcff
        sys.stdout.reconfigure(errors="backslashreplace")


@app.command()
def doctor(
    json: Annotated[bool, plain("Print one JSON object instead of a table.", "--json")] = False,
    warm: Annotated[bool, plain("Compile all kernels first, on all cores.", "--warm")] = False,
) -> None:
    """Report this machine, what is installed and what each feature lacks.

    Kernels are compiled when they are first used, and cached. With --warm all of them are compiled now.

    Exits with 0 if regions and relations work, with 1 if they do not.
    """
    from contrada.cli.doctor import examine, show

    if warm:
        from contrada.cli.warming import warm_up

        warm_up()
    report = examine()
    ready = sum(feature.is_ready for feature in report.features)
    summary_of_run().note(ready=ready, missing=len(report.features) - ready)
    show(report, as_json=json)
    raise typer.Exit(0 if report.core_is_ready else 1)


def run() -> None:
    """Run the command line and exit with its code."""
    with finished():
        app(prog_name="contrada")


if __name__ == "__main__":
    run()
