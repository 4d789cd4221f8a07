import asyncio
import json
import warnings
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OctKey, RSAKey

from contrada.service.access.provider_keys import MAX_KEY_SET, KeySetError, ProviderKeys, key_reader, parse_keys
from contrada.service.problems import Problem

KEYS = {kid: ECKey.generate_key("P-256", {"kid": kid}) for kid in "abc"}


def key_set(kids, *others) -> bytes:
    return json.dumps({"keys": [*(KEYS[kid].as_dict(private=False) for kid in kids), *others]}).encode()


def ids(keys):
    return "".join(key.kid for key in keys)


class Provider:
    """An identity provider whose keys change, and which may be away; it counts how often it is asked."""

    def __init__(self, kids="a"):
        self.kids, self.asked, self.error = kids, 0, None
        self.is_open = asyncio.Event()
        self.is_open.set()

    async def read(self):
        self.asked += 1
        await self.is_open.wait()
        if self.error:
            raise self.error
        return key_set(self.kids)


def test_keys_are_read_once_and_again_when_they_are_old():
    provider = Provider()
    keys = ProviderKeys(provider.read, refresh=1000.0, pause=60.0)

    async def run():
        for now in (0.0, 1.0, 999.0):
            assert ids(await keys.find("a", now)) == "a"
        assert provider.asked == 1
        provider.kids = "b"
        assert ids(await keys.find("a", 1000.0)) == ""
        assert provider.asked == 2

    asyncio.run(run())


def test_an_unknown_id_reads_the_keys_again_once_a_minute_at_most():
    provider = Provider("a")
    keys = ProviderKeys(provider.read)

    async def run():
        assert ids(await keys.find("a", 0.0)) == "a"
        provider.kids = "ab"
        assert ids(await keys.find("b", 59.9)) == ""
        assert provider.asked == 1
        assert ids(await keys.find("b", 60.0)) == "b"
        assert ids(await keys.find(None, 60.0)) == "ab"
        for now in range(61, 120):
            assert await keys.find("nobody's", float(now)) == []
        assert provider.asked == 2
        assert await keys.find("nobody's", 120.0) == []
        assert provider.asked == 3
        assert keys.version == 3

    asyncio.run(run())


@pytest.mark.parametrize("error", [OSError("away"), TimeoutError(), KeySetError("no keys")])
def test_while_the_provider_is_away_the_last_keys_stay(error):
    provider = Provider()
    keys = ProviderKeys(provider.read, refresh=100.0)

    async def run():
        assert ids(await keys.find("a", 0.0)) == "a"
        provider.error = error
        assert ids(await keys.find("a", 1000.0)) == "a"
        assert ids(await keys.find("a", 1059.0)) == "a"
        assert (provider.asked, keys.version) == (2, 1)
        provider.error, provider.kids = None, "b"
        assert ids(await keys.find("b", 1060.0)) == "b"

    asyncio.run(run())


def test_without_any_keys_the_answer_is_503_and_says_when_to_come_back():
    provider = Provider()
    provider.error = OSError("away")
    keys = ProviderKeys(provider.read)

    async def run():
        for now, wait in ((0.0, 60.0), (20.0, 40.0), (59.5, 1.0)):
            with pytest.raises(Problem) as caught:
                await keys.find("a", now)
            assert (caught.value.status, caught.value.members["retry_after"]) == (503, wait)
        assert provider.asked == 1
        provider.error = None
        assert ids(await keys.find("a", 60.0)) == "a"

    asyncio.run(run())


def test_requests_at_once_read_the_keys_once():
    async def run():
        provider = Provider("ab")
        keys = ProviderKeys(provider.read)
        provider.is_open.clear()
        waiting = [asyncio.create_task(keys.find(kid, 0.0)) for kid in "abababc"]
        await asyncio.sleep(0)
        provider.is_open.set()
        assert [ids(found) for found in await asyncio.gather(*waiting)] == ["a", "b", "a", "b", "a", "b", ""]
        assert provider.asked == 1

    asyncio.run(run())


