"""Match the messages of a DataFrame against a compiled table: rows of matches and of rejections in one pass."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from contrada.cql2.queries import Asked, asked_predicate
from contrada.errors import ContradaError, FormatError
from contrada.matching.answer import By
from contrada.matching.census import Census
from contrada.model import Predicate
from contrada.pipeline.answers import ID, answer_schema, match_batches, name_types
from contrada.pipeline.artifact_store import note_use
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.batch.census import asked_census, count_messages
from contrada.pipeline.batch.compiling import Compiled, compile
from contrada.pipeline.batch.scan import MessageScan, ScannedSubscriptions, scan
from contrada.pipeline.kept import KEPT, Carried, checked_names, unfolded
from contrada.pipeline.outputs import begin_output, complete_output, output_place
from contrada.pipeline.partitioned.matching import Routed, match_partitions
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.partitioned.plan_text import broadcast_text, partitioned_text, spark_plan
from contrada.pipeline.spark_types import attribute_columns
from contrada.pipeline.systems import frame_systems

MatchingPlan = Literal["auto", "broadcast", "partitioned", "scan"]


@dataclass(frozen=True)
class Matched:
    """Matches and rejected messages; both are read from the answers that the first action persists."""

    answers: DataFrame  # lists of matches, several per message if long, and rejections, which have a `reason`
    by: By
    plan: str
    artifact: Artifact | PartitionedArtifact | None  # None with plan "scan"
    compiled: Compiled | ScannedSubscriptions | None  # if subscriptions were given as rows
    why: str = ""  # reason for the choice of the plan
    routed: Routed | None = None  # plan "partitioned": messages with their partitions
    messages: DataFrame | None = None  # as given
    scan: MessageScan | None = None  # plan "scan": answers and reports
    keep: tuple[str, ...] = ()  # columns of messages that matches carry
    keep_subscription: tuple[str, ...] = ()  # and of subscriptions

    @property
    def matches(self) -> DataFrame:
        """Return a row of `message_id, subscriber, key` per match; without `key` if matched by subscriber.

        Columns of `keep` follow the id, those of `keep_subscription` are the last.
        """
        lists = self.answers.where("reason IS NULL")
        names = ["subscriber", "key"] if self.by == "subscription" else ["subscriber"]
        return unfolded(self._distinct(lists, names[-1]), self.keep, self.keep_subscription, names)

    def _distinct(self, lists: DataFrame, name: str) -> DataFrame:
        """Return a row per match; what several tasks may have found is made distinct by message and `name`."""
        source = self.routed or self.scan
        if source is None or not source.may_repeat:
            return lists.select(ID, f.inline("found"))
        own = lists.where("NOT is_shared").select(ID, f.inline("found"))
        # Distinct by number, not by id: two messages with one id are two messages.
        shared = lists.where("is_shared").select("number", ID, f.inline("found"))
        if name == "subscriber" and self.keep_subscription:
            one = shared.groupBy("number", name).agg(f.first(ID).alias(ID), f.min_by(f.struct("key", KEPT), "key"))
            return own.union(one.toDF("number", name, ID, "least").select(ID, name, "least.key", f"least.{KEPT}"))
        return own.union(shared.dropDuplicates(["number", name]).select(*own.columns))

    @property
    def rejected(self) -> DataFrame:
        """Return a row of `message_id, reason` per bad message, with the columns of `keep` between them."""
        return unfolded(self.answers.where("reason IS NOT NULL"), self.keep, (), ["reason"])

    def census(self) -> Census:
        """Count the messages and their attributes, to find tested attributes that are absent or of another type.

        Reads the tested attributes once more, in one job.
        """
        assert self.messages is not None
        if self.scan is not None:
            return count_messages(self.messages, Census(self.scan.asked))
        assert self.artifact is not None
        return count_messages(self.messages, asked_census(self.artifact))

    def write(self, path: str, mode: str = "errorifexists") -> None:
        """Write `matches/` and `rejected/` under `path` as Parquet, from one pass over the messages.

        `_manifest.json` with counts and digests, and `_SUCCESS`, come last; see `read_output`.
        """
        folders = {"matches": self.matches, "rejected": self.rejected}
        place = output_place(path)
        if mode in ("overwrite", "append"):
            begin_output(place)
        for name, rows in folders.items():
            rows.write.mode(mode).parquet(f"{path.rstrip('/')}/{name}")
        complete_output(place, None, self.answers.sparkSession, tuple(folders))

    def unpersist(self) -> None:
        """Drop the persisted answers; the next action matches again."""
        (self.answers if self.scan is None else self.scan.persisted).unpersist()
        if self.routed is not None:
            self.routed.frame.unpersist()

    def explain(self) -> str:
        """Describe the plan stage by stage, followed by Spark's own plan."""
        if self.scan is not None:
            lines = [*self.scan.stages[:1], f"why: {self.why}", *self.scan.stages[1:]]
        elif isinstance(self.artifact, PartitionedArtifact):
            assert self.routed is not None
            lines = partitioned_text(self.artifact, self.routed, self.by, self.why)
        else:
            assert self.artifact is not None
            lines = broadcast_text(self.artifact, self.by, self.why)
        return "\n".join([*lines, "", spark_plan(self.answers)])


