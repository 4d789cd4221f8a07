"""Shared logs of all engines: one in memory, and real servers of NATS and Kafka, which only slow tests start."""

import secrets

import kafka_broker
import pytest

import engine_servers
from contrada.service.shared_log.opening import open_shared_log
from fetched_programs import NoProgramError
from memory_log import MemoryEngine


class MemoryEngines:
    """Logs in memory, by name."""

    kills = 3  # in one test

    def __init__(self):
        self._engines = {}

    def log(self, name, **options):
        patience = options.get("patience", 10.0)
        return self._engines.setdefault(name, MemoryEngine()).log(patience)

    def kill(self):
        for engine in self._engines.values():
            engine.down = "the engine is down"

    def start(self):
        for engine in self._engines.values():
            engine.down = None


class ServerEngines:
    """Logs of a server."""

    def __init__(self, url, server, kills):
        self._url, self.kills = url, kills
        self.kill, self.start = server.kill, server.start

    def log(self, name, **options):
        return open_shared_log(f"{self._url}/{name}", **options)


@pytest.fixture(scope="session")
def nats(tmp_path_factory):
    pytest.importorskip("nats")
    try:
        server = engine_servers.nats_server(tmp_path_factory.mktemp("nats"))
    except NoProgramError as error:
        pytest.skip(str(error))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    pytest.importorskip("aiokafka")
    try:
        jars = kafka_broker.broker_jars()
    except kafka_broker.UnavailableError as error:
        pytest.skip(str(error))
    # A broker that is started again waits until the one that was killed counts as gone.
    times = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
    server = kafka_broker.Broker(jars, tmp_path_factory.mktemp("kafka"), partitions=1, **times)
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=["memory", *(pytest.param(name, marks=pytest.mark.slow) for name in ("nats", "kafka"))])
def engines(request):
    if request.param == "memory":
        return MemoryEngines()
    server = request.getfixturevalue(request.param)
    address = server.address if request.param == "kafka" else f"127.0.0.1:{server.port}"
    return ServerEngines(f"{request.param}://{address}", server, 1 if request.param == "kafka" else 5)


@pytest.fixture
def connect(engines):
    """Makes open logs of one name, and closes them."""
    made, name = [], f"test-{secrets.token_hex(4)}"

    def connect(**options):
        log = engines.log(name, **options)
        log.open()
        made.append(log)
        return log

    yield connect
    for log in made:
        log.close()
