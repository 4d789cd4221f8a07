"""`contrada doctor --warm`: compile all kernels into the cache, on all cores, so that no first use waits for them."""

from __future__ import annotations

import typer

from contrada import kernels
from contrada.cli.progress import ProgressLine
from contrada.pipeline.warming import Warming

# Entries that take longest to compile come first, so that no core waits for one of them at the end.
LONGEST = ("match_scalars", "match_regions", "validate_regions", "relate_rows", "match_points", "kd_replay", "z_replay")


def warm_up() -> None:
    """Compile what is not in the cache yet, and show progress."""
    names = [*LONGEST, *sorted(set(kernels.NAMES) - {*LONGEST})]
    with ProgressLine(True) as progress, Warming(names) as warming:
        for done, name in enumerate(warming.ready(), 1):
            progress.step(f"compiled {name}", done, len(kernels.NAMES))
    typer.echo(f"{len(kernels.NAMES)} kernels are compiled", err=True)
