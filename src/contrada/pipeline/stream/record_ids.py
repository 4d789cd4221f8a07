"""Ids of written rows: equal when a batch is repeated, and different for two rows of one batch.

Two messages with one id are two messages, so equal rows of a batch are counted: the id of a row is a digest of the
stream, the batch, the row's text and its number among equal rows. A repeated batch has the same rows, and so the same
ids, in whatever order and partitions they come.
"""

from __future__ import annotations

import math

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

ROW_ID = "row_id"
ROWS_PER_TASK = 100_000
SEPARATOR = "\x1f"  # between the parts of what is digested
_TEXT, _NUMBER = "__text", "__number"


def with_row_ids(rows: DataFrame, stream: str, batch: int, count: int) -> DataFrame:
    """Return the rows of a batch with the column `row_id`; `count` is about their number.

    Rows are shuffled by their text, into one task for each 100,000 rows.
    """
    tasks = max(1, math.ceil(count / ROWS_PER_TASK))
    known = rows.withColumn(_TEXT, f.to_json(f.struct(*(f.col(f"`{name}`") for name in rows.columns))))
    together = known.repartition(tasks, _TEXT)
    number = f.row_number().over(Window.partitionBy(_TEXT).orderBy(f.lit(0)))
    numbered = together.withColumn(_NUMBER, number)
    parts = f.lit(stream), f.lit(str(batch)), f.col(_NUMBER).cast("string"), f.col(_TEXT)
    digest = f.substring(f.sha2(f.concat_ws(SEPARATOR, *parts), 256), 1, 32)
    return numbered.withColumn(ROW_ID, digest).drop(_TEXT, _NUMBER)
