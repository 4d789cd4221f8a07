"""Runs a program with recorder.c preloaded, and reads what it recorded."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_name("recorder.c")
HEADER = struct.Struct("<IIQQ")


class Call(NamedTuple):
    """A call that took effect; recorder.c lists the kinds."""

    kind: str
    path: str
    offset: int
    data: bytes


def missing() -> str:
    """Return why nothing can be recorded; an empty text if it can."""
    if not sys.platform.startswith("linux"):
        return "the recorder preloads the calls of Linux"
    return "" if shutil.which("gcc") else "no gcc, which compiles the recorder"


def compile_recorder(folder: Path) -> Path:
    """Return the compiled recorder."""
    library = folder / "recorder.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-lpthread"], check=True)
    return library


def record(recorder: Path, below: Path, *arguments: object) -> list[Call]:
    """Run Python with arguments; return its calls on files below a directory, and its output, in order."""
    target = below.with_name(below.name + ".calls")
    variables = {"LD_PRELOAD": str(recorder), "CONTRADA_RECORD_BELOW": str(below), "CONTRADA_RECORD_TO": str(target)}
    command = [sys.executable, "-B", *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    calls = list(read_calls(target.read_bytes()))
    printed = b"".join(call.data for call in calls if call.kind == "p")
    assert printed.decode() == done.stdout, "the recorder missed output of the process"
    return calls


def read_calls(data: bytes) -> Iterator[Call]:
    """Yield the calls of a recording."""
    place = 0
    while place < len(data):
        kind, path_length, offset, length = HEADER.unpack_from(data, place)
        middle = place + HEADER.size + path_length
        yield Call(chr(kind), data[place + HEADER.size : middle].decode(), offset, data[middle : middle + length])
        place = middle + length
