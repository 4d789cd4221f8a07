"""TLS by files: clients that trust the authority are served, everyone else hears why not."""

import asyncio
import ssl

import aiohttp
import pytest

from certificates import CertificateFiles, write_certificates
from console import contrada
from contrada.client import AsyncClient, UnreachableError
from contrada.errors import ArgumentError, ContradaError
from linked import broker, got, network, until, until_settled
from serving import ADMIN, run, site, take, talk


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> CertificateFiles:
    return write_certificates(tmp_path_factory.mktemp("tls"))


def test_a_client_that_trusts_the_authority_is_served(tmp_path, files):
    async def work():
        async with site(tmp_path, trusted=ssl.create_default_context(cafile=files.ca), **files.flags) as here:
            assert here.url.startswith("https://")
            await here.subscribe("a", "ann", "depth > 0")
            assert (await here.publish({"depth": 1})).status == 201
            async with here.stream("ann") as stream:
                assert (await take(stream, 1))[0]["id"] == "1.1"
                await here.publish({"depth": 2})
                assert (await take(stream, 1))[0]["id"] == "2.1"
            async with talk(here) as one:
                await one.say("receive", subscriber="ann")
                assert [frame["id"] for frame in await one.hear(2)] == ["1.1", "2.1"]
            async with AsyncClient(here.url, ADMIN, ca=files.ca) as client:
                assert (await client.publish({"depth": 3})).sequence == 3
                async with client.matches("ann", start="oldest") as matches:
                    assert [(await anext(matches)).id for _ in range(3)] == ["1.1", "2.1", "3.1"]

    run(work())


def test_others_are_refused(tmp_path, files):
    async def work():
        async with site(tmp_path, trusted=ssl.create_default_context(cafile=files.ca), **files.flags) as here:
            plain = here.url.replace("https", "http")
            with pytest.raises(aiohttp.ClientError):
                await here.session.get(f"{plain}/health")
            async with aiohttp.ClientSession() as stranger:
                with pytest.raises(aiohttp.ClientConnectorCertificateError):
                    await stranger.get(f"{here.url}/health")
            async with AsyncClient(here.url, ADMIN, patience=0.01) as client:
                with pytest.raises(UnreachableError, match="certificate verify failed"):
                    await client.publish({"depth": 1})
            reader, writer = await asyncio.open_connection("127.0.0.1", here.server.port)
            writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert not (await reader.read()).startswith(b"HTTP")
            writer.close()
            assert (await here.ask("GET", "/health")).status == 200

    run(work())


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"tls_key": "other"}, "is not the key of the certificate"),
        ({"tls_key": "locked"}, "is encrypted"),
        ({"tls_key": "certificate"}, "is not PEM"),
        ({"tls_cert": "key"}, "is not PEM"),
        ({"tls_cert": "missing"}, "No such file"),
    ],
)
def test_files_that_do_not_fit_are_an_error_at_start(tmp_path, files, changed, reason):
    async def work():
        flags = files.flags | {flag: str(files.ca.with_name(f"{name}.pem")) for flag, name in changed.items()}
        with pytest.raises(ContradaError, match=reason) as caught:
            async with site(tmp_path, **flags):
                pass
        assert "server.tls_" in str(caught.value)

    run(work())


def test_the_command_tells_what_is_wrong(tmp_path, files):
    command = ("serve", "--port", 0, "--state", tmp_path / "state", "--tls-cert", files.certificate)
    found = contrada(*command, "--tls-key", files.other, code=2)
    assert "is not the key of the certificate" in " ".join(found.output.split())


def test_a_client_needs_a_file_of_certificates(tmp_path, files):
    for ca in (tmp_path / "missing.pem", files.key):
        with pytest.raises(ArgumentError, match="ca: cannot read certificates"):
            AsyncClient("https://127.0.0.1:1", "key", ca=ca)


def test_brokers_are_linked_over_tls_if_the_caller_trusts_the_authority(tmp_path, files):
    async def work():
        trusted = ssl.create_default_context(cafile=files.ca)
        async with site(tmp_path / "north", trusted=trusted, name="north", **files.flags) as north:
            url = f"wss://127.0.0.1:{north.server.port}"
            async with (
                broker(tmp_path, "south", url, links_ca=str(files.ca)) as south, broker(tmp_path, "west", url) as west,
            ):  # fmt: skip
                await south.subscribe("all", "ann", "depth > 0")
                await until_settled(north, south)
                await north.publish({"depth": 1})
                assert await got(south, "ann", 1) == [{"depth": 1}]

                async def reason():
                    return (await network(west))["calls"][0]["reason"]

                assert "certificate verify failed" in await until(reason)
                assert not (await network(west))["tenants"]

    run(work())
