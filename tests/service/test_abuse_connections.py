"""Hostile connections, sizes, names and tenants against a server process: clear refusals, steady memory, no leak."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from yarl import URL

from served import ADMIN, Served, served

MEGABYTE = 1 << 20
GROWTH = 128 * MEGABYTE  # of memory; less than the bodies that are sent
SECRET = "only-for-tenant-a"
NAMES = (
    "..",
    ".",
    "a/b",
    "a b",
    "a%b",
    "ä",
    "日本",
    "'; DROP TABLE messages; --",
    "a?b#c",
    "x" * 200,
    "\u202eab",
    "😀",
    "null",
)
BAD_NAMES = ("a\0b", "a\nb", "\x7f", "x" * 201, "\x1b[31m")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("hostile") / "state") as running:
        yield running
        assert running.process.poll() is None


def ask(
    server: Served, *requests: tuple[str, str, Any], key: str | None = ADMIN, **headers: str
) -> list[tuple[int, Any]]:
    """Send requests one after another; a value that is not bytes is sent as JSON."""

    async def work() -> list[tuple[int, Any]]:
        sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        found = []
        async with aiohttp.ClientSession(headers=sent) as session:
            for method, path, value in requests:
                body = value if isinstance(value, bytes) else None if value is None else json.dumps(value).encode()
                async with session.request(
                    method, URL(server.url + path, encoded=True), data=body and io.BytesIO(body)
                ) as answer:
                    text = await answer.read()
                    is_json = "json" in answer.headers.get("Content-Type", "")
                    found.append((answer.status, json.loads(text) if text and is_json else text))
        return found

    return asyncio.run(work())


def head() -> bytes:
    return f"POST /messages HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ADMIN}\r\n".encode()


def talk(server: Served, data: bytes, seconds: float = 20.0) -> bytes:
    """Send bytes; return what comes back until the server closes the connection."""
    found = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as one:
        with suppress(ConnectionError):
            one.sendall(data)
        with suppress(ConnectionError):
            while part := one.recv(65_536):
                found += part
    return found


# --- connections ---


def test_a_head_of_megabytes_is_refused_before_it_is_complete(server):
    before = server.resident()
    many = b"".join(b"X-%d: 1\r\n" % row for row in range(1_000_000))
    for data in (
        head() + b"X-Long: " + b"x" * (32 * MEGABYTE),
        b"GET /health?" + b"x" * (32 * MEGABYTE),
        head() + many,
    ):
        found = talk(server, data)  # nothing if the connection was reset while we were sending
        assert found == b"" or found.startswith(b"HTTP/1.1 431 "), found[:200]
    assert server.resident() - before < 32 * MEGABYTE
    assert ask(server, ("GET", "/health", None))[0][0] == 200


def test_a_head_that_goes_on_and_on_is_answered_with_431(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as one:
        one.sendall(head() + b"X-Long: ")
        for _ in range(7):
            time.sleep(0.02)  # so that the server has read all that was sent
            one.sendall(b"x" * 10_000)
        found = one.recv(65_536)
    assert found.startswith(b"HTTP/1.1 431 ")
    problem = json.loads(found.partition(b"\r\n\r\n")[2])
    assert problem["status"] == 431
    kept = b"GET /health HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 50_000 + b"\r\nConnection: close\r\n\r\n"
    assert talk(server, kept).startswith(b"HTTP/1.1 200 ")


def test_answers_come_whole_after_100_continue_one_after_another_and_without_a_body(server):
    body = b'{"n": 1}'
    sent = b"POST /messages HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %b\r\nContent-Type: application/json\r\n"
    post = sent % ADMIN.encode() + b"Content-Length: %d\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as one:
        one.sendall(post + b"Expect: 100-continue\r\n\r\n")
        assert one.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(body)
        found = one.recv(65_536)
        assert found.startswith(b"HTTP/1.1 201 "), found
        assert found.endswith(b"}"), found  # in one packet with the head
    last = b"HEAD /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    *answers, empty = talk(server, (post + b"\r\n" + body) * 3 + last).split(b"HTTP/1.1 ")[1:]
    assert [answer[:4] for answer in answers] == [b"201 "] * 3
    assert all(answer.endswith(b"}") for answer in answers), answers
    assert empty.endswith(b"\r\n\r\n")


def test_garbage_in_place_of_http_is_refused(server):
    for data in (b"\x16\x03\x01\x02\x00" * 10, b"GET\r\n\r\n", b"\0" * 100 + b"\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        found = talk(server, data)
        assert found == b"" or found.startswith(b"HTTP/1.1 4"), found[:200]


@pytest.mark.slow
def test_slow_heads_and_bodies_are_cut_off_and_delay_nobody(server):
    opened = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(200)]
    for one in opened[:100]:
        one.sendall(head())
    for one in opened[100:]:
        one.sendall(head() + b"Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{")
    for _ in range(5):
        assert ask(server, ("POST", "/messages", {"depth": 1}))[0][0] == 201
        for one in opened[:100]:
            with suppress(ConnectionError):
                one.sendall(b"X-A: b\r\n")
        time.sleep(1)
    for one in opened:  # each ends: recv would time out otherwise
        with one, suppress(ConnectionError):
            found = one.recv(65_536)
            assert found == b"" or found.startswith(b"HTTP/1.1 408 ")


def test_oversized_and_odd_frames_close_only_their_own_socket(server):
    async def close_code(session: aiohttp.ClientSession, send: Any) -> int | None:
        async with session.ws_connect(f"{server.url}/ws", max_msg_size=0) as one:
            with suppress(ConnectionError):
                await send(one)
            while (await one.receive(20)).type is aiohttp.WSMsgType.TEXT:
                pass
            return one.close_code

    async def work() -> None:
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {ADMIN}"}) as session:
            for text in ("x" * (17 * MEGABYTE), '{"op":"publish","message":"' + "x" * (17 * MEGABYTE) + '"}'):
                assert await close_code(session, lambda one, text=text: one.send_str(text)) in (1009, 1006)
            for text in ("", "[" * 100_000, '{"op":"none"}', "\ud800".encode("utf-8", "surrogatepass")):
                sent = text if isinstance(text, bytes) else text.encode()
                assert await close_code(session, lambda one, sent=sent: one.send_bytes(sent)) == 1007
            async with session.ws_connect(f"{server.url}/ws") as one:
                await one.send_str('{"op":"ping","ref":1}')
                assert json.loads((await one.receive(20)).data)["op"] == "pong"

    asyncio.run(work())


# --- sizes ---


def test_deep_json_and_a_million_vertices_are_refused(server):
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    wide = b",".join(b"[%d.%d,%d]" % (k % 90, k % 7, k % 80) for k in range(1_000_000))
    ring = b'{"type":"Polygon","coordinates":[[%b]]}' % wide
    feature = b'{"type":"Feature","properties":{},"geometry":%b}' % ring
    nested = {"op": "not", "args": [{"op": "isNull", "args": [{"property": "a"}]}]}
    for _ in range(300):
        nested = {"op": "not", "args": [nested]}
    asked = b'{"subscriber":"a","filter":{"op":"s_within","args":[{"property":"geometry"},%b]}}' % ring
    text = "NOT " * 100_000 + "a = 1"
    requests = [
        ("POST", "/messages", deep),
        ("POST", "/messages", b"[" * 1_000_000),
        ("POST", "/messages", feature),
        ("PUT", "/subscriptions/k", asked),
        ("PUT", "/subscriptions/k", b'{"subscriber":"a","filter":%b}' % deep),
        ("PUT", "/subscriptions/k", {"subscriber": "a", "filter": text}),
        ("PUT", "/subscriptions/k", {"subscriber": "a", "filter": "(" * 100_000}),
        ("POST", "/dry-run", {"filter": text}),
        ("POST", "/messages", b"x" * (17 * MEGABYTE)),
    ]
    for (method, path, _), (status, body) in zip(requests, ask(server, *requests), strict=True):
        assert status in (400, 413, 422), (method, path, status, body)
        assert len(json.dumps(body)) < 2_000
    assert ask(server, ("PUT", "/subscriptions/k", {"subscriber": "a", "filter": nested}))[0][0] < 500


def test_memory_is_steady_under_bodies_that_are_refused(server):
    junk = b'{"a": "' + b"x" * (15 * MEGABYTE)
    ask(server, *[("POST", "/messages", junk)] * 3)
    before = server.resident()
    found = ask(server, *[("POST", "/messages", junk)] * 20, *[("PUT", "/subscriptions/k", junk)] * 10)
    assert {status for status, _ in found} <= {400, 422}
    assert server.resident() - before < GROWTH


# --- names and tenants ---


def test_odd_names_are_kept_apart_or_refused(server):
    for name in NAMES:
        path = f"/subscriptions/{quote(name, safe='').replace('.', '%2E')}"
        put, got, gone = ask(
            server, ("PUT", path, {"subscriber": name, "filter": "a = 1"}), ("GET", path, None), ("DELETE", path, None)
        )
        assert (put[0], got[0], gone[0]) == (201, 200, 200), name
        assert (got[1]["key"], got[1]["subscriber"]) == (name, name)
    for name in BAD_NAMES:
        for key, subscriber in ((name, "a"), ("a", name)):
            path = f"/subscriptions/{quote(key, safe='')}"
            assert ask(server, ("PUT", path, {"subscriber": subscriber, "filter": "a = 1"}))[0][0] == 400, name


def test_a_tenant_sees_nothing_of_another(server):
    made = ask(
        server,
        *[
            ("POST", "/keys", {"name": f"k-{tenant}", "tenant": tenant, "scopes": ["publish", "subscribe"]})
            for tenant in "ab"
        ],
    )
    mine, other = (body["key"] for _, body in made)
    events = "/subscribers/shared/events?from=1&wait=0"
    secret = {"subscriber": "shared", "filter": f"note = '{SECRET}'"}
    requests = [
        ("PUT", "/subscriptions/secret", secret),
        ("POST", "/messages", {"note": SECRET}),
        ("GET", events, None),
        ("POST", "/subscribers/shared/token", None),
    ]
    own = ask(server, *requests, key=mine, Accept="application/json")
    assert len(own[2][1]["events"]) == 1
    token = own[3][1]["token"]
    requests = [
        ("GET", events, None),
        ("GET", "/subscriptions", None),
        ("GET", "/subscriptions/secret", None),
        ("DELETE", "/subscriptions/secret", None),
        ("POST", "/subscriptions/secret/explain", {"note": "x"}),
        ("PATCH", "/subscriptions/secret", {"paused": True}),
        ("GET", "/subscribers", None),
        ("GET", "/subscribers/shared", None),
        ("POST", "/dry-run", {"filter": f"note = '{SECRET}'", "from": 1}),
        ("PUT", "/subscriptions/mine", {"subscriber": "shared", "filter": "note IS NOT NULL"}),
        ("GET", events, None),
        ("GET", "/keys", None),
        ("GET", "/keys/a/k-a", None),
        ("DELETE", "/keys/a/k-a", None),
        ("GET", f"/subscribers/other/events?from=1&wait=0&token={token}", None),
        ("GET", "/metrics", None),
    ]
    for (method, path, _), (status, body) in zip(
        requests, ask(server, *requests, key=other, Accept="application/json"), strict=True
    ):
        assert status < 500, (method, path, status)
        shown = str(body).replace("note = '" + SECRET, "")  # a filter that the asker wrote may come back
        assert SECRET not in shown, (method, path, body)
    statuses = ask(
        server,
        ("GET", events, None),
        ("POST", "/messages", {"a": 1}),
        ("GET", "/subscriptions", None),
        key=token,
        Accept="application/json",
    )
    assert [status for status, _ in statuses] == [401, 401, 401]  # a stream token is no key
    assert len(ask(server, ("GET", events, None), key=mine, Accept="application/json")[0][1]["events"]) == 1
    for key in (None, "", "x", "a" * 10_000, other[:-1], other + "x", "é"):
        assert ask(server, ("GET", events, None), key=key)[0][0] in (400, 401), key
