"""A shared log in a cluster of three servers, of which each is killed and started again while two write."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import kafka_broker
import pytest

import engine_servers
from console import wait_for
from contrada.service.shared_log.opening import open_shared_log
from contrada.service.shared_log.shared_log import SharedLogError
from fetched_programs import NoProgramError
from log_readers import SECONDS, LogReader, LogWriter

pytestmark = pytest.mark.slow


def nats_servers(folder):
    pytest.importorskip("nats")
    try:
        servers = engine_servers.nats_cluster(folder)
    except NoProgramError as error:
        pytest.skip(str(error))
    return servers, [f"127.0.0.1:{server.port}" for server in servers]


def kafka_servers(folder):
    pytest.importorskip("aiokafka")
    try:
        jars = kafka_broker.broker_jars()
    except kafka_broker.UnavailableError as error:
        pytest.skip(str(error))
    # A broker that is started again waits until the one that was killed counts as gone.
    times = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    servers = kafka_broker.cluster(jars, folder, **times)
    return servers, [server.address for server in servers]


def opened_logs(url, stack):
    """Two open logs of a cluster, which may take some seconds to find its leader."""

    def opened_log():
        log = open_shared_log(url, timeout=5, patience=SECONDS)
        with suppress(SharedLogError):
            log.open()
            stack.callback(log.close)
            return log

    return [wait_for(opened_log, SECONDS) for _ in range(2)]


@pytest.mark.parametrize(("engine", "made"), [("nats", nats_servers), ("kafka", kafka_servers)])
def test_a_cluster_keeps_order_while_its_servers_are_killed_in_turn(tmp_path, engine, made):
    servers, addresses = made(tmp_path)
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.kill)
        with ThreadPoolExecutor(len(servers)) as pool:  # none answers before the others are there
            list(pool.map(lambda server: server.start(), servers))
        logs = opened_logs(f"{engine}://{','.join(addresses)}/contrada", stack)
        readers, stop = [LogReader(), LogReader()], threading.Event()
        assert logs[0].notices == [], "three replicas are durable"
        writers = [LogWriter(log, f"w{number}") for number, log in enumerate(logs)]
        for log, reader in zip(logs, readers, strict=True):
            log.start(0, reader)

        def write(writer):
            while not stop.is_set():
                writer.append(2)
                time.sleep(0.005)

        threads = [threading.Thread(target=write, args=[writer]) for writer in writers]
        for thread in threads:
            thread.start()
        try:
            for server in servers:
                enough = [len(writer.sure) + 100 for writer in writers]
                both = list(zip(writers, enough, strict=True))
                wait_for(lambda both=both: all(len(one.sure) > least for one, least in both), SECONDS)
                server.kill()
                server.start()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        for writer in writers:
            writer.wait()
            assert not writer.errors
        for reader in readers:
            wait_for(lambda reader=reader: len(reader.records()) >= sum(one.sent for one in writers), SECONDS)
        assert readers[0].units == readers[1].units
        for writer in writers:
            assert writer.of(readers[0].values()) == list(range(1, writer.sent + 1))
