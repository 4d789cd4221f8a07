"""Webhooks over the HTTP interface of a whole server, delivered to a real receiver that checks every signature."""

import asyncio
import errno
import json

from aiohttp import web

from contrada.service.access.addresses import RefusedAddressError
from contrada.service.http.faults import problem_from
from serving import run, site
from webhook_receivers import SECRET, receiving, until

HOOK = "/subscribers/ann/webhooks/a"
LOCAL = {"webhooks_allow_private": True, "webhooks_retry_first": 0.001, "webhooks_retry_most": 0.01}
REFUSED = "webhooks may not reach the address of this host"


async def busy(request, count):
    return web.Response(status=503)


async def settled(here, is_done, path=HOOK):
    """Return a webhook once something holds for it."""
    for _ in range(2_000):
        found = (await here.ask("GET", path)).body
        if is_done(found):
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(found)


def metrics_of(text):
    lines = (line for line in text.decode().splitlines() if line.startswith("contrada_webhook"))
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_events_arrive_signed_and_again_after_failures(tmp_path):
    async def flaky(request, count):
        return web.Response(status=204 if count > 3 else 500)

    async def work():
        async with receiving() as receiver, site(tmp_path, **LOCAL) as here:
            receiver.answers["a"] = flaky
            await here.subscribe("deep", "ann", "depth > 1")
            made = await here.ask("PUT", HOOK, {"url": receiver.url("a")})
            assert made.status == 201
            receiver.secrets = (made.body["secret"],)
            await here.publish({"depth": 1}, {"depth": 2}, {"depth": 3})
            await until(lambda: len(receiver.got["a"]) == 5)
            assert [one.id for one in receiver.got["a"]] == ["2.1"] * 4 + ["3.1"]
            assert receiver.got["a"][3].json == {"id": "2.1", "sequence": 2, "key": "deep", "message": {"depth": 2}}
            found = await settled(here, lambda view: view["acknowledged"] == "3.1")
            assert (found["lag"], found["dead_letters"], "failing" in found) == (0, 0, False)
            values = metrics_of((await here.ask("GET", "/metrics")).body)
            assert values == {
                "contrada_webhook_sent_total": 2, "contrada_webhook_failed_total": 3,
                "contrada_webhook_retried_total": 3, "contrada_webhook_dead_total": 0,
                "contrada_webhook_discarded_total": 0, "contrada_webhook_in_flight": 0, "contrada_webhooks": 1,
                "contrada_webhook_most_lag_messages": 0,
                'contrada_webhook_lag_messages{subscriber="ann",tenant="default",webhook="a"}': 0,
            }  # fmt: skip
            assert b"webhook=" not in (await here.ask("GET", "/metrics", key=None)).body

    run(work())


