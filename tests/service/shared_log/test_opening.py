"""URLs of shared logs, and the faults that a log in memory can show."""

import sys

import pytest

from console import wait_for
from contrada.errors import FormatError
from contrada.service.remotes import MissingEngineError
from contrada.service.shared_log.opening import open_shared_log
from contrada.service.shared_log.shared_log import LogRecord
from log_readers import LogReader, appended
from memory_log import MemoryEngine


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("mqtt://host/name", "needs NATS or Kafka"),
        ("nats://host/a.b", "letters, digits"),
        ("nats://host/a b", "topic"),
        ("nats://user:secret@host/a", "without user"),
        ("http://host/name", "schemes"),
        ("name", "schemes"),
    ],
)
def test_urls_of_no_log(url, text):
    with pytest.raises(FormatError, match=text) as caught:
        open_shared_log(url)
    assert "secret" not in str(caught.value)


def test_kafka_has_no_monitor():
    with pytest.raises(FormatError, match="monitor"):
        open_shared_log("kafka://host/name", monitor="http://host:8222")


@pytest.mark.parametrize("engine", ["nats", "kafka"])
def test_a_missing_library_is_named(engine, monkeypatch):
    library = {"nats": "nats", "kafka": "aiokafka"}[engine]
    for name in [
        one for one in sys.modules if one.split(".")[0] == library or one.startswith("contrada.service.shared")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingEngineError, match=f"\\[{engine}\\]"):
        open_shared_log(f"{engine}://host")


def test_a_log_that_was_not_opened_is_closed():
    pytest.importorskip("nats")
    log, outcomes = open_shared_log("nats://host"), []
    log.append([LogRecord("m", b"", b"1")], outcomes.append)
    assert "closed" in str(outcomes[0])
    log.close()


def test_the_log_in_memory_refuses_loses_and_doubles():
    engine, reader = MemoryEngine(), LogReader()
    log = engine.log()
    log.open()
    log.start(0, reader)
    engine.refuse = 1
    assert appended(log, LogRecord("m", b"", b"refused")) is not None
    engine.lose = 1
    assert appended(log, LogRecord("m", b"", b"lost")) is not None
    engine.double = 1
    assert appended(log, LogRecord("m", b"", b"twice")) is None
    assert appended(log, LogRecord("m", b"", b"last")) is None
    wait_for(lambda: len(reader.units) == 4, 10)
    assert reader.values() == [b"lost", b"twice", b"twice", b"last"]
    log.close()
