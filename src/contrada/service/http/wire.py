"""Requests and answers of ASGI without a framework: headers, queries, bodies up to a limit, problem details."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote_to_bytes

from contrada.service.problems import BAD_PARAMETER, BAD_REQUEST, REQUEST_TIMEOUT, TOO_LARGE, Problem

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers: TypeAlias = dict[str, str]

JSON = b"application/json"
NAME_CHARACTERS = 200  # in a key, a subscriber or a tenant
QUERY_FIELDS = 100  # more are a bad request
BODY_SECONDS = 30.0  # until the next part of a body must come


class Disconnected(Exception):  # no fault: the client has gone
    """The client has gone before its request was complete."""


def headers_of(scope: Scope) -> Headers:
    """Return the headers of a request by lower-case name; of several with one name the last one."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def query_of(scope: Scope) -> dict[str, str]:
    """Return the parameters of the query; raise a Problem if one is given twice or is not UTF-8."""
    text = scope["query_string"]
    if not text:
        return {}
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, max_num_fields=QUERY_FIELDS, errors="strict")
    except ValueError as error:
        raise BAD_REQUEST("the query cannot be read: need UTF-8 and at most 100 parameters") from error
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BAD_REQUEST("the query has a parameter twice")
    return found


def segments_of(scope: Scope) -> list[str]:
    """Return the parts of the path between slashes, decoded; a name may hold an encoded slash."""
    raw = scope.get("raw_path") or scope["path"].encode()
    try:
        return [unquote_to_bytes(part).decode() for part in raw.partition(b"?")[0].split(b"/")[1:]]
    except UnicodeDecodeError as error:
        raise BAD_REQUEST("the path is not UTF-8 after percent-decoding") from error


def check_name(what: str, name: str) -> str:
    """Return a name of 1 to 200 characters without control characters; raise a Problem for others."""
    if not 0 < len(name) <= NAME_CHARACTERS or not (name.isprintable() or is_text(name)):
        raise BAD_PARAMETER(
            f"{what}: need 1 to {NAME_CHARACTERS} characters without control characters, got {name!r:.60}",
            attribute=what,
        )
    return name


def is_text(name: str) -> bool:
    """Return True if a name has no control characters and no lone surrogates.

    >>> is_text("Via Garibaldi\\u00a012"), is_text("a\\nb"), is_text("\\ud800")
    (True, False, False)
    """
    return not any(
        ord(character) < 32 or 127 <= ord(character) < 160 or 0xD800 <= ord(character) < 0xE000 for character in name
    )


async def read_body(headers: Headers, receive: Receive, most: int) -> bytes:
    """Return the body of a request; raise a Problem (413) as soon as it is known to be above `most` bytes."""
    if headers.get("content-encoding", "identity") != "identity":
        raise Problem(415, "Unsupported media type", "the body has a content encoding; send it without")
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise _too_large(most)
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        body = await _read_rest(body, receive, most)
    elif message["type"] != "http.request":
        raise Disconnected
    if len(body) > most:
        raise _too_large(most)
    return body


async def _read_rest(first: bytes, receive: Receive, most: int) -> bytes:
    parts, size, is_more = [first], len(first), True
    while is_more:
        try:
            message = await asyncio.wait_for(receive(), BODY_SECONDS)
        except TimeoutError as error:
            raise REQUEST_TIMEOUT(f"no part of the body came within {BODY_SECONDS:.0f} s") from error
        if message["type"] != "http.request":
            raise Disconnected
        part, is_more = message.get("body", b""), message.get("more_body", False)
        parts.append(part)
        size += len(part)
        if size > most:
            raise _too_large(most)
    return b"".join(parts)


def _too_large(most: int) -> Problem:
    return TOO_LARGE(f"the body has more than {most:,} bytes (limits.body_bytes)")


async def send_answer(
    send: Send, status: int, body: bytes, kind: bytes = JSON, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Send a whole answer."""
    head = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def send_problem(send: Send, problem: Problem) -> None:
    """Send an error as problem details."""
    head = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in problem.headers().items()]
    body = problem.body()
    await send(
        {"type": "http.response.start", "status": problem.status,
         "headers": [*head, (b"content-length", b"%d" % len(body))]}
    )  # fmt: skip
    await send({"type": "http.response.body", "body": body})