def test_secrets_are_shown_once(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            asked = {"url": "https://example.org/hook", "paused": True}
            made = await here.ask("PUT", HOOK, asked)
            secret = made.body["secret"]
            answers = [
                await here.ask("PUT", HOOK, asked),
                await here.ask("PUT", HOOK, {**asked, "secret": SECRET, "second_secret": secret}),
                await here.ask("GET", HOOK),
                await here.ask("GET", "/subscribers/ann/webhooks"),
                await here.ask("POST", f"{HOOK}/pause"),
            ]
            assert [answer.status for answer in answers] == [200] * 5
            for answer in answers:
                assert secret not in json.dumps(answer.body)
                assert SECRET not in json.dumps(answer.body)
            bad = await here.ask("PUT", HOOK, {**asked, "secret": "whsec_short"})
            assert bad.status == 400
            assert "short" not in json.dumps(bad.body)

    run(work())


def test_private_addresses_are_refused_unless_allowed_and_again_later(tmp_path):
    async def work():
        async with receiving() as receiver:
            asked = {"url": receiver.url("a"), "secret": SECRET}
            async with site(tmp_path, webhooks_retry_most=0.01) as here:
                for url in (asked["url"], "http://10.0.0.1/x", "http://localhost/x", "http://169.254.169.254/x"):
                    refused = await here.ask("PUT", HOOK, {"url": url})
                    assert (refused.status, refused.body["type"]) == (400, "/problems/bad-webhook")
                assert (await here.ask("GET", HOOK)).status == 404
            async with site(tmp_path, webhooks_allow=["127.0.0.0/8"]) as here:
                assert (await here.ask("PUT", HOOK, asked)).status == 201
                assert (await here.ask("POST", f"{HOOK}/test")).body["taken"]
                await here.subscribe("all", "ann", "depth > 0")
            async with site(tmp_path, webhooks_retry_first=0.001, webhooks_retry_most=0.01) as here:
                await here.publish({"depth": 1})
                found = await settled(here, lambda view: "failing" in view)
                assert found["failing"]["reason"] == REFUSED
                assert found["failing"]["since"].endswith("Z")
                test = await here.ask("POST", f"{HOOK}/test")
                assert (test.body["taken"], test.body["status"], test.body["reason"]) == (False, 0, REFUSED)
            assert [one.json["type"] for one in receiver.got["a"]] == ["test"]

    run(work())


def test_a_refused_address_is_not_named_in_a_problem():
    problem = problem_from(RefusedAddressError(errno.EACCES, "webhooks may not call 10.1.2.3: the address is private"))
    assert (problem.status, problem.detail) == (400, REFUSED)
    assert b"10.1.2.3" not in problem.body()


def test_events_wait_while_a_webhook_is_paused(tmp_path):
    async def work():
        async with receiving() as receiver, site(tmp_path, **LOCAL) as here:
            await here.subscribe("all", "ann", "n >= 0")
            await here.ask("PUT", HOOK, {"url": receiver.url("a"), "secret": SECRET, "batch": True})
            assert (await here.ask("POST", f"{HOOK}/pause")).body["paused"]
            await here.publish({"n": 0}, {"n": 1})
            found = (await here.ask("GET", HOOK)).body
            assert (found["lag"], found["batch"]) == (2, 100)
            assert not receiver.got["a"]
            assert not (await here.ask("POST", f"{HOOK}/resume")).body["paused"]
            await until(lambda: len(receiver.got["a"]) == 1)
            assert [event["sequence"] for event in receiver.got["a"][0].json] == [1, 2]

    run(work())


def test_dead_letters_are_listed_by_pages_and_replayed(tmp_path):
    async def work():
        async with receiving() as receiver, site(tmp_path, **LOCAL, webhooks_attempts=2) as here:
            receiver.answers["a"] = busy
            await here.subscribe("all", "ann", "n >= 0")
            await here.ask("PUT", HOOK, {"url": receiver.url("a"), "secret": SECRET})
            await here.publish(*({"n": n} for n in range(25)))
            await settled(here, lambda view: view["dead_letters"] == 25)
            letters, path = [], f"{HOOK}/dead-letters?limit=10"
            while path:
                page = (await here.ask("GET", path)).body
                letters += page["dead_letters"]
                path = page["links"][0]["href"] if page["links"] else ""
            assert [letter["message"]["n"] for letter in letters] == list(range(25))
            assert {letter["attempts"] for letter in letters} == {2}
            assert letters[0].keys() == {
                "id", "sequence", "type", "reason", "attempts", "since", "at", "key", "message",
            }  # fmt: skip
            failed = await here.ask("POST", f"{HOOK}/dead-letters/replay")
            assert failed.body == {"sent": 0, "left": 25, "failed": "the endpoint answered 503"}
            del receiver.answers["a"]
            receiver.got["a"].clear()
            one = await here.ask("POST", f"{HOOK}/dead-letters/{letters[7]['id']}/replay")
            assert one.body == {"sent": 1, "left": 24}
            assert (await here.ask("POST", f"{HOOK}/dead-letters/{letters[7]['id']}/replay")).status == 404
            assert (await here.ask("POST", f"{HOOK}/dead-letters/x/replay")).status == 400
            assert (await here.ask("GET", f"{HOOK}/dead-letters?after=x")).status == 400
            everything = await here.ask("POST", f"{HOOK}/dead-letters/replay")
            assert everything.body == {"sent": 24, "left": 0}
            taken = [letter["id"] for letter in letters if letter is not letters[7]]
            assert [one.id for one in receiver.got["a"]] == [letters[7]["id"], *taken]

    run(work())


def test_webhooks_are_listed_by_pages_removed_and_kept_over_a_restart(tmp_path):
    base = "/subscribers/ann%2Fx%C2%A0y/webhooks"  # names may have slashes and unusual spaces

    async def work():
        async with site(tmp_path) as here:
            for name in ("a%2Fb", "c", "events"):
                assert (await here.ask("PUT", f"{base}/{name}", {"url": "https://example.org/"})).status == 201
            assert (await here.ask("DELETE", f"{base}/c")).status == 204
            assert (await here.ask("DELETE", f"{base}/c")).status == 404
        async with site(tmp_path) as here:
            first = (await here.ask("GET", f"{base}?limit=1")).body
            second = (await here.ask("GET", first["links"][0]["href"])).body
            assert [view["name"] for page in (first, second) for view in page["webhooks"]] == ["a/b", "events"]
            assert second["links"] == []
            assert (await here.ask("GET", f"{base}/events")).body["subscriber"] == "ann/x\u00a0y"

    run(work())


def test_tenants_do_not_see_the_webhooks_of_others(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.ask("PUT", HOOK, {"url": "https://example.org/"})
            made = await here.ask("POST", "/keys", {"name": "k", "scopes": ["subscribe"], "tenant": "other"})
            key = made.body["key"]
            assert (await here.ask("GET", "/subscribers/ann/webhooks", key=key)).body["webhooks"] == []
            for method, path in (
                ("GET", HOOK), ("DELETE", HOOK), ("POST", f"{HOOK}/pause"), ("POST", f"{HOOK}/test"),
                ("GET", f"{HOOK}/dead-letters"), ("POST", f"{HOOK}/dead-letters/replay"),
            ):  # fmt: skip
                assert (await here.ask(method, path, key=key)).status == 404
            assert (await here.ask("GET", HOOK)).status == 200

    run(work())


def test_bad_requests_are_refused_with_what_is_wrong(tmp_path):
    good = {"url": "https://example.org/"}
    bad = (
        {},
        {"url": 1},
        {"url": "ftp://example.org/"},
        {**good, "batch": 0},
        {**good, "attempts": 1 << 70},
        {**good, "from": 1 << 70},
        {**good, "from": "then"},
        {**good, "from": 1, "since": "2026-05-01T12:00:00Z"},
        {**good, "since": "2026-05-01T12:00:00"},
        {**good, "unknown": 1},
    )

    async def work():
        async with site(tmp_path) as here:
            for body in bad:
                assert (await here.ask("PUT", HOOK, body)).status == 400, body
            assert (await here.ask("PUT", f"{HOOK}{'x' * 300}", good)).status == 400
            assert (await here.ask("PUT", f"{HOOK}%00", good)).status == 400
            assert (await here.ask("GET", "/subscribers/ann/webhooks")).body == {"webhooks": [], "links": []}
            document = (await here.ask("GET", "/openapi.json", key=None)).body
            path = "/subscribers/{name}/webhooks/{endpoint}/dead-letters/{id}/replay"
            assert [one["name"] for one in document["paths"][path]["post"]["parameters"]] == ["name", "endpoint", "id"]
            assert document["components"]["schemas"]["EndpointRequest"]["required"] == ["url"]

    run(work())


def test_a_page_of_large_dead_letters_ends_early(tmp_path):
    async def work():
        async with receiving() as receiver, site(tmp_path, **LOCAL, webhooks_attempts=1) as here:
            receiver.answers["a"] = busy
            await here.subscribe("all", "ann", "n >= 0")
            await here.ask("PUT", HOOK, {"url": receiver.url("a"), "secret": SECRET})
            for n in range(10):
                await here.publish({"n": n, "padding": "x" * 600_000})
            await settled(here, lambda view: view["dead_letters"] == 10)
            first = (await here.ask("GET", f"{HOOK}/dead-letters")).body
            second = (await here.ask("GET", first["links"][0]["href"])).body
            numbers = [[letter["message"]["n"] for letter in page["dead_letters"]] for page in (first, second)]
            assert numbers == [list(range(8)), [8, 9]]
            assert second["links"] == []
            del receiver.answers["a"]
            assert (await here.ask("POST", f"{HOOK}/dead-letters/replay")).body == {"sent": 10, "left": 0}

    run(work())
