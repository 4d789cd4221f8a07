"""`contrada overlay show`: draw a simulated overlay and the path of one message."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.cli.ending import errors_told
from contrada.errors import OverlayError

if TYPE_CHECKING:
    from contrada.overlay.simulation.simulator import Simulator

SHOW = """\
Draw an overlay: its tree, in two dimensions its nested boxes, and the path of one message.

\b
A small tree, and a message in the middle:
  contrada overlay show --message 500,500 --output overlay.svg
The overlay at the end of a trace:
  contrada overlay show --trace trace.ndjson --output overlay.png
"""
FORMATS = (".svg", ".png", ".pdf")


def show(
    output: Annotated[Path, typer.Option("--output", "-o", help="Picture with the suffix svg, png or pdf.")] = Path(
        "overlay.svg"
    ),
    subscriptions: Annotated[
        int, typer.Option(min=1, max=2000, help="Number of peers, each with one subscription.")
    ] = 60,
    dimensions: Annotated[int, typer.Option(min=1, help="Number of attributes; with two, boxes are drawn.")] = 2,
    split: Annotated[str, typer.Option(help="quadratic, linear or rstar.")] = "quadratic",
    choose: Annotated[str, typer.Option(help="r or rstar.")] = "r",
    sketch: Annotated[int, typer.Option(min=0, help="Number of boxes that a parent keeps of a low node; 0: one.")] = 0,
    degree: Annotated[
        str, typer.Option(help="Minimum and maximum number of children of a node.", metavar="m,M")
    ] = "2,5",
    distribution: Annotated[
        str, typer.Option(help="uniform or zipf, optionally with -25:75 or -10:90.")
    ] = "uniform-25:75",
    seed: Annotated[int, typer.Option(min=0, help="Random seed; equal seeds give equal trees.")] = 1,
    message: Annotated[
        str | None, typer.Option(help="Position of a message: one number per dimension.", show_default=False)
    ] = None,
    at: Annotated[
        int | None, typer.Option(help="Peer that publishes the message; default: the root.", show_default=False)
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Trace to replay instead of building a new tree.", show_default=False)
    ] = None,
) -> None:
    """Draw an overlay; the help text is SHOW."""
    from contrada.cli.experiment import require_matplotlib
    from contrada.overlay.boxes import point_box
    from contrada.overlay.simulation.drawing import draw

    with errors_told():
        if output.suffix.lower() not in FORMATS:
            raise OverlayError(f"{output}: a picture is one of {', '.join(FORMATS)}")
        require_matplotlib()
        if trace is not None:
            from contrada.overlay.simulation.trace import replay

            simulator = replay(trace)
        else:
            simulator = _grown(subscriptions, dimensions, split, choose, sketch, degree, distribution, seed)
        spread = None
        if message is not None:
            if simulator.network is not None:
                raise OverlayError("a message is drawn where no time passes: not after a trace with a network")
            spread = simulator.publish(point_box(_numbers(message)), simulator.root if at is None else at)
        typer.echo(draw(simulator, output, spread))


def _grown(
    subscriptions: int, dimensions: int, split: str, choose: str, sketch: int, degree: str, distribution: str, seed: int
) -> Simulator:
    from dataclasses import replace

    import numpy as np

    from contrada.cli.overlay import degree_of
    from contrada.papers.overlay.run import Setting, build
    from contrada.papers.overlay.workload import draw_subscriptions

    least, most = degree_of(degree)
    setting = replace(Setting(), split=split, choose=choose, sketch=sketch, least=least, most=most, seed=seed)
    boxes = draw_subscriptions(subscriptions, dimensions, distribution, np.random.default_rng(seed))
    return build(boxes, setting, lambda what, done, total: None)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise OverlayError(f"--message is a number for each dimension as in 500,500, not {text!r}") from None
