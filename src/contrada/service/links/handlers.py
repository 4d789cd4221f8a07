"""Handlers of the routes about links."""

from __future__ import annotations

from contrada.errors import UnknownKeyError
from contrada.service.http.endpoints import Call, Reply
from contrada.service.problems import NOT_FOUND


async def get_network(call: Call) -> Reply:
    """Return the links of all tenants: phases, what each forwards and suppresses, what waits."""
    return Reply(200, await call.context.links.view())


async def delete_link(call: Call) -> Reply:
    """Give up a neighbour, with everything that waits for it."""
    try:
        await call.context.links.remove(call.path["tenant"], call.path["name"])
    except UnknownKeyError as error:
        raise NOT_FOUND(str(error)) from error
    return Reply(204)
