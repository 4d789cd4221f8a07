"""The control plane: everything but the hot paths, routed by Starlette from the table of routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.routing import Route, Router

from contrada.service.access.keys import Principal
from contrada.service.http.context import Context
from contrada.service.http.endpoints import ApiEndpoint, Call, Reply
from contrada.service.http.wire import Headers, Receive, Scope, Send, headers_of, query_of, read_body, send_answer
from contrada.service.problems import (
    BAD_BODY,
    BAD_REQUEST,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    UNSUPPORTED_MEDIA_TYPE,
)

NOBODY = Principal("", frozenset(), "")
JSON_TYPES = ("application/json", "application/merge-patch+json")

_encode = msgspec.json.Encoder().encode


class ControlPath:
    """Answers the methods of one path."""

    def __init__(self, context: Context, endpoints: Iterable[ApiEndpoint]) -> None:
        self._context = context
        self._endpoints = {endpoint.method: endpoint for endpoint in endpoints}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        endpoint = self._endpoints.get("GET" if scope["method"] == "HEAD" else scope["method"])
        if endpoint is None or endpoint.handler is None:
            raise METHOD_NOT_ALLOWED(
                f"{scope['method']:.20} is not a method of this path", allow=sorted(self._endpoints)
            )
        headers = headers_of(scope)
        principal = NOBODY
        if endpoint.scope is not None:
            self._context.require_ready()
            if endpoint.is_map:
                self._context.require_map()
                principal = await self._context.gate.watcher(headers)
            else:
                principal = await self._context.gate.principal(headers)
                principal.require(endpoint.scope)
        body = await self._body(endpoint, headers, receive)
        path = {name: _decoded(value) for name, value in scope["path_params"].items()}
        reply = await endpoint.handler(Call(self._context, principal, path, query_of(scope), headers, body))
        await _send_reply(send, reply)

    async def _body(self, endpoint: ApiEndpoint, headers: Headers, receive: Receive) -> object:
        if endpoint.body is None and not endpoint.media:
            return None
        data = await read_body(headers, receive, self._context.settings.limits.body_bytes)
        if endpoint.body is None:
            return data
        kind = headers.get("content-type", JSON_TYPES[0]).partition(";")[0].strip().lower()
        if kind not in JSON_TYPES:
            raise UNSUPPORTED_MEDIA_TYPE(f"need application/json, got {kind[:80]!r}")
        return decoded(data, endpoint.body)


def decoded(data: bytes | str, kind: type) -> object:
    """Return JSON as a type; raise a Problem (400) that names the member at fault."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        place = str(error).partition(" - at `$")[2]
        raise BAD_BODY(str(error), path=place.rstrip("`").replace(".", "/") or None) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BAD_BODY(f"the body is not JSON: {error}") from error


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError as error:
        raise BAD_REQUEST("the path is not UTF-8 after percent-decoding") from error


async def _send_reply(send: Send, reply: Reply) -> None:
    body = reply.value if isinstance(reply.value, bytes) else b"" if reply.value is None else _encode(reply.value)
    await send_answer(send, reply.status, body, reply.kind, reply.headers)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    raise NOT_FOUND(f"there is nothing at {scope['path'][:200]!r}")


class ControlPlane:
    """Routes requests by the table; a name in a path may hold an encoded slash."""

    def __init__(self, context: Context, table: Iterable[ApiEndpoint]) -> None:
        paths: defaultdict[str, list[ApiEndpoint]] = defaultdict(list)
        for endpoint in table:
            paths[endpoint.path].append(endpoint)
        routes = [Route(path, ControlPath(context, found)) for path, found in paths.items()]
        self._router = Router(routes, redirect_slashes=False, default=_not_found)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        raw = scope.get("raw_path")
        path = scope["path"] if raw is None else raw.partition(b"?")[0].decode("latin-1")
        await self._router(dict(scope, path=path), receive, send)
