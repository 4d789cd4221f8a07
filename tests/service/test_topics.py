"""Sinks and sources with real servers of Kafka, NATS and MQTT, which are killed and started again meanwhile."""

import asyncio
import json
import random
import urllib.request
from contextlib import suppress

import kafka_broker
import pytest

import engine_servers
from contrada.client import Client
from contrada.service.table_settings import SinkTable, SourceTable
from effort import thorough
from engine_topics import KafkaTopics, MqttTopics, NatsTopics
from fetched_programs import NoProgramError
from server_process import KEY, ServerProcess
from topic_service import here
from webhook_receivers import publish, subscribe, until

pytestmark = pytest.mark.slow
ENGINES = ("kafka", "nats", "mqtt")
LIBRARIES = {"kafka": "aiokafka", "nats": "nats", "mqtt": "paho.mqtt"}


class Engine:
    """A server of an engine and its topics."""

    def __init__(self, name, server, topics):
        self.name, self.server, self.topics = name, server, topics

    def restart(self):
        """Kill the server and start it again; one of MQTT saves its state only when it is asked to end."""
        (self.server.stop if self.name == "mqtt" else self.server.kill)()
        self.server.start()


@pytest.fixture(params=ENGINES)
def engine(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    pytest.importorskip(LIBRARIES[request.param])
    try:
        if request.param == "kafka":
            server = kafka_broker.Broker(kafka_broker.broker_jars(), place, partitions=1)
            topics = KafkaTopics(server.address)
        elif request.param == "nats":
            server = engine_servers.nats_server(place)
            topics = NatsTopics(server.port)
        else:
            server = engine_servers.mosquitto_server(place)
            topics = MqttTopics(server.port)
    except (NoProgramError, kafka_broker.UnavailableError) as error:
        pytest.skip(str(error))
    server.start()
    yield Engine(request.param, server, topics)
    server.kill()


def served(directory, engine):
    """A server that turns the topic `in` into messages, and the events of `ann` into the topic `out`."""
    config = directory / "contrada.toml"
    config.write_text(
        "[webhooks]\nretry_first = 0.1\nretry_most = 0.5\n"
        f'[[sources]]\nname = "in"\nurl = "{engine.topics.url}/in"\ntimeout = 3\n'
        f'[[sinks]]\nname = "out"\nurl = "{engine.topics.url}/out"\nsubscriber = "ann"\nfrom = "oldest"\ntimeout = 3\n'
    )
    return ServerProcess(directory, "--config", str(config))


class Writer:
    """Writes records {"n": 0, "try": 0}, ...; `sure` are those that the engine acknowledged."""

    def __init__(self, topics):
        self.topics, self.sure, self.next, self.tries = topics, [], 0, 0

    async def write(self, count):
        for number in range(self.next, self.next + count):
            while True:
                self.tries += 1
                body = json.dumps({"n": number, "try": self.tries}).encode()
                try:
                    async with asyncio.timeout(10):
                        await self.topics.write("in", body)
                except Exception:
                    await asyncio.sleep(0.1)
                else:
                    self.sure.append(body)
                    break
        self.next += count


def logged(server):
    """The events of `ann` in order: what the server has published."""
    found = []
    while True:
        place = f"after={found[-1]['id']}" if found else "from=1"
        url = f"{server.url}/subscribers/ann/events?wait=0&limit=1000&{place}"
        asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {KEY}", "Accept": "application/json"})
        with urllib.request.urlopen(asked, timeout=20) as answer:
            page = json.loads(answer.read())["events"]
        if not page:
            return found
        found += page


def check(engine, log, copies, writer, source):
    messages = [json.dumps(event["message"]).encode() for event in log]
    firsts = list({copy.id: copy.body for copy in copies}.items())
    assert [id for id, _ in firsts] == [event["id"] for event in log], "every event once, in order, but for repetitions"
    assert [json.loads(body)["message"] for _, body in firsts] == [event["message"] for event in log]
    if engine.name == "mqtt":
        assert set(writer.sure) <= set(messages), "nothing that was acknowledged is lost"
    else:
        assert messages == [copy.body for copy in source], "every record once, in the order of the topic"
    assert set(writer.sure) <= set(messages)
    return len(copies) - len(firsts)


async def settled(server, engine, writer):
    """Wait until everything that was written has passed through, and return what there is."""
    for _ in range(300):
        with suppress(Exception):
            log = await asyncio.to_thread(logged, server)
            bodies = {json.dumps(event["message"]).encode() for event in log}
            copies = await engine.topics.read("out")
            if set(writer.sure) <= bodies and {copy.id for copy in copies} >= {event["id"] for event in log}:
                return log, copies
        await asyncio.sleep(0.2)
    raise AssertionError(server.log()[-3000:])


async def begin(engine, server):
    await engine.topics.make("in", "out")
    await asyncio.to_thread(server.start)
    with Client(server.url, KEY) as client:
        client.subscribe("all", "ann", "n >= 0")


async def finish(engine, server, writer):
    log, copies = await settled(server, engine, writer)
    source = [] if engine.name == "mqtt" else await engine.topics.read("in")
    await engine.topics.close()
    return check(engine, log, copies, writer, source)


def test_records_pass_from_a_topic_to_a_topic(engine, tmp_path):
    async def run():
        server, writer = served(tmp_path, engine), Writer(engine.topics)
        try:
            await begin(engine, server)
            await writer.write(50)
            repeated = await finish(engine, server, writer)
        finally:
            server.stop()
        assert repeated == 0
        assert len(writer.sure) == 50

    asyncio.run(run())


@pytest.mark.parametrize("who", [thorough("server"), thorough("engine"), "both"])
def test_nothing_is_lost_when_the_server_or_the_engine_is_killed(engine, tmp_path, who):
    async def run():
        server, writer, chance = served(tmp_path, engine), Writer(engine.topics), random.Random(who)
        try:
            await begin(engine, server)
            for _ in range(2):
                writing = asyncio.create_task(writer.write(60))
                await asyncio.sleep(chance.uniform(0.05, 0.6))
                if who != "engine":
                    await asyncio.to_thread(server.kill)
                if who != "server":
                    await asyncio.to_thread(engine.restart)
                if who != "engine":
                    await asyncio.to_thread(server.start)
                await writing
            await finish(engine, server, writer)
        finally:
            server.stop()
        assert writer.next == 120

    asyncio.run(run())


@pytest.mark.parametrize("engine", ["kafka", "nats"], indirect=True)
def test_an_event_beyond_the_largest_size_is_a_dead_letter_and_the_rest_goes_on(engine, tmp_path):
    async def run():
        await engine.topics.make("out")
        sink = SinkTable(name="out", url=f"{engine.topics.url}/out", subscriber="ann", tenant="t", timeout=5)
        async with here(tmp_path, sinks=[sink]) as (service, sinks, _):
            await subscribe(service)
            await publish(service, 1)
            await publish(service, 2, padding="x" * 1_100_000)
            await publish(service, 3, 4)
            await until(lambda: sinks.counts.sent == 3)
            (letter,) = (await sinks.dead_letters("out")).letters
            assert (letter.id, letter.attempts) == ("2.1", 1)
            assert letter.reason
        assert [copy.id for copy in await engine.topics.read("out")] == ["1.1", "3.1", "4.1"]
        await engine.topics.close()

    asyncio.run(run())


@pytest.mark.parametrize("engine", ["kafka", "nats"], indirect=True)
def test_a_source_that_is_set_back_publishes_nothing_twice(engine, tmp_path):
    async def run():
        await engine.topics.make("in")
        for number in range(20):
            await engine.topics.write("in", b'{"n": %d}' % number)
        for turn, group in enumerate(["one", "two"]):  # the second group has no offsets: it starts at the beginning
            source = SourceTable(name="in", url=f"{engine.topics.url}/in", tenant="t", timeout=5, group=group, batch=7)
            async with here(tmp_path, sources=[source]) as (service, _, sources):
                await until(lambda service=service: service.newest >= 20)
                await until(lambda sources=sources: sources.views()[0].state == "reading")
                if turn:
                    await engine.topics.write("in", b'{"n": 20}')
                    await until(lambda service=service: service.newest >= 21)
                assert [json.loads(one.body)["n"] for one in await service.history(1, 100)] == [*range(20 + turn)]
        await engine.topics.close()

    asyncio.run(run())


def test_a_password_comes_from_a_file_and_is_never_shown(tmp_path, caplog):
    pytest.importorskip("nats")
    try:
        server = engine_servers.nats_server(tmp_path, "hunter2")
    except NoProgramError as error:
        pytest.skip(str(error))
    (tmp_path / "good").write_text("hunter2\n")
    (tmp_path / "bad").write_text("hunter3\n")

    def sink(name):
        url = f"nats://127.0.0.1:{server.port}/out"
        return SinkTable(
            name=name, url=url, subscriber="ann", tenant="t", user="ann", password_file=tmp_path / name, timeout=5
        )

    async def run():
        async with here(tmp_path / "state", sinks=[sink("good"), sink("bad")]) as (service, sinks, _):
            await subscribe(service)
            await publish(service, 1)
            await until(lambda: all(view.failing for view in sinks.views()))
            reasons = {view.table.name: view.failing.reason for view in sinks.views()}
            assert "no stream has the subject" in reasons["good"]
            assert "uthorization" in reasons["bad"]
            return f"{reasons}{sinks.views()}"

    server.start()
    try:
        shown = asyncio.run(run()) + caplog.text
    finally:
        server.kill()
    assert "hunter2" not in shown
    assert "hunter3" not in shown
