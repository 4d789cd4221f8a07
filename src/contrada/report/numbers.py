"""Compute the numbers of a report in Spark; only small tables reach the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from contrada.report.columns import text_column
from contrada.spark_names import quoted

MAX_BUSIEST = 12  # subscriptions in the table of the busiest
MAX_SHOWN_REASONS = 15  # kinds of reasons listed, the most frequent first
MAX_FILTER_LENGTH = 4000  # characters of a filter that reach the driver
MAX_TIME_STEPS = 72  # maximum number of steps on the time axis
MINUTE, HOUR, DAY = 60, 3600, 86400
STEP_SECONDS = (
    *(1, 5, 15, 30),
    *(MINUTE * count for count in (1, 5, 10, 15, 30)),
    *(HOUR * count for count in (1, 2, 3, 6, 12)),
    *(DAY * count for count in (1, 2, 7, 14, 30, 91, 365, 3650, 36500)),
)
# A separate number: a coordinate, a row, a NaN. Reasons that differ only in such numbers are of one kind.
NUMBER_PATTERN = r"(?<![\w.])-?(\d+(\.\d*)?([eE][-+]?\d+)?|nan|inf)(?!\w)"


class RunTables(NamedTuple):
    """The tables of a run, as `write_report` takes them."""

    messages: DataFrame
    subscriptions: DataFrame
    matches: DataFrame
    rejected: DataFrame
    quarantine: DataFrame | None = None
    set_aside: DataFrame | None = None


@dataclass(frozen=True)
class Bin:
    """The number of messages or subscriptions with `low` to `high` matches, both included."""

    low: int
    high: int
    count: int


class Moment(NamedTuple):
    """A step of time from `start` (seconds since 1970, UTC) on: its messages, and their matches."""

    start: int
    messages: int
    matches: int


class Busy(NamedTuple):
    """A subscription (or, without keys, a subscriber) with its matches."""

    key: str
    subscriber: str
    filter: str
    matches: int


@dataclass(frozen=True)
class Reason:
    """Rows that were refused for one kind of reason, with two examples of place and full reason."""

    text: str
    count: int
    examples: tuple[tuple[str, str], ...]


class Reasons(NamedTuple):
    """The most frequent kinds of reasons, the total number of rows, and the number of kinds."""

    listed: tuple[Reason, ...]
    rows: int
    kinds: int


class Numbers(NamedTuple):
    """All counts of a report; other summaries of the same run take their numbers from here.

    `subscriptions` take part in the match: the given rows without those set aside. `set_aside` are subscriptions that
    `compile` refused, `quarantined` are rows of files that `ingest` refused, and `rejected` are messages that `match`
    refused. No row is in two of them.
    """

    messages: int
    subscriptions: int
    matches: int
    with_match: int
    without_match: int
    unread: int  # rejected messages
    per_message: tuple[Bin, ...]
    per_subscription: tuple[Bin, ...]
    by_key: bool  # False: the matches name subscribers only
    busiest: tuple[Busy, ...]
    over_time: tuple[Moment, ...]
    bucket: int  # seconds
    time_column: str | None
    rejected: Reasons
    quarantined: Reasons | None
    set_aside: Reasons | None


class CountedTables(NamedTuple):
    """The tables of a run, the column with the time of messages, and two persisted tables of counts.

    `messages`: message_id, copies, time, rejected (number of rejected copies), matches. `units`: unit (the key, or the
    subscriber, as text), matches.
    """

    run: RunTables
    time: str | None
    messages: DataFrame
    units: DataFrame
    unit: str  # "key", or "subscriber" if the matches have no keys


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Persist a frame within the block."""
    try:
        yield frame.persist()
    finally:
        frame.unpersist()


