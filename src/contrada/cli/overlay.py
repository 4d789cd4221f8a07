"""`contrada overlay`: simulate the DR-tree, repeat the paper's evaluation, and run peers for real."""

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
    """How a node with too many children is divided."""

    quadratic = "quadratic"
    linear = "linear"
    rstar = "rstar"


class Choose(StrEnum):
    """How a new peer goes down the tree."""

    r = "r"
    rstar = "rstar"


class Cover(StrEnum):
    """Who holds a node."""

    mbr = "mbr"
    own = "own"


SplitOption = Annotated[Split, typer.Option(help="How a node with too many children is divided.")]
ChooseOption = Annotated[
    Choose | None, typer.Option(help="How a new peer goes down: by area, or at last by overlap; else as the split is.")
]
DegreeOption = Annotated[str, typer.Option(help="Least and most children of a node.", metavar="m,M")]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same run.")]
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
    subscriptions: Annotated[int, typer.Option(min=1, help="Peers, each with one.")] = 10_000,
    messages: Annotated[int, typer.Option(min=1, help="Messages from the root.")] = 2_500,
    dimensions: Annotated[int, typer.Option(min=1, help="Attributes.")] = 4,
    split: SplitOption = Split.quadratic,
    choose: ChooseOption = None,
    cover: Annotated[Cover, typer.Option(help="Who holds a node: by its node's box, or its own.")] = Cover.mbr,
    sketch: Annotated[int, typer.Option(min=0, help="Boxes that a parent knows of a low node, not one.")] = 0,
    degree: DegreeOption = "5,10",
    distribution: Annotated[str, typer.Option(help="uniform or zipf, with -25:75 or -10:90.")] = "zipf-25:75",
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """One run; SIMULATE says it to people."""
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
    """The two numbers of m,M."""
    parts = text.split(",")
    try:
        least, most = map(int, parts)
    except ValueError:
        raise OverlayError(f"--degree is two whole numbers as in 5,10, not {text!r}") from None
    return least, most


def default_choice(split: Split) -> str:
    """R* splits go with R* choices."""
    return "rstar" if split is Split.rstar else "r"


def told(row: dict[str, Any]) -> list[str]:
    """A row for people."""
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
Shake an overlay in a simulated network, let it be quiet, and tell what was missed and when the tree was whole again.

\b
Crashes and lost notes:
  contrada overlay churn --crashes 0.5 --joins 0.5 --loss 0.05 --resend 0.2
"""


@app.command(help=CHURN)
def churn(
    peers: Annotated[int, typer.Option(min=1, help="Peers at the beginning.")] = 200,
    seconds: Annotated[float, typer.Option(min=0, help="How long it is shaken.")] = 30.0,
    joins: Annotated[float, typer.Option(min=0, help="A second, on average.")] = 0.5,
    leaves: Annotated[float, typer.Option(min=0, help="The same.")] = 0.3,
    crashes: Annotated[float, typer.Option(min=0, help="The same.")] = 0.2,
    corruptions: Annotated[float, typer.Option(min=0, help="Spoilt tables, the same.")] = 0.0,
    messages: Annotated[float, typer.Option(min=0, help="The same.")] = 10.0,
    latency: Annotated[float, typer.Option(help="Seconds that a note takes.")] = 0.05,
    jitter: Annotated[float, typer.Option(help="Up to so many more, by which notes overtake each other.")] = 0.05,
    loss: Annotated[float, typer.Option(help="The share of notes that is lost.")] = 0.0,
    doubling: Annotated[float, typer.Option(help="The share that comes twice.")] = 0.0,
    resend: Annotated[float, typer.Option(help="Seconds until a lost note is sent again; 0: never.")] = 0.0,
    split: SplitOption = Split.quadratic,
    choose: ChooseOption = None,
    degree: DegreeOption = "5,10",
    distribution: Annotated[str, typer.Option(help="uniform or zipf, with -25:75 or -10:90.")] = "uniform",
    seed: SeedOption = 1,
    seeds: Annotated[int, typer.Option(min=1, help="So many runs, from that seed on, and their mean.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each run.")] = False,
) -> None:
    """Runs under churn; CHURN says it to people."""
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
    """A row of churn for people."""
    healed = "never" if row["healed_after"] is None else f"after {row['healed_after']:.1f} s"
    return [
        f"seed              {row['seed']}",
        f"messages          {row['messages']}, wanted {counted(row['wanted'], 'time')} by peers that live",
        f"false negatives   {row['false_negatives']:,} meanwhile, {100 * row['false_negative_ratio']:.2f} %; "
        f"{row['false_negatives_after']} afterwards",
        f"whole again       {healed}, with {counted(row['peers_after'], 'peer')}",
    ]


def told_seeds(rows: list[dict[str, Any]]) -> str:
    """Several rows of churn in one line: means and ranges."""
    missed = [100 * row["false_negative_ratio"] for row in rows]
    healed = [inf if row["healed_after"] is None else row["healed_after"] for row in rows]
    return (
        f"{len(rows)} seeds: {mean(missed):.1f} % missed meanwhile ({min(missed):.1f} to {max(missed):.1f}), "
        f"{counted(sum(row['false_negatives_after'] for row in rows), 'false negative')} afterwards, "
        f"whole again after {mean(healed):.1f} s ({min(healed):.1f} to {max(healed):.1f})"
    )


@app.command()
def evaluate(
    rows: Annotated[Path, typer.Option(help="The file of rows; what it has is not computed again.")] = Path(
        "build/overlay/rows.ndjson"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 1 to so many.")] = 5,
    processes: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 2,
    scale: Annotated[float, typer.Option(min=0.001, max=1, help="Smaller trees, for a trial.")] = 1.0,
    figures: Annotated[Path | None, typer.Option(help="Where figures go; else beside the rows.")] = None,
) -> None:
    """Repeat the paper's evaluation: rows to a file, then figures 7 to 12, their tables and Table 2 from the file."""
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
