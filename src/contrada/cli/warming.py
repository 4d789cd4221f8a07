"""`contrada doctor --warm`: compile all kernels into the cache, on all cores, so that no first use waits for them."""

from __future__ import annotations

import typer

from contrada import kernels
from contrada.cli.progress import ProgressLine
from contrada.pipeline.warming import Warming


def warm_up() -> None:
    """Compile what is not in the cache yet, and show progress."""
    with ProgressLine(True) as progress, Warming(kernels.NAMES) as warming:
        for done, name in enumerate(warming.ready(), 1):
            progress.step(f"compiled {name}", done, len(kernels.NAMES))
    typer.echo(f"{len(kernels.NAMES)} kernels are compiled", err=True)
