"""Run the service: store, engine, application and uvicorn, from start to graceful stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import ssl
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import filelock
import uvicorn
from starlette.middleware.cors import CORSMiddleware

from contrada import __version__
from contrada.cancelling import end_tasks
from contrada.collecting import freeze_live_objects
from contrada.errors import ContradaError, FormatError
from contrada.service.access.addresses import AddressPolicy
from contrada.service.access.open_streams import LOOK_SECONDS
from contrada.service.http.application import Application
from contrada.service.http.context import KEEP_ALIVE_SECONDS, Clock, Context
from contrada.service.http.keys import load_keys
from contrada.service.http.listening import GuardedProtocol, Listener, PushingSocket
from contrada.service.http.warming import warm_kernels
from contrada.service.links.configured import check_links, make_links
from contrada.service.remotes import read_password
from contrada.service.service import Retention, Service, ServiceLimits
from contrada.service.settings import Settings, SettingsError
from contrada.service.shared_log.duties import DELIVERIES
from contrada.service.shared_log.following import Following
from contrada.service.shared_log.keeping import DutyKeeper
from contrada.service.shared_log.opening import open_shared_log
from contrada.service.shared_log.shared_log import SharedLog, SharedLogError
from contrada.service.shared_log.snapshots import prepare_store
from contrada.service.sinks import TopicSinks
from contrada.service.sinks.records import SinkClient
from contrada.service.sinks.target import open_sink
from contrada.service.sources import TopicSources
from contrada.service.sources.records import SourceClient
from contrada.service.sources.sources import open_source
from contrada.service.store.message_store import MessageStore
from contrada.service.store.opening import open_store
from contrada.service.store.sqlite import SqliteStore
from contrada.service.table_settings import SinkTable, SourceTable
from contrada.service.webhooks import HttpSender, RetryPolicy, Timeouts, WebhookLimits, Webhooks

LOCK, TABLES = "lock", "tables"  # in the directory of the state
BACKLOG = 4_096  # connections that wait to be accepted
# Objects of requests end by their counts; a collection visits everything that lives, so it should be rare.
GC_ALLOCATIONS = 100_000
WATCH_SECONDS = 1.0  # between looks at whether a shared log can be read on
STOP_SECONDS = 20  # that requests may take to end when the server stops
STOP_WEBHOOK_SECONDS = 5.0  # that deliveries may take to end then; one that is cut off is sent again after the start

log = logging.getLogger("contrada.service")
Say = Callable[[str], None]
OpenStore = Callable[[Settings], MessageStore]
Companion = Callable[[Service], Coroutine[Any, Any, None]]


def named_store(settings: Settings) -> MessageStore:
    """Return the store that settings name."""
    server = settings.server
    return open_store(str(server.state) if server.store is None else server.store)


def named_log(settings: Settings) -> SharedLog:
    """Return a client of the log that settings name."""
    assert settings.server.log is not None
    asked = settings.log
    password = read_password(asked.password_env, asked.password_file)
    access: dict[str, Any] = {"user": asked.user, "password": password, "ca_file": asked.ca_file}
    try:
        return open_shared_log(settings.server.log, **access, monitor=asked.monitor, trust=asked.trust)
    except FormatError as error:
        raise SettingsError(f"server.log: {error}") from error


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold a directory of state for this process; raise an error if another process has it.

    It has the saved tables. A store in the same directory holds it with a lock of its own.
    """
    lock = filelock.FileLock(directory / LOCK)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise ContradaError(f"{directory}: another server is using this directory") from error
    except OSError as error:
        raise ContradaError(f"{directory}: cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port; raise an error if the port is in use or the address is not ours."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise ContradaError(f"{host} port {port}: {error.strerror or error}") from error


def check_tls(certificate: Path, key: Path) -> None:
    """Raise an error that names the file at fault unless a key belongs to a certificate and can be read."""

    def no_password() -> str:
        raise ContradaError(f"server.tls_key: {key} is encrypted; need a key without a password")

    try:
        for file in (certificate, key):
            file.open("rb").close()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ContradaError(f"server.tls_key: {key} is not the key of the certificate {certificate}") from error
        raise ContradaError(
            f"server.tls_cert and server.tls_key: {certificate} or {key} is not PEM: {error}"
        ) from error
    except OSError as error:
        raise ContradaError(f"server.tls_cert and server.tls_key: {error.filename}: {error.strerror}") from error


def follow(settings: Settings, shared: SharedLog) -> MessageStore:
    """Connect to a shared log; return the store of the state directory, which follows it."""
    shared.open()
    prepare_store(settings.server.state, shared)
    return SqliteStore(settings.server.state, is_derived=True)


def make_service(settings: Settings, store: MessageStore, clock: Clock, shared: SharedLog | None = None) -> Service:
    """Return a service with the limits of settings; `clock` is in seconds."""
    limits, retention = settings.limits, settings.retention
    return Service(
        store,
        clock=lambda: int(clock() * 1000),
        tables=settings.server.state / TABLES,
        name=settings.server.name,
        log=shared,
        retention=Retention(round(retention.age * 1000), retention.bytes),
        limits=ServiceLimits(
            window=retention.message_ids,
            subscriptions=limits.subscriptions,
            waiting=limits.queue,
            vertices=limits.vertices,
            track_expiry=round(retention.track_expiry * 1000),
            backlog_bytes=settings.links.backlog_bytes,
            snapshot_bytes=settings.log.snapshot_bytes,
            wrap=settings.server.wrapped,
        ),
    )


def retry_policy(settings: Settings) -> RetryPolicy:
    """Return when deliveries of webhooks and sinks are tried again and given up."""
    asked = settings.webhooks
    return RetryPolicy(first=asked.retry_first, longest=asked.retry_most, age=asked.age, attempts=asked.attempts)


def make_webhooks(settings: Settings, service: Service) -> Webhooks:
    """Return the webhooks of a service, as settings limit them; needs a running event loop."""
    asked = settings.webhooks
    slow = max(1, asked.parallel // 5)
    sender = HttpSender(
        addresses=AddressPolicy(asked.allow_private, asked.allow),
        connections=asked.parallel,
        timeouts=Timeouts(asked.connect_timeout, asked.timeout),
        agent=f"contrada/{__version__}",
    )
    return Webhooks(
        service,
        sender,
        policy=retry_policy(settings),
        limits=WebhookLimits(quick=asked.parallel - slow, slow=slow),
    )


def uvicorn_config(application: Any, settings: Settings) -> uvicorn.Config:
    """Return the configuration of uvicorn; browsers of other origins are let in only if settings name them."""
    server, limits = settings.server, settings.limits
    if server.cors_origins:
        application = CORSMiddleware(
            application,
            allow_origins=server.cors_origins,
            allow_methods=["GET", "PUT", "POST", "PATCH", "DELETE"],
            allow_headers=["*"],
            expose_headers=["Link", "Retry-After"],
        )
    return uvicorn.Config(
        application,
        host=server.host,
        port=server.port,
        loop="uvloop",
        http=GuardedProtocol,
        ws=PushingSocket,
        ws_max_size=limits.body_bytes,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=STOP_SECONDS,
        ssl_certfile=server.tls_cert,
        ssl_keyfile=server.tls_key,
    )


class ServerRun:
    """One run of the server; `context` tells when it is ready.

    `store` opens the store that settings name, `shared_log` makes the client of the log that they name, `warm` loads
    kernels, `clock` is the wall clock in seconds; `sink` and `source` make the clients of topics. Streams of keys that
    have expired are looked for every `look` seconds. A `companion`, for a demonstration, uses the service from when it
    is ready until the server stops.
    """

    def __init__(
        self,
        settings: Settings,
        say: Say = log.info,
        *,
        keep_alive: float = KEEP_ALIVE_SECONDS,
        store: OpenStore = named_store,
        warm: Callable[[], None] = warm_kernels,
        look: float = LOOK_SECONDS,
        clock: Clock = time.time,
        sink: Callable[[SinkTable], SinkClient] = open_sink,
        source: Callable[[SourceTable], SourceClient] = open_source,
        shared_log: Callable[[Settings], SharedLog] = named_log,
        companion: Companion | None = None,
    ) -> None:
        self.settings, self._say, self._open_store, self._warm = settings, say, store, warm
        self._open_sink, self._open_source, self._open_log = sink, source, shared_log
        self.context = Context(settings, keep_alive=keep_alive, look=look, clock=clock)
        self.listener = Listener(uvicorn_config(Application(self.context), settings), self.context)
        self._watcher: asyncio.Task[None] | None = None
        self._companion, self._accompanying = companion, list[asyncio.Task[None]]()
        self.context.is_demo = companion is not None
        self.port = settings.server.port  # the one that was taken, once the server runs

    def stop(self) -> None:
        """Begin to stop."""
        self.listener.should_exit = True

    async def serve(self) -> None:
        """Serve until `stop` is called; raise what keeps the service from starting."""
        server = self.settings.server
        if server.tls_cert is not None and server.tls_key is not None:
            check_tls(server.tls_cert, server.tls_key)
        check_links(self.settings)
        holding = nullcontext() if server.store is None else locked(server.state)
        with holding, listening_socket(server.host, server.port) as taken:
            self.port = taken.getsockname()[1]
            starting = asyncio.create_task(self._start())
            starting.add_done_callback(lambda task: self.stop() if not task.cancelled() and task.exception() else None)
            try:
                await self.listener.serve([taken])
            finally:
                self.context.is_stopping = True
                await asyncio.wait([starting])
                await self._stop()
            starting.result()
            if self._watcher is not None and self._watcher.done():
                self._watcher.result()

    async def _stop(self) -> None:
        """Stop what has started: links, sources, webhooks and sinks before the service that they use."""
        context = self.context
        await end_tasks(*self._accompanying)
        if self._watcher is not None and not self._watcher.done():
            await end_tasks(self._watcher)
            self._watcher = None
        try:
            if context.started_links is not None:
                await context.started_links.stop()
            if context.started_duty is not None:
                await context.started_duty.stop()
            if context.started_sources is not None:
                await context.started_sources.stop()
            outward = [one for one in (context.started_webhooks, context.started_sinks) if one is not None]
            await asyncio.gather(*(one.stop(STOP_WEBHOOK_SECONDS) for one in outward))
        finally:
            if context.started is not None:
                await context.started.stop()
            if context.tracer is not None:
                await asyncio.to_thread(context.tracer.close)

    async def _start(self) -> None:
        """Open the store, load keys and kernels; then the server is ready."""
        context = self.context
        context.stage = "opening the store"
        service = await self._open_service()
        webhooks = make_webhooks(self.settings, service)
        context.start(service, webhooks)
        if service.following is not None:
            await webhooks.set_active(False)  # until the servers of the log have agreed on who delivers
        await webhooks.start()
        sources = await self._open_topics(service)
        key = await load_keys(context, service)
        if key is not None:
            self._say(f"admin key, shown only now: {key}")
        context.stage = "loading kernels"
        self._say("loading kernels (compiled once, which takes minutes; later starts take seconds)")
        await asyncio.to_thread(self._warm)
        if self.listener.should_exit:
            return
        context.started_links = make_links(self.settings, service)
        await context.started_links.start()
        freeze_live_objects()
        gc.set_threshold(GC_ALLOCATIONS, 20, 100)
        if service.following is None:
            sources.start()
        else:
            context.started_duty = DutyKeeper(service.following, DELIVERIES, self._set_active)
            context.started_duty.start()
            self._watcher = asyncio.create_task(self._watch_log(service.following))
        context.is_ready = True
        self._say(f"ready on {self._address()}")
        if self._companion is not None:
            self._accompanying.append(asyncio.create_task(self._companion(service)))

    async def _watch_log(self, following: Following) -> None:
        """Stop the server when its log can never be read on: clients go to others, and a start reads a snapshot."""
        while (reason := following.lost) is None:
            await asyncio.sleep(WATCH_SECONDS)
        self.stop()
        raise SharedLogError(f"{reason}; start this server again")

    async def _open_service(self) -> Service:
        """Open the store, and the log if there is one; return the service once it has applied what the log holds."""
        settings, steady = self.settings, self.context.gate.steady
        if settings.server.log is None:
            service = make_service(settings, await asyncio.to_thread(self._open_store, settings), steady)
        else:
            self.context.stage = "following the log"
            return await self._follow(self._open_log(settings))
        await service.start()
        return service

    async def _follow(self, shared: SharedLog) -> Service:
        """Return a service that follows a log; the log is closed if that fails."""
        store: MessageStore | None = None
        try:
            store = await asyncio.to_thread(follow, self.settings, shared)
            for notice in shared.notices:
                self._say(notice)
            service = make_service(self.settings, store, self.context.gate.steady, shared)
            await service.start()
            return service
        except BaseException:
            await asyncio.to_thread(shared.close)
            if store is not None:
                store.close()
            raise

    async def _set_active(self, is_active: bool) -> None:
        """Begin to deliver to webhooks and sinks and to read sources, or leave that to another server."""
        context = self.context
        for one in (context.started_webhooks, context.started_sinks, context.started_sources):
            assert one is not None
            await one.set_active(is_active)

    async def _open_topics(self, service: Service) -> TopicSources:
        """Start the sinks; return the sources, which start when the server is ready."""
        settings, context = self.settings, self.context
        policy = retry_policy(settings)
        context.started_sinks = TopicSinks(service, settings.sinks, policy=policy, open_client=self._open_sink)
        most = settings.limits.body_bytes
        sources = TopicSources(service, settings.sources, most_bytes=most, open_client=self._open_source)
        context.started_sources = sources
        if service.following is not None:
            await context.started_sinks.set_active(False)
        await context.started_sinks.start()
        return sources

    def _address(self) -> str:
        server = self.settings.server
        host = f"[{server.host}]" if ":" in server.host else server.host
        return f"{'http' if server.tls_cert is None else 'https'}://{host}:{self.port}"


def run(
    settings: Settings, say: Say = log.info, store: OpenStore = named_store, companion: Companion | None = None
) -> None:
    """Run the server until SIGTERM or SIGINT; `say` prints what people should see, such as a first admin key."""

    async def serve() -> None:
        server, loop = ServerRun(settings, say, store=store, companion=companion), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        await server.serve()

    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(serve())


def _new_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
