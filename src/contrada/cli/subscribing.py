"""Subscriptions of a file in a table; what is bad is rejected and the rest go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from contrada.errors import ContradaError, FormatError
from contrada.language import parse
from contrada.language.records import Rejected
from contrada.language.subscriptions import Subscription, read_subscription_table, read_subscriptions
from contrada.matching import ForwardingTable

Reject = Callable[[Rejected], None]


class Asking(NamedTuple):
    """Where subscriptions are and how they are read: rows of a filter each, or with a template rows of its columns.

    `options` are further arguments of `read_subscription_table`.
    """

    source: Path
    format: str | None
    template: str | None
    options: dict[str, Any]


def table_of(asking: Asking, reject: Reject, added: Callable[[int], None] = lambda count: None) -> ForwardingTable:
    """A table of the good subscriptions; if there are only bad ones that is an error."""
    table = ForwardingTable()
    first: list[Rejected] = []

    def note(item: Rejected) -> None:
        first.extend([item] if not first else [])
        reject(item)

    if asking.template is None:
        _subscribe_each(asking, table, note, added)
    else:
        _subscribe_rows(asking, table, note)
    if first and not len(table):
        raise FormatError(f"no subscription is good; the first: {first[0]}")
    return table


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
    assert asking.template is not None
    template = parse(asking.template)
    found = read_subscription_table(str(asking.source), template, asking.format, **asking.options)
    for item in found.rejected:
        reject(item)
    if found.table.num_rows:
        table.subscribe_many(found.table, template)


def rejected_subscription(item: Subscription, error: ContradaError) -> Rejected:
    """A subscription whose filter is bad, or whose key is in use."""
    own = {"key": item.key, "subscriber": item.subscriber, "filter": item.filter}
    return Rejected(item.source, item.unit, item.number, str(error), json.dumps(own, ensure_ascii=False))
