"""Tokens of an identity provider over HTTP: keys from a file or the provider, tenants and scopes from claims."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey

from serving import Site, events, is_problem, run, site, talk

PARTIES = {"jwt_issuer": "https://id.example", "jwt_audience": "contrada", "jwt_leeway": 5.0}


@cache
def key(kid: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": kid})


def key_set(*kids: str) -> str:
    return json.dumps({"keys": [key(kid).as_dict(private=False) for kid in kids]})


def token(tenant="acme", scope="publish subscribe", signer=None, kid="a", **claims) -> str:
    now = time.time()
    meant = {"iss": "https://id.example", "aud": "contrada", "sub": "ann", "exp": now + 600, "iat": now}
    meant |= {"tenant": tenant, "scope": scope} | claims
    found = {name: value for name, value in meant.items() if value is not None}
    return jwt.encode({"alg": "ES256", "kid": kid}, found, signer or key(kid), algorithms=["ES256"])


def settings(directory):
    file = directory / "keys.json"
    file.write_text(key_set("a"))
    return {"jwt_jwks": str(file), **PARTIES}


class Provider:
    """An identity provider on this machine whose keys may change, and which may be away."""

    def __init__(self) -> None:
        self.kids, self.is_away, self.url = ["a"], False, ""

    async def answer(self, request: web.Request) -> web.Response:
        if self.is_away:
            return web.Response(status=500)
        return web.Response(text=key_set(*self.kids), content_type="application/json")


@asynccontextmanager
async def providing() -> AsyncIterator[Provider]:
    provider, application = Provider(), web.Application()
    application.router.add_get("/keys", provider.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    here = web.TCPSite(runner, "127.0.0.1", 0)
    await here.start()
    provider.url = f"http://127.0.0.1:{runner.addresses[0][1]}/keys"
    try:
        yield provider
    finally:
        await runner.cleanup()


async def taken(here: Site, presented: str) -> None:
    """Wait until a token is taken: keys are read again at most every so many seconds."""
    for _ in range(200):
        if (await here.publish({"depth": 1}, key=presented)).status == 201:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the token is not taken")


def test_claims_give_tenants_and_scopes(tmp_path):
    async def work():
        async with site(tmp_path, **settings(tmp_path)) as here:
            for tenant in ("acme", "blue"):
                body = {"subscriber": "ann", "filter": "depth > 0"}
                assert (await here.ask("PUT", "/subscriptions/k", body, key=token(tenant))).status == 201
                assert (await here.publish({"depth": 1, "of": tenant}, key=token(tenant))).status == 201
            for tenant in ("acme", "blue"):
                found = await events(here, "ann", key=token(tenant, "subscribe"))
                assert [event["message"]["of"] for event in found] == [tenant]
            forbidden = await here.publish({"depth": 1}, key=token(scope="subscribe openid"))
            assert is_problem(forbidden, 403, "forbidden")
            assert forbidden.body["scope"] == "publish"
            assert is_problem(await here.ask("GET", "/keys", key=token()), 403, "forbidden")
            assert (await here.ask("GET", "/keys", key=token(scope=["admin"]))).status == 200
            assert is_problem(await here.publish({"depth": 1}, key=token(tenant=None)), 403, "forbidden")
            assert (await here.publish({"depth": 1})).status == 201  # keys of the server go on beside tokens

    run(work())


def test_tokens_open_streams_and_sockets(tmp_path):
    async def work():
        async with site(tmp_path, **settings(tmp_path)) as here:
            mine = token()
            await here.ask("PUT", "/subscriptions/k", {"subscriber": "ann", "filter": "depth > 0"}, key=mine)
            await here.publish({"depth": 1}, key=mine)
            async with talk(here, mine) as one:
                await one.say("receive", subscriber="ann")
                assert (await one.hear())[0]["id"] == "1.1"
            async with talk(here, None) as one:
                await one.say("hello", key=mine)
                await one.say("publish", message={"depth": 2}, ref=1)
                assert await one.hear() == [{"op": "published", "ref": 1, "sequence": 2}]
            made = await here.ask("POST", "/subscribers/ann/token", key=mine)
            found = await events(here, "ann", f"?wait=0&from=1&token={made.body['token']}", key=None)
            assert [event["id"] for event in found] == ["1.1", "2.1"]

    run(work())


def test_tokens_that_are_not_valid_are_refused_with_the_reason(tmp_path):
    async def work():
        now = time.time()
        refused = {
            "it has expired": token(exp=now - 60),
            "aud": token(aud="another server"),
            "iss": token(iss="https://evil.example"),
            "nbf": token(nbf=now + 600),
            "no key of the identity provider signed it": token(signer=key("another")),
            "its header cannot be read": "a.b.c",
        }
        async with site(tmp_path, **settings(tmp_path)) as here:
            for reason, one in refused.items():
                answer = await here.publish({"depth": 1}, key=one)
                assert is_problem(answer, 401, "unauthorized")
                assert reason in answer.body["detail"].replace("not yet valid", "nbf"), answer.body
                assert answer.headers["WWW-Authenticate"].startswith("Bearer")
                assert one not in json.dumps(answer.body)
            assert (await here.publish({"depth": 1}, key=token())).body == {"sequence": 1}  # nothing was taken before

    run(work())


def test_a_server_without_an_issuer_takes_no_tokens(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            assert is_problem(await here.publish({"depth": 1}, key=token()), 401, "unauthorized")

    run(work())


def test_keys_come_from_the_provider_and_change_there(tmp_path):
    async def work():
        asked = {**PARTIES, "jwt_refresh": 0.05}
        async with providing() as provider, site(tmp_path, **asked, jwt_jwks=provider.url) as here:
            assert (await here.publish({"depth": 1}, key=token())).status == 201
            assert is_problem(await here.publish({"depth": 1}, key=token(kid="b")), 401, "unauthorized")
            provider.kids = ["b"]
            await taken(here, token(kid="b"))
            assert is_problem(await here.publish({"depth": 1}, key=token()), 401, "unauthorized")
            provider.is_away = True
            await asyncio.sleep(0.06)
            assert (await here.publish({"depth": 1}, key=token(kid="b"))).status == 201  # the last keys stay

    run(work())


def test_a_provider_that_is_away_is_503_until_it_is_back(tmp_path):
    async def work():
        async with providing() as provider, site(tmp_path, **PARTIES, jwt_jwks=provider.url, jwt_refresh=0.05) as here:
            provider.is_away = True
            answer = await here.publish({"depth": 1}, key=token())
            assert is_problem(answer, 503, "unavailable")
            assert "Retry-After" in answer.headers
            assert (await here.publish({"depth": 1})).status == 201
            provider.is_away = False
            await taken(here, token())

    run(work())
