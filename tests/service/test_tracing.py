"""Traces of publishing, as a collector gets them over HTTP."""

import asyncio
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from contrada.installation import install_command
from contrada.service.http.tracing import open_tracer
from contrada.service.settings import SettingsError, TelemetrySettings
from serving import site
from webhook_receivers import until

trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
CLIENT_TRACE, CLIENT_SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector:
    """What came by path: spans, and attributes of the resource."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Any] = []
        self.paths: set[str] = set()
        self.resource: dict[str, Any] = {}

    async def handle(self, request: web.Request) -> web.Response:
        self.paths.add(request.path)
        export = trace_service.ExportTraceServiceRequest.FromString(await request.read())
        for part in export.resource_spans:
            self.resource = attributes_of(part.resource)
            for scope in part.scope_spans:
                self.spans += scope.spans
        return web.Response(content_type="application/x-protobuf")


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application()
    app.router.add_post("/{path:.*}", collector.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        await runner.cleanup()


def attributes_of(thing):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in thing.attributes}


def children_of(collector, parent):
    found = [span for span in collector.spans if span.parent_span_id == parent.span_id]
    return sorted(found, key=lambda span: span.start_time_unix_nano)


def test_each_post_has_spans_of_the_request_the_match_and_the_commit(tmp_path):
    async def work():
        async with collecting() as collector:
            async with site(tmp_path, telemetry_otlp_endpoint=collector.url) as here:
                parent = f"00-{CLIENT_TRACE}-{CLIENT_SPAN}-01"
                await here.ask("POST", "/messages", {"n": 1}, traceparent=parent)
                await here.publish({"n": 2}, {"n": 3}, {"n": 4})
                await here.ask("POST", "/messages", data="{")
            await until(lambda: len(collector.spans) >= 9)
            return collector

    collector = asyncio.run(work())
    assert collector.paths == {"/v1/traces"}
    assert collector.resource["service.name"] == "contrada"
    posts = sorted((span for span in collector.spans if span.name == "publish"), key=lambda s: s.start_time_unix_nano)
    assert len(collector.spans) == 9
    assert (posts[0].trace_id.hex(), posts[0].parent_span_id.hex()) == (CLIENT_TRACE, CLIENT_SPAN)
    assert not posts[1].parent_span_id
    assert [attributes_of(span)["contrada.messages"] for span in posts] == [1, 3, 0]
    assert [attributes_of(span)["contrada.rejected"] for span in posts] == [0, 0, 1]
    for post, messages in zip(posts, (1, 3, 0), strict=True):
        match, commit = children_of(collector, post)
        assert (match.name, commit.name) == ("match", "commit")
        assert {match.trace_id, commit.trace_id} == {post.trace_id}
        for span in (match, commit):
            assert attributes_of(span)["contrada.batch.messages"] == messages
            assert attributes_of(span)["contrada.batch.commands"] >= 1
        assert match.end_time_unix_nano == commit.start_time_unix_nano


def test_spans_of_posts_that_are_committed_together_have_the_size_of_the_batch(tmp_path):
    async def work():
        async with collecting() as collector:
            async with site(tmp_path, telemetry_otlp_endpoint=f"{collector.url}/here") as here:
                await asyncio.gather(*(here.publish({"n": n}) for n in range(60)))
            await until(lambda: len(collector.spans) >= 180)
            return collector

    collector = asyncio.run(work())
    assert collector.paths == {"/here"}
    commits = [span for span in collector.spans if span.name == "commit"]
    assert len(commits) == 60
    sizes = {span.start_time_unix_nano: attributes_of(span)["contrada.batch.messages"] for span in commits}
    assert sum(sizes.values()) == 60


@pytest.mark.slow
def test_posts_are_answered_while_the_collector_is_away(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    async def work():
        async with site(tmp_path, telemetry_otlp_endpoint=f"http://127.0.0.1:{port}") as here:
            assert (await here.publish({"n": 1})).body == {"sequence": 1}

    asyncio.run(work())


def test_nothing_is_imported_unless_a_collector_is_named():
    program = (
        "import sys; from contrada.service.http.server import ServerRun;"
        "from contrada.service.settings import Settings;"
        "assert ServerRun(Settings()).context.tracer is None; assert 'opentelemetry' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(SettingsError, match=re.escape(install_command("otel"))):
        open_tracer(TelemetrySettings(otlp_endpoint="http://localhost:4318"))
