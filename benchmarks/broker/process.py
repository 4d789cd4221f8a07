"""A server of `contrada serve` as a process of its own: start, requests of the control plane, cost, stop."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from benchmarks.broker.work import TEMPLATE, Workload

KEY = "benchmark-admin-key"
SERVE = ("-m", "contrada_command", "serve")
SLOW_DISK = ("-m", "benchmarks.broker.slow_disk")


class ServerProcess:
    """A running server with its state in a directory; `command` runs it if it is not `contrada serve`."""

    def __init__(
        self, state: Path, command: tuple[str, ...] = SERVE, *flags: str, variables: Mapping[str, str] = {}
    ) -> None:
        environment = {**os.environ, "CONTRADA_ADMIN_KEY": KEY, **variables}
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, *command, "--port", "0", "--state", str(state), *flags],
            env=environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if found := re.search(r"ready on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise SystemExit("the server did not start: " + "".join(said[-20:]))
        os.set_blocking(self._process.stderr.fileno(), False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Send a signal and wait for the end; return the seconds that it took."""
        start = time.perf_counter()
        if self._process.poll() is None:
            self._process.send_signal(number)
        self._process.wait(60)
        return time.perf_counter() - start

    def cpu(self) -> float:
        """Return the seconds of processor time so far."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def memory(self) -> float:
        """Return the resident memory in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024 / 1e6

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Any:
        """Send a request; return the decoded answer, which must be one of success."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body, {"Authorization": f"Bearer {KEY}", "Content-Type": kind})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {data[:500]!r}")
        return json.loads(data) if "json" in answer.headers.get("Content-Type", "") else data

    def load(self, workload: Workload, owners: int | None = None, query: str = "", size: int = 20_000) -> float:
        """Upload all subscriptions, as those of so many owners; return the seconds that it took.

        `query` has further parameters of the upload, `size` is the number of subscriptions in a request.
        """
        uploads = list(workload.uploads(owners, size))
        start = time.perf_counter()
        path = f"/subscriptions?template={quote(TEMPLATE)}{query}"
        count = sum(self.ask("POST", path, body, "application/vnd.apache.parquet")["count"] for body in uploads)
        seconds = time.perf_counter() - start
        if count != workload.count:
            raise SystemExit(f"{count:,} of {workload.count:,} subscriptions were taken")
        return seconds
