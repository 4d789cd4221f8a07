"""Bulk uploads of subscriptions: newline JSON with a filter on each line, or a table of rows for a template."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from contrada.cql2 import parse
from contrada.errors import ContradaError, FormatError
from contrada.formats.subscriptions import read_subscription_table
from contrada.formats.templates import Instances
from contrada.geometry.crs import LONGITUDE_LATITUDE
from contrada.model import Predicate
from contrada.service.http.schemas import SubscriptionLine
from contrada.service.problems import BAD_PARAMETER
from contrada.service.tracks.requests import TrackMembers

# Content type: the format of the rows. All but newline JSON need a template.
BULK_TYPES = MappingProxyType(
    {
        "application/x-ndjson": "ndjson",
        "application/ndjson": "ndjson",
        "application/jsonl": "ndjson",
        "application/vnd.apache.parquet": "parquet",
        "application/geo+json": "json",
    }
)

ROWS_TOGETHER = 500  # in one transaction, so that others do not wait long

NOT_TRACKED = TrackMembers()

_line = msgspec.json.Decoder(SubscriptionLine).decode


class BulkRow(NamedTuple):
    """A row of an upload: a subscription, or why there is none; `predicate` is its filter if that was not text."""

    row: int
    key: str | None
    found: SubscriptionLine | ContradaError
    predicate: Predicate | None = None


def read_rows(data: bytes, form: str, template: str | None, members: TrackMembers = NOT_TRACKED) -> Iterator[BulkRow]:
    """Yield the rows of an upload, made on demand; the first raises an error if it cannot be read at all.

    `members` say what all rows ask of tracked objects; a line of newline JSON that says it itself counts.
    """
    if template is None and form == "ndjson":
        return _read_lines(data, structs.asdict(members))
    if template is None:
        raise BAD_PARAMETER("rows without filters need ?template=, a filter with $column in place of values")
    return _read_table(data, form, template, structs.asdict(members))


def _read_lines(data: bytes, members: Mapping[str, Any]) -> Iterator[BulkRow]:
    for row, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines()):
        if line.strip():
            try:
                found = _line(line)
                if members["track"] is not None and found.track is None:
                    found = structs.replace(found, **members)
                yield BulkRow(row, str(found.key), found)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                yield BulkRow(row, None, FormatError(str(error)))


def _read_table(data: bytes, form: str, template: str, members: Mapping[str, Any]) -> Iterator[BulkRow]:
    """Bind a template to each row; filters are kept as text, in longitude and latitude."""
    predicate = parse(template)
    rows = read_subscription_table(io.BytesIO(data), predicate, form, to_crs=LONGITUDE_LATITUDE)
    for item in rows.rejected:
        yield BulkRow(item.number, None, FormatError(item.reason))
    if not rows.table.num_rows:
        return
    if "key" not in rows.table.column_names:
        raise BAD_PARAMETER("the rows need a column or property 'key'")
    for start in range(0, rows.table.num_rows, ROWS_TOGETHER):
        part = rows.table.slice(start, ROWS_TOGETHER)
        keys = part.column("key").to_pylist()
        subscribers = part.column("subscriber").to_pylist() if "subscriber" in part.column_names else [None] * len(keys)
        origins = rows.origins[start : start + len(keys)]
        found = zip(origins, keys, subscribers, Instances(predicate, part), strict=True)
        for (_, _, row), key, subscriber, bound in found:
            if isinstance(bound, ContradaError):
                yield BulkRow(row, str(key), bound)
            else:
                line = SubscriptionLine(key, str(bound), subscriber, **members)
                yield BulkRow(row, str(key), line, bound)
