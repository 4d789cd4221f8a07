"""`contrada serve` in a process of its own, and a proxy that cuts connections."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError

import pytest

KEY = "test-key-0123456789abcdef0123456789abcdef"
START_SECONDS = 600.0  # a cold cache of kernels is compiled first


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


class ServerProcess:
    """A server with a directory of state; it can be killed and started again on the same port."""

    def __init__(self, directory: Path, *flags: str, key: str = KEY) -> None:
        self.state, self.key, self._flags = directory / "state", key, flags
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = directory / "serve.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._process is not None
        return self._process.pid

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which clients find the server."""
        return {"CONTRADA_URL": self.url, "CONTRADA_KEY": self.key}

    def start(self, wait: bool = True) -> None:
        """Start the process and wait until it is ready."""
        command = [sys.executable, "-m", "contrada.cli.main", "serve", "--port", str(self.port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--state", str(self.state), *self._flags],
                env={**os.environ, "CONTRADA_ADMIN_KEY": self.key},
                stdout=log,
                stderr=log,
            )
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until the server takes messages."""
        assert self._process is not None
        end = time.monotonic() + START_SECONDS
        while True:
            assert self._process.poll() is None, f"the server ended\n{self.log()}"
            assert time.monotonic() < end, f"the server is not ready\n{self.log()}"
            with suppress(URLError, OSError), urllib.request.urlopen(f"{self.url}/ready", timeout=5):
                return
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill the process as a crash does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """Ask the process to end; return its exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server does not end\n{self.log()}") from None

    def log(self) -> str:
        """Return what the server said."""
        return self._log.read_text()


@contextmanager
def serving(directory: Path, *flags: str) -> Iterator[ServerProcess]:
    """Run a server while a block runs."""
    server = ServerProcess(directory, *flags)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all tests that kill none; each uses keys and subscribers of its own."""
    with serving(tmp_path_factory.mktemp("serve")) as found:
        yield found


class CuttingProxy:
    """A TCP proxy that closes each connection, both ways, after some bytes of the answers; `cuts` yields their numbers.

    Once there are no more numbers, it cuts no more.
    """

    def __init__(self, port: int, cuts: Iterable[int]) -> None:
        self._target, self._left = port, iter(cuts)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *error: object) -> None:
        _close(self._listener)
        for one in list(self._open):
            _close(one)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            self._open |= {client, server}
            self._start(client, server, None)
            self._start(server, client, next(self._left, None))

    def _start(self, source: socket.socket, sink: socket.socket, left: int | None) -> None:
        self._threads.append(threading.Thread(target=self._pump, args=(source, sink, left), daemon=True))
        self._threads[-1].start()

    def _pump(self, source: socket.socket, sink: socket.socket, left: int | None) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if left is not None:
                    sink.sendall(data[:left])
                    left -= len(data)
                    if left <= 0:
                        self.cuts += 1
                        break
                else:
                    sink.sendall(data)
        _close(source)
        _close(sink)
        self._open -= {source, sink}


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
