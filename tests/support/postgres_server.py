"""A PostgreSQL server of our own for tests, in a temporary directory, that can be killed as by a power switch."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

BINARIES = os.environ.get("CONTRADA_POSTGRES_BIN")  # a directory with initdb and postgres
UNPRIVILEGED = "nobody"  # PostgreSQL refuses to run as root
OPTIONS = {"listen_addresses": "", "shared_buffers": "16MB", "max_connections": "40", "log_min_messages": "fatal"}
SECONDS = 60.0  # until a server is up or gone


def missing() -> str:
    """Return why no server can be started; an empty text if one can."""
    if shutil.which("initdb", path=BINARIES) and shutil.which("postgres", path=BINARIES):
        return ""
    return "no initdb and postgres: put them on PATH or name their directory in CONTRADA_POSTGRES_BIN"


class PostgresServer:
    """A server that listens on a socket in its directory."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket has at most 107 bytes
        self._data = self._directory / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        if os.geteuid() == 0:
            shutil.chown(self._directory, UNPRIVILEGED)
        try:
            command = ["initdb", "-D", str(self._data), "-U", "contrada", "-A", "trust", "-E", "UTF8", "--no-locale"]
            done = self._start_program(command)
            output = done.communicate(timeout=SECONDS)[0].decode(errors="replace")
            assert done.returncode == 0, output
            self.start()
        except BaseException:
            self.close()
            raise

    def _start_program(self, command: list[str]) -> subprocess.Popen[bytes]:
        program = shutil.which(command[0], path=BINARIES)
        assert program is not None
        user = UNPRIVILEGED if os.geteuid() == 0 else None
        return subprocess.Popen(
            [program, *command[1:]],
            cwd=self._directory,
            user=user,
            extra_groups=[] if user else None,
            stdout=subprocess.PIPE if command[0] == "initdb" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database."""
        return f"postgresql://contrada@/{database}?host={self._directory}"

    def new_database(self) -> str:
        """Make a database; return its URL."""
        self._databases += 1
        name = f"d{self._databases}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, statement: str, url: str | None = None) -> list[tuple[object, ...]]:
        """Run a statement as administrator; return its rows, if it has any."""
        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def start(self, **options: str) -> None:
        """Start the server and wait until it answers."""
        settings = [f"--{name}={value}" for name, value in {**OPTIONS, **options}.items()]
        self._process = self._start_program(["postgres", "-D", str(self._data), "-k", str(self._directory), *settings])
        end = time.monotonic() + SECONDS
        while True:
            try:
                self.execute("SELECT 1")
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, "the server ended"
                assert time.monotonic() < end, "the server does not answer"
                time.sleep(0.02)

    def kill(self) -> None:
        """Kill all processes of the server at once."""
        process = self._process
        assert process is not None
        process.send_signal(signal.SIGSTOP)  # it starts no process while they are listed
        listed = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False)
        children = [int(pid) for pid in listed.stdout.split()]
        for pid in (process.pid, *children):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        end = time.monotonic() + SECONDS
        while any(map(_is_running, children)):
            assert time.monotonic() < end, "processes of the server are still there"
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop the server; open connections are cut."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            finally:
                self._process = None

    def close(self) -> None:
        """Stop the server and remove its files."""
        self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


def _is_running(pid: int) -> bool:
    """Return False for a process that has ended, even if nobody has asked yet how."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
