"""Webhooks over real HTTP: what a receiver sees, and what an endpoint cannot make the sender do."""

import asyncio
import datetime
import json
import ssl
import subprocess

import pytest
from aiohttp import web

from contrada.errors import FormatError
from contrada.service.access.addresses import AddressPolicy
from contrada.service.problems import Problem
from contrada.service.webhooks import EndpointRequest, HttpSender, RetryPolicy, Timeouts
from webhook_receivers import (
    OTHER_SECRET,
    SECRET,
    SimulatedTime,
    publish,
    receiving,
    serving,
    subscribe,
    until,
)

QUICK = RetryPolicy(first=0.001, longest=0.01)


def sender(**options):
    return HttpSender(**{"addresses": AddressPolicy(allow_private=True), **options})


def request(url, **options):
    return EndpointRequest(url=url, secret=SECRET, **options)


def failing_with(webhooks, name="a"):
    failing = webhooks.get("t", "ann", name).failing
    return "" if failing is None else failing.reason


def test_events_arrive_signed_in_order_over_one_connection(tmp_path):
    async def run():
        async with receiving() as receiver, serving(tmp_path, sender()) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", request(receiver.url("a")))
            await publish(service, *range(40), padding="ü\N{SNOWMAN}")
            await until(lambda: len(receiver.got["a"]) == 40)
            return receiver, webhooks.counts

    receiver, counts = asyncio.run(run())
    bodies = [one.json for one in receiver.got["a"]]
    assert bodies == [
        {"id": f"{n}.1", "sequence": n, "key": "all", "message": {"n": n - 1, "padding": "ü☃"}} for n in range(1, 41)
    ]
    assert [one.id for one in receiver.got["a"]] == [body["id"] for body in bodies]
    assert {one.content_type for one in receiver.got["a"]} == {"application/json"}
    assert len(receiver.peers) == 1
    assert (counts.sent, counts.failed, counts.in_flight) == (40, 0, 0)


def test_two_secrets_give_two_signatures_until_the_second_is_removed(tmp_path):
    async def run():
        async with receiving(OTHER_SECRET, SECRET) as receiver, serving(tmp_path, sender()) as (_, webhooks):
            first = EndpointRequest(url=receiver.url("a"), secret=OTHER_SECRET, second_secret=SECRET)
            await webhooks.put("t", "ann", "a", first)
            assert (await webhooks.test("t", "ann", "a")).taken
            await webhooks.put("t", "ann", "a", EndpointRequest(url=receiver.url("a")))  # secrets stay
            assert (await webhooks.test("t", "ann", "a")).taken
            receiver.secrets = (OTHER_SECRET,)
            await webhooks.put("t", "ann", "a", EndpointRequest(url=receiver.url("a"), second_secret=None))
            assert (await webhooks.test("t", "ann", "a")).taken
            assert len(receiver.got["a"]) == 3

    asyncio.run(run())


def test_a_generated_secret_is_shown_once(tmp_path):
    async def run():
        async with receiving() as receiver, serving(tmp_path, sender()) as (_, webhooks):
            made = await webhooks.put("t", "ann", "a", EndpointRequest(url=receiver.url("a")))
            receiver.secrets = (made.secret,)
            assert (await webhooks.test("t", "ann", "a")).taken
            again = await webhooks.put("t", "ann", "a", EndpointRequest(url=receiver.url("a")))
            assert again.secret is None
            assert webhooks.get("t", "ann", "a").secret is None
            given = await webhooks.put("t", "ann", "b", request(receiver.url("b")))
            assert given.secret is None
            assert (await webhooks.test("t", "ann", "a")).taken
            assert [one.json["type"] for one in receiver.got["a"]] == ["test", "test"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("batch", "content_type"),
    [(False, "application/cloudevents+json"), (5, "application/cloudevents-batch+json")],
)
def test_cloudevents(tmp_path, batch, content_type):
    async def run():
        async with receiving() as receiver, serving(tmp_path, sender()) as (service, webhooks):
            await subscribe(service, "ann/x")
            await publish(service, 0, 1, 2)
            asked = request(receiver.url("a"), format="cloudevents", batch=batch, start="oldest")
            await webhooks.put("t", "ann/x", "a", asked)
            await until(lambda: sum(len(one.ids) for one in receiver.got["a"]) == 3)
            return receiver.got["a"]

    got = asyncio.run(run())
    items = got[0].json if batch else [one.json for one in got]
    assert {one.content_type for one in got} == {content_type}
    assert len(got) == (1 if batch else 3)
    assert items == [
        {
            "specversion": "1.0",
            "id": f"{n}.1",
            "source": "/subscribers/ann%2Fx",
            "type": "contrada.match",
            "subject": "all",
            "sequence": str(n),
            "datacontenttype": "application/json",
            "data": {"n": n - 1, "padding": ""},
        }
        for n in (1, 2, 3)
    ]


