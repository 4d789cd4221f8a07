"""Readers and writers of a shared log, which note what they saw."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from console import wait_for
from contrada.service.shared_log.shared_log import LogRecord, LogUnit, SharedLog, SharedLogError

SECONDS = 120.0  # that an engine may take to come back


class LogReader:
    """Collects units; `gate` blocks it while it is not set."""

    def __init__(self) -> None:
        self.units: list[LogUnit] = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, units: Sequence[LogUnit]) -> None:
        self.gate.wait()
        self.units.extend(units)

    def records(self) -> list[LogRecord]:
        """Return all records so far."""
        return [record for unit in self.units for record in unit.records]

    def values(self) -> list[bytes]:
        """Return their values."""
        return [record.value for record in self.records()]

    def wait(self, value: bytes, seconds: float = SECONDS) -> None:
        """Wait for a record that has a value."""
        wait_for(lambda: value in self.values()[-2_000:], seconds, lambda: f"{len(self.units)} units")


class LogWriter:
    """Appends records through one log; `sure` are the values that were acknowledged, `errors` what failed."""

    def __init__(self, log: SharedLog, name: str = "w") -> None:
        self._log, self._name = log, name
        self.sure: list[bytes] = []
        self.errors: list[SharedLogError] = []
        self.sent = 0

    def append(self, count: int = 1) -> None:
        """Append records in one call; their values are `name number`, from 1 on."""
        values = [f"{self._name} {self.sent + number}".encode() for number in range(1, count + 1)]
        self.sent += count

        def done(error: SharedLogError | None) -> None:
            if error is None:
                self.sure.extend(values)
            else:
                self.errors.append(error)

        self._log.append([LogRecord("m", b"head " + value, value) for value in values], done)

    def wait(self, seconds: float = SECONDS) -> None:
        """Wait until every append has an answer."""
        wait_for(lambda: len(self.sure) + len(self.errors) >= self.sent, seconds, lambda: f"{self._log.fault()}")

    def of(self, values: Sequence[bytes]) -> list[int]:
        """Return the numbers of this writer's records, as a log has them."""
        mine = f"{self._name} ".encode()
        return [int(value[len(mine) :]) for value in values if value.startswith(mine)]


def appended(log: SharedLog, *records: LogRecord) -> SharedLogError | None:
    """Append records in one call, wait, and return the outcome."""
    outcomes: list[SharedLogError | None] = []
    log.append(list(records), outcomes.append)
    wait_for(lambda: outcomes, SECONDS, lambda: f"{log.fault()}")
    return outcomes[0]
