"""`contrada network`: the links of a server to other brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.amounts import counted
from contrada.cli.options import argument, plain
from contrada.cli.pages import App
from contrada.cli.summary import summary_of_run
from contrada.errors import ContradaError
from contrada.installation import missing

if TYPE_CHECKING:
    from contrada.client import Client, NetworkInfo

app = App(help="The links of a server to other brokers.")

UrlOption = Annotated[str | None, plain("URL of the server; default: CONTRADA_URL, or http://127.0.0.1:8080.")]
PatienceOption = Annotated[float, plain("Seconds to try while the server cannot be reached.", min=0)]


@app.command()
def show(
    url: UrlOption = None,
    patience: PatienceOption = 10.0,
    as_json: Annotated[bool, plain("Print one JSON object.", "--json")] = False,
) -> None:
    """Show brokers and links: what each link forwards and suppresses, and what waits for the neighbour.

    The variable CONTRADA_KEY has a key with the scope admin.

    \b
    Links of a server on this machine:
      contrada network show --url http://127.0.0.1:8080
    """
    import msgspec

    with _client(url, patience) as client:
        found = client.network()
    links = sum(len(one.links) for one in found.tenants)
    summary_of_run().note(tenants=len(found.tenants), links=links, rejected=len(found.refused))
    typer.echo(json.dumps(msgspec.to_builtins(found)) if as_json else "\n".join(told(found)))


@app.command()
def remove(
    neighbour: Annotated[str, argument("Name of the neighbour.")],
    tenant: Annotated[str, plain("Tenant whose link it is.")] = "default",
    url: UrlOption = None,
    patience: PatienceOption = 10.0,
) -> None:
    """Give up a neighbour for good, with everything that waits for it. A broker that calls again is linked anew.

    \b
    A broker that will not come back:
      contrada network remove harbour
    """
    with _client(url, patience) as client:
        client.remove_link(tenant, neighbour)
    summary_of_run().note(removed=1)


def _client(url: str | None, patience: float) -> Client:
    try:
        from contrada.client import Client
    except ModuleNotFoundError as error:
        raise ContradaError(missing(f"contrada network needs {error.name}", "broker")) from error
    return Client(url, patience=patience)


def told(network: NetworkInfo) -> Iterator[str]:
    """Yield the lines that describe a network."""
    yield f"broker {network.name}"
    for tenant in network.tenants:
        yield f"tenant {tenant.tenant}: {counted(len(tenant.brokers), 'broker')}: {', '.join(tenant.brokers)}"
        if tenant.waits_for:
            yield f"  waits for {', '.join(tenant.waits_for)} and takes no messages"
        for link in tenant.links:
            yield f"  {link.neighbour}: {link.phase}; reaches {', '.join(link.behind) or 'nothing'}"
            yield (
                f"    forwards {counted(link.forwards, 'subscription')}, suppresses {link.suppresses:,},"
                f" takes {link.takes:,}"
            )
            waiting = f"{counted(link.unacknowledged, 'command')} not acknowledged, {link.unacknowledged_bytes:,} bytes"
            yield f"    {waiting}; {counted(link.dropped, 'message')} dropped"
    for call in network.calls:
        why = "" if call.reason is None else f": {call.reason}"
        yield f"call {call.url}: {call.state}, {counted(call.attempts, 'attempt')}{why}"
    for one in network.refused:
        yield f"refused: subscription {one.key} of {one.tenant}: {one.reason}"
