"""All doors, and the reasons why some entry points are none."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain, repeat

import contrada as ct
from contrada.formats.records import FORMATS
from hostile.arguments import argument_doors, entry_points, reason_for
from hostile.command_doors import command_doors
from hostile.file_doors import file_doors
from hostile.geometries import geometry_doors
from hostile.language_doors import language_doors
from hostile.overlay_doors import overlay_doors
from hostile.registry import Door
from hostile.saved_doors import saved_doors

# A door that misbehaves on demand: whatever the runner is to notice must be noticed.
MISBEHAVIOURS: dict[str, Callable[[], object]] = {
    "answer": lambda: "answer",
    "refuse": lambda: ct.parse("("),
    "raise": lambda: {}["raise"],
    "crash": lambda: ctypes.string_at(0),
    "spin": lambda: deque(repeat(0), maxlen=0),
    "memory": lambda: len(bytearray(1100 << 20)),
    "exhaust": lambda: bytearray(1 << 40),
}
GOOD = {"answer": "answer", "refuse": "refuse"}
SELF_TEST = Door("self test", (), lambda what: MISBEHAVIOURS[what](), lambda: GOOD, 0)
DOORS: dict[str, Door] = {
    door.name: door
    for door in chain(
        argument_doors().values(), geometry_doors(), language_doors(), file_doors(), saved_doors(), overlay_doors(),
        command_doors(), (SELF_TEST,),
    )
}  # fmt: skip

SPARK = "runs on Spark, whose jobs are tested in tests/pipeline; the readers that it calls are doors of their own"


def uncovered(formats: Iterable[str] = FORMATS) -> dict[str, str]:
    """Entry points with neither a door nor a reason; `formats` are those that readers have."""
    covered = {entry for door in DOORS.values() for entry in door.entries}
    left = {entry: value for entry, value in entry_points(formats).items() if entry not in covered}
    return {entry: "no corpus" for entry, value in left.items() if not _reason(entry, value)}


def _reason(entry: str, value: object) -> str | None:
    if entry.startswith("pipeline."):
        return SPARK
    return reason_for(entry, value) if entry.partition(".")[0] in ct.__all__ else None
