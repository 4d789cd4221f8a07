"""How clients of NATS reach a server and log in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nats.aio.client import Client

from contrada.service.remotes import Remote


async def _ignore(error: Exception) -> None:
    """Say nothing: whoever uses the connection meets the error and counts it."""


async def connect_nats(remote: Remote, timeout: float, ended: Callable[[], object] | None = None) -> Any:
    """Return a connection; it ends with the first fault, `ended` is called, and its user makes a new one."""

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
    client = Client()
    try:
        await client.connect(
            [f"{scheme}://{host}:{port}" for host, port in hosts],
            error_cb=_ignore,
            closed_cb=end,
            allow_reconnect=False,
            max_reconnect_attempts=1,  # each server is tried twice before the attempt fails
            reconnect_time_wait=0.02,
            connect_timeout=timeout,
            name="contrada",
            **access,
        )
    except BaseException:
        await client.close()  # a server that refuses the user leaves a socket open
        raise
    return client
