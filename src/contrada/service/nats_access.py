"""How clients of NATS reach a server and log in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nats.aio.client import Client

from contrada.service.remotes import Remote

CLOSE_SECONDS = 0.5


async def connect_nats(remote: Remote, timeout: float, ended: Callable[[], object] | None = None) -> Any:
    """Return a connection; it ends with the first fault, `ended` is called, and its user makes a new one.

    If no server can be reached, what keeps us out of the last one is raised.
    """

    async def end() -> None:
        if ended is not None:
            ended()

    tls = remote.tls()
    access: dict[str, Any] = {} if tls is None else {"tls": tls}
    if remote.user is not None:
        access |= {"user": remote.user, "password": remote.password or ""}
    elif remote.password is not None:
        access["token"] = remote.password
    scheme = "nats" if tls is None else "tls"
    hosts = [(f"[{host}]" if ":" in host else host, port) for host, port in remote.url.servers]
    client, left, is_made = Client(), len(hosts), False

    async def note(error: Exception) -> None:
        """Stop the library, which would try the servers for minutes; whoever uses a connection meets its errors."""
        nonlocal left
        left -= 1
        if left <= 0 and not is_made:
            raise error

    try:
        await client.connect(
            [f"{scheme}://{host}:{port}" for host, port in hosts],
            error_cb=note,
            closed_cb=end,
            allow_reconnect=False,
            max_reconnect_attempts=1,  # a server that fails is not tried for minutes
            reconnect_time_wait=0.02,
            connect_timeout=timeout,
            name="contrada",
            **access,
        )
    except BaseException as error:
        with suppress(OSError):  # or time is up: after a handshake that failed the library waits for ever
            async with asyncio.timeout(CLOSE_SECONDS):
                await client.close()  # a server that refuses the user leaves a socket open
        if isinstance(error, BrokenPipeError | ConnectionResetError):  # its reason may be lost with the connection
            raise ConnectionError(
                f"the server ended the connection; does it ask for another login? ({error})"
            ) from error
        raise
    is_made = True
    return client
