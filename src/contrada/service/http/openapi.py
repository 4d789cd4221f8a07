"""The OpenAPI 3.1 document, made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import msgspec

from contrada.service.http.endpoints import ApiEndpoint
from contrada.service.http.schemas import ProblemDetails
from contrada.service.problems import MEDIA_TYPE

REFERENCE = "#/components/schemas/{name}"
NAME = {"type": "string", "minLength": 1, "maxLength": 200}


def openapi_document(table: Iterable[ApiEndpoint], version: str) -> dict[str, Any]:
    """Return the document of a table."""
    endpoints = list(table)
    types = list(dict.fromkeys([kind for endpoint in endpoints for kind in _types(endpoint)] + [ProblemDetails]))
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    known = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Contrada",
            "version": version,
            "summary": "Content-based publish/subscribe in which a region is a value like any other",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(endpoint: ApiEndpoint) -> Iterator[Any]:
    for kind in (endpoint.body, *endpoint.answers.values()):
        if kind is not None:
            yield from get_args(kind) or (kind,)


def _schema(kind: Any, known: dict[Any, Any]) -> dict[str, Any]:
    parts = [known[part] for part in get_args(kind) or (kind,)]
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _operation(endpoint: ApiEndpoint, known: dict[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"summary": endpoint.summary, "operationId": operation_id(endpoint)}
    if endpoint.scope is not None:
        found["security"] = [{"key": []}]
        found["description"] = f"Needs a key with the scope {endpoint.scope}."
    names = re.findall(r"{(\w+)}", endpoint.path)
    parameters = [{"name": name, "in": "path", "required": True, "schema": NAME} for name in names]
    parameters += [
        {"name": one.name, "in": one.place, "description": one.description, "schema": dict(one.schema)}
        for one in endpoint.parameters
    ]
    if parameters:
        found["parameters"] = parameters
    if endpoint.body is not None:
        found["requestBody"] = _content({"application/json": _schema(endpoint.body, known)}, required=True)
    elif endpoint.media:
        found["requestBody"] = _content({media: {} for media in endpoint.media}, required=True)
    answers: dict[str, Any] = {}
    for status, kind in endpoint.answers.items():
        answer: dict[str, Any] = {"description": endpoint.summary}
        if kind is not None:
            answer |= _content({endpoint.kinds[0]: _schema(kind, known)})
        elif status != 204:
            answer |= _content({media: {} for media in endpoint.kinds})
        answers[str(status)] = answer
    answers["default"] = {"description": "Problem details"} | _content({MEDIA_TYPE: known[ProblemDetails]})
    return found | {"responses": answers}


def _content(schemas: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"content": {media: {"schema": schema} if schema else {} for media, schema in schemas.items()}, **members}


def operation_id(endpoint: ApiEndpoint) -> str:
    """Return the name of an operation, such as `get_subscriptions_key`."""
    words = re.findall(r"\w+", endpoint.path)
    return "_".join([endpoint.method.lower(), *words])
