"""Messages: a batch in columns, with an id for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from contrada.errors import FormatError
from contrada.matching.batch_reading import is_arrow


class Messages(NamedTuple):
    """Messages in columns; equal ids are one message."""

    ids: tuple[str, ...]
    columns: pa.RecordBatch

    @classmethod
    def of(cls, messages: Any, ids: Sequence[Any]) -> Messages:
        """Return rows of an Arrow table or record batch as messages; raise FormatError if ids and rows do not fit."""
        if isinstance(messages, pa.RecordBatch):
            batch = messages
        elif is_arrow(messages):
            batch = pa.table(messages).combine_chunks()
            batch = pa.RecordBatch.from_arrays([_whole(column) for column in batch.columns], schema=batch.schema)
        else:
            raise FormatError(f"publish: need messages in an Arrow table, got {type(messages).__name__}")
        if not all(id and type(id) is str for id in ids):
            place, id = next((place, id) for place, id in enumerate(ids) if not (id and type(id) is str))
            raise FormatError(f"publish: id {place}: need a text that is not empty, got {id!r:.60}")
        if len(ids) != batch.num_rows:
            raise FormatError(f"publish: {len(ids)} ids for {batch.num_rows} messages")
        return cls(tuple(ids), batch)

    def chosen(self, rows: Sequence[int]) -> Messages:
        """Return some of the messages, by rising rows."""
        if len(rows) == len(self.ids):
            return self
        return Messages(tuple(self.ids[row] for row in rows), self.columns.take(pa.array(rows, pa.int64())))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
