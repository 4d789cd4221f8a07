"""Lines for a slow reader wait up to a limit and are then dropped with a complaint; complaints are few."""

import io
import os
import threading

from contrada.overlay.complaints import COMPLAINT_INTERVAL_SECONDS, MAX_KINDS, Complaints
from contrada.overlay.outlet import Outlet, writer_to


class Slow:
    """A writer that waits until it may write."""

    def __init__(self):
        self.may, self.entered, self.found = threading.Event(), threading.Event(), []

    def __call__(self, line):
        self.entered.set()
        assert self.may.wait(60)
        self.found.append(line)


def test_a_slow_reader_holds_nobody_up_and_loses_only_what_is_beyond_the_limit(limited):
    limited(output_bytes=100)
    slow, complaints = Slow(), []
    outlet = Outlet(slow, complain=complaints.append)
    assert outlet.put("0" * 9)
    assert slow.entered.wait(60)
    taken = [outlet.put(str(k) * 9) for k in range(1, 20)]  # lines of 10 bytes or more, while one is being written
    assert taken[:9] == [True] * 9
    assert not any(taken[9:])
    assert len(complaints) == 10
    assert "CONTRADA_MAX_OUTPUT_BYTES" in complaints[0]
    slow.may.set()
    assert outlet.close(60) == 0
    assert slow.found == [str(k).encode() * 9 + b"\n" for k in range(10)]


def test_one_line_may_be_longer_than_the_limit(limited):
    limited(output_bytes=100)
    found = []
    outlet = Outlet(found.append)
    assert outlet.put("a" * 500)
    assert outlet.close(60) == 0
    assert len(found[0]) == 501


def test_lines_that_are_not_written_are_counted():
    slow = Slow()
    outlet = Outlet(slow)
    outlet.put("a")
    assert slow.entered.wait(60)
    outlet.put("b")
    assert outlet.close(0.01) == 2
    slow.may.set()
    assert not outlet.put("c")


def test_a_writer_that_fails_is_told_of_once():
    failures, done = [], threading.Event()

    def fail(line):
        raise BrokenPipeError("nobody reads")

    def failed(error):
        failures.append(error)
        done.set()

    outlet = Outlet(fail, failed)
    outlet.put("a")
    assert done.wait(60)
    assert not outlet.put("b")
    assert outlet.close(60) == 0
    assert [type(error) for error in failures] == [BrokenPipeError]


def test_more_than_a_pipe_holds_is_written_whole():
    here, there = os.pipe()
    with os.fdopen(here, "rb") as pipe, os.fdopen(there, "w") as stream:
        outlet = Outlet(writer_to(stream))
        outlet.put("x" * 200_000)
        assert pipe.read(200_001) == b"x" * 200_000 + b"\n"
        outlet.close(60)


def test_a_stream_that_is_no_file_of_the_system_is_written_to():
    stream = io.StringIO()
    outlet = Outlet(writer_to(stream))
    outlet.put("Köln")
    assert outlet.close(60) == 0
    assert stream.getvalue() == "Köln\n"


def test_complaints_of_many_kinds_are_bounded():
    shown, now = [], [0.0]
    complain = Complaints(shown.append, lambda: now[0])
    for k in range(26 * 26):
        complain(f"{chr(97 + k // 26)}{chr(97 + k % 26)} is wrong")
    assert len(shown) == MAX_KINDS + 1, "kinds beyond the limit are one"
    now[0] = COMPLAINT_INTERVAL_SECONDS
    complain("something new")
    assert shown[-1] == "something new"


def test_what_was_held_back_is_shown_at_the_end():
    shown = []
    complain = Complaints(shown.append, lambda: 0.0)
    for port in range(5):
        complain(f"port {port}")
    complain.close()
    assert shown == ["port 0", "port 4 (and 3 more like it)"]
