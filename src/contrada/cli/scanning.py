"""Plan "scan" of `contrada match`: hold a few messages, and read rows of subscriptions past them without a table."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from contrada.cli.message_reader import MessageBatch
from contrada.cli.subscribing import Asking, Reject, no_subscription
from contrada.cql2 import parse
from contrada.errors import ContradaError
from contrada.formats.records import Rejected, files_of
from contrada.formats.tables.subscription_rows import parquet_rows, row_blocks
from contrada.formats.templates import template_columns
from contrada.geometry import Region
from contrada.matching.row_scan import RowScan

# Plan "auto" scans at least MIN_ROWS of subscriptions if there are at most MAX_MESSAGES, with MAX_BYTES, and
# ROWS_PER_MESSAGE rows for each message. With regions of LA both plans take the same time with 100,000 rows,
# and with 1,000,000 rows and 4,096 messages; between these a scan takes less, and with 1,000,000 rows half the memory.
MAX_MESSAGES, MAX_BYTES = 4096, 64 << 20
MIN_ROWS, ROWS_PER_MESSAGE = 100_000, 250
BLOCK_ROWS = 1 << 15  # rows of subscriptions that a thread checks at once


def max_messages(asking: Asking, plan: str) -> int:
    """Return the largest number of messages for which a plan scans the subscriptions; 0 if it never does.

    Raises ContradaError if the plan is "scan" and the subscriptions cannot be scanned.
    """
    if plan == "table":
        return 0
    rows = scannable_rows(asking)
    if plan == "scan":
        if rows is None:
            raise ContradaError(
                "--plan scan needs --template and one Parquet file of subscriptions, "
                "without --times, --subscriptions-crs, --to-crs and --buffer of subscriptions"
            )
        return sys.maxsize
    return 0 if rows is None or rows < MIN_ROWS else min(MAX_MESSAGES, rows // ROWS_PER_MESSAGE)


def scannable_rows(asking: Asking) -> int | None:
    """Return the number of rows of a template in one Parquet file that are subscribed as stored; None for any other."""
    read = {name: value for name, value in asking.options.items() if name not in ("key", "subscriber", "wrap")}
    is_plain = asking.template is not None and not any(read.values())
    return parquet_rows(str(asking.source), asking.format) if is_plain else None


class FirstMessages:
    """Holds the first batches and rejected messages, in order; from `release` on they are passed on.

    `release` gets the function that takes batches from `begin`. It is called when there are more than `most` messages.
    """

    def __init__(self, most: int, begin: Callable[[], Callable[[MessageBatch], None]], reject: Reject) -> None:
        self._most, self._begin, self._reject = most, begin, reject
        self._take: Callable[[MessageBatch], None] | None = None
        self.are_held = True  # until `release`
        self._count, self._bytes = 0, 0
        self.events: list[MessageBatch | Rejected] = []

    @property
    def batches(self) -> list[MessageBatch]:
        """The batches that are held."""
        return [event for event in self.events if isinstance(event, MessageBatch)]

    def take(self, batch: MessageBatch) -> None:
        """Hold a batch, or pass it on."""
        if self._take is None:
            self._hold(batch, len(batch.ids), _size(batch.messages))
        else:
            self._take(batch)

    def reject(self, item: Rejected) -> None:
        """Hold a rejected message, or pass it on."""
        if self._take is None:
            self._hold(item, 1, len(item.raw))
        else:
            self._reject(item)

    def _hold(self, event: MessageBatch | Rejected, count: int, size: int) -> None:
        self.events.append(event)
        self._count, self._bytes = self._count + count, self._bytes + size
        if self._count > self._most or (self._bytes > MAX_BYTES and self._most < sys.maxsize):
            self.release()

    def release(self) -> None:
        """Pass on all batches and rejected messages from now on."""
        if self.are_held:
            self.are_held = False
            self._take = self._begin()
            self.replay(self._take)

    def replay(self, take: Callable[[MessageBatch], None]) -> None:
        """Pass on the held batches to `take`, and the rejected messages, in order."""
        events, self.events = self.events, []
        for event in events:
            if isinstance(event, MessageBatch):
                take(event)
            else:
                self._reject(event)


def _size(messages: Any) -> int:
    """Return the approximate size in bytes of the regions of a list of messages, or of an Arrow table."""
    if not isinstance(messages, list):
        return int(messages.nbytes)
    values = (value for message in messages for value in message.values())
    return sum(value._column.arrays.xy.nbytes for value in values if isinstance(value, Region))


def scan(
    asking: Asking, batches: list[MessageBatch], reject: Reject, progress: Callable[[int], None], threads: int | None
) -> RowScan | None:
    """Match batches with the rows of subscriptions; None if the rows must be in one table, which tells all errors."""
    name = os.fspath(str(files_of(str(asking.source))[0]))
    try:
        template = parse(asking.template or "")
        names = {name: asking.options[name] for name in ("key", "subscriber")}
        columns = template_columns(template)
        blocks = row_blocks(str(asking.source), asking.format, columns, **names, block_rows=BLOCK_ROWS)
        found = RowScan(template, [batch.messages for batch in batches], threads, wrap=asking.options.get("wrap"))
        found.run(blocks, progress)
        is_found = len(found.names) > 0
    except ContradaError:
        return None
    rejected = [Rejected(name, "row", *bad) for bad in found.bad]
    for item in rejected:
        reject(item)
    if not is_found:
        raise no_subscription(asking, rejected[0] if rejected else None)
    return found
