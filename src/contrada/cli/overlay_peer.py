"""`contrada overlay peer` and `contrada overlay publish`: run the overlay over sockets, one process per peer."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.cancelling import end_tasks
from contrada.cli.ending import FAULTS
from contrada.cli.options import Degree, Sketch, argument, degree_of, option, plain
from contrada.cli.summary import summary_of_run
from contrada.cql2 import parse
from contrada.errors import ContradaError, OverlayError

if TYPE_CHECKING:
    from contrada.overlay.connecting import Door
    from contrada.overlay.protocol import Publication
    from contrada.overlay.serving import PeerServer

ACCESS = "Access control"
CLOSING_SECONDS = 2.0  # time for writing pending lines to standard output when a peer ends
SecretFile = Annotated[Path | None, option(ACCESS, "File with the secret that all peers share.")]
TlsCert = Annotated[Path | None, option(ACCESS, "Certificate of this peer (PEM).")]
TlsKey = Annotated[Path | None, option(ACCESS, "Private key of the certificate (PEM).")]
TlsCa = Annotated[Path | None, option(ACCESS, "Authority that must have signed the certificates of peers (PEM).")]


def peer(
    subscribe: Annotated[list[str], plain("CQL2 filter of this peer; may be given several times.")],
    dimensions: Annotated[str | None, plain("Attributes to route by: numbers, or name:region.")] = None,
    listen: Annotated[str, plain("HOST:PORT to listen on; port 0: any free port.")] = "127.0.0.1:0",
    advertise: Annotated[str | None, plain("HOST:PORT at which other peers reach this one; default: --listen.")] = None,
    join: Annotated[
        list[str] | None,
        plain("HOST:PORT of a peer to join; if it does not answer, the next one is tried.", show_default=False),
    ] = None,
    degree: Degree = "5,10",
    split: Annotated[str, plain("quadratic, linear or rstar.")] = "quadratic",
    choose: Annotated[str, plain("r or rstar.")] = "r",
    sketch: Sketch = 0,
    period: Annotated[float, plain("Seconds between heartbeats.")] = 1.0,
    secret_file: SecretFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_ca: TlsCa = None,
) -> None:
    """Run one peer; every message that matches a subscription is printed as a line of JSON.

    The first peer joins no other and sets the rules of the overlay: --dimensions (default: the attributes it subscribes
    to), --degree, --split, --choose, --sketch and --period. Later peers get the rules from the peer they join. On
    SIGINT, SIGTERM and when its standard output is closed (exit code 141), a peer leaves in order; a killed peer is
    detected by its neighbours. Lines wait for a slow reader up to a limit, then they are dropped with a complaint on
    standard error. The limits on output, connections, frames and notes are in docs/limitations.md.

    \b
    The first peer, and another:
      contrada overlay peer --listen 127.0.0.1:7000 --dimensions price,area:region --subscribe "price < 10"
      contrada overlay peer --join 127.0.0.1:7000 --subscribe "overlaps(area, BBOX(0, 0, 4, 4))"
    A message:
      contrada overlay publish --to 127.0.0.1:7000 '{"price": 5}'
    """
    from contrada.overlay.rules import Rules
    from contrada.overlay.serving import PeerServer, discover
    from contrada.overlay.space import PeerQueries, Space

    predicates = [parse(text) for text in subscribe]
    door = door_from_files(secret_file, tls_cert, tls_key, tls_ca)
    if join and dimensions is None:
        space, rules = asyncio.run(discover(join, door))
    else:
        space = Space.of(predicates) if dimensions is None else Space.parse(dimensions)
        least, most = degree_of(degree)
        patience, retention = 3.5 * period, 20 * period
        rules = Rules(least, most, choose, split, sketch=sketch, period=period, patience=patience, retention=retention)
    server = PeerServer(listen, PeerQueries(predicates, space), space, rules, _lost, door, advertise)
    asyncio.run(_serve(server, join or []))


def publish(
    messages: Annotated[list[str], argument("Messages in JSON, or - for lines.")],
    to: Annotated[str, plain("HOST:PORT of a peer.")],
    secret_file: SecretFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_ca: TlsCa = None,
) -> None:
    """Publish messages through a peer.

    Takes JSON, GeoJSON Features or CloudEvents as arguments, or - for lines of standard input. Prints the key of each
    message. Exits with 1 if a message is refused, and prints the reason.
    """
    from contrada.overlay.serving import offer

    bodies = [line for line in sys.stdin if line.strip()] if messages == ["-"] else messages
    try:
        answers = asyncio.run(offer(to, bodies, door_from_files(secret_file, tls_cert, tls_key, tls_ca)))
    except TimeoutError:
        raise OverlayError(f"{to} did not answer") from None
    for answer in answers:
        typer.echo(answer.key if answer.reason is None else f"error: {answer.reason}", err=answer.reason is not None)
    refused = sum(answer.reason is not None for answer in answers)
    summary_of_run().note(messages=len(answers) - refused, rejected=refused)
    raise typer.Exit(FAULTS if refused else 0)


async def _serve(server: PeerServer, contacts: list[str]) -> None:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    with _outlets(server, loop):
        async with server:
            typer.echo(f"listening on {server.id}", err=True)
            server.join(*contacts)
            waiting = [asyncio.create_task(wait) for wait in (stopped.wait(), server.undelivered())]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            await end_tasks(*waiting)
            await server.leave()
    if server.fault is not None:  # such as a closed standard output
        raise server.fault


@contextmanager
def _outlets(server: PeerServer, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Write deliveries and complaints in threads: a slow reader must not delay heartbeats."""
    from contrada.overlay.complaints import Complaints
    from contrada.overlay.outlet import Outlet, writer_to

    def failed(error: Exception) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(server.fail, error)

    errors = Outlet(writer_to(sys.stderr))
    complaints = Complaints(lambda text: errors.put(f"contrada overlay: {text}"))
    output = Outlet(writer_to(sys.stdout), failed, complaints)

    run = summary_of_run()

    def deliver(publication: Publication) -> None:
        run.counts["messages"] = run.counts.get("messages", 0) + 1
        output.put(_line(publication))

    server.complain, server.deliver = complaints, deliver
    try:
        yield
    finally:
        lost = output.close(CLOSING_SECONDS)
        if lost and server.fault is None:
            complaints(f"{lost:,} messages were not written: standard output is not read")
        complaints.close()
        errors.close(CLOSING_SECONDS)


