"""`POST /messages`: read the body, publish it, answer after it is durable."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from contrada.service.access.keys import Principal
from contrada.service.core import Published
from contrada.service.http.context import Context
from contrada.service.http.wire import Receive, Scope, Send, headers_of, read_body, send_answer
from contrada.service.intake import Post, post_of
from contrada.service.intake.posts import MediaTypeError
from contrada.service.problems import REJECTED, UNAVAILABLE, UNSUPPORTED_MEDIA_TYPE

BATCH_FORMATS = frozenset(("ndjson", "geojsonseq", "cloudevents"))
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
SHOWN_REASONS = 1_000  # of rejected rows in one answer; `count` and the sequence numbers tell how many were taken


class RefusedMessage(msgspec.Struct, frozen=True):
    """A message that was not taken, or a part of one."""

    row: int
    reason: str


class DuplicateRow(msgspec.Struct, frozen=True):
    """A message that was published before, with its sequence number."""

    row: int
    sequence: int


class PublishedMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to one message; `lost` names areas of an alert that could not be read."""

    sequence: int
    duplicate: bool = False
    lost: list[RefusedMessage] = []


class PublishedBatch(msgspec.Struct, frozen=True):
    """The answer to a batch: `count` messages were taken, with the sequence numbers from `first` to `last`."""

    first: int | None
    last: int | None
    count: int
    duplicates: list[DuplicateRow]
    rejected: list[RefusedMessage]
    lost: list[RefusedMessage] = []


class _Head(msgspec.Struct):
    type: Any = None


_head = msgspec.json.Decoder(_Head).decode
_encode = msgspec.json.Encoder().encode


def is_collection(post: Post) -> bool:
    """Return True if a post may hold several messages by its format, so that it is answered as a batch."""
    if post.format in BATCH_FORMATS:
        return True
    if post.format != "json" or post.context is not None:
        return False
    if b'"FeatureCollection"' in post.body:
        try:
            return bool(_head(post.body).type == "FeatureCollection")
        except (msgspec.MsgspecError, RecursionError):
            pass  # an array, or it is rejected anyway
    return post.body[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"["


def answer_of(post: Post, found: Published) -> PublishedMessage | PublishedBatch:
    """Return the answer to a post; raise a Problem (422) if nothing of it was taken."""
    count = found.taken
    rejected = [RefusedMessage(item.row, item.reason) for item in found.rejected if not item.is_part]
    lost = [RefusedMessage(item.row, item.reason) for item in found.rejected if item.is_part]
    is_batch = is_collection(post) or count + len(found.duplicates) + len(rejected) > 1
    if rejected and not count and not found.duplicates:
        detail = rejected[0].reason if not is_batch else f"none of {len(rejected):,} messages was taken"
        rows = [{"row": item.row, "reason": item.reason} for item in rejected[:SHOWN_REASONS]]
        raise REJECTED(detail, rejected=rows)
    if is_batch:
        duplicates = [DuplicateRow(*pair) for pair in found.duplicates]
        return PublishedBatch(found.first or None, found.last or None, count, duplicates, rejected, lost)
    if found.duplicates:
        return PublishedMessage(found.duplicates[0][1], True, lost)
    return PublishedMessage(found.first, False, lost)


class MessagePublisher:
    """Publishes for principals; bodies that wait for the engine have at most `queue_bytes` together."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._limits = context.settings.limits
        self._bytes = 0

    async def publish(self, principal: Principal, post: Post, headers: Mapping[str, str] = NO_HEADERS) -> Published:
        """Publish a post and count it; raise a Problem (503) if too much waits already.

        `headers` may name the trace of the client.
        """
        size = len(post.body)
        service, metrics = self._context.service, self._context.metrics
        if self._bytes and self._bytes + size > self._limits.queue_bytes:
            raise UNAVAILABLE("too many bytes wait to be published", retry_after=1)
        ticket = metrics.begin()
        self._bytes += size
        try:
            if self._context.tracer is None:
                found = await service.publish(principal.tenant, post)
            else:
                found = await self._context.tracer.publish(service, principal.tenant, post, headers)
        finally:
            self._bytes -= size
            metrics.end(ticket)
        metrics.published(found)
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        self._context.require_ready()
        headers = headers_of(scope)
        principal = await self._context.gate.principal(headers)
        principal.require("publish")
        body = await read_body(headers, receive, self._limits.body_bytes)
        post = post_from(headers, body)
        found = await self.publish(principal, post, headers)
        if found.first and found.first == found.last and not found.rejected and not is_collection(post):
            await send_answer(send, 201, b'{"sequence":%d}' % found.first)  # nearly all answers
            return
        await send_answer(send, 201 if found.first else 200, _encode(answer_of(post, found)))


def post_from(headers: dict[str, str], body: bytes) -> Post:
    """Return a request as a Post; raise a Problem (415) for a content type that is not read."""
    try:
        return post_of(headers.get("content-type"), headers, body)
    except MediaTypeError as error:
        raise UNSUPPORTED_MEDIA_TYPE(str(error)) from error
