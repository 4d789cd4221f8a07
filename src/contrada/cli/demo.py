"""Run the whole pipeline on embedded Spark: ingest, compile, match, report.

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

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from contrada.cli.ending import require_spark
from contrada.cli.options import plain
from contrada.cli.summary import summary_of_run
from contrada.errors import ContradaError

OUTPUT = Path("contrada-demo")


def demo(
    output: Annotated[Path, plain("Directory for data, tables and the report.", "--output", "-o")] = OUTPUT,
    data: Annotated[Path | None, plain("Directory of your own data.")] = None,
    scale: Annotated[float, plain("Size of the generated district, as a factor.", min=0.01, max=100)] = 1.0,
    seed: Annotated[int, plain("Random seed of the generated district.")] = 7,
    master: Annotated[str | None, plain("Spark master; default: all cores of this machine.")] = None,
) -> None:
    """Run the demonstration; the docstring of this module is the help page."""
    if data is not None and not data.is_dir():
        raise ContradaError(f"{data} is not a directory")
    require_spark()
    from contrada.cli.spark.running import interruptible
    from contrada.demo.run import Demo

    with interruptible() as interruption:
        numbers = Demo(output, data, master).run(scale, seed, interruption.start)
    found = {"subscriptions": numbers.subscriptions, "messages": numbers.messages, "matches": numbers.matches}
    summary_of_run().note(outputs=[output], rejected=numbers.rejected.rows, **found)
