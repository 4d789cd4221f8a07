"""`contrada doctor --warm`: compile all kernels into the cache, on all cores, so that no first use waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import typer

from contrada import kernels
from contrada.cli.progress import ProgressLine
from contrada.geometry.pool import cores

# Those that take longest to compile come first, so that no core waits for one of them at the end.
LONGEST = ("match_regions", "match_scalars", "relate_rows", "validate_regions", "match_points", "kd_replay", "z_replay")


def warm_up() -> None:
    """Compile what is not in the cache yet, and show progress."""
    with ProgressLine(True) as progress:
        for done, name in enumerate(compiled(cores()), 1):
            progress.step(f"compiled {name}", done, len(kernels.NAMES))
    typer.echo(f"{len(kernels.NAMES)} kernels are compiled", err=True)


def compiled(processes: int) -> Iterator[str]:
    """Compile or load every kernel in `processes` processes; yield the names as they are ready."""
    rest = sorted(set(kernels.NAMES) - {*LONGEST})
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:  # a fork would copy threads of the caller
        for ready in as_completed([pool.submit(_ready, name) for name in (*LONGEST, *rest)]):
            yield ready.result()


def _ready(name: str) -> str:
    kernels.compiled_kernel(name)
    return name
