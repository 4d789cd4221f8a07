"""Choose the sample on the map of a report: messages, the subscriptions they matched, and other subscriptions.

The sample is chosen by a hash of the ids, so equal tables give equal maps. Spark samples and simplifies; only drawn
rows reach the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from contrada.cql2 import parse
from contrada.errors import ContradaError
from contrada.geometry import Point, Region
from contrada.geometry.outline import simplified
from contrada.report.numbers import CountedTables, persisted, text_column

MAX_MATCHED_MESSAGES, MAX_UNMATCHED_MESSAGES = 240, 60  # maximum drawn: with matches, and without
MAX_REGIONS = 2500  # maximum drawn
MAX_MATCHES_PER_MESSAGE = 120  # maximum drawn per message
LEADING_MATCHES = 5  # of every message: drawn before further matches of others, so that no message is without any
MAX_SHOWN_ATTRIBUTES = 12  # shown per message
MAX_VALUE_LENGTH = 120  # characters of one value
# Preferred columns of the time and the geometry of messages, else the first column of one of the types.
TIME = ("onset", "sent", "time", "timestamp", "effective", "at"), ("timestamp", "date")
GEOMETRY = ("geometry", "area", "geom", "wkb"), ("binary", "geometry")


class DrawnMessage(NamedTuple):
    """A message on the map; `regions` are positions among the drawn regions, `matches` counts all."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    wkb: bytes | None
    matches: int
    regions: tuple[int, ...]


class DrawnRegion(NamedTuple):
    """A subscription on the map."""

    key: str
    subscriber: str
    wkb: bytes | None
    matches: int


class DrawnSample(NamedTuple):
    """The messages and regions on the map."""

    messages: tuple[DrawnMessage, ...]
    regions: tuple[DrawnRegion, ...]

    def halved(self) -> DrawnSample:
        """Return every second message and the first half of the regions, for a page that is too large."""
        kept = len(self.regions) // 2
        messages = tuple(
            message._replace(regions=tuple(row for row in message.regions if row < kept))
            for message in self.messages[::2]
        )
        return DrawnSample(messages, self.regions[:kept])


def first_column(frame: DataFrame, preferred: tuple[str, ...], kinds: tuple[str, ...]) -> str | None:
    """Return the first of the `preferred` columns that has one of the types `kinds`, else the first of such a type."""
    fitting = [name for name, kind in frame.dtypes if kind.startswith(kinds)]
    return next((name for name in (*preferred, *fitting) if name in fitting), None)


def _wkb(frame: DataFrame, name: str | None) -> Column:
    if name is None:
        return F.lit(None).cast("binary").alias("wkb")
    value = frame[name]
    return (value if dict(frame.dtypes)[name] == "binary" else F.st_asbinary(value)).alias("wkb")


def sample_of(kept: CountedTables) -> DrawnSample:
    """Choose the sample and collect it."""
    with persisted(_chosen(kept)) as chosen, persisted(_pairs(chosen, kept.run.matches, kept.unit)) as pairs:
        regions = _regions(kept, pairs)
        return DrawnSample(_messages(chosen, kept.run.messages, _drawn_rows(pairs, regions)), regions)


def _chosen(kept: CountedTables) -> DataFrame:
    """Return _chosen (the id), _time and _matches of the drawn messages; no attribute has these names."""
    usable = kept.messages.where("copies > rejected").withColumn("hash", F.xxhash64("message_id"))
    # As many messages with many matches as with few, though these may be a thousand times more frequent.
    alike = Window.partitionBy(F.floor(F.log2("matches"))).orderBy("hash")
    ranked = usable.where("matches > 0").withColumn("rank", F.row_number().over(alike))
    some = ranked.orderBy("rank", "hash").limit(MAX_MATCHED_MESSAGES).drop("rank")
    none = usable.where("matches = 0").orderBy("hash").limit(MAX_UNMATCHED_MESSAGES)
    return some.unionByName(none).select(
        F.col("message_id").alias("_chosen"), F.col("time").alias("_time"), F.col("matches").alias("_matches")
    )


def _pairs(chosen: DataFrame, matches: DataFrame, unit: str) -> DataFrame:
    """Return _chosen, unit and rank: the matches of the chosen messages, at most MAX_MATCHES_PER_MESSAGE of each."""
    found = matches.select("message_id", F.col(unit).cast("string").alias("unit"))
    # The chosen messages are few: they are broadcast, and the large table of matches is not shuffled.
    joined = found.join(F.broadcast(chosen), found["message_id"].eqNullSafe(chosen["_chosen"]))
    order = Window.partitionBy("_chosen").orderBy(F.xxhash64("unit"), "unit")
    ranked = joined.select("_chosen", "unit").distinct().withColumn("rank", F.row_number().over(order))
    return ranked.where(F.col("rank") <= MAX_MATCHES_PER_MESSAGE)


