"""`contrada overlay`: simulate the DR-tree, and run peers over sockets."""

from __future__ import annotations

import json
from enum import StrEnum
from math import inf
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import numpy as np
import typer

from contrada.amounts import counted
from contrada.cli import overlay_peer
from contrada.cli.experiment import require_matplotlib
from contrada.cli.options import Degree, Distribution, Sketch, degree_of, plain
from contrada.cli.pages import App
from contrada.cli.progress import ProgressLine
from contrada.cli.summary import summary_of_run
from contrada.errors import OverlayError

app = App(help="An overlay of peers that routes messages by content: the DR-tree.")
app.command()(overlay_peer.peer)
app.command()(overlay_peer.publish)


Split = StrEnum("Split", ["quadratic", "linear", "rstar"])  # methods to split a node with too many children
Choose = StrEnum("Choose", ["r", "rstar"])  # methods by which a new peer descends the tree
Cover = StrEnum("Cover", ["mbr", "own"])  # rules for the peer that holds a node


SplitOption = Annotated[Split, plain("How a node with too many children is split.")]
ChooseOption = Annotated[
    Choose | None, plain("How a new peer descends: by area (r), or by overlap at the end (rstar); default: as --split.")
]
SeedOption = Annotated[int, plain("Random seed; equal seeds give equal runs.", min=0)]


@app.command()
def simulate(
    subscriptions: Annotated[int, plain("Number of peers, each with one subscription.", min=1)] = 10_000,
    messages: Annotated[int, plain("Number of messages published at the root.", min=1)] = 2_500,
    dimensions: Annotated[int, plain("Number of attributes.", min=1)] = 4,
    split: SplitOption = Split.quadratic,
    choose: ChooseOption = None,
    cover: Annotated[
        Cover, plain("Which peer holds a node: by the box of its node (mbr), or its own box.")
    ] = Cover.mbr,
    sketch: Sketch = 0,
    degree: Degree = "5,10",
    distribution: Distribution = "zipf-25:75",
    seed: SeedOption = 1,
    as_json: Annotated[bool, plain("Print one JSON object.", "--json")] = False,
) -> None:
    """Build a tree by joins and send messages from its root, as the paper's evaluation does.

    \b
    The paper's defaults:
      contrada overlay simulate
    R* in more dimensions, as JSON:
      contrada overlay simulate --split rstar --dimensions 8 --json
    """
    from contrada.papers.overlay.run import Setting, measure

    least, most = degree_of(degree)
    tree = split.value, chosen_way(choose, split), cover.value, sketch, least, most
    setting = Setting(subscriptions, messages, dimensions, *tree, distribution, seed)
    with ProgressLine(is_wanted=True) as progress:
        row = measure(setting, progress.step)
    summary_of_run().note(peers=subscriptions, messages=messages, false_negatives=row["false_negatives"])
    typer.echo(json.dumps(row) if as_json else "\n".join(told(row)))


def chosen_way(choose: Choose | None, split: Split) -> str:
    """Return how a new peer descends; by default rstar goes with the split rstar, else r."""
    return choose.value if choose is not None else "rstar" if split is Split.rstar else "r"


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
        f"notes per join    {row['notes_per_join']:.1f}",
        f"seconds           {row['seconds']:.1f}, of which {row['seconds_joining']:.1f} for joins",
    ]


@app.command()
def churn(
    peers: Annotated[int, plain("Number of peers at the start.", min=1)] = 200,
    seconds: Annotated[float, plain("Duration of the churn in seconds.", min=0)] = 30.0,
    joins: Annotated[float, plain("Average joins per second.", min=0)] = 0.5,
    leaves: Annotated[float, plain("Average leaves per second.", min=0)] = 0.3,
    crashes: Annotated[float, plain("Average crashes per second.", min=0)] = 0.2,
    corruptions: Annotated[float, plain("Average corrupted peer states per second.", min=0)] = 0.0,
    messages: Annotated[float, plain("Average messages per second.", min=0)] = 10.0,
    latency: Annotated[float, plain("Delay of a note, a message between peers, in seconds.")] = 0.05,
    jitter: Annotated[float, plain("Maximum extra delay of a note in seconds (notes may be reordered).")] = 0.05,
    loss: Annotated[float, plain("Share of notes that are lost.")] = 0.0,
    doubling: Annotated[float, plain("Share of notes that arrive twice.")] = 0.0,
    resend: Annotated[float, plain("Seconds until a lost note is sent again; 0: never.")] = 0.0,
    kept: Annotated[int, plain("Messages that a peer keeps to send them again; 0: none, as in the paper.")] = 4096,
    retention: Annotated[float, plain("Seconds for which a message is kept.")] = 20.0,
    split: SplitOption = Split.quadratic,
    choose: ChooseOption = None,
    degree: Degree = "5,10",
    distribution: Distribution = "uniform",
    seed: SeedOption = 1,
    seeds: Annotated[int, plain("Number of runs, with seeds from --seed on, and their mean.", min=1)] = 1,
    as_json: Annotated[bool, plain("Print one JSON object for each run.", "--json")] = False,
) -> None:
    """Simulate churn in an overlay, then a quiet time, and report missed messages and when the tree was whole again.

    \b
    Crashes and lost notes:
      contrada overlay churn --crashes 0.5 --joins 0.5 --loss 0.05 --resend 0.2
    The same with the paper's protocol, in which no peer keeps messages:
      contrada overlay churn --crashes 0.5 --joins 0.5 --loss 0.05 --resend 0.2 --kept 0
    """
    from contrada.overlay.rules import Rules
    from contrada.overlay.simulation.churn import Churn
    from contrada.overlay.simulation.network import Network
    from contrada.papers.overlay.churn import measure_churn

    least, most = degree_of(degree)
    rules = Rules(least, most, chosen_way(choose, split), split.value, kept=kept, retention=retention)
    network = Network(latency, jitter, loss, doubling, resend)
    rates = Churn(joins, leaves, crashes, corruptions, messages)
    rows = []
    for each in range(seed, seed + seeds):
        row = measure_churn(peers, seconds, rates, network, rules, distribution, each)
        typer.echo(json.dumps(row) if as_json else "\n".join(told_churn(row)))
        rows.append(row)
        summary_of_run().note(runs=len(rows), messages=sum(one["messages"] for one in rows))
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
        f"no holder left    {row['extinct']:,}; {row['repeated']:,} delivered twice",
        f"whole again       {healed}, with {counted(row['peers_after'], 'peer')}",
        f"notes             {row['notes_per_second']:,.0f} a second, {row['carrying_per_second']:,.0f} with messages, "
        f"{row['bytes_per_second'] / 1e3:,.1f} kB a second",
        f"kept              {row['kept_messages']:,.1f} messages per peer, {row['kept_messages_max']:,} at most; "
        f"{row['kept_bytes'] / 1e3:,.1f} kB, {row['kept_bytes_max'] / 1e3:,.1f} kB at most",
    ]


