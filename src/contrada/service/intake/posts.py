"""Requests that publish: content type, headers and body as a `Post`."""

from __future__ import annotations

from collections.abc import Mapping
from email.message import Message as MimeHeaders
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from contrada.errors import FormatError
from contrada.shown import short

# Content type: the format of the body.
MEDIA_TYPES = MappingProxyType(
    {
        "application/geo+json": "json",
        "application/json": "json",
        "application/cloudevents+json": "cloudevent",
        "application/cloudevents-batch+json": "cloudevents",
        "application/x-ndjson": "ndjson",
        "application/ndjson": "ndjson",
        "application/jsonl": "ndjson",
        "application/json-seq": "geojsonseq",
        "application/geo+json-seq": "geojsonseq",
        "application/cap+xml": "cap",
        "application/xml": "cap",
        "text/xml": "cap",
    }
)
JSON_CHARSETS = ("utf-8", "utf8", "us-ascii", "ascii")
MAX_ID_CHARS = 256  # in a header Message-Id or Idempotency-Key


class MediaTypeError(FormatError):
    """A content type or a charset is not supported; the message lists those that are."""


class Post(NamedTuple):
    """One request: a body and its format, "json", "ndjson", "geojsonseq", "cloudevent", "cloudevents" or "cap".

    `id` is the id of the only message of the body, by the header Message-Id. `context` are the attributes of a
    CloudEvent in binary mode, whose data is the body. `retry_key`, by the header Idempotency-Key, is the same for all
    attempts of one request: with its place in the body it identifies each message that has no other id. `origin` is the
    place that the body was read from, which no other body has: with its place in the body it identifies each message
    that is no CloudEvent and no alert.
    """

    format: str
    body: bytes
    id: str | None = None
    context: Mapping[str, str] | None = None
    retry_key: str | None = None
    origin: str | None = None


def post_of(content_type: str | None, headers: Mapping[str, str], body: bytes) -> Post:
    """Return a request as a Post; `headers` have names in lower case.

    Raises MediaTypeError for an unsupported content type or charset, FormatError for headers that cannot be read. The
    encoding of XML is that of its declaration; a charset parameter does not change it.

    >>> post_of("application/geo+json; charset=utf-8", {"message-id": "7"}, b"{}")
    Post(format='json', body=b'{}', id='7', context=None, retry_key=None, origin=None)
    >>> post_of("text/csv", {}, b"")
    Traceback (most recent call last):
    contrada.service.intake.posts.MediaTypeError: unsupported content type 'text/csv'; supported: ...
    """
    is_event = "ce-specversion" in headers or "ce-id" in headers
    format = _format_of(content_type, is_event and not body)
    context = _context(headers, content_type, format) if is_event and not format.startswith("cloudevent") else None
    return Post(format, body, _id_in(headers, "Message-Id"), context, _id_in(headers, "Idempotency-Key"))


def _id_in(headers: Mapping[str, str], name: str) -> str | None:
    id = headers.get(name.lower())
    if id is not None and not 0 < len(id) <= MAX_ID_CHARS:
        raise FormatError(f"{name}: need 1 to {MAX_ID_CHARS} characters, got {len(id)}")
    return id


@lru_cache(maxsize=256)
def _format_of(content_type: str | None, is_absent: bool) -> str:
    """Return the format that a content type names; `is_absent` says that there is no body."""
    if not content_type and is_absent:
        return "json"
    supported = f"supported: {', '.join(MEDIA_TYPES)}"
    if not content_type:
        raise MediaTypeError(f"need a content type; {supported}")
    parsed = MimeHeaders()
    parsed["content-type"] = content_type
    format = MEDIA_TYPES.get(content_type.partition(";")[0].strip().lower())
    if format is None:
        raise MediaTypeError(f"unsupported content type {short(content_type)}; {supported}")
    charset = str(parsed.get_param("charset") or JSON_CHARSETS[0])
    if format != "cap" and charset.lower() not in JSON_CHARSETS:
        raise MediaTypeError(f"unsupported charset {short(charset)}; JSON is UTF-8")
    return format


def _context(headers: Mapping[str, str], content_type: str | None, format: str) -> dict[str, str]:
    """Return the attributes in the headers of a CloudEvent in binary mode, with percent-encoding decoded."""
    if format not in ("json", "cap"):
        raise MediaTypeError(f"unsupported content type {short(content_type)} of a CloudEvent; need JSON or CAP")
    context: dict[str, str] = {}
    for name, value in headers.items():
        if not name.startswith("ce-"):
            continue
        if not (name[3:].isascii() and name[3:].isalnum()) or name[3:] == "data":
            raise FormatError(f"header {short(name)}: CloudEvents attributes have names of letters and digits")
        try:
            context[name[3:]] = unquote_to_bytes(value).decode()
        except UnicodeError as error:
            raise FormatError(f"header {short(name)}: not UTF-8 after percent-decoding") from error
    if content_type:
        context["datacontenttype"] = content_type
    return context