def _regions(kept: CountedTables, pairs: DataFrame) -> tuple[DrawnRegion, ...]:
    """Return the regions that the chosen messages matched, then others, up to MAX_REGIONS."""
    subscriptions = kept.run.subscriptions
    place = first_column(subscriptions, *GEOMETRY)
    if kept.unit not in subscriptions.columns or (place is None and "filter" not in subscriptions.columns):
        return ()
    leads = (F.min("rank") <= LEADING_MATCHES).alias("leads")
    asked = pairs.groupBy("unit").agg(F.count(F.lit(1)).alias("asked"), leads)
    # Without geometry, the column `wkb` has the filters until their regions replace them.
    shape = F.col("filter").cast("string").cast("binary").alias("wkb") if place is None else _wkb(subscriptions, place)
    unit, subscriber = F.col(kept.unit).cast("string"), text_column(subscriptions, "subscriber", MAX_VALUE_LENGTH)
    rows = subscriptions.select(unit.alias("unit"), subscriber, shape).where(F.col("wkb").isNotNull())
    order = (F.desc_nulls_last("leads"), F.desc_nulls_last("asked"), F.xxhash64("unit"), "unit")
    picked = rows.join(F.broadcast(asked), "unit", "left").orderBy(*order).limit(MAX_REGIONS)
    counts = kept.units.withColumnRenamed("matches", "count")
    counted = picked.join(counts, "unit", "left")
    work = _simplify_batches if place is not None else _regions_of_filters
    drawn = counted.mapInArrow(work, counted.schema).orderBy(*order).collect()
    return tuple(
        DrawnRegion(str(row["unit"]), row["subscriber"] or "", row["wkb"], row["count"] or 0)
        for row in drawn
        if row["wkb"] is not None
    )


def _simplify_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Simplify the column `wkb`; null where nothing can be drawn."""
    for batch in batches:
        place = batch.schema.get_field_index("wkb")
        yield batch.set_column(place, batch.schema.field(place), simplified(batch.column(place)))


def _regions_of_filters(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Replace the filters in the column `wkb` by the first region or point in each, if any."""
    for batch in batches:
        place = batch.schema.get_field_index("wkb")
        found = pa.array([_region_of(text.decode()) for text in batch.column(place).to_pylist()], type=pa.binary())
        yield from _simplify_batches(iter([batch.set_column(place, batch.schema.field(place), found)]))


def _region_of(text: str) -> bytes | None:
    try:
        asked = parse(text)
    except ContradaError:  # refused and counted when the subscriptions were compiled
        return None
    values = (constraint.value for conjunction in asked for constraint in conjunction)
    return next((value.to_wkb() for value in values if isinstance(value, Region | Point)), None)


def _drawn_rows(pairs: DataFrame, regions: tuple[DrawnRegion, ...]) -> dict[str, list[int]]:
    """Return the drawn regions that each chosen message matched, by the message's id as text."""
    rows: dict[str, list[int]] = {}
    for row, region in enumerate(regions):
        rows.setdefault(region.key, []).append(row)
    found: dict[str, list[int]] = {}
    for pair in pairs.select(F.col("_chosen").cast("string").alias("name"), "unit").collect():
        found.setdefault(str(pair["name"]), []).extend(rows.get(pair["unit"], ()))
    return found


def _messages(chosen: DataFrame, messages: DataFrame, drawn: dict[str, list[int]]) -> tuple[DrawnMessage, ...]:
    place = first_column(messages, *GEOMETRY)
    nested = ("binary", "array", "map", "struct", "geometry", "geography", "variant")
    plain = [name for name, kind in messages.dtypes if not kind.startswith(nested) and name != "message_id"]
    shown = plain[:MAX_SHOWN_ATTRIBUTES]
    values = [text_column(messages, name, MAX_VALUE_LENGTH).alias(f"value{k}") for k, name in enumerate(shown)]
    rows = messages.join(F.broadcast(chosen), messages["message_id"].eqNullSafe(chosen["_chosen"]))
    name, time, matches = F.col("_chosen").cast("string"), F.col("_time").alias("time"), F.col("_matches")
    picked = rows.select(name.alias("name"), time, matches.alias("matches"), _wkb(messages, place), *values)
    limited = picked.orderBy("time", "name").limit(MAX_MATCHED_MESSAGES + MAX_UNMATCHED_MESSAGES)
    found = limited.mapInArrow(_simplify_batches, limited.schema).orderBy("time", "name").collect()
    made = []
    for row in found:
        attributes = tuple((name, value) for name, value in zip(shown, row[4:], strict=True) if value)
        regions = tuple(sorted(drawn.get(str(row["name"]), ())))
        made.append(DrawnMessage(str(row["name"]), attributes, row["wkb"], row["matches"], regions))
    return tuple(made)
