"""ApiEndpoint: one row of the table of routes. Dispatch, the OpenAPI document and the tests read the same table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from contrada.service.access.keys import Principal
from contrada.service.http.context import Context
from contrada.service.http.wire import JSON
from contrada.service.service import Service
from contrada.service.webhooks import Webhooks


class Call(NamedTuple):
    """A request to the control plane: parameters, headers and the body, decoded if the endpoint has a type for it."""

    context: Context
    principal: Principal
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any

    @property
    def service(self) -> Service:
        """The running service."""
        return self.context.service

    @property
    def webhooks(self) -> Webhooks:
        """The webhooks of the running service."""
        return self.context.webhooks

    @property
    def tenant(self) -> str:
        """The tenant of the principal."""
        return self.principal.tenant


class Reply(NamedTuple):
    """An answer: a value that is encoded as JSON, or bytes of the media type `kind`."""

    status: int
    value: Any = None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    kind: bytes = JSON


Handler = Callable[[Call], Awaitable[Reply]]


class Parameter(NamedTuple):
    """A parameter of the query or a header."""

    name: str
    description: str
    schema: Mapping[str, Any] = MappingProxyType({"type": "string"})
    place: str = "query"


class ApiEndpoint(NamedTuple):
    """A method of a path.

    `scope` is None if no key is needed. `handler` is None for hot paths, which the application dispatches itself.
    `body` is the type of a JSON body; `media` the types of other bodies, which the handler reads itself. `answers` has
    the type of each good answer by status, None for an answer that is not JSON of one of our types. What the map needs
    (`is_map`) is answered without a key too if the map is public.
    """

    method: str
    path: str
    scope: str | None
    summary: str
    answers: Mapping[int, Any]
    handler: Handler | None = None
    body: Any = None
    media: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    kinds: tuple[str, ...] = ("application/json",)  # media types of good answers
    is_map: bool = False

    @property
    def is_hot(self) -> bool:
        """Whether the application dispatches it without the control plane."""
        return self.handler is None
