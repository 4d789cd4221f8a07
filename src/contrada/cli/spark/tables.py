"""Build the table of `contrada match --spark`, whole or in partitions, by --plan or by its size."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from contrada.amounts import byte_size, counted
from contrada.cli.match import MatchPlan, subscribed
from contrada.cli.progress import ProgressLine
from contrada.cli.rejections import Rejections
from contrada.cli.results import name_column
from contrada.cli.subscribing import Asking, FirstRejected, Parsed, Reject, good_subscriptions, no_subscription
from contrada.errors import ContradaError
from contrada.formats.records import Rejected
from contrada.formats.tables.row_files import row_text
from contrada.matching import ForwardingTable
from contrada.pipeline.artifacts import Artifact, publish
from contrada.pipeline.batch.compiling import Plan
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.partitioned.sizing import table_limits
from contrada.pipeline.partitioned.splitting import split


class Placed(NamedTuple):
    """A published table, and why it is whole or in partitions."""

    artifact: Artifact | PartitionedArtifact
    why: str

    @property
    def told(self) -> str:
        """Return the line of the summary."""
        if isinstance(self.artifact, Artifact):
            return f"plan:          broadcast; {self.why}"
        return f"plan:          partitioned, {counted(len(self.artifact.partitions), 'partition')}; {self.why}"


class PartitionPlan(NamedTuple):
    """The plan, and the number of partitions, if given."""

    plan: Plan = "auto"
    partitions: int | None = None


class SparkSubscriptions:
    """The good subscriptions, read before Spark starts: as a table, or as rows for partitions."""

    def __init__(self, plan: MatchPlan, wanted: PartitionPlan, rejections: Rejections, progress: ProgressLine) -> None:
        self._asking, self._wanted, self._rejections = plan.asking, wanted, rejections
        self._table: ForwardingTable | None = None
        self._rows: _SplitRows | None = None
        if wanted.plan == "partitioned":
            self._rows = _rows(plan.asking, lambda item: rejections.add(item, "subscription"))
            if not self._rows.table.num_rows:
                raise no_subscription(plan.asking, self._rows.first)
        else:
            self._table = subscribed(plan, rejections, progress)

    def placed(self, spark: SparkSession, place: str) -> Placed:
        """Publish the subscriptions at `place`."""
        most, each = table_limits(spark)
        if self._rows is not None:
            why = "as requested" + (", with the number of partitions" if self._wanted.partitions else "")
            return Placed(self._split(self._rows, self._rows.table.nbytes / each, place), why)
        assert self._table is not None
        table = publish(self._table, place)
        if self._wanted.plan == "broadcast":
            return Placed(table, "as requested")
        fits = table.bytes <= most
        room = f"{'' if fits else 'no more than '}{byte_size(most)}"
        why = f"the table has {byte_size(table.bytes)}, a worker holds {room}"
        if fits:
            return Placed(table, why)
        if str(self._asking.source) == "-":
            raise ContradaError(f"{why}, and standard input cannot be read again; pass --plan partitioned")
        rows = _rows(self._asking, lambda item: None)  # rejections were reported on the first reading
        return Placed(self._split(rows, table.bytes / each, place), why)

    def _split(self, rows: _SplitRows, parts: float, place: str) -> PartitionedArtifact:
        made, bad = split(rows.table, rows.template, place, self._wanted.partitions or max(2, math.ceil(parts)))
        late = [rows.rejected(row, reason) for row, reason in bad]
        if self._table is None:
            for item in late:
                self._rejections.add(item, "subscription")
        if not made.subscriptions:
            raise no_subscription(self._asking, rows.first or next(iter(late), None))
        return made


class _SplitRows(NamedTuple):
    """Subscriptions for `split`, their origins, and the first bad one."""

    table: Any
    template: Any
    origins: Any
    first: Rejected | None

    def rejected(self, row: int, reason: str) -> Rejected:
        """Return the rejection of a row that proved bad."""
        source, unit, number = self.origins[row]
        return Rejected(source, unit, number, reason, row_text(self.table, row))


def _rows(asking: Asking, reject: Reject) -> _SplitRows:
    note = FirstRejected(reject)
    if asking.template is not None:
        template, found = asking.rows()
        for item in found.rejected:
            note(item)
        return _SplitRows(found.table, template, found.origins, note.first)
    good = list(good_subscriptions(asking, note))
    return _SplitRows(_text_table(good), None, [one[:3] for one in good], note.first)


def _text_table(good: list[Parsed]) -> Any:
    """Return subscriptions as columns; those without a key get unused numbers."""
    used = {one.key for one in good}
    free = (number for number in range(2 * len(good) + 1) if number not in used)
    keys = name_column([next(free) if one.key is None else one.key for one in good])
    if len(keys.unique()) < len(keys):
        raise ContradaError("a key exists both as text and as a number; partitions need keys of one type")
    columns = {"subscriber": [one.subscriber for one in good], "filter": [str(one.predicate) for one in good]}
    return pa.table({"key": keys, **{name: name_column(values) for name, values in columns.items()}})