def test_redirects_are_failures_and_not_followed(tmp_path):
    async def run():
        async with receiving() as receiver, serving(tmp_path, sender(), policy=QUICK) as (service, webhooks):

            async def elsewhere(request, count):
                return web.Response(status=307, headers={"Location": receiver.url("b")})

            receiver.answers["a"] = elsewhere
            await subscribe(service)
            await webhooks.put("t", "ann", "a", request(receiver.url("a"), attempts=3))
            await publish(service, 1)
            await until(lambda: webhooks.counts.dead == 1)
            letters = (await webhooks.dead_letters("t", "ann", "a")).letters
            assert len(receiver.got["a"]) == 3
            assert not receiver.got["b"]
            assert "307" in letters[0].reason

    asyncio.run(run())


def test_a_slow_endpoint_does_not_hold_up_others(tmp_path):
    async def run():
        released = asyncio.Event()
        async with receiving() as receiver, serving(tmp_path, sender()) as (service, webhooks):

            async def wait(request, count):
                await released.wait()
                return web.Response()

            receiver.answers["slow"] = wait
            await subscribe(service)
            await webhooks.put("t", "ann", "slow", request(receiver.url("slow")))
            await webhooks.put("t", "ann", "quick", request(receiver.url("quick")))
            await publish(service, *range(100))
            await until(lambda: len(receiver.got["quick"]) == 100)
            assert len(receiver.got["slow"]) == 1
            behind = {"slow": 100, "quick": 0}  # once the last answer has arrived
            await until(lambda: {key.name: lag for key, lag in webhooks.lags().items()} == behind)
            assert webhooks.counts.in_flight == 1
            released.set()
            await until(lambda: len(receiver.got["slow"]) == 100)
            assert [one.ids for one in receiver.got["slow"]] == [one.ids for one in receiver.got["quick"]]

    asyncio.run(run())


def test_a_hanging_endpoint_times_out(tmp_path):
    async def run():
        timeouts = Timeouts(connect=0.2, total=0.2)
        async with (
            receiving() as receiver,
            serving(tmp_path, sender(timeouts=timeouts), policy=QUICK) as (service, webhooks),
        ):

            async def wait_at_first(request, count):
                await asyncio.sleep(5 if count == 1 else 0)
                return web.Response()

            receiver.answers["a"] = wait_at_first
            await subscribe(service)
            await webhooks.put("t", "ann", "a", request(receiver.url("a")))
            await publish(service, 1)
            await until(lambda: webhooks.counts.sent == 1)
            assert [one.id for one in receiver.got["a"]] == ["1.1", "1.1"]
            assert (webhooks.counts.failed, webhooks.counts.retried) == (1, 1)

    asyncio.run(run())


def test_long_answers_are_dropped_and_cookies_are_not_kept(tmp_path):
    async def run():
        async with receiving() as receiver, serving(tmp_path, sender()) as (service, webhooks):

            async def chatter(request, count):
                response = web.StreamResponse(headers={"Set-Cookie": "a=b"})
                await response.prepare(request)
                try:
                    for _ in range(1_000):
                        await response.write(bytes(100_000))
                except ConnectionError:
                    pass
                return response

            receiver.answers["a"] = chatter
            await subscribe(service)
            await webhooks.put("t", "ann", "a", request(receiver.url("a")))
            await publish(service, 1, 2, 3)
            await until(lambda: webhooks.counts.sent == 3)
            assert len(receiver.peers) == 3  # each connection was closed in the middle of the answer
            assert not any("Cookie" in headers for headers in receiver.headers)

    asyncio.run(run())


def test_retry_after_is_kept_to(tmp_path):
    async def run():
        time = SimulatedTime()
        options = {"clock": time.clock, "sleep": time.sleep, "random": lambda: 0.0}
        async with receiving() as receiver, serving(tmp_path, sender(), **options) as (service, webhooks):

            async def later(request, count):
                return web.Response(status=503, headers={"Retry-After": "77"}) if count == 1 else web.Response()

            receiver.answers["a"] = later
            await subscribe(service)
            await webhooks.put("t", "ann", "a", request(receiver.url("a")))
            await publish(service, 1)
            await until(lambda: webhooks.counts.sent == 1)
            first, second = receiver.got["a"]
            assert second.timestamp - first.timestamp == 77
            assert second.body == first.body

    asyncio.run(run())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"])
def test_urls_with_private_addresses_are_refused(tmp_path, host):
    async def run():
        async with serving(tmp_path, HttpSender()) as (_, webhooks):
            with pytest.raises(Problem, match="Bad webhook"):
                await webhooks.put("t", "ann", "a", request(f"http://{host}/a"))

    asyncio.run(run())