def match(
    messages: DataFrame,
    subscriptions: DataFrame | Compiled | Artifact | PartitionedArtifact,
    plan: MatchingPlan = "auto",
    by: By = "subscription",
    *,
    template: Asked | None = None,
    artifacts: str | os.PathLike[str] | None = None,
    partitions: int | None = None,
    keep: Sequence[str] = (),
    keep_subscription: Sequence[str] = (),
    wrap: Mapping[str, str] | None = None,
) -> Matched:
    """Match messages (a column `message_id` and one per attribute) against subscriptions.

    Subscriptions are rows, which are compiled first (see `compile`), or the result of an earlier `compile`. Every plan
    gives the answer of `ForwardingTable.match_many`; two messages with one id are two messages. A message in another
    CRS than the subscriptions is rejected; see `with_crs` for the CRS of a column. With partitions, messages are routed
    during this call. The plan "scan" matches during this call and compiles nothing: "auto" chooses it for few messages
    and many rows of a template.

    Matches carry the columns `keep` of their message and `keep_subscription` of their subscription: ids may repeat. By
    subscriber the latter come from the matching subscription with the least key. `wrap` is that of `compile`.
    """
    _check(messages, plan, by)
    checked_names("keep", keep, messages.columns)
    columns_of = subscriptions.columns if isinstance(subscriptions, DataFrame) else keep_subscription
    checked_names("keep_subscription", keep_subscription, columns_of, keep)
    carried = Carried.of(messages, keep)
    if isinstance(subscriptions, Compiled | Artifact | PartitionedArtifact):
        compiled, artifact, why = _given(subscriptions, plan, [template, partitions, wrap])
        note_use(artifact)
    else:
        predicate, trouble = None if template is None else asked_predicate(template), ""
        if plan == "scan" or (plan == "auto" and partitions is None):
            found = _scanned(messages, subscriptions, predicate, plan, by, carried, keep_subscription, wrap)
            if isinstance(found, MessageScan):
                return Matched(
                    found.answers, by, "scan", None, found.subscriptions, found.why, None, messages, found,
                    carried.keep, tuple(keep_subscription),
                )  # fmt: skip
            trouble, plan = found, "auto"
        compiled = compile(
            subscriptions, artifacts, template=predicate, plan=plan, partitions=partitions, messages=messages,
            keep_subscription=keep_subscription, wrap=wrap,
        )  # fmt: skip
        artifact, why = compiled.artifact, f"{trouble}; {compiled.why}" if trouble else compiled.why
    columns = attribute_columns(messages, artifact.attributes)
    systems, carried = frame_systems(messages, columns), carried.of_artifact(artifact.kept, keep_subscription)
    kept = carried.keep, carried.keep_subscription
    if isinstance(artifact, PartitionedArtifact):
        answers, routed = match_partitions(messages, columns, systems, artifact, by, carried)
        return Matched(answers, by, "partitioned", artifact, compiled, why, routed, messages, None, *kept)
    sent = messages.select(carried.id, *columns.values()).toDF("id", *(f"c{k}" for k in range(len(columns))))
    matching: Any = partial(
        match_batches, artifact=artifact, names=tuple(columns), by=by, systems=systems, kept=carried.arrow_type
    )
    schema = answer_schema(carried.ids, name_types(artifact), by, kept=carried.kept)
    answers = sent.mapInArrow(matching, schema).persist()
    return Matched(answers, by, "broadcast", artifact, compiled, why, None, messages, None, *kept)


def _scanned(
    messages: DataFrame,
    subscriptions: DataFrame,
    template: Predicate | None,
    plan: MatchingPlan,
    by: By,
    carried: Carried,
    keep: Sequence[str],
    wrap: Mapping[str, str] | None,
) -> MessageScan | str:
    """Return the answers of a scan, or why there is none."""
    if not wrap:
        return scan(messages, subscriptions, template, plan, by, carried, keep)
    if plan == "scan":
        raise ContradaError('wrap: rows are not scanned with wrap; use plan="broadcast"')
    return "rows are not scanned with wrap"


def _check(messages: DataFrame, plan: str, by: str) -> None:
    if plan not in ("auto", "broadcast", "partitioned", "scan"):
        raise ContradaError(f'plan: need "auto", "broadcast", "partitioned" or "scan", got {plan!r:.60}')
    if by not in ("subscription", "subscriber"):
        raise ContradaError(f'by: need "subscription" or "subscriber", got {by!r:.60}')
    if ID not in messages.columns:
        raise FormatError(f"messages need column {ID!r}; columns: {', '.join(messages.columns)}")
    if messages.isStreaming:
        raise ContradaError("messages are a stream; match needs a table, use match_stream")


def _given(
    subscriptions: Compiled | Artifact | PartitionedArtifact, plan: MatchingPlan, options: list[Any]
) -> tuple[Compiled | None, Artifact | PartitionedArtifact, str]:
    """Return the compiled subscriptions and the reason for the plan; a `plan` that differs from theirs is an error."""
    if any(option is not None for option in options):
        raise ContradaError(
            "template, partitions and wrap do not apply to compiled subscriptions; pass them to compile"
        )
    compiled = subscriptions if isinstance(subscriptions, Compiled) else None
    artifact = subscriptions.artifact if isinstance(subscriptions, Compiled) else subscriptions
    own = "partitioned" if isinstance(artifact, PartitionedArtifact) else "broadcast"
    if plan not in ("auto", own):
        instead = "pass their rows" if plan == "scan" else f'compile them with plan="{plan}"'
        raise ContradaError(f'the subscriptions were compiled with plan="{own}"; {instead}')
    return compiled, artifact, "the subscriptions were compiled with this plan" if compiled is None else compiled.why
