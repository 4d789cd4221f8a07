"""Match messages in slices and write their answers as record batches, in Spark's Python workers.

Answers have one schema in every plan and command: `message_id`, `found` (a list of matches) or `reason` (why the
message was rejected), and `further` columns, such as counts. Only `answer_schema`, for the driver, uses Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.collecting import freeze_live_objects
from contrada.halving import in_halves
from contrada.matching import ForwardingTable, ManyMatches
from contrada.matching.answer import By
from contrada.matching.store.storage import SavedNames
from contrada.pipeline.artifact_cache import opened
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.kept import ID as ID
from contrada.pipeline.kept import KEPT, KeptColumns, first_by_key
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.reasons import plain_text, reason_of
from contrada.pipeline.systems import NO_SYSTEMS, Systems, named_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Further = Mapping[str, str]  # Arrow types of further columns, by name
NOTHING_FURTHER: Further = MappingProxyType({})
# An answer may be as large as the table, so a batch is matched in slices. The first slice has FIRST_SLICE messages;
# later slices are sized for answers of about ANSWER_ROWS rows.
ANSWER_ROWS, FIRST_SLICE = 1 << 20, 512
OUTPUT_ROWS = 1 << 16  # maximum number of matches in a batch that goes back to Spark
LIST_ROWS = 128  # maximum number of matches in a list: Spark buffers 10,000 lists in memory, however long they are


class SliceAnswer(NamedTuple):
    """The matches of a slice as pairs of message and table row, and the reasons of rejected messages."""

    asked: int  # messages in the slice
    messages: NDArray[np.int64]
    rows: NDArray[np.int64]
    rejected: dict[int, str]

    @classmethod
    def of(cls, found: ManyMatches) -> SliceAnswer:
        """Return the answer in the result of `match_many`."""
        messages = np.repeat(np.arange(len(found)), np.diff(found.offsets))
        return cls(len(found), messages, found.rows, {item.row: plain_text(item.reason) for item in found.rejected})

    def rejecting(self, more: Mapping[int, str]) -> SliceAnswer:
        """Return the answer with further messages rejected, which then match nothing."""
        if not more:
            return self
        kept = ~np.isin(self.messages, list(more))
        rejected = dict(sorted({**more, **self.rejected}.items()))
        return SliceAnswer(self.asked, self.messages[kept], self.rows[kept], rejected)


def answer_of(table: ForwardingTable, messages: Any, by: By) -> SliceAnswer:
    """Match a list of messages or the rows of an Arrow table.

    If the messages fail together, each half is tried until the bad ones are alone. Every type of error counts as a
    rejection: a bad message must not end the task, or a stream would fail on it at every restart.
    """

    def matched(start: int, stop: int) -> SliceAnswer:
        return SliceAnswer.of(table.match_many(_cut(messages, start, stop), by=by, threads=1))

    owners, rows, rejected = [np.empty(0, np.int64)], [np.empty(0, np.int64)], dict[int, str]()
    for part in in_halves(len(messages), matched, Exception, fatal=(MemoryError, OSError)):
        if part.result is None:
            assert part.error is not None
            rejected[part.start] = reason_of(part.error)
        else:
            owners.append(part.start + part.result.messages)
            rows.append(part.result.rows)
            rejected |= {part.start + row: reason for row, reason in part.result.rejected.items()}
    return SliceAnswer(len(messages), np.concatenate(owners), np.concatenate(rows), rejected)


def _cut(messages: Any, start: int, stop: int) -> Any:
    return messages[start:stop] if isinstance(messages, list) else messages.slice(start, stop - start)


class Slices:
    """Cuts batches of messages into slices, each sized by the answer to the one before."""

    def __init__(self) -> None:
        self._size = FIRST_SLICE

    def match(self, table: ForwardingTable, messages: Any, by: By) -> Iterator[tuple[int, SliceAnswer]]:
        """Match a list or an Arrow table of messages; yield the first message and the answer of each slice."""
        start = 0
        while start < len(messages):
            stop = min(start + self._size, len(messages))  # Arrow clips no table without columns
            answer = answer_of(table, _cut(messages, start, stop), by)
            yield start, answer
            start, self._size = stop, max(1, ANSWER_ROWS * answer.asked // max(1, len(answer.rows)))


def match_batches(
    batches: Iterator[Any],
    artifact: Artifact,
    names: tuple[str, ...],
    by: By,
    systems: Systems = NO_SYSTEMS,
    kept: Any = None,
) -> Iterator[Any]:
    """Match batches of an id and attributes (`names`, in `systems`); yield batches of matches and rejections.

    `kept` is the Arrow type of the columns of subscriptions that matches carry.
    """
    writer: AnswerWriter | None = None
    slices = Slices()
    for batch in batches:
        if writer is None:
            ready = opened(artifact)
            writer = AnswerWriter(name_types(artifact), by, names=ready.names, kept=kept, kept_columns=ready.kept(kept))
        messages = named_columns(batch, names, systems, 1)
        for start, answer in slices.match(ready.table, messages, writer.matched_by):
            ids, answer = batch.column(0).slice(start, answer.asked), writer.one_each(answer)
            yield from writer.matches(ids, answer)
            yield from writer.rejections(ids, answer.rejected)
    freeze_live_objects()


def name_types(artifact: Artifact | PartitionedArtifact) -> tuple[str, str]:
    """Return the Spark types of the keys and subscribers of a table."""
    return artifact.key_type, artifact.subscriber_type


def answer_schema(
    ids: StructType,
    types: tuple[str, str],
    by: By,
    further: Further = NOTHING_FURTHER,
    kept: StructType | None = None,
) -> StructType:
    """Return the Spark schema of what an `AnswerWriter` with these arguments writes; `ids` has the field of ids."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import ArrayType, StructField, StructType

    found, *others = from_arrow_schema(pa.schema(_fields(types, by, further, pa.struct([]) if kept else None))).fields
    if kept is not None:
        assert isinstance(found.dataType, ArrayType)
        assert isinstance(found.dataType.elementType, StructType)
        own = [*found.dataType.elementType.fields[:-1], StructField(KEPT, kept)]
        found = StructField(found.name, ArrayType(StructType(own)))
    return StructType([*ids.fields, found, *others])


