"""Split bodies into the JSON texts of single messages, and write each in one line."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec

from contrada.errors import FormatError
from contrada.formats import records
from contrada.formats.geojson.shapes import is_feature
from contrada.formats.json import BYTE_ORDER_MARK, decoded
from contrada.formats.records import Lines, Record
from contrada.geometry import Region
from contrada.limits import DEFAULTS, limit, variable
from contrada.service.intake.posts import Post

BLANKS = b" \t\r\n"


# One message of a body: its place, its JSON text, its value, and the reason if it has none.
Text = tuple[int, bytes, Any, str | None]


def plain(body: bytes) -> bytes:
    r"""Return JSON in one line, with all numbers and texts as they were written.

    Only a body with line breaks is written anew, without white space; it is a FormatError if it is malformed.

    >>> plain(b'{"depth": 1.50,\n "at": 1e3}\n'), plain(b' {"depth": 1.50, "at": 1e3}')
    (b'{"depth":1.50,"at":1e3}', b'{"depth": 1.50, "at": 1e3}')
    """
    body = body.removeprefix(BYTE_ORDER_MARK).strip(BLANKS)
    if b"\n" not in body and b"\r" not in body:
        return body
    try:
        return msgspec.json.format(body, indent=-1)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FormatError(str(error)) from error


def single_text(post: Post) -> Text | None:
    """Return the only message of a body; None if the body may hold any number of messages."""
    if post.format not in ("json", "cloudevent"):
        return None
    data = post.body.removeprefix(BYTE_ORDER_MARK).strip(BLANKS)
    if post.context is not None or post.format == "cloudevent":
        return (0, data, *_decoded(data)) if data or post.context is None else (0, data, None, None)
    if data[:1] == b"[" or b'"FeatureCollection"' in data:
        return None
    return 0, data, *_decoded(data)


def texts_of(post: Post, most: int) -> tuple[Iterator[Text], bool]:
    """Return the messages of a body that may hold several, and whether it is one message after all.

    A body of more than `most` messages is a FormatError, raised before they take memory.
    """
    check_count(post, most)
    stream = io.BytesIO(post.body.removeprefix(BYTE_ORDER_MARK))
    if post.format == "ndjson":
        return (_line_text(record) for record in Lines(0, post.body).records()), False
    if post.format == "geojsonseq":
        return _item_texts(records.json_records(stream, post.format)), False
    found = list(islice(records.json_records(stream, "json"), most + 1))
    if len(found) > most:
        raise _too_many(most)
    if len(found) == 1 and found[0].data == post.body.removeprefix(BYTE_ORDER_MARK).strip():  # the whole body
        if post.format == "cloudevents":
            reason = found[0].decoded()[1] or "need an array of CloudEvents, got an object"
            return iter([(0, b"", None, reason)]), True
        return _item_texts(iter(found)), True
    return _item_texts(iter(found)), False


def check_count(post: Post, most: int) -> None:
    """Raise FormatError if a body has more than `most` lines, texts of a sequence, or <info> blocks."""
    marks = {"ndjson": b"\n", "geojsonseq": records.SEPARATOR, "cap": b"<info"}
    if post.format in marks and post.body.count(marks[post.format]) > most:
        raise _too_many(most)


def _too_many(most: int) -> FormatError:
    return FormatError(f"the body has more than {most:,} messages; send several bodies")


def _line_text(record: Record) -> Text:
    row = record.number - 1
    if record.error is not None:
        return row, b"", None, str(record.error)
    return row, record.data, *_decoded(record.data)


def _item_texts(found: Iterator[Record]) -> Iterator[Text]:
    for row, record in enumerate(found):
        value, reason = _decoded(record.data) if record.error is None else (None, str(record.error))
        if reason is None and record.in_collection and not is_feature(value):
            reason = "need a GeoJSON Feature with properties and geometry in a FeatureCollection"
        elif record.crs is not None and isinstance(value, dict):
            value.setdefault("crs", record.crs)
        yield row, record.data, value, reason


def _decoded(data: bytes) -> tuple[Any, str | None]:
    """Decode the text of one message, unless it is empty or too long."""
    if not data:
        return None, "the body is empty; need JSON"
    if len(data) > limit("record_bytes"):
        return None, (
            f"the message has {len(data):,} {DEFAULTS['record_bytes'][1]}; the limit is {limit('record_bytes'):,}"
            f" ({variable('record_bytes')})"
        )
    return decoded(data)


def event_json(context: Mapping[str, str], data: bytes) -> bytes:
    """Return a CloudEvent in structured mode of its attributes and the JSON of its data, b"" for none."""
    members = msgspec.json.encode(dict(context))
    return members[:-1] + b',"data":' + data + b"}" if data else members


def alert_json(message: Mapping[str, Any]) -> bytes:
    """Return the message of a CAP alert as a GeoJSON Feature, whose geometry is the area.

    >>> alert_json({"event": "Storm", "sent": datetime(2024, 5, 1, tzinfo=UTC)})
    b'{"type":"Feature","geometry":null,"properties":{"event":"Storm","sent":"2024-05-01T00:00:00Z"}}'
    """
    area = message.get("area")
    geometry = area.to_geojson() if isinstance(area, Region) else None
    properties = {name: time_text(value) for name, value in message.items() if name != "area"}
    return msgspec.json.encode({"type": "Feature", "geometry": geometry, "properties": properties})


def time_text(value: Any) -> str:
    """Return a timestamp in UTC as text; text stays as it is."""
    if isinstance(value, str):
        return value
    return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat() if isinstance(value, datetime) else value}Z"