def test_known_keys_are_used_while_they_are_read_again():
    async def run():
        provider = Provider("a")
        keys = ProviderKeys(provider.read, refresh=10.0, pause=1.0)
        assert ids(await keys.find("a", 0.0)) == "a"
        provider.is_open.clear()
        first = asyncio.create_task(keys.find("a", 20.0))
        await asyncio.sleep(0)
        assert ids(await asyncio.wait_for(keys.find("a", 30.0), 5)) == "a"
        provider.is_open.set()
        assert ids(await first) == "a"

    asyncio.run(run())


def test_a_clock_that_is_set_back_stops_nothing():
    provider = Provider("a")
    keys = ProviderKeys(provider.read)

    async def run():
        assert ids(await keys.find("a", 1e9)) == "a"
        provider.kids = "b"
        assert ids(await keys.find("b", 5.0)) == "b"

    asyncio.run(run())


def test_keys_of_other_kinds_are_left_out():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short = RSAKey.generate_key(1024).as_dict(private=False)
    others = [
        short,
        OctKey.generate_key(256).as_dict(private=True),
        KEYS["b"].as_dict(private=False, use="enc"),
        KEYS["c"].as_dict(private=False, key_ops=["sign"]),
        {"kty": "AKP", "alg": "ML-DSA-44", "pub": "x"},
        {"kty": "EC", "crv": "P-256", "x": "!", "y": 7},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "RSA", "n": 7, "e": "AQAB"},
        {"kty": "RSA", "e": "AQAB"},
        {"kty": ["RSA"]},
        {"kty": "OKP", "key_ops": 7},
        {},
    ]
    assert ids(parse_keys(key_set("a", *others))) == "a"
    for other in others:
        with pytest.raises(KeySetError, match="no RSA, EC or OKP key"):
            parse_keys(key_set("", other))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"keys": 7}',
        b'{"keys": [7]}',
        b"\xff",
        b"[" * 100_000,
        b'{"keys":' + b"[" * 100_000,
    ],
)
def test_what_is_no_key_set_is_refused(data):
    with pytest.raises(KeySetError):
        parse_keys(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"kty": st.sampled_from(["RSA", "EC", "OKP"])},
            optional={name: JSON for name in ("n", "e", "x", "y", "crv", "kid", "use", "alg", "key_ops")},
        ),
        max_size=3,
    )
)
def test_odd_keys_are_left_out(entries):
    assert ids(parse_keys(key_set("a", *entries))) == "a"


@asynccontextmanager
async def serving(answer):
    application = web.Application()
    application.router.add_get("/keys", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/keys"
    finally:
        await runner.cleanup()


def read_from(answer, **options):
    async def run():
        async with serving(answer) as url:
            return await key_reader(url, **options)()

    return asyncio.run(run())


def test_keys_are_read_from_a_url():
    async def answer(request):
        return web.Response(body=key_set("ab"))

    assert ids(parse_keys(read_from(answer))) == "ab"


def test_a_url_that_answers_otherwise():
    async def away(request):
        raise web.HTTPServiceUnavailable

    async def elsewhere(request):
        raise web.HTTPFound("/other")

    async def large(request):
        return web.Response(body=b" " * (MAX_KEY_SET + 1))

    for answer, reason in ((away, "status 503"), (elsewhere, "status 302"), (large, "more than 1,048,576 bytes")):
        with pytest.raises(KeySetError, match=reason):
            read_from(answer)


def test_a_url_that_never_answers():
    async def slow(request):
        await asyncio.sleep(3600)

    with pytest.raises(TimeoutError):
        read_from(slow, seconds=0.05)


def test_keys_are_read_from_a_file(tmp_path):
    path = tmp_path / "keys.json"
    path.write_bytes(key_set("c"))
    assert ids(parse_keys(asyncio.run(key_reader(str(path))()))) == "c"
    with pytest.raises(FileNotFoundError):
        asyncio.run(key_reader(str(tmp_path / "other.json"))())