def _fields(types: tuple[str, str], by: By, further: Further, kept: Any = None) -> dict[str, Any]:
    """Return the Arrow types of all columns of answers except the id; `kept` is that of the kept columns."""
    names = [("subscriber", arrow_type(types[1])), ("key", arrow_type(types[0]))]
    # With kept columns the key is there also by subscriber: it tells which of several matches they are of.
    own = names[:1] if by == "subscriber" and kept is None else names
    # A row with a list per message persists in a fraction of the time of a row per match.
    found = pa.list_(pa.struct(own if kept is None else [*own, (KEPT, kept)]))
    return {"found": found, "reason": pa.string(), **{name: pa.type_for_alias(kind) for name, kind in further.items()}}


class AnswerWriter:
    """Turns answers into record batches; the names of matches are rows of `names`.

    Columns given to `matches` and `rejections` have a value per message of the slice, as `ids` have.

    >>> import pyarrow as pa
    >>> writer = AnswerWriter(("string", "string"), "subscription", {"read": "int64"})
    >>> writer.rows(pa.array([7]), reason=["no filter"]).to_pylist()
    [{'message_id': 7, 'found': None, 'reason': 'no filter', 'read': None}]
    """

    def __init__(
        self,
        types: tuple[str, str],
        by: By,
        further: Further = NOTHING_FURTHER,
        names: SavedNames | None = None,
        kept: Any = None,
        kept_columns: KeptColumns | None = None,
    ) -> None:
        self._columns = _fields(types, by, further, kept)
        self._kept = kept_columns
        self._is_one_each = by == "subscriber" and kept is not None
        self.matched_by: By = "subscription" if self._is_one_each else by  # how the table is asked
        if names is not None:
            self._keys, self._subscribers = map(_one_type, names[:2])
            self._owners = names.owners if self.matched_by == "subscription" else None

    def one_each(self, answer: SliceAnswer) -> SliceAnswer:
        """Return an answer with one match per message and subscriber, that with the least key, if asked for."""
        if not self._is_one_each or self._owners is None:
            return answer
        keys = self._keys.take(pa.array(answer.rows))
        first = np.sort(first_by_key(answer.messages, self._owners[answer.rows], keys))
        return answer._replace(messages=answer.messages[first], rows=answer.rows[first])

    def rows(self, ids: Any, **given: Any) -> Any:
        """Return a record batch with a row per id; a column that is not given is null."""

        def column(name: str, kind: Any) -> Any:
            values = given.get(name)
            if values is None:
                return pa.nulls(len(ids), kind)
            return values if isinstance(values, pa.Array) else pa.array(values, kind)

        columns = {name: column(name, kind) for name, kind in self._columns.items()}
        return pa.record_batch([ids, *columns.values()], [ID, *columns])

    def matches(self, ids: Any, answer: SliceAnswer, **given: Any) -> Iterator[Any]:
        """Yield the matches of an answer as short lists by message."""
        for start in range(0, len(answer.rows), OUTPUT_ROWS):
            part = slice(start, start + OUTPUT_ROWS)
            yield from self.lists(ids, answer.messages[part], self.names(answer.rows[part]), **given)

    def lists(self, ids: Any, owners: NDArray[np.int64], names: Any, **given: Any) -> Iterator[Any]:
        """Yield matches, given as the message and the names of each, as short lists by message."""
        for start in range(0, len(owners), OUTPUT_ROWS):
            own = owners[start : start + OUTPUT_ROWS]
            is_head = np.append(True, own[1:] != own[:-1])
            is_head[::LIST_ROWS] = True
            heads = np.flatnonzero(is_head)
            offsets = pa.array(np.append(heads, len(own)), pa.int32())
            found = pa.ListArray.from_arrays(offsets, names.slice(start, len(own)))
            yield self._chosen(ids, own[heads], given, found=found)

    def rejections(self, ids: Any, rejected: Mapping[int, str], **given: Any) -> Iterator[Any]:
        """Yield rejected messages, given by their places with reasons."""
        if rejected:
            yield self._chosen(ids, np.array(list(rejected)), given, reason=list(rejected.values()))

    def _chosen(self, ids: Any, messages: NDArray[np.int64], given: dict[str, Any], **own: Any) -> Any:
        places = pa.array(messages)
        return self.rows(ids.take(places), **{name: values.take(places) for name, values in given.items()}, **own)

    def names(self, rows: NDArray[np.int64]) -> Any:
        """Return the subscribers and keys of rows of the table as structs."""
        whose = rows if self._owners is None else self._owners[rows]
        fields = list(self._columns["found"].value_type)
        chosen = zip((self._subscribers, self._keys), (whose, rows), fields, strict=False)
        columns = [names.take(pa.array(some)).cast(field.type) for names, some, field in chosen]
        if self._kept is not None:
            columns.append(self._kept.take(rows))
        return pa.StructArray.from_arrays(columns, fields=fields)


def names_array(names: Any, kind: str) -> Any:
    """Return names as an Arrow array of a Spark type; a mix of text and integers becomes text.

    >>> names_array(["a", 7], "string").to_pylist()
    ['a', '7']
    """
    return _one_type(names).cast(arrow_type(kind))


def _one_type(names: Any) -> Any:
    """Return names as an Arrow array; a mix of text and integers is a list, and becomes text."""
    return pa.array(list(map(str, names)), pa.string()) if isinstance(names, list) else names


def arrow_type(kind: str) -> Any:
    """Return the Arrow type of names that have a Spark type.

    >>> arrow_type("int")
    DataType(int32)
    """
    types = {"string": pa.string(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32()}
    return types.get(kind, pa.int64())
