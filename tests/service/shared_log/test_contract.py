"""What a SharedLog promises, tried with every engine."""

import threading
import time

import pytest

from console import wait_for
from contrada.service.shared_log.shared_log import LogRecord, SharedLogError
from log_readers import SECONDS, LogReader, LogWriter, appended


def record(value, key="m", head=b""):
    return LogRecord(key, head, value)


def fill(log, count):
    """Append units of one record, `0` to `count - 1`, and return the position of each."""
    positions = []
    for number in range(count):
        assert appended(log, record(b"%d" % number)) is None
        positions.append(log.end())
    return positions


def test_a_new_log_is_empty(connect):
    log = connect()
    assert log.end() == 0
    assert log.newest_snapshot() is None
    assert log.fault() is None
    assert appended(log) is None, "nothing is durable at once"
    assert log.end() == 0


def test_records_come_back_as_they_were(connect):
    log, reader = connect(), LogReader()
    log.start(0, reader)
    records = [record(b"\x00\xff" * 100, "schl\u00fcssel", b"\x80head"), record(b"", "", b""), record(b"{}", "m", b"1")]
    assert appended(log, *records) is None
    wait_for(lambda: len(reader.records()) >= 3, SECONDS)
    assert reader.records() == records
    assert reader.units[0].position >= 1
    assert log.end() == reader.units[-1].position