@contextmanager
def counted(run: RunTables, time: str | None) -> Iterator[CountedTables]:
    """Count matches by message and by subscription; the counts are persisted within the block."""
    instant = F.lit(None) if time is None else F.col(quoted(time))
    given = run.messages.groupBy("message_id").agg(_rows("copies"), F.min(instant.cast("timestamp")).alias("time"))
    found = run.matches.groupBy("message_id").agg(_rows("matches"))
    refused = run.rejected.groupBy("message_id").agg(_rows("rejected"))
    rejections = F.least(_or_zero("rejected"), F.col("copies")).alias("rejected")
    joined = _left_join(_left_join(given, found), refused)
    by_message = joined.select("message_id", "copies", "time", rejections, _or_zero("matches").alias("matches"))
    unit = "key" if "key" in run.matches.columns else "subscriber"
    by_unit = run.matches.groupBy(F.col(unit).cast("string").alias("unit")).agg(_rows("matches"))
    with persisted(by_message) as messages, persisted(by_unit) as units:
        yield CountedTables(run, time, messages, units, unit)


def _rows(name: str) -> Column:
    """Return the number of rows of a group, as column `name`."""
    return F.count(F.lit(1)).alias(name)


def _or_zero(name: str) -> Column:
    return F.coalesce(name, F.lit(0))


def _left_join(left: DataFrame, right: DataFrame) -> DataFrame:
    """Join by message_id, where null equals null: a message without an id is a message."""
    other = right.withColumnRenamed("message_id", "_other")
    return left.join(other, left["message_id"].eqNullSafe(other["_other"]), "left").drop("_other")


def numbers_of(kept: CountedTables) -> Numbers:
    """Compute all numbers."""
    messages, units = _by_matches(kept.messages), _by_matches_of_units(kept)
    quarantined, aside = (
        None if table is None else _reasons(table, _place(table)) for table in (kept.run.quarantine, kept.run.set_aside)
    )
    seconds = [row[name] for row in messages for name in ("first", "last") if row[name] is not None]
    over_time, bucket = _over_time(kept.messages, seconds)
    return Numbers(
        messages=sum(row["copies"] for row in messages),
        subscriptions=sum(row["given"] for row in units) - (0 if aside is None else aside.rows),
        matches=sum(row["matches"] for row in units),
        with_match=sum(row["accepted"] for row in messages if row["place"] > 0),
        without_match=sum(row["accepted"] for row in messages if row["place"] == 0),
        unread=sum(row["rejected"] for row in messages),
        per_message=_bins({row["place"]: row["accepted"] for row in messages}),
        per_subscription=_bins({row["place"]: row["weight"] for row in units}),
        by_key=kept.unit == "key",
        busiest=_busiest(kept),
        over_time=over_time,
        bucket=bucket,
        time_column=kept.time,
        rejected=_reasons(kept.run.rejected, F.col("message_id").cast("string")),
        quarantined=quarantined,
        set_aside=aside,
    )


def _bit_length(value: Column) -> Column:
    """Return the index of a number among 0, 1, 2-3, 4-7, ...: its length in binary, which is exact."""
    return F.when(value <= 0, 0).otherwise(F.length(F.bin(value.cast("long")))).alias("place")


def _by_matches(messages: DataFrame) -> list[Any]:
    """Return a row for each index (`_bit_length`): copies, accepted, rejected, and the first and last second."""
    accepted = F.col("copies") - F.col("rejected")
    # Messages that share an id share its matches evenly.
    share = F.ceil(F.col("matches") / F.greatest(accepted, F.lit(1)))
    sums = F.sum("copies").alias("copies"), F.sum(accepted).alias("accepted"), F.sum("rejected").alias("rejected")
    span = F.min(_second()).alias("first"), F.max(_second()).alias("last")
    return messages.groupBy(_bit_length(share)).agg(*sums, *span).collect()


def _by_matches_of_units(kept: CountedTables) -> list[Any]:
    """Return a row for each index: given rows, matches, and the weight, which counts keys or else subscribers.

    Rows set aside have no weight. The first good row of a key is compiled and its other rows are set aside, so the
    weight of a key is its number of rows minus those set aside.
    """
    unit, set_aside = kept.unit, kept.run.set_aside
    known = unit in kept.run.subscriptions.columns
    given = F.col(unit) if known else F.lit(None)
    asked = kept.run.subscriptions.groupBy(given.cast("string").alias("_unit")).agg(_rows("given"))
    joined = asked.join(kept.units, F.col("_unit").eqNullSafe(F.col("unit")), "full")
    rows = number = _or_zero("given")
    if set_aside is not None and known and unit in set_aside.columns:
        bad = set_aside.groupBy(F.col(unit).cast("string").alias("_bad")).agg(_rows("aside"))
        joined = joined.join(bad, F.col("_unit").eqNullSafe(F.col("_bad")), "left")
        number = number - _or_zero("aside")
    matches = _or_zero("matches")
    # If keys are row numbers, the table of subscriptions lacks them, and only those that matched count.
    counts = number if known else matches
    weight = counts if known and unit == "key" else (counts > 0).cast("long")
    sums = F.sum(rows).alias("given"), F.sum(matches).alias("matches"), F.sum(weight).alias("weight")
    return joined.groupBy(_bit_length(matches)).agg(*sums).collect()


