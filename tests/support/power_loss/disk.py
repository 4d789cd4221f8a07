"""A model of a disk behind a cache: what was synchronised stays; of everything else, any part may be there.

- A file keeps the content of its last fsync. Each 512-byte sector may also have any content that was written since.
- A change of the length since then may have happened or not.
- A file, a directory or a removal counts for sure after an fsync of the directory above it.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

from power_loss.recording import Call

SECTOR = 512


class Piece(NamedTuple):
    """A part of a file that was written, or a new length if `data` is None; either reaches the disk as a whole."""

    offset: int
    data: bytes | None


class DiskFile:
    """A file: what is on the disk for sure, and what was done since."""

    def __init__(self) -> None:
        self.synchronised = bytearray()
        self.since: list[Piece] = []

    def write(self, offset: int, data: bytes) -> None:
        """Note a write, by sectors."""
        start = 0
        while start < len(data):
            stop = min(len(data), start + SECTOR - (offset + start) % SECTOR)
            self.since.append(Piece(offset + start, data[start:stop]))
            start = stop

    def synchronise(self) -> None:
        """Make everything certain."""
        for piece in self.since:
            _apply(piece, self.synchronised)
        self.since = []

    def content(self, chance: float, draw: random.Random) -> bytearray:
        """Return a content after a cut, with each uncertain piece by chance."""
        content = bytearray(self.synchronised)
        for piece in self.since:
            if draw.random() < chance:
                _apply(piece, content)
        return content


def _apply(piece: Piece, content: bytearray) -> None:
    content.extend(bytes(max(0, piece.offset - len(content))))
    if piece.data is None:
        del content[piece.offset :]
    else:
        content[piece.offset : piece.offset + len(piece.data)] = piece.data


class Disk:
    """The files and directories below a directory, which is there for sure."""

    def __init__(self, below: Path) -> None:
        self._below = str(below)
        self._names: dict[str, DiskFile | None] = {}  # as the process sees them; None is a directory
        self._certain: dict[str, DiskFile | None] = {}
        self._since: list[tuple[str, bool, DiskFile | None]] = []  # path, whether it is there, file

    def apply(self, call: Call) -> None:
        """Note a call of the process."""
        path = call.path
        if call.kind in ("c", "d"):
            file = self._names[path] = DiskFile() if call.kind == "c" else None
            self._since.append((path, True, file))
        elif call.kind == "u":
            self._since.append((path, False, self._names.pop(path)))
        elif call.kind == "s" and self._names.get(path) is None:
            self._synchronise_directory(path)
        elif call.kind != "p":
            file = self._names[path]
            assert file is not None, path
            if call.kind == "w":
                file.write(call.offset, call.data)
            elif call.kind == "t":
                file.since.append(Piece(call.offset, None))
            else:
                file.synchronise()

    def _synchronise_directory(self, path: str) -> None:
        inside = [change for change in self._since if change[0].rpartition("/")[0] == path]
        self._since = [change for change in self._since if change not in inside]
        for change in inside:
            _rename(self._certain, *change)

    def rebuild(self, target: Path, draw: random.Random) -> None:
        """Write below `target` what a disk may hold if the power is cut now."""
        chance = draw.choice([0.0, 0.0, 1.0, 0.1, 0.5, 0.9])
        names = dict(self._certain)
        for change in self._since:
            if draw.random() < chance:
                _rename(names, *change)
        target.mkdir(parents=True)
        for path, file in sorted(names.items()):
            place = target / path[len(self._below) + 1 :]
            if not place.parent.exists():
                continue  # lost with its directory
            if file is None:
                place.mkdir()
            else:
                place.write_bytes(file.content(chance, draw))


def _rename(names: dict[str, DiskFile | None], path: str, is_there: bool, file: DiskFile | None) -> None:
    if is_there:
        names[path] = file
    elif names.get(path) is file:
        names.pop(path, None)
