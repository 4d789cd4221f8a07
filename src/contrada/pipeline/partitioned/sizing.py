"""Estimate the size of a table and the limits on it, by which `compile` chooses the plan."""

from __future__ import annotations

import re
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from contrada.amounts import byte_size, counted
from contrada.errors import ContradaError, TableError

BROADCAST_BYTES = "spark.contrada.broadcast.bytes"  # maximum size of a table that every worker maps
PARTITION_BYTES = "spark.contrada.partition.bytes"  # approximate size of a partition
WORKER_MEMORY = "spark.executor.pyspark.memory"
DEFAULT_BROADCAST_BYTES, DEFAULT_PARTITION_BYTES = 4 << 30, 256 << 20
# Measured, docs/scale.md: a table takes the bytes of its binary columns plus ROW_BYTES per row; text takes less.
ROW_BYTES = 64
SIZE = re.compile(r"([0-9]+)([bkmgt]?)b?")
UNITS = {"": 1 << 20, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class TableSize(NamedTuple):
    """Number of rows of subscriptions, and the bytes of their filters or geometry."""

    rows: int
    bytes: int

    @property
    def table(self) -> int:
        """Return the approximate size of the table in bytes."""
        return self.bytes + ROW_BYTES * self.rows

    def __str__(self) -> str:
        return f"{counted(self.rows, 'row')} with {byte_size(self.bytes)} make a table of about {byte_size(self.table)}"


def measured(subscriptions: DataFrame, columns: dict[str, Column]) -> TableSize:
    """Count the rows of subscriptions and the bytes of their columns, within Spark's JVM."""
    sent = subscriptions.select(*columns.values()).toDF(*(f"c{k}" for k in range(len(columns))))
    long = [field.name for field in sent.schema if field.dataType.typeName() in ("binary", "string")]
    sums = [f.coalesce(f.sum(f.octet_length(name)), f.lit(0)) for name in long]
    found = sent.agg(f.count(f.lit(1)), *sums).collect()[0]
    return TableSize(int(found[0]), sum(int(size) for size in found[1:]))


def table_limits(session: SparkSession) -> tuple[int, int]:
    """Return maximum bytes of a broadcast table and of a partition: as set, or 1/2 and 1/8 of a worker's memory."""
    worker = session.conf.get(WORKER_MEMORY, None)
    workers = max(1, int(session.conf.get("spark.executor.cores", None) or 1))  # they share an executor's memory
    memory = None if worker is None else bytes_of(WORKER_MEMORY, worker) // workers

    def limit(name: str, share: int, usual: int) -> int:
        own = session.conf.get(name, None)
        return bytes_of(name, own, "b") if own is not None else usual if memory is None else memory // share

    partition = limit(PARTITION_BYTES, 8, DEFAULT_PARTITION_BYTES)
    return limit(BROADCAST_BYTES, 2, DEFAULT_BROADCAST_BYTES), max(1, partition)


def too_large(error: Exception, session: SparkSession) -> TableError | None:
    """Return the error to raise if a worker had too little memory for a whole table; None for other errors."""
    if not any(word in str(error) for word in ("MemoryError", "Cannot allocate memory")):
        return None
    worker = session.conf.get(WORKER_MEMORY, None)
    limit = "" if worker is None else f", which {WORKER_MEMORY} limits to {worker},"
    return TableError(
        f'the memory of a Python worker{limit} is too small for the table of all subscriptions; use plan="partitioned"'
    )


def bytes_of(name: str, text: str, unit: str = "") -> int:
    """Return the number of bytes of a size setting in Spark's notation.

    >>> bytes_of("spark.executor.pyspark.memory", "2g"), bytes_of("spark.contrada.partition.bytes", "64", "b")
    (2147483648, 64)
    """
    found = SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise ContradaError(f"{name}: need a size such as 512m or 2g, got {text!r:.60}")
    return int(found[1]) * UNITS[found[2] or unit]
