"""Match a few messages with rows of a template that are read past them in blocks: rows are never held all at once.

Every row is checked. Rows near a message become an ordinary table, which is dropped when the messages are matched with
it, so memory does not grow with the number of rows, except for the keys and subscribers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from contrada.errors import ContradaError
from contrada.forking import cached_property
from contrada.formats.tables.row_files import row_text
from contrada.formats.tables.subscription_rows import RowBlock
from contrada.formats.templates import template_columns
from contrada.geometry.globe import globes_of
from contrada.geometry.pool import PREFIX, cores
from contrada.matching.answer import By
from contrada.matching.names import Name
from contrada.matching.near_rows import MessageBoxes, SiftedRows, sift_rows
from contrada.matching.table import ForwardingTable, subscribe_rows
from contrada.matching.template import read_columns
from contrada.model import Predicate

# Near rows that are matched at once: so many, and so many times as many as messages, which are read each time.
MIN_TABLE_ROWS, ROWS_PER_MESSAGE = 1 << 15, 16
MAX_MATCHES = 1 << 24  # matches that are held in memory, since those of a message come from all blocks
Integers = NDArray[np.int64]
T = TypeVar("T")
R = TypeVar("R")


class NeedsTableError(ContradaError):
    """Rows of several blocks decide together which rows or messages are good, so all of them must be in one table."""


class BadRow(NamedTuple):
    """A bad row: its number among all rows, the reason, and the row as text."""

    row: int
    reason: str
    text: str


class BatchMatches(NamedTuple):
    """The matches of a batch of messages: the number per message, the rows, and the reasons of bad messages."""

    counts: Integers
    rows: Integers
    rejected: dict[int, str]


class ScannedRows:
    """The names of the good rows of a scan, which count from 0; default keys are these numbers."""

    def __init__(self, count: int, keys: Any | None, subscribers: Any | None) -> None:
        self._count, self._keys = count, keys
        self._owners: Integers | None = None
        self._subscribers = keys
        if subscribers is not None:
            encoded = subscribers.dictionary_encode()  # numbered by first use, as in a table
            self._owners, self._subscribers = np.asarray(encoded.indices).astype(np.int64), encoded.dictionary

    def __len__(self) -> int:
        return self._count

    def keys_of(self, rows: Integers) -> list[Name]:
        """Return the keys of rows."""
        return _names(self._keys, rows)

    def subscribers_of(self, rows: Integers, by: By) -> list[Name]:
        """Return the subscribers of rows, or those with the numbers `rows` if `by` is "subscriber"."""
        return _names(self._subscribers, rows if by == "subscriber" else self.owners(rows))

    def owners(self, rows: Integers) -> Integers:
        """Return the numbers of the subscribers of rows."""
        return rows if self._owners is None else self._owners[rows]


def _names(names: Any | None, rows: Integers) -> list[Name]:
    found: list[Name] = rows.tolist() if names is None else names.take(rows).to_pylist()
    return found


class RowScan:
    """Matches batches of messages, lists or Arrow tables, with blocks of rows.

    >>> import pyarrow as pa
    >>> from contrada.cql2 import parse
    >>> scan = RowScan(parse("size >= $least"), [[{"size": 3}, {"size": 5}]])
    >>> for keys, least in ((["a", "b"], [1, 4]), (["c"], [5])):
    ...     rows = pa.table({"least": least, "key": keys})
    ...     scan.run([RowBlock(rows, rows)])
    >>> found, = scan.matches("subscription")
    >>> found.counts.tolist(), scan.names.keys_of(found.rows)
    ([1, 3], ['a', 'a', 'b', 'c'])
    """

    def __init__(
        self,
        template: Predicate,
        messages: Sequence[Any],
        threads: int | None = None,
        min_table_rows: int | None = None,
        max_matches: int = MAX_MATCHES,
        wrap: Mapping[str, str] | None = None,
    ) -> None:
        self._wrap, self._globes = wrap, globes_of(wrap)
        self._template, self._messages, self._threads = template, messages, threads
        most = max(MIN_TABLE_ROWS, ROWS_PER_MESSAGE * sum(map(len, messages)))
        self._min_table_rows = most if min_table_rows is None else min_table_rows
        local = {one.attribute for part in template for one in part if one.is_local}
        self._boxes = MessageBoxes.of_batches(messages, local, self._globes)
        self._table, self._numbers = ForwardingTable(wrap=wrap), list[Integers]()
        # Messages and rows, by batch.
        self._found: list[list[tuple[NDArray[np.int32], Integers]]] = [[] for _ in messages]
        self._held, self._max_matches = 0, max_matches
        self._refused: list[dict[int, str]] | None = None  # bad messages, by batch
        self._kinds: dict[str, str] = {}
        self._names: dict[str, list[Any]] = {"key": [], "subscriber": []}
        self.rows, self.good = 0, 0  # rows read, and good ones among them
        self.bad: list[BadRow] = []
        self.asked: dict[str, list[str]] = {}  # kinds of values that rows ask for, by attribute

    def run(self, blocks: Iterable[RowBlock], progress: Callable[[int], None] = lambda rows: None) -> None:
        """Read and match blocks; several blocks are checked at once, while near rows of earlier ones are matched.

        Raises a ContradaError if the rows must be in one table, or are bad in a way that table rejects as a whole.
        """
        for block, sifted in in_threads(self._sift, blocks, self._threads):
            self._add(block, sifted)
            progress(self.rows)
        self._match()

    def _sift(self, block: RowBlock) -> tuple[RowBlock, SiftedRows]:
        return block, sift_rows(block.asked, self._template, self._boxes, errors=(), globes=self._globes)

    def _add(self, block: RowBlock, sifted: SiftedRows) -> None:
        """Add the near rows of a block to the table, and note its bad rows and names."""
        self._check_kinds(sifted)
        for row, reason in sorted(sifted.reasons.items()):
            self.bad.append(BadRow(self.rows + row, reason, row_text(block.rows, row)))
        asked, good = block.asked, sifted.good
        for name, kept in self._names.items():
            if name in asked.column_names:
                column = asked.column(name)
                kept.append(column.take(good) if sifted.reasons else column)
        # Any good row tells which messages are bad, so the first one counts as near.
        near = sifted.near if len(sifted.near) or self.good else good[:1]
        if len(near):
            columns = template_columns(self._template)
            some = asked.select(columns) if len(near) == asked.num_rows else asked.select(columns).take(near)
            read = read_columns(sifted.read, near, asked.num_rows)
            subscribe_rows(self._table, some, self._template, read=read, written=())
            self._numbers.append(self.good + np.searchsorted(good, near))
        self.rows += asked.num_rows
        self.good += len(good)
        if len(self._table) >= self._min_table_rows:
            self._match()

    def _check_kinds(self, sifted: SiftedRows) -> None:
        """Raise NeedsTableError if rows of other blocks may decide which rows of this block are good."""
        for name, kinds in sifted.kinds.items():
            if any(self._kinds.setdefault(name, kind) != kind for kind in kinds):
                raise NeedsTableError(f"column {name!r} has several kinds of geometry or systems of coordinates")
        if sifted.has_long:
            raise NeedsTableError("numbers of more than 103 bits are compared by the table")

    def _match(self) -> None:
        """Match all messages with the table, and begin another table."""
        if not len(self._table):
            return
        numbers, refused = np.concatenate(self._numbers), []
        for batch, found in zip(self._messages, self._found, strict=True):
            answer = self._table.match_many(batch, "subscription", self._threads)
            messages = np.repeat(np.arange(len(answer), dtype=np.int32), np.diff(answer.offsets))
            found.append((messages, numbers[answer.rows]))
            refused.append({item.row: item.reason for item in answer.rejected})
        self._held += sum(len(found[-1][1]) for found in self._found)
        if self._held > self._max_matches:
            raise NeedsTableError("the matches do not fit in memory; a table matches some messages at a time")
        if self._refused is not None and self._refused != refused:
            raise NeedsTableError("messages are bad for some of the rows only")
        self._refused, self.asked = refused, self._table.asked_kinds()
        self._table, self._numbers = ForwardingTable(wrap=self._wrap), []

    @cached_property
    def names(self) -> ScannedRows:
        """The names of the good rows; NeedsTableError if a key is repeated."""
        import pyarrow as pa

        chunks = ([chunk for column in kept for chunk in column.chunks] for kept in self._names.values())
        keys, subscribers = (pa.chunked_array(own).combine_chunks() if own else None for own in chunks)
        if keys is not None and not _are_distinct(keys):
            raise NeedsTableError("keys are repeated")
        return ScannedRows(self.good, keys, subscribers)

    def matches(self, by: By) -> Iterator[BatchMatches]:
        """Yield the matches of each batch: the rows of a message are sorted, or its subscribers if `by` them."""
        names = self.names if by == "subscriber" else None
        none = np.empty(0, np.int32), np.empty(0, np.int64)
        refused = self._refused or [{} for _ in self._messages]
        for batch, found, bad in zip(self._messages, self._found, refused, strict=True):
            messages, rows = map(np.concatenate, zip(none, *found, strict=True))
            order = np.argsort(messages, kind="stable")  # blocks are in the order of their rows
            messages, rows = messages[order], rows[order]
            if names is not None:
                pairs = np.unique(messages * np.int64(self.good) + names.owners(rows))
                messages, rows = np.divmod(pairs, max(self.good, 1))
            yield BatchMatches(np.bincount(messages, minlength=len(batch)), rows, bad)


def _are_distinct(keys: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(keys.type):  # sorting takes a tenth of the time of counting
        numbers = np.sort(np.asarray(keys))
        return bool((numbers[1:] != numbers[:-1]).all())
    return bool(pc.count_distinct(keys).as_py() == len(keys))


def in_threads(work: Callable[[T], R], items: Iterable[T], threads: int | None) -> Iterator[R]:
    """Yield work(item) for all items, in order; `threads` threads (None: one per core) work ahead, one more reads.

    >>> list(in_threads(abs, [-1, 2, -3], 2))
    [1, 2, 3]
    """
    most, source = threads or cores(), iter(items)
    if most == 1:
        yield from map(work, source)
        return
    end: Any = object()
    begun: deque[Future[R]] = deque()
    with ThreadPoolExecutor(most + 1, thread_name_prefix=PREFIX) as pool:
        try:
            reading = pool.submit(next, source, end)
            while (item := reading.result()) is not end:
                reading = pool.submit(next, source, end)
                begun.append(pool.submit(work, item))
                if len(begun) > most:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            for future in begun:
                future.cancel()