def told_seeds(rows: list[dict[str, Any]]) -> str:
    """Return one line about several rows of churn: means and ranges."""
    missed = [100 * row["false_negative_ratio"] for row in rows]
    healed = [inf if row["healed_after"] is None else row["healed_after"] for row in rows]
    notes = [row["notes_per_second"] for row in rows]
    return (
        f"{len(rows)} seeds: {mean(missed):.3f} % missed meanwhile ({min(missed):.3f} to {max(missed):.3f}), "
        f"{sum(row['extinct'] for row in rows):,} of {sum(row['wanted'] for row in rows):,} had no holder left, "
        f"{counted(sum(row['false_negatives_after'] for row in rows), 'false negative')} afterwards, "
        f"whole again after {mean(healed):.1f} s ({min(healed):.1f} to {max(healed):.1f}), "
        f"{mean(notes):,.0f} notes a second, {mean(row['kept_messages'] for row in rows):.1f} messages kept per peer"
    )


PICTURES = (".svg", ".png", ".pdf")


@app.command()
def show(
    output: Annotated[Path, plain("Picture with the suffix svg, png or pdf.", "--output", "-o")] = Path("overlay.svg"),
    subscriptions: Annotated[int, plain("Number of peers, each with one subscription.", min=1, max=2000)] = 60,
    dimensions: Annotated[int, plain("Number of attributes; with two, boxes are drawn.", min=1)] = 2,
    split: Annotated[str, plain("quadratic, linear or rstar.")] = "quadratic",
    choose: Annotated[str, plain("r or rstar.")] = "r",
    sketch: Sketch = 0,
    degree: Degree = "2,5",
    distribution: Distribution = "uniform-25:75",
    seed: Annotated[int, plain("Random seed; equal seeds give equal trees.", min=0)] = 1,
    message: Annotated[str | None, plain("Position of a message: one number per dimension.")] = None,
    at: Annotated[int | None, plain("Peer that publishes the message; default: the root.")] = None,
    trace: Annotated[Path | None, plain("Trace to replay instead of building a new tree.")] = None,
) -> None:
    """Draw an overlay: its tree, in two dimensions its nested boxes, and the path of one message.

    \b
    A small tree, and a message in the middle:
      contrada overlay show --message 500,500 --output overlay.svg
    The overlay at the end of a trace:
      contrada overlay show --trace trace.ndjson --output overlay.png
    """
    from contrada.overlay.boxes import point_box
    from contrada.overlay.simulation.drawing import draw
    from contrada.overlay.simulation.trace import replay
    from contrada.papers.overlay.run import Setting, build
    from contrada.papers.overlay.workload import draw_subscriptions

    if output.suffix.lower() not in PICTURES:
        raise OverlayError(f"--output {output}: need one of the suffixes {', '.join(PICTURES)}")
    require_matplotlib()
    if trace is not None:
        simulator = replay(trace)
    else:
        least, most = degree_of(degree)
        setting = Setting(split=split, choose=choose, sketch=sketch, least=least, most=most, seed=seed)
        simulator = build(
            draw_subscriptions(subscriptions, dimensions, distribution, np.random.default_rng(seed)), setting
        )
    spread = None
    if message is not None:
        if simulator.network is not None:
            raise OverlayError("--message does not work with the trace of a network")
        spread = simulator.publish(point_box(_numbers(message)), simulator.root if at is None else at)
    typer.echo(draw(simulator, output, spread))
    summary_of_run().note(outputs=[output])


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise OverlayError(f"--message: need one number per dimension, such as 500,500, got {text!r:.60}") from None
