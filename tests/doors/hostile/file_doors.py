"""Doors that read files: every reader in every format, with and without a change of coordinates."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import contrada as ct
from contrada.formats.messages import message_of
from contrada.formats.reading import Read, Rejected, read_messages, read_zones
from contrada.formats.subscriptions import read_subscription_table, read_subscriptions
from hostile.arguments import table
from hostile.files import CORPORA, file_of
from hostile.registry import Door

ZONES = {("UGC", "CAZ041"): ct.Region([(0.01 * k * k, k) for k in range(60)], crs="OGC:CRS84")}
TEMPLATE = ct.parse("S_INTERSECTS(area, $geometry) AND severity >= $severity")
MATCHED = 200  # messages of a file that are matched one by one


def file_doors() -> Iterator[Door]:
    """A door for every reader and format."""
    for format, corpus in CORPORA.items():
        for reader, (drive, weight) in DRIVERS.items():
            name = f"{reader}[{format}]"
            yield Door(name, (name,), partial(drive, format), corpus, weight)
        changed = partial(_messages, format, to_crs="EPSG:3857", buffer=10.0, crs="EPSG:4326")
        yield Door(f"read_messages[{format}], changed", (f"read_messages[{format}]",), changed, corpus, 1)
    yield Door("message_of", ("message_of",), _message, CORPORA["ndjson"], 2)


def _source(format: str, data: bytes) -> Any:
    """A stream of bytes, or for GIS formats a file: only a sound or damaged file gets as far as GDAL."""
    return file_of(data) if format == "gis" else contextlib.nullcontext(io.BytesIO(data))


def check_rejections(found: list[Any]) -> None:
    """Every rejection has a reason that can be written as a line of UTF-8."""
    for item in found[:1000]:
        if isinstance(item, Rejected):
            assert item.reason, item
            f"{item.source} {item.reason} {item.raw}".encode("utf-8", "surrogatepass")


def _messages(format: str, data: bytes, **options: Any) -> object:
    zones = {} if options else {"zones": ZONES}
    with _source(format, data) as source:
        found = list(read_messages(source, format, times=["onset"], **options, **zones))
    check_rejections(found)
    if options:
        return found
    matched, messages = table(), [item.message for item in found if isinstance(item, Read)]
    for message in messages[:MATCHED]:
        with contextlib.suppress(ct.ContradaError):
            len(matched.match(message))
    return matched.match_many(messages[: 10 * MATCHED], by="subscription", threads=1)


def _subscriptions(format: str, data: bytes) -> object:
    with _source(format, data) as source:
        found = list(read_subscriptions(source, format))
    check_rejections(found)
    made = ct.ForwardingTable()
    for item in [item for item in found if not isinstance(item, Rejected)][:MATCHED]:
        try:
            made.subscribe(item.subscriber, item.filter, item.key, replace=True)
        except ct.ContradaError as error:
            str(error)
    made.pack()
    return made.match({"severity": 4, "kind": "flood"})


def _rows(format: str, data: bytes) -> object:
    with _source(format, data) as source:
        found = read_subscription_table(source, TEMPLATE, format)
    check_rejections(found.rejected)
    made = ct.ForwardingTable()
    made.subscribe_many(found.table, TEMPLATE)
    return made.match({"severity": 4, "area": ct.Region.box(1, 1, 2, 2)})


def _zones(format: str, data: bytes) -> object:
    with _source(format, data) as source:
        return read_zones(source, format)


def _changes(format: str, data: bytes) -> object:
    from contrada.pipeline.stream.changes import apply_changes, read_changes

    names = {"geojsonseq": "geojsons", "cap": "xml"}
    found = list(read_changes(io.BytesIO(data), f"changes.{names.get(format, format)}"))
    check_rejections(found)
    applied = apply_changes(table(), found[: 10 * MATCHED], ("string", "string"))
    return [change.line() for change in applied.changes]


def _message(data: bytes) -> object:
    return table().match(message_of(data, times=["onset"]))


DRIVERS: dict[str, tuple[Callable[..., object], float]] = {
    "read_messages": (_messages, 4),
    "read_subscriptions": (_subscriptions, 1.5),
    "read_subscription_table": (_rows, 1.5),
    "read_zones": (_zones, 0.5),
    "read_changes": (_changes, 1.5),
}
