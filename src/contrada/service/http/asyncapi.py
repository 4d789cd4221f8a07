"""The AsyncAPI 3 document of the WebSocket, made from the types of its frames."""

from __future__ import annotations

from typing import Any

import msgspec

from contrada.service.http.frames import CLIENT_FRAMES, SERVER_FRAMES

REFERENCE = "#/components/schemas/{name}"


def asyncapi_document(version: str) -> dict[str, Any]:
    """Return the document."""
    frames = (*CLIENT_FRAMES, *SERVER_FRAMES)
    schemas, components = msgspec.json.schema_components(frames, ref_template=REFERENCE)
    messages = {
        kind.__name__: {"name": kind.__name__, "contentType": "application/json", "payload": schema}
        for kind, schema in zip(frames, schemas, strict=True)
    }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Contrada over WebSocket",
            "version": version,
            "description": "Frames are JSON objects with the member op. A client sends the header Authorization: Bearer"
            " KEY, or hello as its first frame. The server sends at most as many events as it has credit for.",
        },
        "channels": {
            "socket": {
                "address": "/ws",
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
            }
        },
        "operations": {
            "fromClient": _operation("receive", CLIENT_FRAMES),
            "toClient": _operation("send", SERVER_FRAMES),
        },
        "components": {"messages": messages, "schemas": components},
    }


def _operation(action: str, kinds: tuple[Any, ...]) -> dict[str, Any]:
    """Return an operation from the view of the server, as AsyncAPI 3 has it."""
    references = [{"$ref": f"#/channels/socket/messages/{kind.__name__}"} for kind in kinds]
    return {"action": action, "channel": {"$ref": "#/channels/socket"}, "messages": references}