def _line(publication: Publication) -> str:
    """Return a message as a line of JSON; lone surrogates, which UTF-8 cannot encode, are escaped."""
    line = {"key": publication.key, "message": json.loads(publication.body)}
    text = json.dumps(line, ensure_ascii=False)
    return text if text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text) else json.dumps(line)


def _lost(publication: Publication) -> None:
    """Raise for a message that is delivered before there is an output for it."""
    raise OverlayError(f"message {publication.key} arrived before the output was open")


def door_from_files(secret_file: Path | None, cert: Path | None, key: Path | None, ca: Path | None) -> Door:
    """Return the `Door` for a secret and TLS files; raise ContradaError if they are incomplete or invalid."""
    from contrada.overlay.connecting import Door

    secret = None
    if secret_file is not None:
        secret = secret_file.read_bytes().strip()
        if not secret:
            raise OverlayError(f"{secret_file} is empty; need a secret")
    if cert is None and key is None and ca is None:
        return Door(secret)
    if cert is None or key is None or ca is None:
        raise OverlayError("TLS needs all of --tls-cert, --tls-key and --tls-ca")
    try:
        return Door(secret, _context("server", cert, key, ca), _context("client", cert, key, ca))
    except ssl.SSLError as error:
        raise ContradaError(f"TLS: {error}") from error


def _context(purpose: str, cert: Path, key: Path, ca: Path) -> ssl.SSLContext:
    """Return a TLS context: both sides show a certificate of `ca`; host names are not checked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if purpose == "server" else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(ca)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(cert, key)
    return context