def test_two_logs_read_one_order_and_every_writer_finds_its_own(connect):
    logs, readers = [connect(), connect()], [LogReader(), LogReader()]
    for log, reader in zip(logs, readers, strict=True):
        log.start(0, reader)
    writers = [LogWriter(logs[number % 2], f"w{number}") for number in range(6)]

    def write(writer):
        for number in range(40):
            writer.append(1 + number % 3)

    threads = [threading.Thread(target=write, args=[writer]) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for writer in writers:
        writer.wait()
        assert not writer.errors
    total = sum(writer.sent for writer in writers)
    for reader in readers:
        wait_for(lambda reader=reader: len(reader.records()) >= total, SECONDS)
    assert readers[0].values() == readers[1].values()
    for writer in writers:
        assert writer.of(readers[0].values()) == list(range(1, writer.sent + 1))
    positions = [unit.position for unit in readers[0].units]
    assert positions == sorted(set(positions))


def test_single_units_are_found(connect):
    log = connect()
    positions = fill(log, 4)
    assert [log.unit(position).records[0].value for position in positions] == [b"0", b"1", b"2", b"3"]
    assert log.unit(positions[-1] + 1) is None
    log.trim(positions[1])
    assert log.unit(positions[1]) is None
    assert log.unit(positions[2]).position == positions[2]


def test_a_reader_goes_on_after_a_position(connect):
    log, first, second = connect(), LogReader(), LogReader()
    positions = fill(log, 10)
    assert positions == sorted(set(positions))
    log.start(0, first)
    first.wait(b"9")
    other = connect()
    other.start(first.units[3].position, second)
    second.wait(b"9")
    assert second.units == first.units[4:]
    assert appended(log, record(b"last")) is None
    second.wait(b"last")
    assert second.values() == [b"4", b"5", b"6", b"7", b"8", b"9", b"last"]


def test_a_reader_that_blocks_misses_nothing(connect):
    log, reader, writer = connect(), LogReader(), None
    reader.gate.clear()
    log.start(0, reader)
    writer = LogWriter(log)
    for _ in range(300):
        writer.append(2)
    writer.wait()
    assert reader.units == []
    reader.gate.set()
    wait_for(lambda: len(reader.records()) >= 600, SECONDS)
    assert writer.of(reader.values()) == list(range(1, 601))


def test_a_log_does_not_start_where_it_has_nothing(connect):
    log = connect()
    positions = fill(log, 3)
    with pytest.raises(SharedLogError, match=f"ends at position {positions[-1]}"):
        log.start(positions[-1] + 5, LogReader())
    log.trim(positions[1])
    with pytest.raises(SharedLogError, match="starts"):
        connect().start(0, LogReader())
    reader = LogReader()
    log.start(positions[1], reader)
    reader.wait(b"2")
    assert reader.values() == [b"2"]


def test_trimming_keeps_positions(connect):
    log = connect()
    end = fill(log, 4)[-1]
    log.trim(end + 100)
    assert log.end() == end, "nothing is skipped"
    log.trim(end)
    assert log.end() == end
    reader = LogReader()
    log.start(end, reader)
    assert appended(log, record(b"next")) is None
    reader.wait(b"next")
    assert [unit.position for unit in reader.units] == [end + 1]


def test_snapshots_are_found_when_they_are_whole(connect):
    log, other = connect(), connect()
    log.write_snapshot(3, [b"a" * 1000, b"b", b""])
    head = other.newest_snapshot()
    assert head.position == 3
    assert list(other.read_snapshot(head)) == [b"a" * 1000, b"b", b""]

    def breaking():
        yield b"c"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        log.write_snapshot(9, breaking())
    assert other.newest_snapshot() == head, "half a snapshot is none"
    log.write_snapshot(7, [b"d"])
    other.write_snapshot(5, [b"e"])
    newest = other.newest_snapshot()
    assert newest.position == 7, "the highest position, not the last one written"
    assert list(log.read_snapshot(newest)) == [b"d"]


def test_trimming_drops_all_snapshots_but_the_newest(connect):
    log = connect()
    log.write_snapshot(1, [b"old"])
    old = log.newest_snapshot()
    log.write_snapshot(2, [b"new", b"er"])
    log.trim(0)
    newest = log.newest_snapshot()
    assert newest.position == 2
    assert list(log.read_snapshot(newest)) == [b"new", b"er"]
    with pytest.raises(SharedLogError, match=r"gone|not whole"):
        list(log.read_snapshot(old))
    log.write_snapshot(2, [])
    assert list(log.read_snapshot(log.newest_snapshot())) == []


def test_a_record_that_is_too_large_fails_alone(connect):
    log, reader, outcomes = connect(), LogReader(), []
    log.start(0, reader)
    log.append([record(b"before")], outcomes.append)
    log.append([record(b"x" * log.most_bytes)], outcomes.append)
    log.append([record(b"after")], outcomes.append)
    wait_for(lambda: len(outcomes) == 3, SECONDS)
    errors = [error for error in outcomes if error is not None]
    assert len(errors) == 1
    assert f"{log.most_bytes:,}" in str(errors[0])
    reader.wait(b"after")
    assert reader.values() == [b"before", b"after"]
    with pytest.raises(SharedLogError, match=f"{log.most_bytes:,}"):
        log.write_snapshot(1, [b"x" * (log.most_bytes + 1)])


def test_records_of_the_largest_size_and_appends_of_many(connect):
    log, reader = connect(), LogReader()
    log.start(0, reader)
    large = [record(bytes([number]) * (log.most_bytes - 1)) for number in range(3)]
    assert appended(log, *large) is None
    many = [record(b"%d" % number) for number in range(5_000)]
    assert appended(log, *many) is None
    wait_for(lambda: len(reader.records()) == 5_003, SECONDS)
    assert reader.records() == [*large, *many]


def test_appends_that_wait_fail_when_the_log_is_closed(connect, engines):
    log = connect(patience=60)
    assert appended(log, record(b"1")) is None
    outcomes = []
    engines.kill()
    try:
        for number in range(5):
            log.append([record(b"%d" % number)], outcomes.append)
        log.close()
        wait_for(lambda: len(outcomes) == 5, 10)
        assert all("closed" in str(error) for error in outcomes)
    finally:
        engines.start()
    log.append([record(b"6")], outcomes.append)
    assert "closed" in str(outcomes[-1])
    log.close()


def test_appends_fail_after_a_time_and_the_log_goes_on(connect, engines):
    log, reader = connect(patience=3.0, timeout=4.0), LogReader()
    log.start(0, reader)
    assert appended(log, record(b"1")) is None
    engines.kill()
    try:
        assert appended(log, record(b"2")) is not None
        wait_for(log.fault, SECONDS)
        with pytest.raises(SharedLogError):
            log.end()
    finally:
        engines.start()
    wait_for(lambda: log.fault() is None, SECONDS)
    wait_for(lambda: appended(log, record(b"3")) is None, SECONDS)
    reader.wait(b"3")
    seen = [value for value in reader.values() if value != b"3"]
    assert seen in ([b"1"], [b"1", b"2"]), "one that failed may be there, but not after a later one"


def test_nothing_acknowledged_is_lost_when_the_engine_is_killed(connect, engines):
    logs, readers = [connect(patience=SECONDS), connect(patience=SECONDS)], [LogReader(), LogReader()]
    for log, reader in zip(logs, readers, strict=True):
        log.start(0, reader)
    writers = [LogWriter(log, f"w{number}") for number, log in enumerate(logs)]
    stop = threading.Event()

    def write(writer):
        while not stop.is_set():
            writer.append(2)
            time.sleep(0.002)

    threads = [threading.Thread(target=write, args=[writer]) for writer in writers]
    for thread in threads:
        thread.start()
    for number in range(engines.kills + 1):
        enough = [len(writer.sure) + 50 for writer in writers]
        wait_for(lambda enough=enough: all(len(one.sure) > n for one, n in zip(writers, enough, strict=True)), SECONDS)
        if number < engines.kills:
            engines.kill()
            engines.start()
    stop.set()
    for thread in threads:
        thread.join()
    for writer in writers:
        writer.wait()
        assert not writer.errors
    for reader in readers:
        wait_for(lambda reader=reader: len(set(reader.values())) >= sum(one.sent for one in writers), SECONDS)
    assert readers[0].units == readers[1].units
    positions = [unit.position for unit in readers[0].units]
    assert positions == list(range(1, len(positions) + 1)), "no gap, and no unit twice"
    for writer in writers:
        numbers = writer.of(readers[0].values())
        assert list(dict.fromkeys(numbers)) == list(range(1, writer.sent + 1)), "in order, but for repetitions"
    late = LogReader()
    connect().start(0, late)
    wait_for(lambda: len(late.units) == len(positions), SECONDS)
    assert late.units == readers[0].units
