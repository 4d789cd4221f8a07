"""Columns that matches carry: of messages beside their id, and of subscriptions beside their key.

Columns of messages travel in the place of the id, in a struct that begins with it, so every plan that carries an id
carries them too, by row: ids may repeat or be null. Columns of subscriptions are a file of the artifact,
`kept.arrow`, with a row for each row of the table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contrada.errors import ContradaError, FormatError, TableError
from contrada.pipeline.reasons import plain_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from contrada.pipeline.systems import Systems

ID = "message_id"
KEPT = "kept"  # column of the kept columns of subscriptions, as a struct
FILE = "kept.arrow"
NAMES = ("subscriber", "key")
OF_ANSWERS = (ID, *NAMES, "reason", "raw", "version", "batch")


def checked_names(option: str, names: Sequence[str], columns: Collection[str], taken: Collection[str] = ()) -> None:
    """Raise a ContradaError unless `names` are distinct columns that go with those of answers, and with `taken`.

    >>> checked_names("keep", ["title", "Key"], ["title", "Key"])
    Traceback (most recent call last):
    contrada.errors.FormatError: keep: 'Key' is a column of matches; rename it
    """
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ContradaError(f"{option}: need a list of names of columns, got {names!r:.60}")
    used = {name.lower() for name in taken}
    for name in names:
        if name.lower() in OF_ANSWERS:
            raise FormatError(f"{option}: {name!r} is a column of matches; rename it")
        if name not in columns:
            raise FormatError(f"{option}: need column {name!r}; columns: {', '.join(columns)}")
        if name.lower() in used:
            raise FormatError(f"{option}: column {name!r} is kept already; names of columns ignore case")
        used.add(name.lower())


class Carried(NamedTuple):
    """What matches carry: the column that travels as the id, with its schema, and columns of subscriptions."""

    id: Column
    ids: StructType
    keep: tuple[str, ...] = ()
    keep_subscription: tuple[str, ...] = ()
    kept: StructType | None = None
    arrow_type: Any = None  # of `kept`

    @classmethod
    def of(cls, messages: DataFrame, keep: Sequence[str]) -> Carried:
        """Return what matches carry of messages."""
        from contrada.pipeline.systems import frame_systems

        return cls(*with_kept_ids(messages, keep, frame_systems(messages, keep) if keep else {}), tuple(keep))

    def with_subscriptions(self, schema: StructType | None, keep: Sequence[str]) -> Carried:
        """Carry columns of subscriptions as well, if there are any, from all that were kept."""
        if schema is None or not keep:
            return self
        return self._replace(
            keep_subscription=tuple(keep), **dict(zip(("kept", "arrow_type"), kept_fields(schema, keep), strict=True))
        )

    def of_artifact(self, kept: str, keep: Sequence[str]) -> Carried:
        """Carry columns that were compiled with an artifact; `kept` is its field of that name."""
        from pyspark.sql.types import StructType

        if not keep:
            return self
        schema = StructType.fromJson(json.loads(kept)) if kept else StructType()
        for name in keep:
            if name not in schema.names:
                raise FormatError(
                    f"keep_subscription: the subscriptions were compiled without column {name!r}; "
                    f"compile them with keep_subscription={list(keep)!r}"
                    + (f" (compiled: {', '.join(schema.names)})" if schema.names else "")
                )
        return self.with_subscriptions(schema, keep)


def with_kept_ids(messages: DataFrame, keep: Sequence[str], systems: Systems) -> tuple[Column, StructType]:
    """Return what travels as the id of messages, and its schema: a struct with the kept columns, if there are any.

    `systems` are those of the kept columns, which the schema then names.
    """
    from pyspark.sql import functions as f

    from contrada.pipeline.systems import with_systems

    if not keep:
        return f.col(ID), messages.select(ID).schema
    check_sendable("keep", messages, keep)
    known = with_systems(messages.select(ID, *map(_named, keep)), systems)
    fields = known.select(f.struct(ID, *map(_named, keep)).alias(ID)).schema
    return f.struct(ID, *map(_named, keep)).alias(ID), fields


def kept_struct(frame: DataFrame, keep: Sequence[str]) -> Column:
    """Return the kept columns of subscriptions as one column, with the CRS of geometry."""
    from pyspark.sql import functions as f

    from contrada.pipeline.systems import CRS, frame_systems

    systems = frame_systems(frame, keep)
    columns = []
    for name in keep:
        known = dict(frame.schema[name].metadata or {})
        known |= {CRS: str(systems[name])} if name in systems else {}
        columns.append(_named(name).alias(name, metadata=known) if known else _named(name))
    return f.struct(*columns).alias(KEPT)


def check_sendable(option: str, frame: DataFrame, names: Collection[str]) -> None:
    """Raise a FormatError for a column of a type that Spark does not send to Python."""
    from pyspark.errors import PySparkException

    from contrada.pipeline.spark_types import sent_type

    for name in names:
        kind = frame.schema[name].dataType
        try:
            sent_type(kind)
        except PySparkException as error:  # else a job would fail on it
            text = f"{option}: column {name!r} has type {kind.simpleString()}, which Spark does not send to Python"
            raise FormatError(text) from error


def kept_fields(schema: StructType, kept: Sequence[str]) -> tuple[StructType, Any]:
    """Return the Spark type and the Arrow type of the chosen columns of subscriptions."""
    from pyspark.sql.types import StructField, StructType

    from contrada.pipeline.spark_types import sent_type

    fields = [schema[name] for name in kept]
    chosen = StructType([StructField(one.name, one.dataType, True, one.metadata) for one in fields])
    return chosen, sent_type(chosen)


def unfolded(frame: DataFrame, keep: Sequence[str], kept: Sequence[str], names: Sequence[str]) -> DataFrame:
    """Return rows of id and `names` with the columns of messages after the id, those of subscriptions at the end."""
    from pyspark.sql import functions as f

    columns = [f.col(ID).getField(name).alias(name) for name in (ID, *keep)] if keep else [f.col(ID)]
    further = [f.col(KEPT).getField(name).alias(name) for name in kept]
    return frame.select(*columns, *names, *further)


def _named(name: str) -> Column:
    from pyspark.sql import functions as f

    from contrada.spark_names import quoted

    return f.col(quoted(name))


def text_ids(keep: Sequence[str]) -> Any:
    """Return the Arrow type of ids of messages that are read from text: attributes are kept as text.

    >>> text_ids([]), text_ids(["title"]).field(1)
    (DataType(string), pyarrow.Field<title: string>)
    """
    fields = [pa.field(name, pa.string()) for name in (ID, *keep)]
    return pa.struct(fields) if keep else pa.string()


def ids_of(ids: Sequence[str | None], messages: Sequence[Mapping[str, Any]], keep: Sequence[str]) -> Any:
    """Return the ids of messages with the kept attributes as text: numbers and what is nested as in JSON."""
    columns = [pa.array(ids, pa.string())]
    columns += [pa.array([kept_text(message.get(name)) for message in messages], pa.string()) for name in keep]
    return pa.StructArray.from_arrays(columns, fields=list(text_ids(keep))) if keep else columns[0]


def kept_text(value: Any) -> str | None:
    """Return an attribute as text.

    >>> kept_text("fire"), kept_text(4), kept_text(True), kept_text(["a", 1]), kept_text(None)
    ('fire', '4', 'true', '["a", 1]', None)
    """
    if value is None:
        return None
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return plain_text(json.dumps(value, default=str, ensure_ascii=False))


class KeptRows:
    """Collects the kept columns of good subscriptions while a table is built, with their keys."""

    def __init__(self) -> None:
        self._keys: list[Any] = []
        self._values: list[Any] = []

    def add(self, keys: Any, values: Any, bad: Collection[int]) -> None:
        """Add rows of keys and structs, but for those at the places `bad`."""
        good = pa.array(np.setdiff1d(np.arange(len(keys)), np.array(list(bad), np.int64)))
        for kept, given in ((self._keys, keys), (self._values, values)):
            chosen = given.take(good)
            kept += chosen.chunks if isinstance(chosen, pa.ChunkedArray) else [chosen]

    def write(self, directory: Path, keys: Any) -> None:
        """Write `kept.arrow` for a table whose rows have these keys; nothing if no row was added."""
        if not self._values:
            return
        own = pa.chunked_array(self._keys).cast(keys.type)
        places = pc.index_in(keys, value_set=own)
        values = _joined(pa.chunked_array(self._values)).take(places)
        table = pa.table({KEPT: values})
        with pa.ipc.new_file(directory / FILE, table.schema) as writer:
            writer.write_table(table)


def _joined(values: Any) -> Any:
    """Return structs as one array; texts and bytes have 64-bit offsets, since they may exceed 2 GiB."""
    fields = [pa.field(field.name, _large(field.type), metadata=field.metadata) for field in values.type]
    chunks = [
        pa.StructArray.from_arrays([one.field(k).cast(field.type) for k, field in enumerate(fields)], fields=fields)
        for one in values.chunks
    ]
    return pa.concat_arrays(chunks)


def _large(kind: Any) -> Any:
    return {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind, kind)


class KeptColumns:
    """Columns of the subscriptions of an open table, over the mapped file, or in memory."""

    def __init__(self, values: Any, kind: Any) -> None:
        self._fields = list(kind)
        self._columns = [values.field(field.name) for field in kind]

    @classmethod
    def read(cls, directory: str | os.PathLike[str], kind: Any, rows: int) -> KeptColumns:
        """Map the file of a table of so many rows; a damaged one is a TableError."""
        path = Path(directory) / FILE
        try:
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
            table.validate(full=True)
            values = table.column(KEPT).combine_chunks()
            if len(values) != rows:
                raise TableError(f"{path} is damaged: it has {len(values)} rows, the table has {rows}")
            return cls(values, kind)
        except (OSError, KeyError, pa.ArrowException) as error:
            raise TableError(f"{path} is damaged: {error}") from error

    def take(self, rows: NDArray[np.int64]) -> Any:
        """Return the columns of rows of the table as structs."""
        places = pa.array(rows)
        columns = [column.take(places) for column in self._columns]
        of_kind = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(columns, self._fields, strict=True)
        ]
        return pa.StructArray.from_arrays(of_kind, fields=self._fields)


def first_by_key(messages: NDArray[np.int64], owners: NDArray[np.signedinteger[Any]], keys: Any) -> NDArray[np.int64]:
    """Return the places of the pairs of message and owner that are left: of equal ones that with the least key.

    >>> import numpy as np, pyarrow as pa
    >>> first_by_key(np.array([0, 0, 1]), np.array([4, 4, 4]), pa.array(["b", "a", "b"])).tolist()
    [1, 2]
    """
    pairs = pa.table({"message": messages, "owner": owners, "key": keys})
    order = np.asarray(pc.sort_indices(pairs, [(name, "ascending") for name in pairs.column_names]), np.int64)
    whose, who = messages[order], owners[order]
    is_first = np.append(True, (whose[1:] != whose[:-1]) | (who[1:] != who[:-1]))[: len(order)]
    first: NDArray[np.int64] = order[is_first]
    return first
