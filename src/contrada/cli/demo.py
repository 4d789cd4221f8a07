"""`contrada demo`: run the whole pipeline on one machine, from files to a report, on synthetic or your own data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contrada.cli.ending import errors_told, require_spark

HELP = """\
Run the whole pipeline on embedded Spark: ingest, compile, match, report.

Without --data it generates a district: parcels and buildings with shared walls, facilities with thresholds, storms \
and plumes that move through it for a day, and a few rows that are bad on purpose.

\b
Your own data: a directory with
  messages.*        message_id and one column per attribute; the geometry is the attribute `area`
  subscriptions.*   rows of key, subscriber and filter (CQL2), if you have any
  anything else     files of regions, each a subscription to messages that meet it; column min_severity: a threshold

\b
  contrada demo
  contrada demo --scale 5 --output /tmp/district
  contrada demo --data warnings/ --output warnings-report
"""

Output = Annotated[Path, typer.Option("--output", "-o", help="Directory for data, tables and the report.")]
Data = Annotated[Path | None, typer.Option(help="Directory of your own data.")]
Scale = Annotated[float, typer.Option(min=0.01, max=100, help="Size of the generated district, as a factor.")]
Seed = Annotated[int, typer.Option(help="Random seed of the generated district.")]
Master = Annotated[str | None, typer.Option(help="Spark master; default: all cores of this machine.")]


def demo(
    output: Output = Path("contrada-demo"), data: Data = None, scale: Scale = 1.0, seed: Seed = 7, master: Master = None
) -> None:
    """Run the demonstration; the help text is HELP."""
    with errors_told():
        from contrada.errors import ContradaError

        if data is not None and not data.is_dir():
            raise ContradaError(f"{data} is no directory")
        require_spark()
        from contrada.cli.spark_running import interruptible
        from contrada.demo.run import Demo

        with interruptible() as interruption:
            Demo(output, data, master).run(scale, seed, interruption.start)
