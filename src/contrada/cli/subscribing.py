"""Read the subscriptions of a file into a table or one by one; bad ones are rejected."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contrada.cql2 import parse
from contrada.errors import ContradaError, FilterError, FormatError, KeyInUseError
from contrada.formats.records import Rejected
from contrada.formats.subscriptions import Subscription, read_subscription_table, read_subscriptions
from contrada.formats.tables.row_files import row_text
from contrada.formats.tables.subscription_rows import SubscriptionTable
from contrada.formats.wrapping import column_globes
from contrada.geometry.globe import globes_of
from contrada.matching import ForwardingTable
from contrada.matching.table import subscribe_rows
from contrada.matching.template import read_columns
from contrada.model import Predicate

Reject = Callable[[Rejected], None]


class Asking(NamedTuple):
    """A source of subscriptions: rows of a filter each, or with a template rows of its columns.

    `options` are further arguments of `read_subscription_table`.
    """

    source: Path
    format: str | None
    template: str | None
    options: dict[str, Any]

    def rows(self) -> tuple[Predicate, SubscriptionTable]:
        """Return the template, and the rows of its columns."""
        template = parse(self.template or "")
        return template, read_subscription_table(str(self.source), template, self.format, **self.options)


class FirstRejected:
    """Passes rejections on to `reject` and keeps the first one."""

    def __init__(self, reject: Reject) -> None:
        self._reject = reject
        self.first: Rejected | None = None

    def __call__(self, item: Rejected) -> None:
        """Take a rejection."""
        self.first = self.first or item
        self._reject(item)


def table_of(asking: Asking, reject: Reject, added: Callable[[int], None] = lambda count: None) -> ForwardingTable:
    """Build a table of the good subscriptions; a file with bad ones only is an error."""
    table, note = ForwardingTable(wrap=asking.options.get("wrap")), FirstRejected(reject)
    if asking.template is None:
        _subscribe_each(asking, table, note, added)
    else:
        _subscribe_rows(asking, table, note)
    if not len(table):
        raise no_subscription(asking, note.first)
    return table


def no_subscription(asking: Asking, first: Rejected | None) -> FormatError:
    """Return the error for a file without a good subscription; `first` is the first bad one, if any."""
    if first is None:
        return FormatError(f"{asking.source}: no subscriptions")
    return FormatError(f"no valid subscription; the first: {first}")


def _subscribe_each(asking: Asking, table: ForwardingTable, reject: Reject, added: Callable[[int], None]) -> None:
    for item in read_subscriptions(str(asking.source), asking.format):
        if isinstance(item, Rejected):
            reject(item)
            continue
        try:
            table.subscribe(item.subscriber, item.filter, item.key)
        except ContradaError as error:
            reject(rejected_subscription(item, error))
        added(len(table))
    table.pack()


def _subscribe_rows(asking: Asking, table: ForwardingTable, reject: Reject) -> None:
    template, found = asking.rows()
    for item in found.rejected:
        reject(item)
    count = found.table.num_rows
    if count:
        subscribe_rows(table, found.table, template, read=read_columns(found.read, np.arange(count), count))


class Parsed(NamedTuple):
    """A good subscription: its origin, key, subscriber and query."""

    source: str
    unit: str
    number: int
    key: str | int | None
    subscriber: str | int
    predicate: Predicate


def parsed_subscriptions(asking: Asking, found_crs: dict[str, str | None] | None = None) -> Iterator[Parsed | Rejected]:
    """Yield the subscriptions that `table_of` takes, one by one; a template's CRS by attribute go into `found_crs`."""
    if asking.template is None:
        yield from _parsed_each(asking)
    else:
        yield from _parsed_rows(asking, {} if found_crs is None else found_crs)


def good_subscriptions(
    asking: Asking, reject: Reject, found_crs: dict[str, str | None] | None = None
) -> Iterator[Parsed]:
    """Yield the good ones of `parsed_subscriptions`; pass the others to `reject`."""
    for item in parsed_subscriptions(asking, found_crs):
        if isinstance(item, Rejected):
            reject(item)
        else:
            yield item


def _parsed_each(asking: Asking) -> Iterator[Parsed | Rejected]:
    keys: set[str | int] = set()
    for item in read_subscriptions(str(asking.source), asking.format):
        if isinstance(item, Rejected):
            yield item
            continue
        try:
            predicate = parse(item.filter)
            for column in (column for part in predicate for one in part for column in one.columns):
                raise FilterError(f"{column} is a column of a template; pass --template")
            if item.key in keys:
                raise KeyInUseError(f"duplicate key {item.key!r:.60}")
        except ContradaError as error:
            yield rejected_subscription(item, error)
            continue
        if item.key is not None:
            keys.add(item.key)
        yield Parsed(*item[:5], predicate)


def _parsed_rows(asking: Asking, found_crs: dict[str, str | None]) -> Iterator[Parsed | Rejected]:
    """Yield the rows for a template; keys default to row numbers, as in a table, and subscribers to keys."""
    from contrada.formats.templates import Instances

    template, rows = asking.rows()
    yield from rows.rejected
    if not rows.table.num_rows:
        return
    made = Instances(template, rows.table, column_globes(template, globes_of(asking.options.get("wrap"))))
    found_crs.update(made.crs)
    there = [name for name in ("key", "subscriber") if name in rows.table.column_names]
    names = {name: rows.table.column(name).to_pylist() for name in there}
    keys = names.get("key", range(rows.table.num_rows))
    for row, (origin, predicate) in enumerate(zip(rows.origins, made, strict=True)):
        if isinstance(predicate, ContradaError):
            yield Rejected(*origin, str(predicate), row_text(rows.table, row))
        else:
            yield Parsed(*origin, keys[row], names.get("subscriber", keys)[row], predicate)


def rejected_subscription(item: Subscription, error: ContradaError) -> Rejected:
    """Return the rejection of a subscription with a bad filter, or a key in use."""
    own = {"key": item.key, "subscriber": item.subscriber, "filter": item.filter}
    return Rejected(item.source, item.unit, item.number, str(error), json.dumps(own, ensure_ascii=False))
