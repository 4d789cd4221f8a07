"""`contrada serve` as a process of its own, which a test can kill at any moment and start again on the same state."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ADMIN = "process-admin-key"
START_SECONDS = 120.0  # that a busy machine may take


class Served:
    """A server on one port and one directory of state; `start` and `kill` may follow one another for ever.

    `variables` are added to those of the environment.
    """

    def __init__(self, state: Path, *flags: str, variables: Mapping[str, str] = {}) -> None:
        self.state, self.log = state, state.parent / f"{state.name}.log"
        self._flags, self._variables = flags, variables
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port: int = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The running process."""
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """Start the server; it is not ready yet."""
        command = [sys.executable, "-m", "contrada_command", "serve", "--port", str(self.port)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--state", str(self.state), *self._flags],
                env={**os.environ, "CONTRADA_ADMIN_KEY": ADMIN, **self._variables},
                stdout=log,
                stderr=log,
            )

    def wait_until_ready(self) -> None:
        """Wait until the server takes messages."""
        stop = time.monotonic() + START_SECONDS
        while time.monotonic() < stop and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/ready", timeout=5):
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.02)
        raise RuntimeError(f"the server is not ready ({self.process.poll()}): {self.log.read_text()[-2000:]}")

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send the process a signal that ends it, and wait for its end."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(START_SECONDS)

    def resident(self) -> int:
        """Return the bytes of memory that the process holds (Linux)."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@contextmanager
def served(state: Path, *flags: str) -> Iterator[Served]:
    """Run a server until the block ends, whatever happens in it."""
    server = Served(state, *flags)
    try:
        server.start()
        server.wait_until_ready()
        yield server
    finally:
        server.end()
