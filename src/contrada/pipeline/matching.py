"""Messages of a DataFrame against a compiled table: rows of matches and rows of rejections, from one pass."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from contrada.errors import ContradaError, FormatError
from contrada.matching.asked import Asked
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.batches import match_batches
from contrada.pipeline.compiling import Compiled, compile
from contrada.pipeline.edge import attribute_columns, check_crs, name_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

By = Literal["subscription", "subscriber"]
ID = "message_id"


@dataclass(frozen=True)
class Matched:
    """Who gets which message, and which messages are bad; both are read from what the first action made."""

    answers: DataFrame  # lists of matches, a few for a message with many, and rejections, which have a `reason`
    by: By
    plan: str
    artifact: Artifact
    compiled: Compiled | None  # if subscriptions were given as rows

    @property
    def matches(self) -> DataFrame:
        """A row of `message_id, subscriber, key` per message and subscription; by subscriber without `key`."""
        from pyspark.sql.functions import inline

        return self.answers.where("reason IS NULL").select(ID, inline("found"))

    @property
    def rejected(self) -> DataFrame:
        """A row of `message_id, reason` per bad message."""
        return self.answers.where("reason IS NOT NULL").select(ID, "reason")

    def write(self, path: str, mode: str = "errorifexists") -> None:
        """Write both as Parquet, to `matches/` and `rejected/` under a path, from one pass over the messages."""
        self.matches.write.mode(mode).parquet(f"{path.rstrip('/')}/matches")
        self.rejected.write.mode(mode).parquet(f"{path.rstrip('/')}/rejected")

    def unpersist(self) -> None:
        """Give up what is kept between actions; a further action matches again."""
        self.answers.unpersist()

    def explain(self) -> str:
        """What happens, stage by stage, and then Spark's own plan."""
        table = self.artifact
        printed = io.StringIO()
        with redirect_stdout(printed):
            self.answers.explain("formatted")
        attributes = ", ".join(table.attributes) or "none"
        return "\n".join(
            [
                f"plan: {self.plan}; every executor holds the whole table, messages stay where they are",
                f"table: {table.subscriptions} subscriptions, {table.filters} filters, {table.bytes} bytes",
                f"artifact: {table.path}",
                "stages:",
                f"  1. send message_id and the attributes that are asked for ({attributes}) in Arrow batches to Python",
                "  2. on each host fetch the artifact once into the local cache; all workers map it",
                f"  3. match each batch by {self.by}; a bad message gives a row with its reason",
                "  4. keep the rows, matches and rejections together, in memory and on disk",
                "",
                printed.getvalue().rstrip(),
            ]
        )


def match(
    messages: DataFrame,
    subscriptions: DataFrame | Compiled | Artifact,
    plan: Literal["auto", "broadcast", "partitioned"] = "auto",
    by: By = "subscription",
    *,
    template: Asked | None = None,
    artifacts: str | os.PathLike[str] | None = None,
) -> Matched:
    """Match messages, a column `message_id` and one per attribute, against subscriptions.

    Subscriptions are rows, which are compiled first (see `compile`), or what was compiled before. The answer is that
    of `ForwardingTable.match_many`, for every message; two messages with one id are two messages.
    """
    from pyspark.sql.types import ArrayType, StructType

    if plan not in ("auto", "broadcast"):
        known = plan == "partitioned"
        raise ContradaError(
            'the plan "partitioned" does not exist yet; use "broadcast"'
            if known
            else f'plan is "auto", "broadcast" or "partitioned", not {plan!r}'
        )
    if by not in ("subscription", "subscriber"):
        raise ContradaError(f'by is "subscription" or "subscriber", not {by!r}')
    if ID not in messages.columns:
        raise FormatError(f"messages have a column {ID!r}; there are {messages.columns}")
    if messages.isStreaming:
        raise ContradaError("messages are a stream; match takes tables")
    compiled, artifact = _compiled(subscriptions, artifacts, template)
    check_crs(messages, artifact.crs)
    columns = attribute_columns(messages, artifact.attributes)
    sent = messages.select(ID, *columns.values()).toDF("id", *(f"c{k}" for k in range(len(columns))))
    found = StructType().add("subscriber", name_type(artifact.subscriber_type))
    if by == "subscription":
        found = found.add("key", name_type(artifact.key_type))
    # One row for a message: what is kept between actions takes a fraction of the time that a row for a match would.
    schema = messages.select(ID).schema.add("found", ArrayType(found)).add("reason", "string")
    matching = partial(match_batches, artifact=artifact, names=tuple(columns), by=by)
    answers = sent.mapInArrow(matching, schema).persist()
    return Matched(answers, by, "broadcast", artifact, compiled)


def _compiled(
    subscriptions: Any, artifacts: str | os.PathLike[str] | None, template: Asked | None
) -> tuple[Compiled | None, Artifact]:
    """The artifact to match against, compiled if need be."""
    if isinstance(subscriptions, Compiled | Artifact):
        if template is not None:
            raise ContradaError("a template is for rows of subscriptions; these are compiled already")
        given = subscriptions
        return (given, given.artifact) if isinstance(given, Compiled) else (None, given)
    compiled = compile(subscriptions, artifacts, template=template)
    return compiled, compiled.artifact
