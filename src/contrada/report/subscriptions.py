"""Number the subscriptions that matched, in an order in which neighbours are close, and write them as JSON lines.

The unit of a match is a subscription (its key), or a subscriber if the matches have no keys. A subscription without a
geometry is drawn at the first region or point that its filter names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from contrada.cql2 import parse
from contrada.errors import ContradaError
from contrada.geometry import Line, Point, Region
from contrada.report.columns import GEOMETRY, MAX_VALUE_LENGTH, first_column, wkb_column
from contrada.report.numbers import CountedTables, persisted
from contrada.report.shapes import ShapeEncoder, several, z_order
from contrada.report.text import json_text, without_coordinates

MAX_REGIONS_PER_SUBSCRIBER = 100  # drawn for one subscriber, if the matches have no keys
MAX_OVERVIEW = 5000  # regions on the map while no message is chosen
OVERVIEW_VERTICES = 60  # of one of these
MAX_SHOWN_FILTER_LENGTH = 300  # characters of a filter without coordinates
Box = tuple[float, float, float, float]
PREPARED = "unit string, subscriber string, matches long, wkb binary, line string, x double, y double"


@contextmanager
def numbered_subscriptions(kept: CountedTables, encoder: ShapeEncoder) -> Iterator[DataFrame]:
    """Return the subscriptions that matched: number, unit, subscriber, wkb and line; persisted within the context.

    They are numbered from 0 in Z-order. `wkb` is exact, and null if a unit has not exactly one region.
    """
    run, unit = kept.run, kept.unit
    has_subscriber = unit == "key" and "subscriber" in run.subscriptions.columns
    group = [F.col(unit).cast("string").alias("unit"), F.col("subscriber").cast("string").alias("subscriber")]
    matched = run.matches.groupBy(*group).agg(F.count(F.lit(1)).alias("matches"))
    known = _known(kept, has_subscriber)
    both = F.col("unit").eqNullSafe(F.col("_unit"))
    if has_subscriber:
        both = both & F.col("subscriber").eqNullSafe(F.col("_subscriber"))
    joined = matched.join(known, both, "left").select("unit", "subscriber", "matches", "shapes")
    with persisted(joined.mapInArrow(_preparer(encoder), PREPARED)) as prepared:
        box = prepared.agg(F.min("x"), F.min("y"), F.max("x"), F.max("y")).first()
        corners: Any = tuple(box) if box is not None and box[0] is not None else (0.0, 0.0, 1.0, 1.0)
        ordered = prepared.mapInArrow(_placer(corners), PREPARED.replace("x double, y double", "place long"))
        # All rows go through one task, which sorts on disk if need be.
        number = F.row_number().over(Window.orderBy("place", "unit", "subscriber")) - 1
        with persisted(ordered.withColumn("number", number.cast("long")).drop("place")) as numbered:
            yield numbered


def _known(kept: CountedTables, has_subscriber: bool) -> DataFrame:
    """Return _unit, _subscriber and shapes (WKB and filter): one row for each unit of the table of subscriptions."""
    table, unit = kept.run.subscriptions, kept.unit
    given = F.col(unit).cast("string") if unit in table.columns else F.lit(None).cast("string")
    owner = F.col("subscriber").cast("string") if has_subscriber else F.lit("")
    rows = table.select(given.alias("_unit"), owner.alias("_subscriber"), _shape(table).alias("shape"))
    shapes = F.slice(F.sort_array(F.collect_set("shape")), 1, 1 if unit == "key" else MAX_REGIONS_PER_SUBSCRIBER)
    return rows.groupBy("_unit", "_subscriber").agg(shapes.alias("shapes"))


def _shape(table: DataFrame) -> Column:
    """Return WKB and filter of a row of subscriptions, as far as the table has them."""
    asked = F.col("filter") if "filter" in table.columns else F.lit(None)
    return F.struct(wkb_column(table, first_column(table, *GEOMETRY)), asked.cast("string").alias("filter"))


def overview_lines(kept: CountedTables, encoder: ShapeEncoder, most: int = MAX_OVERVIEW) -> list[str]:
    """Return lines of subscriptions, matched or not, for the map without a chosen message: those of least hash."""
    table, unit = kept.run.subscriptions, kept.unit
    if unit not in table.columns:
        return []
    owner = F.col("subscriber").cast("string") if "subscriber" in table.columns else F.lit("")
    rows = table.select(
        F.col(unit).cast("string").alias("unit"), owner.alias("subscriber"), F.array(_shape(table)).alias("shapes")
    )
    order = F.xxhash64("unit", "subscriber", F.col("shapes")[0]["wkb"]), F.col("unit")
    some = rows.orderBy(*order).limit(most)
    counts = kept.units.withColumnRenamed("unit", "_unit")
    counted = some.join(F.broadcast(counts), F.col("unit").eqNullSafe(F.col("_unit")), "left")
    chosen = counted.select("unit", "subscriber", F.coalesce("matches", F.lit(0)).alias("matches"), "shapes")
    small = ShapeEncoder(encoder.crs, OVERVIEW_VERTICES)
    found = chosen.mapInArrow(_preparer(small), PREPARED).where("x IS NOT NULL").select("line").collect()
    return sorted(row["line"] for row in found)


def _preparer(encoder: ShapeEncoder) -> Any:
    """Return the work of a task: rows of unit, subscriber, matches and shapes become rows of PREPARED."""

    def prepare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _prepared(batch, encoder)

    return prepare


def _prepared(batch: pa.RecordBatch, encoder: ShapeEncoder) -> pa.RecordBatch:
    rows, filters, regions = [], [], []
    for row, shapes in enumerate(batch.column("shapes").to_pylist()):
        for shape in shapes or ():
            rows.append(row)
            filters.append(shape["filter"])
            regions.append(region_of_filter(shape["filter"]) if shape["wkb"] is None else shape["wkb"])
    texts, boxes = encoder.encode(pa.array(regions, pa.binary()))
    units, owners, counts = (batch.column(name).to_pylist() for name in ("unit", "subscriber", "matches"))
    of_row: list[list[int]] = [[] for _ in units]
    for place, row in enumerate(rows):
        of_row[row].append(place)
    lines, wkb, centres = [], [], np.full((len(units), 2), np.nan)
    for row, places in enumerate(of_row):
        shown = [without_coordinates(filters[place] or "")[:MAX_SHOWN_FILTER_LENGTH] for place in places[:1]]
        name, owner = (value and value[:MAX_VALUE_LENGTH] for value in (units[row], owners[row]))
        told = json_text([name, owner, shown[0] if shown else "", counts[row]])
        lines.append(f"{told[:-1]},{several(texts[place] for place in places)}]")
        wkb.append(regions[places[0]] if len(places) == 1 else None)
        if places:
            box = boxes[places[0]]
            centres[row] = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    x, y = (pa.array(values, from_pandas=True) for values in centres.T)
    columns = [units, owners, counts, pa.array(wkb, pa.binary()), lines, x, y]
    kinds = [pa.string(), pa.string(), pa.int64(), pa.binary(), pa.string(), pa.float64(), pa.float64()]
    made = [
        pa.array(values, kind) if isinstance(values, list) else values
        for values, kind in zip(columns, kinds, strict=True)
    ]
    return pa.record_batch(made, names=["unit", "subscriber", "matches", "wkb", "line", "x", "y"])


def _placer(box: Box) -> Any:
    """Return the work of a task: x and y become the place in Z-order within `box`."""

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            x, y = (batch.column(name).to_numpy(zero_copy_only=False).astype(float) for name in ("x", "y"))
            columns = [batch.column(name) for name in batch.schema.names[:5]]
            yield pa.record_batch([*columns, z_order(x, y, box)], names=[*batch.schema.names[:5], "place"])

    return place


def region_of_filter(text: str | None) -> bytes | None:
    """Return the first region or point that a filter names as WKB; None if there is none, or no valid filter.

    >>> region_of_filter("a = 1 AND inside(area, POINT(1 2))")[:5]
    b'\\x01\\x01\\x00\\x00\\x00'
    >>> region_of_filter("a = 1"), region_of_filter("a ="), region_of_filter(None)
    (None, None, None)
    """
    try:
        asked = parse(text or "")
    except ContradaError:  # refused and counted when the subscriptions were compiled
        return None
    values = (constraint.value for conjunction in asked for constraint in conjunction)
    return next((value.to_wkb() for value in values if isinstance(value, Region | Point | Line)), None)
