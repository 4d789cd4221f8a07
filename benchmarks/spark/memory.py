"""What memory the JVM and the Python workers on this machine take, now and at their peak."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import Row
from benchmarks.timing import Timed, measured, repeated

PERIOD = 0.25  # seconds
SIZES = ("peak", "its share now", "its own now")


class Peak(NamedTuple):
    """The most that a process had: bytes in memory, and bytes of addresses, which is what the limit speaks of."""

    resident: int
    addresses: int


def watched(call: Callable[[], Any], warm_up: Callable[[], Any]) -> tuple[Timed, dict[str, Peak]]:
    """Measure a call, and the most that a Python worker of each host had until then.

    Workers are looked at again and again: they end, and what they took is kept.
    """
    peaks: dict[str, Peak] = {}

    def look() -> None:
        for entry in our_processes():
            # One that has ended meanwhile has no files; one that waits for its parent has no sizes.
            with suppress(OSError, KeyError):
                if b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                    found = re.search(r"/work-(\w+)/", os.readlink(entry / "cwd") + "/")
                    host, sizes = found[1] if found else "driver", read_sizes(entry / "status")
                    now = Peak(sizes["VmHWM"], sizes["VmPeak"])
                    peaks[host] = Peak(*map(max, now, peaks.get(host, now)))

    with repeated(look, PERIOD):
        return measured(call, warm_up=warm_up), dict(sorted(peaks.items()))


def memory_rows(section: str, wanted: Sequence[str] = SIZES) -> Iterator[Row]:
    """Measure the memory of the JVM and of each Python worker; the daemon that starts workers is small and left out."""
    for entry in sorted(our_processes()):
        with suppress(OSError, KeyError):  # it ended meanwhile
            is_java = b"java" in (entry / "cmdline").read_bytes().split(b"\0")[0]
            peak, now = read_sizes(entry / "status")["VmHWM"], read_sizes(entry / "smaps_rollup")
            if int(entry.name) == os.getpid() or peak < 100 << 20:
                continue
            kind = "the JVM (driver and executor)" if is_java else "a Python worker"
            sizes = peak, now["Pss"], now["Private_Clean"] + now["Private_Dirty"]
            for what, size in zip(SIZES, sizes, strict=True):
                if what in wanted:
                    yield Row.alone(section, f"memory of {kind}, {what}", size / 2**20, "MiB")


def read_sizes(path: Path) -> dict[str, int]:
    """Return bytes by their names in a file of /proc."""
    return {name: int(size) << 10 for name, size in re.findall(r"(\w+):\s+(\d+) kB", path.read_text())}


def our_processes() -> Iterator[Path]:
    """Yield the folders in /proc of this process and of those that come from it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
    for pid in parents:
        above = pid
        while above > 1 and above != os.getpid():
            above = parents.get(above, 0)
        if above == os.getpid():
            yield Path(f"/proc/{pid}")
