"""A shared log in Kafka: what is peculiar to it."""

import asyncio
import secrets

import pytest

from contrada.service.shared_log.opening import open_shared_log
from contrada.service.shared_log.shared_log import LogRecord, SharedLogError
from log_readers import LogReader, appended
from server_process import free_port

pytestmark = pytest.mark.slow
KEPT = {"retention.ms": "-1", "flush.messages": "1"}


@pytest.fixture
def name():
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
def open_log(kafka, name):
    """Opens logs, and closes them."""
    made = []

    def open_log(**options):
        log = open_shared_log(f"kafka://{kafka.address}/{name}", **options)
        log.open()
        made.append(log)
        return log

    yield open_log
    for log in made:
        log.close()


def make(server, name, partitions=1, **settings):
    """Make a topic as its owner may have made it."""
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    async def run():
        admin = AIOKafkaAdminClient(bootstrap_servers=server.address)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=settings)])
        finally:
            await admin.close()

    asyncio.run(run())


def test_a_topic_must_write_to_disk_first(kafka, name, open_log):
    make(kafka, name, **{**KEPT, "flush.messages": "1000"})
    with pytest.raises(SharedLogError, match=r"flush\.messages=1"):
        open_log()
    open_log(trust=True)


def test_a_topic_of_others_will_do(kafka, name, open_log):
    make(kafka, name, **{**KEPT, "max.message.bytes": "200000"})
    log = open_log()
    assert log.most_bytes < 200_000
    assert appended(log, LogRecord("m", b"", b"x" * (log.most_bytes - 1))) is None
    assert f"{log.most_bytes:,}" in str(appended(log, LogRecord("m", b"", b"x" * log.most_bytes)))


def test_a_topic_must_keep_its_records(kafka, name, open_log):
    make(kafka, name, **{"flush.messages": "1"})
    with pytest.raises(SharedLogError, match=r"retention\.ms=-1"):
        open_log()


def test_a_topic_must_have_one_partition(kafka, name, open_log):
    make(kafka, name, 3, **KEPT)
    with pytest.raises(SharedLogError, match="3 partitions"):
        open_log(trust=True)


def test_nothing_listens():
    log = open_shared_log(f"kafka://127.0.0.1:{free_port()}", timeout=1)
    with pytest.raises(SharedLogError):
        log.open()


def test_other_programs_read_and_write_the_topic(kafka, name, open_log):
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    log, reader = open_log(), LogReader()
    log.start(0, reader)
    mine = [LogRecord("message", b"h1", b'{"a": 1}'), LogRecord("command", b"h2", b"{}")]
    assert appended(log, *mine) is None

    async def others():
        async with AIOKafkaProducer(bootstrap_servers=kafka.address) as producer:
            await producer.send_and_wait(name, b"foreign", b"\xff")
            await producer.send_and_wait(name, b"foreign")
        reading = AIOKafkaConsumer(name, bootstrap_servers=kafka.address, auto_offset_reset="earliest")
        async with reading as consumer:
            return [await consumer.getone() for _ in range(4)]

    seen = asyncio.run(others())
    assert [(one.key, one.value) for one in seen[:2]] == [(b"message", b'{"a": 1}'), (b"command", b"{}")]
    assert appended(log, LogRecord("m", b"h3", b"last")) is None
    reader.wait(b"last")
    assert reader.records()[:2] == mine
    assert [record.head for record in reader.records()] == [b"h1", b"h2", b"", b"", b"h3"]
