"""Sinks and sources log in to real servers of Kafka, NATS and MQTT over TLS, and say what is wrong if they cannot."""

import asyncio
import re
import ssl

import kafka_broker
import pytest

import engine_servers
from certificates import write_certificates
from contrada.service.table_settings import SinkTable, SourceTable
from engine_topics import KafkaTopics
from fetched_programs import NoProgramError
from topic_service import here
from webhook_receivers import publish, subscribe, until

pytestmark = pytest.mark.slow
LIBRARIES = {"kafka": "aiokafka", "nats": "nats", "mqtt": "paho.mqtt"}
PASSWORD = "correct-horse"


class Guarded:
    """A server with TLS and a user; `right` are the settings with which it lets somebody in."""

    def __init__(self, engine, address, place, plain=None):
        self.engine, self.place, self.plain = engine, place, plain
        self.files = {name: place / f"{name}.password" for name in ("right", "wrong")}
        for name, file in self.files.items():
            file.write_text(PASSWORD if name == "right" else "wrong-horse")
        self.url = f"{engine}s://{address}/out"
        self.right = {
            "url": self.url, "user": "ann", "password_file": self.files["right"], "ca_file": place / "ca.pem",
        }  # fmt: skip


@pytest.fixture(scope="module", params=LIBRARIES)
def guarded(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    pytest.importorskip(LIBRARIES[request.param])
    tls = write_certificates(place)
    try:
        if request.param == "kafka":
            server = kafka_broker.Broker(kafka_broker.broker_jars(), place, 1, tls, PASSWORD)
            address = server.guarded
        else:
            make = getattr(engine_servers, "nats_server" if request.param == "nats" else "mosquitto_server")
            server = make(place, PASSWORD, tls)
            address = f"127.0.0.1:{server.port}"
    except (NoProgramError, kafka_broker.UnavailableError) as error:
        pytest.skip(str(error))
    server.start()
    yield Guarded(request.param, address, place, getattr(server, "address", None))
    server.kill()


async def make_topic(guarded):
    """Make a topic of Kafka, by the listener that asks for nothing, or a stream of NATS."""
    if guarded.engine == "kafka":
        await KafkaTopics(guarded.plain).make("out")
    if guarded.engine == "nats":
        import nats

        trusted = ssl.create_default_context(cafile=guarded.right["ca_file"])
        address = guarded.url.removeprefix("natss://").removesuffix("/out")
        client = await nats.connect(f"tls://{address}", user="ann", password=PASSWORD, tls=trusted)
        await client.jetstream().add_stream(name="out", subjects=["out"])
        await client.close()


def test_events_pass_over_tls_with_a_login(guarded, tmp_path):
    async def run():
        await make_topic(guarded)
        sink = SinkTable(name="out", subscriber="ann", tenant="t", timeout=5, **guarded.right)
        source = SourceTable(name="in", tenant="u", timeout=5, **guarded.right)
        async with here(tmp_path, [sink], [source]) as (service, sinks, sources):
            if guarded.engine == "mqtt":  # keeps messages for those who have asked for them
                await until(lambda: sources.views()[0].state == "reading")
            await subscribe(service)
            await publish(service, 1, 2, 3)
            await until(lambda: sinks.counts.sent == 3)
            await until(lambda: service.newest == 6)
            assert sinks.counts.failed == 0
            assert sources.views()[0].failing is None

    asyncio.run(run())


NO_TRUST = "certificate verify failed"
FAULTS = {  # and what is said of them
    "wrong password": (lambda guarded: {"password_file": guarded.files["wrong"]}, "invalid cred|Auth|Not auth|login"),
    "nobody": (lambda guarded: {"user": None, "password_file": None}, "for a user|Authorization|Not authorized|login"),
    "wrong authority": (lambda guarded: {"ca_file": write_certificates(guarded.place / "other").ca}, NO_TRUST),
    "no authority": (lambda guarded: {"ca_file": None}, NO_TRUST),
    "no TLS": (lambda guarded: {"url": guarded.url.replace("s://", "://"), "ca_file": None}, f"for TLS|{NO_TRUST}"),
}


# The library of MQTT leaves the socket of a handshake that fails to the collector of garbage.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("fault", FAULTS)
def test_what_keeps_them_out_is_said_without_the_password(guarded, tmp_path, fault):
    (guarded.place / "other").mkdir(exist_ok=True)

    async def run():
        changed, said = FAULTS[fault]
        given = guarded.right | changed(guarded)
        sink = SinkTable(name="out", subscriber="ann", tenant="t", timeout=2, **given)
        source = SourceTable(name="in", tenant="u", timeout=2, **given)
        async with here(tmp_path, [sink], [source]) as (service, sinks, sources):
            await subscribe(service)
            await publish(service, 1)
            await until(lambda: sinks.views()[0].failing is not None)
            await until(lambda: sources.views()[0].failing is not None)
            for one in (sinks.views()[0], sources.views()[0]):
                assert re.search(said, one.failing.reason), one.failing.reason
                assert "horse" not in one.failing.reason
            assert sinks.counts.sent == 0
            assert service.newest == 1

    asyncio.run(run())