def _bins(found: dict[int, int]) -> tuple[Bin, ...]:
    """Return the bins 0, 1, 2-3, 4-7, ... matches, up to the last one that is not empty."""
    last = max((place for place, number in found.items() if number), default=-1)
    return tuple(Bin(1 << place >> 1, (1 << place) - 1, found.get(place, 0)) for place in range(last + 1))


def _busiest(kept: CountedTables) -> tuple[Busy, ...]:
    subscriptions = kept.run.subscriptions
    top = kept.units.orderBy(F.desc("matches"), "unit").limit(MAX_BUSIEST)
    if kept.unit == "key" and "key" in subscriptions.columns:
        said = [text_column(subscriptions, name, MAX_FILTER_LENGTH) for name in ("subscriber", "filter")]
        known = subscriptions.select(F.col("key").cast("string").alias("unit"), *said)
        top = top.join(known, "unit", "left")
    rows = [row.asDict() for row in top.orderBy(F.desc("matches"), "unit").limit(MAX_BUSIEST).collect()]
    return tuple(
        Busy(str(row["unit"]), row.get("subscriber") or "", row.get("filter") or "", row["matches"]) for row in rows
    )


def _second() -> Column:
    return F.floor(F.unix_micros("time") / 1_000_000)


def _over_time(messages: DataFrame, seconds: list[int]) -> tuple[tuple[Moment, ...], int]:
    """Count messages and matches by steps of time between the first and the last of `seconds`; return the step too."""
    if not seconds:
        return (), 0
    first, last = min(seconds), max(seconds)
    width = next(width for width in STEP_SECONDS if (last - first) / width <= MAX_TIME_STEPS - 1)
    start = (F.floor(_second() / width) * width).alias("start")
    timed = messages.where(F.col("time").isNotNull()).groupBy(start)
    rows = timed.agg(F.sum("copies").alias("messages"), F.sum("matches").alias("matches")).collect()
    found = {int(row["start"]): (int(row["messages"]), int(row["matches"])) for row in rows}
    starts = range(first // width * width, last + 1, width)
    return tuple(Moment(start, *found.get(start, (0, 0))) for start in starts), width


def _place(quarantine: DataFrame) -> Column:
    """Return file and row of a quarantined row, as far as the table has them."""
    known = [F.col(name).cast("string") for name in ("file", "row") if name in quarantine.columns]
    return F.concat_ws(", row ", *known)


def _reasons(refused: DataFrame, place: Column) -> Reasons:
    whole = F.coalesce(F.col("reason").cast("string"), F.lit("no reason given"))
    kind = F.regexp_replace(F.substring(whole, 1, MAX_FILTER_LENGTH), NUMBER_PATTERN, "…")
    rows = refused.select(
        kind.alias("kind"), F.struct(place.alias("place"), F.substring(whole, 1, 300).alias("said")).alias("row")
    )
    kinds = rows.groupBy("kind").agg(_rows("count"), F.min("row").alias("a"), F.max("row").alias("b"))
    everywhere = Window.partitionBy()  # one partition, since there are few kinds
    totals = {"rows": F.sum("count").over(everywhere), "kinds": F.count(F.lit(1)).over(everywhere)}
    listed = kinds.withColumns(totals).orderBy(F.desc("count"), "kind").limit(MAX_SHOWN_REASONS).collect()
    reasons = []
    for row in listed:
        examples = [(example["place"] or "", example["said"]) for example in (row["a"], row["b"])]
        reasons.append(Reason(row["kind"], row["count"], tuple(dict.fromkeys(examples))))
    return Reasons(tuple(reasons), *(listed[0][-2:] if listed else (0, 0)))
