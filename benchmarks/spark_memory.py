"""What memory the Python workers of a cluster on this machine took, watched while they live."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from spark_work import is_ours

PERIOD = 0.25  # seconds


class Peak(NamedTuple):
    """The most that a process had: bytes in memory, and bytes of addresses, which is what the limit speaks of."""

    resident: int
    addresses: int


class Watch:
    """Looks at the Python workers that come from this process, again and again; workers end, what they took is kept."""

    def __init__(self) -> None:
        self._peaks: dict[tuple[str, int], Peak] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def by_host(self) -> dict[str, Peak]:
        """The most that a Python worker of each host had."""
        found: dict[str, Peak] = {}
        for (host, _), peak in sorted(dict(self._peaks).items()):
            other = found.get(host, Peak(0, 0))
            found[host] = Peak(max(peak.resident, other.resident), max(peak.addresses, other.addresses))
        return found

    def _run(self) -> None:
        while not self._done.wait(PERIOD):
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit():
                    self._look(entry)

    def _look(self, entry: Path) -> None:
        """Note the peaks of a process if it is one of ours; the kernel keeps them as long as it lives."""
        try:
            if b"pyspark.daemon" not in (entry / "cmdline").read_bytes() or not is_ours(int(entry.name)):
                return
            host = re.search(r"/work-(\w+)/", os.readlink(entry / "cwd") + "/")
            lines = (entry / "status").read_text().splitlines()
        except OSError:  # it ended meanwhile
            return
        sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines if line.startswith("Vm")}
        if "VmHWM" in sizes and "VmPeak" in sizes:  # one that has ended and waits for its parent has none
            self._peaks[host[1] if host else "driver", int(entry.name)] = Peak(sizes["VmHWM"], sizes["VmPeak"])
