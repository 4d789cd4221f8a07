"""A shared log in JetStream: what is peculiar to it."""

import asyncio
import secrets

import pytest

import engine_servers
from console import wait_for
from contrada.service.shared_log.opening import open_shared_log
from contrada.service.shared_log.shared_log import LogRecord, SharedLogError
from log_readers import SECONDS, LogReader, appended
from server_process import free_port

pytestmark = pytest.mark.slow


def address(server):
    return f"nats://127.0.0.1:{server.port}"


@pytest.fixture
def name():
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
def log(nats, name):
    made = open_shared_log(f"{address(nats)}/{name}", timeout=2)
    made.open()
    yield made
    made.close()


@pytest.fixture
def started(tmp_path):
    """Starts servers of its own, and ends them."""
    servers = []

    def start(**settings):
        server = engine_servers.nats_server(tmp_path, **settings)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.kill()


def opened(url, **options):
    """Open a log, close it, and return its notices."""
    log = open_shared_log(url, timeout=2, **options)
    log.open()
    log.close()
    return log.notices


def with_jetstream(server, work):
    """Run a coroutine function with JetStream, as other clients use it."""
    import nats

    async def run():
        connection = await nats.connect(address(server))
        try:
            return await work(connection.jetstream())
        finally:
            await connection.close()

    return asyncio.run(run())


def test_a_server_that_writes_to_disk_first_is_seen_by_its_monitor(started):
    port = free_port()
    server = started(monitor_port=port)
    assert opened(address(server), monitor=f"http://127.0.0.1:{port}/") == []
    (notice,) = opened(address(server))
    assert "sync_interval: always" in notice
    with pytest.raises(SharedLogError, match="monitor"):
        opened(address(server), monitor=f"http://127.0.0.1:{free_port()}")


def test_a_server_that_writes_to_disk_later_is_refused(started):
    port = free_port()
    server = started(monitor_port=port, sync='"2m"')
    with pytest.raises(SharedLogError, match="sync_interval: always"):
        opened(address(server), monitor=f"http://127.0.0.1:{port}")
    assert opened(address(server), monitor=f"http://127.0.0.1:{port}", trust=True) == []


def test_a_stream_that_drops_messages_is_refused(nats, name):
    with_jetstream(nats, lambda stream: stream.add_stream(name=name, subjects=[f"{name}.log.*"], max_msgs=10))
    with pytest.raises(SharedLogError, match=r"max_msgs is 10"):
        opened(f"{address(nats)}/{name}")
    opened(f"{address(nats)}/{name}", trust=True)


def test_a_server_may_ask_for_a_password(started):
    server = started(password="secret")
    opened(address(server), user="ann", password="secret")
    with pytest.raises(SharedLogError, match=r"Authorization|authorization"):
        opened(address(server), user="ann", password="wrong")


def test_nothing_listens():
    with pytest.raises(SharedLogError):
        opened(f"nats://127.0.0.1:{free_port()}")


def test_messages_of_others_have_no_head(nats, name, log):
    reader = LogReader()
    log.start(0, reader)
    with_jetstream(nats, lambda stream: stream.publish(f"{name}.log.other", b'{"a": 1}'))
    assert appended(log, LogRecord("m", b"h", b"mine")) is None
    reader.wait(b"mine")
    assert reader.records() == [LogRecord("", b"", b'{"a": 1}'), LogRecord("m", b"h", b"mine")]


def test_an_append_that_was_given_up_does_not_come_after_later_ones(started):
    server = started()
    log, reader = open_shared_log(address(server), timeout=0.3, patience=0.6), LogReader()
    log.open()
    try:
        log.start(0, reader)
        assert appended(log, LogRecord("m", b"", b"0")) is None
        for number in range(1, 10, 2):
            server.pause()
            assert appended(log, LogRecord("m", b"", b"%d" % number)) is not None
            server.resume()
            wait_for(lambda: log.fault() is None, SECONDS)
            wait_for(lambda number=number: appended(log, LogRecord("m", b"", b"%d" % (number + 1))) is None, SECONDS)
        reader.wait(b"10")
        numbers = [int(value) for value in reader.values()]
        assert numbers == sorted(numbers)
        assert set(range(0, 11, 2)) <= set(numbers)
    finally:
        log.close()


def test_a_stream_that_is_made_anew_ends_reading_and_appending(nats, name, log):
    reader = LogReader()
    log.start(0, reader)
    for number in range(3):
        assert appended(log, LogRecord("m", b"", b"%d" % number)) is None

    async def again(stream):
        await stream.delete_stream(name)
        await stream.add_stream(name=name, subjects=[f"{name}.log.*"])

    with_jetstream(nats, again)
    wait_for(lambda: "made anew" in (log.fault() or ""), SECONDS, lambda: f"{log.fault()}")
    assert "made anew" in str(appended(log, LogRecord("m", b"", b"lost")))


def test_a_message_that_was_deleted_is_not_passed_over(nats, name, log):
    for number in range(5):
        assert appended(log, LogRecord("m", b"", b"%d" % number)) is None
    with_jetstream(nats, lambda stream: stream.delete_msg(name, 3))
    reader = LogReader()
    log.start(0, reader)
    wait_for(lambda: "position 3" in (log.fault() or ""), SECONDS, lambda: f"{log.fault()}")
    assert reader.values() == [b"0", b"1"]


def test_a_reader_that_fails_is_not_called_again(log):
    seen = []

    def take(units):
        seen.extend(units)
        raise ValueError("cannot apply")

    log.start(0, take)
    assert appended(log, LogRecord("m", b"", b"1")) is None
    wait_for(lambda: "cannot apply" in (log.fault() or ""), SECONDS)
    assert "cannot apply" in str(appended(log, LogRecord("m", b"", b"2")))
    assert len(seen) == 1