def test_addresses_that_became_private_are_not_reached(tmp_path):
    async def run():
        async with receiving() as receiver:
            async with serving(tmp_path, sender()) as (_, webhooks):
                await webhooks.put("t", "ann", "a", request(receiver.url("a")))
                assert (await webhooks.test("t", "ann", "a")).taken
            async with serving(tmp_path, HttpSender()) as (_, webhooks):  # the server no longer allows them
                answer = await webhooks.test("t", "ann", "a")
                assert answer.reason == "webhooks may not reach the address of this host"
            assert len(receiver.got["a"]) == 1

    asyncio.run(run())


def test_a_name_that_comes_to_mean_another_address_is_refused(tmp_path):
    async def run():
        addresses = ["127.0.0.1"]

        def resolve(host, port):
            assert host == "hooks.example"
            return [(2, address) for address in addresses]

        http = HttpSender(addresses=AddressPolicy(allow=["127.0.0.1"]), resolve=resolve, names_kept=0)
        async with receiving() as receiver, serving(tmp_path, http, policy=QUICK) as (service, webhooks):

            async def close(request, count):
                return web.Response(headers={"Connection": "close"})

            receiver.answers["a"] = close
            await subscribe(service)
            await webhooks.put("t", "ann", "a", request(receiver.url("a", "hooks.example")))
            await publish(service, 1)
            await until(lambda: webhooks.counts.sent == 1)
            addresses[:] = ["127.0.0.2"]
            await publish(service, 2)
            await until(lambda: "may not reach" in failing_with(webhooks))
            addresses[:] = ["127.0.0.2", "127.0.0.1"]
            await until(lambda: webhooks.counts.sent == 2)
            assert [one.id for one in receiver.got["a"]] == ["1.1", "2.1"]

    asyncio.run(run())


def test_certificates_are_verified(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def answer_to(tls, host="localhost"):
        async with receiving(tls=context) as receiver, serving(tmp_path, sender(tls=tls)) as (_, webhooks):
            url = receiver.url("a", host).replace("http:", "https:")
            await webhooks.put("t", "ann", "a", request(url))
            return await webhooks.test("t", "ann", "a")

    unknown = asyncio.run(answer_to(None))
    assert not unknown.taken
    assert unknown.reason.startswith("TLS: ")
    known = ssl.create_default_context(cafile=certificate)
    assert asyncio.run(answer_to(known)).taken
    assert not asyncio.run(answer_to(known, "127.0.0.1")).taken  # another name than the certificate's


@pytest.mark.parametrize(
    "url",
    ["ftp://example.org/", "//example.org/", "http:///a", "http://user@example.org/", "http://u:p@example.org/",
     "http://example.org:99999/", "http://exa mple.org/", "http://[::1/", "file:///etc/passwd",
     "http://example.org/" + "a" * 2_048, "http://exämple.org/", "http://example.org/\r\nX: y", ""],
)  # fmt: skip
def test_bad_urls_are_refused(tmp_path, url):
    async def run():
        async with serving(tmp_path, sender()) as (_, webhooks):
            with pytest.raises(Problem, match="Bad webhook"):
                await webhooks.put("t", "ann", "a", request(url))
            assert webhooks.list("t") == []

    asyncio.run(run())


@pytest.mark.parametrize("secret", ["", "abc", "whsec_", "whsec_****", "whsec_" + "A" * 28, "whsec_" + "A" * 88])
def test_bad_secrets_are_refused(tmp_path, secret):
    async def run():
        async with serving(tmp_path, sender()) as (_, webhooks):
            for field in ("secret", "second_secret"):
                with pytest.raises(FormatError, match="secret: need whsec_"):
                    await webhooks.put("t", "ann", "a", EndpointRequest(url="http://example.org/", **{field: secret}))

    asyncio.run(run())


def test_bad_names_and_places_are_refused(tmp_path):
    async def run():
        async with serving(tmp_path, sender()) as (_, webhooks):
            for name in ("", "a\0b", "a\n", "a" * 256):
                with pytest.raises(FormatError, match="name of a webhook"):
                    await webhooks.put("t", "ann", name, request("http://example.org/"))
            both = request("http://example.org/", start=1, since=datetime.datetime.now(datetime.UTC))
            with pytest.raises(FormatError, match="give one of them"):
                await webhooks.put("t", "ann", "a", both)

    asyncio.run(run())


def test_messages_are_sent_as_they_were_published(tmp_path):
    async def run():
        async with receiving() as receiver, serving(tmp_path, sender()) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", request(receiver.url("a")))
            await publish(service, 7)
            await until(lambda: len(receiver.got["a"]) == 1)
            message = json.dumps({"n": 7, "padding": ""}).encode()
            assert receiver.got["a"][0].body == b'{"id":"1.1","sequence":1,"key":"all","message":' + message + b"}"

    asyncio.run(run())
