"""Simplify the subscriptions of a DataFrame, each by itself or all of one subscriber together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from contrada.cql2.queries import Asked, asked_predicate
from contrada.errors import ContradaError, CrsError
from contrada.geometry.crs import common_crs
from contrada.pipeline.batch import simplified_batches
from contrada.pipeline.batch.compiling import subscription_rows
from contrada.pipeline.batch.numbering import Rows, marked_job, sent_rows
from contrada.pipeline.batch.simplified_batches import COUNTS, Job
from contrada.simplification.simplifying import Simplification


@dataclass(frozen=True)
class SimplifiedSubscriptions:
    """Simplified subscriptions, rejected rows and a report, all from one pass.

    `crs` maps attributes to the CRS of regions and points from a template's columns, which CQL2 text does not carry.
    """

    outcome: DataFrame  # persisted; bad rows have a `reason`
    across: bool
    report: Simplification
    crs: dict[str, str]

    @property
    def subscriptions(self) -> DataFrame:
        """Return rows of `key, subscriber, filter`; with `across`, one row of `subscriber, filter` per subscriber."""
        names = ["subscriber", "filter"] if self.across else ["key", "subscriber", "filter"]
        return self.outcome.where("filter IS NOT NULL").select(*names)

    @property
    def rejected(self) -> DataFrame:
        """Return the bad rows with `row`, `key` and `reason`."""
        return self.outcome.where("reason IS NOT NULL").select("row", f.col("key").cast("string"), "reason")

    def unpersist(self) -> None:
        """Drop the persisted outcome; the next action simplifies again."""
        self.outcome.unpersist()


def simplify(
    subscriptions: DataFrame, *, across: bool = False, template: Asked | None = None
) -> SimplifiedSubscriptions:
    """Simplify rows of `key, subscriber, filter`, or of a `template`'s columns; every message matches as before.

    Defaults of keys and subscribers, and rejected rows, are those of `compile`. With `across`, all subscriptions of a
    subscriber become one, without a key, and one task works on each subscriber.
    """
    predicate = None if template is None else asked_predicate(template)
    if subscriptions.isStreaming:
        raise ContradaError("subscriptions are a stream; simplify needs a table")
    rows = subscription_rows(subscriptions, predicate)
    sent = sent_rows(rows).persist()
    try:
        types = rows.types[0], _subscriber_type(sent, rows)
        job, marked = marked_job(rows._replace(types=types), sent)
        schema = from_arrow_schema(simplified_batches.outcome_schema(job))
        simplified = partial(simplified_batches.simplify_batches, job=job)
        made = _by_subscriber(marked, job, schema) if across else marked.mapInArrow(simplified, schema)
        outcome = made.persist()
        report, systems = _totals(outcome)
    finally:
        sent.unpersist()
    try:
        return SimplifiedSubscriptions(outcome, across, report, _one_crs(systems))
    except CrsError:
        outcome.unpersist()
        raise


def _subscriber_type(sent: DataFrame, rows: Rows) -> str:
    """Return the type of subscribers; a type that holds keys too if keys must stand for missing subscribers."""
    key, subscriber = rows.types
    if key == subscriber or "subscriber" not in rows.columns:
        return subscriber
    if sent.where(f"c{list(rows.columns).index('subscriber')} IS NULL").isEmpty():
        return subscriber
    return "string" if "string" in rows.types else "bigint"


def _by_subscriber(marked: DataFrame, job: Job, schema: StructType) -> DataFrame:
    """Simplify each subscriber's rows as a group; rows without key and subscriber are groups of their own."""
    places = [job.names.index(name) for name in ("subscriber", "key") if name in job.names]
    named = [f.col(f"c{place}").cast(job.types[1]) for place in places]
    whose = f.coalesce(*named) if named else f.lit(None)
    alone = f.col("row") if "key" not in job.names else f.lit(None)
    grouped = marked.groupBy(whose.alias("whose"), f.when(whose.isNull(), alone).alias("alone"))

    def simplified(table: Any) -> Any:  # Spark reads the type hints of a function, and those of a partial are an error
        return simplified_batches.simplify_subscriber(table, job)

    return grouped.applyInArrow(simplified, schema)


def _totals(outcome: DataFrame) -> tuple[Simplification, list[dict[str, str]]]:
    """Sum the counts of all rows, which runs the job, and collect their coordinate reference systems."""
    sums = [f.sum(name).alias(name) for name in COUNTS]
    found = outcome.groupBy("crs").agg(*sums).collect()
    reports = (simplified_batches.report_of(row.asDict()) for row in found)
    report = reduce(Simplification.plus, reports, Simplification())
    return report, [json.loads(row["crs"]) for row in found if row["crs"] is not None]


def _one_crs(systems: list[dict[str, str]]) -> dict[str, str]:
    """Return the CRS of each attribute; two for one attribute are an error, since filter text cannot carry them."""
    found: dict[str, str] = {}
    for attribute, crs in (item for system in systems for item in system.items()):
        try:
            found[attribute] = common_crs(found.get(attribute), crs) or crs
        except CrsError as error:
            raise CrsError(f"attribute {attribute!r}: subscriptions: {error}") from error
    return found
