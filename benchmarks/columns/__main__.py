"""Filters that mix a region with text and numbers, in columns: batches, newline JSON, Spark, texts of filters.

    python -m benchmarks.columns [--quick] [--only batches,single] [--seed 7] [--write]

20,000 subscriptions and messages with points, drawn at random. Answers of batches are compared with the peer's, answers
of the command line and of Spark with those of one process. Writes build/bench/columns.json.
"""

from benchmarks.columns import batches, doors, texts
from benchmarks.command import run_sections

SECTIONS = {
    "batches": batches.in_batches,
    "single": batches.one_by_one,
    "texts": texts.by_shape,
    "lines": doors.newline_json,
    "spark": doors.on_spark,
}

if __name__ == "__main__":
    run_sections("columns", __doc__, SECTIONS)
