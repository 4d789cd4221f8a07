"""Webhooks by both clients: every method, against a server and a receiver that checks signatures."""

import asyncio

import pytest
from aiohttp import web

from contrada.client import AsyncClient, Client, ProblemError
from serving import ADMIN, run, site
from webhook_receivers import SECRET, receiving, until

LOCAL = {"webhooks_allow_private": True, "webhooks_retry_first": 0.001, "webhooks_retry_most": 0.01}


def test_a_webhook_from_its_making_to_its_dead_letters(tmp_path):
    is_away = True

    async def flaky(request, count):
        return web.Response(status=503 if is_away else 204)

    async def work():
        nonlocal is_away
        async with (
            receiving() as receiver,
            site(tmp_path, **LOCAL) as here,
            AsyncClient(here.url, ADMIN) as client,
        ):
            receiver.answers["hook"] = flaky
            url = f"http://127.0.0.1:{receiver.port}/hook"
            await client.subscribe("deep", "ann", "depth > 0")
            made = await client.put_webhook("ann", "pager", url, secret=SECRET, attempts=2, start="oldest")
            assert (made.name, made.url, made.paused) == ("pager", url, False)
            tested = await client.test_webhook("ann", "pager")
            assert (tested.taken, tested.status) == (False, 503)
            await client.publish([{"depth": depth} for depth in (1, 2, 3)])
            while (await client.webhook("ann", "pager")).dead_letters < 3:
                await asyncio.sleep(0.01)
            letters = [letter async for letter in client.dead_letters("ann", "pager", page=2)]
            assert [(one.id, one.key, one.message, one.attempts) for one in letters] == [
                (f"{depth}.1", "deep", {"depth": depth}, 2) for depth in (1, 2, 3)
            ]
            failed = await client.replay("ann", "pager")
            assert (failed.sent, failed.left) == (0, 3)
            assert failed.failed
            is_away = False
            assert (await client.replay("ann", "pager", letters[1].id)).sent == 1
            assert (await client.replay("ann", "pager")).sent == 2
            assert [letter async for letter in client.dead_letters("ann", "pager")] == []
            assert (await client.test_webhook("ann", "pager")).taken
            await client.pause_webhook("ann", "pager")
            await client.publish({"depth": 4})
            assert (await client.webhook("ann", "pager")).lag == 1
            assert not (await client.resume_webhook("ann", "pager")).paused
            await until(lambda: any("4.1" in request.ids for request in receiver.got["hook"]))
            await client.delete_webhook("ann", "pager")
            with pytest.raises(ProblemError) as caught:
                await client.delete_webhook("ann", "pager")
            assert caught.value.status == 404

    run(work())


def test_the_synchronous_client_has_the_same_methods(server):
    name = "via roma/1"
    with Client(server.url, server.key) as client:
        client.subscribe("hooked", name, "hooked > 0")
        made = [
            client.put_webhook(name, one, "https://hooks.example.org/a", paused=True, batch=7, format="cloudevents")
            for one in ("a", "b/c", "d")
        ]
        assert len({one.secret for one in made}) == 3
        assert {(one.batch, one.format, one.paused) for one in made} == {(7, "cloudevents", True)}
        assert [one.name for one in client.webhooks(name, page=2)] == ["a", "b/c", "d"]
        assert client.webhook(name, "b/c").secret is None
        assert client.pause_webhook(name, "a").paused
        assert list(client.dead_letters(name, "a")) == []
        assert client.replay(name, "a").sent == 0
        for one in ("a", "b/c", "d"):
            client.delete_webhook(name, one)
        assert list(client.webhooks(name)) == []
        with pytest.raises(ProblemError) as caught:
            client.put_webhook(name, "e", "http://127.0.0.1/")
        assert (caught.value.status, caught.value.title) == (400, "Bad webhook")
        for missing in (client.resume_webhook, client.test_webhook, client.replay):
            with pytest.raises(ProblemError, match="webhook"):
                missing(name, "e")
