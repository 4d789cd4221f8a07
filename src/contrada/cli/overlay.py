"""`contrada overlay`: simulate the DR-tree, repeat the paper's evaluation, and run peers over sockets."""

from __future__ import annotations

import json
from enum import StrEnum
from math import inf
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer

from contrada.amounts import counted
from contrada.cli import overlay_peer, overlay_show
from contrada.cli.ending import errors_told
from contrada.cli.pages import App
from contrada.cli.progress import ProgressLine
from contrada.errors import OverlayError

app = App(help="An overlay of peers that routes messages by content: the DR-tree.")
app.command(help=overlay_peer.PEER)(overlay_peer.peer)
app.command(help=overlay_peer.PUBLISH)(overlay_peer.publish)
app.command(help=overlay_show.SHOW)(overlay_show.show)


class Split(StrEnum):
    """Methods to split a node with too many children."""

    quadratic = "quadratic"
    linear = "linear"
    rstar = "rstar"


class Choose(StrEnum):
    """Methods by which a new peer descends the tree."""

    r = "r"
    rstar = "rstar"


class Cover(StrEnum):
    """Rules for the peer that holds a node."""

    mbr = "mbr"
    own = "own"


SplitOption = Annotated[Split, typer.Option(help="How a node with too many children is split.")]
ChooseOption = Annotated[
    Choose | None,
    typer.Option(help="How a new peer descends: by area (r), or by overlap at the end (rstar); default: as --split."),
]
DegreeOption = Annotated[str, typer.Option(help="Minimum and maximum number of children of a node.", metavar="m,M")]
SeedOption = Annotated[int, typer.Option(min=0, help="Random seed; equal seeds give equal runs.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

SIMULATE = """\
Build a tree by joins and send messages from its root, as the paper's evaluation does.

\b
The paper's defaults:
  contrada overlay simulate
R* in more dimensions, as JSON:
  contrada overlay simulate --split rstar --dimensions 8 --json
"""


@app.command(help=SIMULATE)
def simulate(
    subscriptions: Annotated[int, typer.Option(min=1, help="Number of peers, each with one subscription.")] = 10_000,
    messages: Annotated[int, typer.Option(min=1, help="Number of messages published at the root.")] = 2_500,
    dimensions: Annotated[int, typer.Option(min=1, help="Number of attributes.")] = 4,
    split: SplitOption = Split.quadratic,
    choose: ChooseOption = None,
    cover: Annotated[
        Cover, typer.Option(help="Which peer holds a node: by the box of its node (mbr), or its own box.")
    ] = Cover.mbr,
    sketch: Annotated[int, typer.Option(min=0, help="Number of boxes that a parent keeps of a low node; 0: one.")] = 0,
    degree: DegreeOption = "5,10",
    distribution: Annotated[
        str, typer.Option(help="uniform or zipf, optionally with -25:75 or -10:90.")
    ] = "zipf-25:75",
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Run one simulation; the help text is SIMULATE."""
    from contrada.papers.overlay.run import Setting, measure

    with errors_told():
        least, most = degree_of(degree)
        how = choose.value if choose is not None else default_choice(split)
        setting = Setting(
            subscriptions, messages, dimensions, split.value, how, cover.value, sketch, least, most, distribution, seed
        )
        with ProgressLine(is_wanted=True) as progress:
            row = measure(setting, lambda what, done, total: progress.tell(lambda: what, lambda: (done, total)))
        typer.echo(json.dumps(row) if as_json else "\n".join(told(row)))


def degree_of(text: str) -> tuple[int, int]:
    """Parse the two numbers of m,M."""
    parts = text.split(",")
    try:
        least, most = map(int, parts)
    except ValueError:
        raise OverlayError(f"--degree is two whole numbers as in 5,10, not {text!r}") from None
    return least, most


def default_choice(split: Split) -> str:
    """Return the choice that goes with a split: rstar with rstar, else r."""
    return "rstar" if split is Split.rstar else "r"


def told(row: dict[str, Any]) -> list[str]:
    """Return the lines that describe a row."""
    degree = row["degree"]
    return [
        f"false positives   {100 * row['false_positive_ratio']:.3f} % of peers "
        f"(random placement {100 * row['control_ratio']:.3f} %), {100 * row['false_receipt_ratio']:.1f} % of receipts",
        f"false negatives   {row['false_negatives']}",
        f"hits              {row['hits']:.1f} per message",
        f"hops              {row['hops']['average']:.2f} on average, {row['hops']['max']} at most",
        f"degree            {degree['average']:.2f} on average, {degree['max']} at most, "
        f"variance {degree['variance']:.2f}",
        f"seconds           {row['seconds']:.1f}, of which {row['seconds_joining']:.1f} for joins",
    ]


CHURN = """\
Simulate churn in an overlay, then a quiet time, and report missed messages and when the tree was whole again.

\b
Crashes and lost notes:
  contrada overlay churn --crashes 0.5 --joins 0.5 --loss 0.05 --resend 0.2
"""


@app.command(help=CHURN)
def churn(
    peers: Annotated[int, typer.Option(min=1, help="Number of peers at the start.")] = 200,
    seconds: Annotated[float, typer.Option(min=0, help="Duration of the churn in seconds.")] = 30.0,
    joins: Annotated[float, typer.Option(min=0, help="Average joins per second.")] = 0.5,
    leaves: Annotated[float, typer.Option(min=0, help="Average leaves per second.")] = 0.3,
    crashes: Annotated[float, typer.Option(min=0, help="Average crashes per second.")] = 0.2,
    corruptions: Annotated[float, typer.Option(min=0, help="Average corrupted peer states per second.")] = 0.0,
    messages: Annotated[float, typer.Option(min=0, help="Average messages per second.")] = 10.0,
    latency: Annotated[float, typer.Option(help="Delay of a note, a message between peers, in seconds.")] = 0.05,
    jitter: Annotated[
        float, typer.Option(help="Maximum extra delay of a note in seconds (notes may be reordered).")
    ] = 0.05,
    loss: Annotated[float, typer.Option(help="Share of notes that are lost.")] = 0.0,
    doubling: Annotated[float, typer.Option(help="Share of notes that arrive twice.")] = 0.0,
    resend: Annotated[float, typer.Option(help="Seconds until a lost note is sent again; 0: never.")] = 0.0,
    split: SplitOption = Split.quadratic,
    choose: ChooseOption = None,
    degree: DegreeOption = "5,10",
    distribution: Annotated[str, typer.Option(help="uniform or zipf, optionally with -25:75 or -10:90.")] = "uniform",
    seed: SeedOption = 1,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs, with seeds from --seed on, and their mean.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each run.")] = False,
) -> None:
    """Run simulations of churn; the help text is CHURN."""
    from contrada.overlay.rules import Rules
    from contrada.overlay.simulation.churn import Churn
    from contrada.overlay.simulation.network import Network
    from contrada.papers.overlay.churn import measure_churn

    with errors_told():
        least, most = degree_of(degree)
        rules = Rules(least, most, choose.value if choose is not None else default_choice(split), split.value)
        network = Network(latency, jitter, loss, doubling, resend)
        rates = Churn(joins, leaves, crashes, corruptions, messages)
        rows = []
        for each in range(seed, seed + seeds):
            row = measure_churn(peers, seconds, rates, network, rules, distribution, each)
            typer.echo(json.dumps(row) if as_json else "\n".join(told_churn(row)))
            rows.append(row)
        if seeds > 1 and not as_json:
            typer.echo(told_seeds(rows))


def told_churn(row: dict[str, Any]) -> list[str]:
    """Return the lines that describe a row of churn."""
    healed = "never" if row["healed_after"] is None else f"after {row['healed_after']:.1f} s"
    return [
        f"seed              {row['seed']}",
        f"messages          {row['messages']}, wanted {counted(row['wanted'], 'time')} by peers that live",
        f"false negatives   {row['false_negatives']:,} meanwhile, {100 * row['false_negative_ratio']:.2f} %; "
        f"{row['false_negatives_after']} afterwards",
        f"whole again       {healed}, with {counted(row['peers_after'], 'peer')}",
    ]


def told_seeds(rows: list[dict[str, Any]]) -> str:
    """Return one line about several rows of churn: means and ranges."""
    missed = [100 * row["false_negative_ratio"] for row in rows]
    healed = [inf if row["healed_after"] is None else row["healed_after"] for row in rows]
    return (
        f"{len(rows)} seeds: {mean(missed):.1f} % missed meanwhile ({min(missed):.1f} to {max(missed):.1f}), "
        f"{counted(sum(row['false_negatives_after'] for row in rows), 'false negative')} afterwards, "
        f"whole again after {mean(healed):.1f} s ({min(healed):.1f} to {max(healed):.1f})"
    )


@app.command()
def evaluate(
    rows: Annotated[Path, typer.Option(help="File of rows; rows in it are not computed again.")] = Path(
        "build/overlay/rows.ndjson"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, from 1 on.")] = 5,
    processes: Annotated[int, typer.Option(min=1, help="Number of simultaneous runs.")] = 2,
    scale: Annotated[float, typer.Option(min=0.001, max=1, help="Factor for smaller trees, for a trial.")] = 1.0,
    figures: Annotated[Path | None, typer.Option(help="Directory of the figures; default: beside the rows.")] = None,
) -> None:
    """Repeat the paper's evaluation: write rows to a file, then figures 7 to 12, their tables and Table 2."""
    from contrada.cli.experiment import require_matplotlib
    from contrada.papers.overlay import figures as overlay_figures
    from contrada.papers.overlay import plots as overlay_plots
    from contrada.papers.overlay import tables as overlay_tables

    with errors_told():
        require_matplotlib()
        settings = overlay_figures.settings_of(range(1, seeds + 1), scale)

        def tell(done: int, total: int, row: dict[str, Any]) -> None:
            space = counted(row["dimensions"], "dimension")
            about = f"{row['subscriptions']:,} {row['distribution']}, {space}, {row['split']}"
            about += " with sketches" if row["sketch"] else ""
            percent = 100 * row["false_positive_ratio"]
            typer.echo(f"{done}/{total} {about}, {row['least']},{row['most']}: {percent:.3f} %", err=True)

        overlay_figures.run(settings, rows, processes, tell)
        found = overlay_figures.read_rows(rows)
        for path in overlay_plots.plot(found, figures or rows.parent, scale=scale):
            typer.echo(path)
        typer.echo(overlay_tables.tables(found, scale))
