"""Compute the numbers of a report in Spark; only small tables reach the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

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


@dataclass(frozen=True)
class Bin:
    """The number of messages or subscriptions with `low` to `high` matches, both included."""

    low: int
    high: int
    count: int


@dataclass(frozen=True)
class Moment:
    """A step of time from `start` (seconds since 1970, UTC) on: its messages, and their matches."""

    start: int
    messages: int
    matches: int


@dataclass(frozen=True)
class Busy:
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


@dataclass(frozen=True)
class Reasons:
    """The most frequent kinds of reasons, the total number of rows, and the number of kinds."""

    listed: tuple[Reason, ...]
    rows: int
    kinds: int


@dataclass(frozen=True)
class Numbers:
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


@dataclass(frozen=True)
class CountedTables:
    """Two persisted tables from which the numbers are computed.

    `messages`: message_id, copies, time, rejected (number of rejected copies), matches. `units`: unit (the key, or the
    subscriber, as text), matches.
    """

    messages: DataFrame
    units: DataFrame
    unit: str  # "key", or "subscriber" if the matches have no keys

    @property
    def by_key(self) -> bool:
        """Return True if a unit is a key."""
        return self.unit == "key"


@contextmanager
def counted(messages: DataFrame, matches: DataFrame, rejected: DataFrame, time: str | None) -> Iterator[CountedTables]:
    """Count matches by message and by subscription; the tables are persisted within the block."""
    instant = F.lit(None).cast("timestamp") if time is None else F.col(quoted(time)).cast("timestamp")
    given = messages.groupBy("message_id").agg(F.count(F.lit(1)).alias("copies"), F.min(instant).alias("time"))
    found = matches.groupBy("message_id").agg(F.count(F.lit(1)).alias("matches"))
    refused = rejected.groupBy("message_id").agg(F.count(F.lit(1)).alias("rejected"))
    joined = _left_join(_left_join(given, found), refused)
    rejections = F.least(F.coalesce("rejected", F.lit(0)), F.col("copies"))
    by_message = joined.select(
        "message_id", "copies", "time", rejections.alias("rejected"), F.coalesce("matches", F.lit(0)).alias("matches")
    ).persist()
    unit = "key" if "key" in matches.columns else "subscriber"
    units = matches.groupBy(F.col(unit).cast("string").alias("unit")).agg(F.count(F.lit(1)).alias("matches")).persist()
    try:
        yield CountedTables(by_message, units, unit)
    finally:
        by_message.unpersist()
        units.unpersist()


def _left_join(left: DataFrame, right: DataFrame) -> DataFrame:
    """Join by message_id, where null equals null: a message without an id is a message."""
    other = right.withColumnRenamed("message_id", "_other")
    return left.join(other, left["message_id"].eqNullSafe(other["_other"]), "left").drop("_other")


def numbers_of(
    kept: CountedTables,
    *,
    subscriptions: DataFrame,
    rejected: DataFrame,
    quarantine: DataFrame | None,
    time: str | None,
    set_aside: DataFrame | None = None,
) -> Numbers:
    """Compute all numbers."""
    messages = _by_matches(kept.messages)
    units = _by_matches_of_units(kept, subscriptions, set_aside)
    aside = None if set_aside is None else _reasons(set_aside, _place(set_aside))
    earliest = min((row["first"] for row in messages if row["first"] is not None), default=None)
    latest = max((row["last"] for row in messages if row["last"] is not None), default=None)
    over_time, bucket = _over_time(kept.messages, earliest, latest)
    return Numbers(
        messages=sum(row["copies"] for row in messages),
        subscriptions=sum(row["given"] for row in units) - (0 if aside is None else aside.rows),
        matches=sum(row["matches"] for row in units),
        with_match=sum(row["accepted"] for row in messages if row["place"] > 0),
        without_match=sum(row["accepted"] for row in messages if row["place"] == 0),
        unread=sum(row["rejected"] for row in messages),
        per_message=_bins({row["place"]: row["accepted"] for row in messages}),
        per_subscription=_bins({row["place"]: row["weight"] for row in units}),
        by_key=kept.by_key,
        busiest=_busiest(kept, subscriptions),
        over_time=over_time,
        bucket=bucket,
        time_column=time,
        rejected=_reasons(rejected, F.col("message_id").cast("string")),
        quarantined=None if quarantine is None else _reasons(quarantine, _place(quarantine)),
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
    return (
        messages.groupBy(_bit_length(share))
        .agg(
            F.sum("copies").alias("copies"),
            F.sum(accepted).alias("accepted"),
            F.sum("rejected").alias("rejected"),
            F.min(_second()).alias("first"),
            F.max(_second()).alias("last"),
        )
        .collect()
    )


def _by_matches_of_units(kept: CountedTables, subscriptions: DataFrame, set_aside: DataFrame | None) -> list[Any]:
    """Return a row for each index: given rows, matches, and the weight, which counts keys or else subscribers.

    Rows set aside have no weight. The first good row of a key is compiled and its other rows are set aside, so the
    weight of a key is its number of rows minus those set aside.
    """
    unit, known = kept.unit, kept.unit in subscriptions.columns
    given = F.col(unit).cast("string") if known else F.lit(None).cast("string")
    asked = subscriptions.groupBy(given.alias("_unit")).agg(F.count(F.lit(1)).alias("given"))
    joined = asked.join(kept.units, F.col("_unit").eqNullSafe(F.col("unit")), "full")
    number = F.coalesce("given", F.lit(0))
    rows = number
    if set_aside is not None and known and unit in set_aside.columns:
        bad = set_aside.groupBy(F.col(unit).cast("string").alias("_bad")).agg(F.count(F.lit(1)).alias("aside"))
        joined = joined.join(bad, F.col("_unit").eqNullSafe(F.col("_bad")), "left")
        number = number - F.coalesce("aside", F.lit(0))
    matches = F.coalesce("matches", F.lit(0))
    # If keys are row numbers, the table of subscriptions lacks them, and only those that matched count.
    if not known:
        weight = F.when(matches > 0, 1).otherwise(0)
    else:
        weight = number if kept.by_key else F.when(number > 0, 1).otherwise(0)
    return (
        joined.groupBy(_bit_length(matches))
        .agg(F.sum(rows).alias("given"), F.sum(matches).alias("matches"), F.sum(weight).alias("weight"))
        .collect()
    )


def _bins(found: dict[int, int]) -> tuple[Bin, ...]:
    """Return the bins 0, 1, 2-3, 4-7, ... matches, up to the last one that is not empty."""
    last = max((place for place, number in found.items() if number), default=-1)
    return tuple(
        Bin(0 if place == 0 else 2 ** (place - 1), 0 if place == 0 else 2**place - 1, found.get(place, 0))
        for place in range(last + 1)
    )


def _busiest(kept: CountedTables, subscriptions: DataFrame) -> tuple[Busy, ...]:
    top = kept.units.orderBy(F.desc("matches"), "unit").limit(MAX_BUSIEST)
    if kept.by_key and "key" in subscriptions.columns:
        said = [text_column(subscriptions, name, MAX_FILTER_LENGTH) for name in ("subscriber", "filter")]
        known = subscriptions.select(F.col("key").cast("string").alias("unit"), *said)
        top = top.join(known, "unit", "left")
    else:
        top = top.withColumns({"subscriber": F.lit(""), "filter": F.lit("")})
    rows = top.orderBy(F.desc("matches"), "unit").limit(MAX_BUSIEST).collect()
    return tuple(
        Busy(str(row["unit"]), row["subscriber"] or "", row["filter"] or "", int(row["matches"])) for row in rows
    )


def text_column(frame: DataFrame, name: str, length: int) -> Column:
    """Return a column as text of at most `length` characters; empty text if there is no such column."""
    value = F.col(quoted(name)).cast("string") if name in frame.columns else F.lit("")
    return F.substring(value, 1, length).alias(name)


def _second() -> Column:
    return F.floor(F.unix_micros("time") / 1_000_000)


def _over_time(messages: DataFrame, first: int | None, last: int | None) -> tuple[tuple[Moment, ...], int]:
    if first is None or last is None:
        return (), 0
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
    kinds = rows.groupBy("kind").agg(F.count(F.lit(1)).alias("count"), F.min("row").alias("a"), F.max("row").alias("b"))
    everywhere = Window.partitionBy()  # one partition, since there are few kinds
    totals = {"rows": F.sum("count").over(everywhere), "kinds": F.count(F.lit(1)).over(everywhere)}
    listed = kinds.withColumns(totals).orderBy(F.desc("count"), "kind").limit(MAX_SHOWN_REASONS).collect()
    rows_in_all, kinds_in_all = (listed[0]["rows"], listed[0]["kinds"]) if listed else (0, 0)
    return Reasons(tuple(map(_reason, listed)), int(rows_in_all), int(kinds_in_all))


def _reason(row: Any) -> Reason:
    examples = [(str(example["place"] or ""), str(example["said"])) for example in (row["a"], row["b"])]
    return Reason(str(row["kind"]), int(row["count"]), tuple(dict.fromkeys(examples)))
