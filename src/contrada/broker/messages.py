"""Messages: a batch in columns, with an id for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.errors import FormatError
from contrada.formats.tables.rows import table_of
from contrada.matching.batch_reading import is_arrow

Columns: TypeAlias = pa.RecordBatch | list[Mapping[str, Any]]  # a few messages are matched sooner one by one


class MessageRows:
    """Rows of a batch of messages, copied out of it when `batch` is first read: by the host that encodes them.

    A broker that passes messages on reads none of their columns, and to copy 10 of 100 rows takes about a seventh of
    the time that matching them takes. Until the copy is made the whole batch stays in memory.

    >>> rows = MessageRows(pa.record_batch({"size": [4, 5, 6]}), np.array([0, 2]))
    >>> len(rows), rows.batch["size"].to_pylist()
    (2, [4, 6])
    """

    __slots__ = ("_chosen",)

    def __init__(self, batch: Columns, rows: NDArray[np.int64] | None = None) -> None:
        is_part = rows is not None and len(rows) < len(batch)
        self._chosen = batch, rows if is_part else None  # one attribute: no thread sees a copy together with rows

    @property
    def batch(self) -> Columns:
        """The rows as a batch, or as a list if they are taken from one."""
        batch, rows = self._chosen
        if rows is not None:
            batch = [batch[row] for row in rows.tolist()] if isinstance(batch, list) else batch.take(pa.array(rows))
            self._chosen = batch, None
        return batch

    def __len__(self) -> int:
        batch, rows = self._chosen
        return len(batch) if rows is None else len(rows)


class Messages(NamedTuple):
    """Messages in columns, or a few as mappings; equal ids are one message.

    `payloads`, one for each message or none, are kept unread.
    """

    ids: tuple[str, ...]
    columns: Columns
    payloads: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, messages: Any, ids: Sequence[Any], payloads: Sequence[bytes] = ()) -> Messages:
        """Return rows of an Arrow table or record batch, or mappings, as messages.

        Raise FormatError if ids and rows do not fit.
        """
        batch: Columns
        if isinstance(messages, pa.RecordBatch) or _is_list_of_mappings(messages):
            batch = messages
        elif is_arrow(messages):
            table = table_of(messages)
            batches = table.to_batches()
            batch = batches[0] if len(batches) == 1 else _joined(table)
        else:
            raise FormatError(f"publish: need messages in an Arrow table, got {type(messages).__name__}")
        if not (set(map(type, ids)) <= {str} and all(ids)):
            place, id = next((place, id) for place, id in enumerate(ids) if not (id and type(id) is str))
            raise FormatError(f"publish: id {place}: need a text that is not empty, got {id!r:.60}")
        if len(ids) != len(batch):
            raise FormatError(f"publish: {len(ids)} ids for {len(batch)} messages")
        if len(payloads) not in (0, len(ids)):
            raise FormatError(f"publish: {len(payloads)} payloads for {len(ids)} messages")
        return cls(tuple(ids), batch, tuple(payloads))

    def chosen(self, rows: NDArray[np.int64]) -> Messages:
        """Return some of the messages, by rising rows."""
        if len(rows) == len(self.ids):
            return self
        return Messages(self.ids_of(rows), MessageRows(self.columns, rows).batch, self.payloads_of(rows))

    def ids_of(self, rows: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the ids of some of the messages."""
        return tuple([self.ids[row] for row in rows.tolist()])

    def payloads_of(self, rows: NDArray[np.int64]) -> tuple[bytes, ...]:
        """Return the payloads of some of the messages."""
        return tuple([self.payloads[row] for row in rows.tolist()]) if self.payloads else ()


def _is_list_of_mappings(messages: Any) -> bool:
    return isinstance(messages, list) and all(isinstance(message, Mapping) for message in messages)


def _joined(table: pa.Table) -> pa.RecordBatch:
    """Return a table of several batches, or of none, as one batch."""
    columns = [column.combine_chunks() for column in table.columns]
    columns = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)
