"""Write lines in a thread, so that a slow reader never blocks the sender."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO

from contrada.limits import limit, variable


class Outlet:
    """A queue of lines before a writer that may block; holds `output_bytes` (a limit) and drops lines beyond that.

    A thread writes the lines in order. If the writer fails, the thread calls `failed` once with the error and writes
    nothing more. `complain` is called when lines are dropped.

    >>> found = []
    >>> outlet = Outlet(found.append)
    >>> outlet.put("a"), outlet.put("b"), outlet.close(5.0)
    (True, True, 0)
    >>> found
    [b'a\\n', b'b\\n']
    """

    def __init__(
        self,
        write: Callable[[bytes], object],
        failed: Callable[[Exception], object] = lambda error: None,
        complain: Callable[[str], object] = lambda text: None,
    ) -> None:
        self._write, self._failed, self._complain = write, failed, complain
        self._lines: deque[bytes] = deque()
        self._bytes = 0  # of lines not yet written, including the one being written
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="contrada-outlet", daemon=True)
        self._thread.start()

    def put(self, text: str) -> bool:
        """Queue a line; return False if it is dropped, because too many bytes wait or the writer failed."""
        line = text.encode("utf-8", "surrogateescape") + b"\n"
        with self._changed:
            if self._ended:
                return False
            if self._bytes + len(line) <= limit("output_bytes") or not self._bytes:
                self._lines.append(line)
                self._bytes += len(line)
                self._changed.notify_all()
                return True
        self._complain(
            f"messages are dropped: the reader of the output is too slow, and {limit('output_bytes'):,} bytes wait;"
            f" the limit is {variable('output_bytes')}"
        )
        return False

    def close(self, seconds: float) -> int:
        """Wait up to `seconds` until all lines are written; return the number of lines that were not."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or not self._bytes, seconds)
            lost = len(self._lines) + bool(self._bytes and not self._ended)
            self._ended = True
            self._lines.clear()
            self._changed.notify_all()
            return lost

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._ended)
                if self._ended:
                    return
                line = self._lines.popleft()
            try:
                self._write(line)
            except Exception as error:  # any error must reach the caller's thread
                with self._changed:
                    self._ended, self._bytes = True, 0
                    self._changed.notify_all()
                self._failed(error)
                return
            with self._changed:
                self._bytes -= len(line)
                self._changed.notify_all()


def writer_to(stream: TextIO) -> Callable[[bytes], None]:
    """Return a function that writes whole byte strings to the target of a text stream.

    If the stream has a file descriptor, Python's buffers are bypassed: a thread blocked in one of them would abort the
    interpreter at exit.
    """
    stream.flush()
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError):  # in memory, or in a notebook
        return lambda data: print(data.decode("utf-8", "surrogateescape"), end="", file=stream, flush=True)

    def write(data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]

    return write
