"""Write lines of JSON as chunks: in script files beside a page, or within the page if they are small.

A chunk of name `items` and number 3 is the file `items-00003.js` with the text `contradaChunk("items",3,[...])`. A
script element loads it, also in a page opened from `file://`, which may fetch nothing.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from contrada.errors import ContradaError

MAX_CHUNK_BYTES = 1_000_000
MAX_EMBEDDED_BYTES = 3_000_000  # all chunks together, to be part of the page
CHUNK_FILE = re.compile(r"[a-z]+-\d{5,}\.js")


class ChunkFolder:
    """A folder of chunks that replaces the chunks of an earlier report when it is complete.

    Chunks are written to a folder beside it. `embedded` returns all of them and leaves no folder, if they are small.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._draft = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        self.starts: dict[str, list[int]] = {}
        self.total_bytes = 0

    def __enter__(self) -> Self:
        shutil.rmtree(self._draft, ignore_errors=True)
        self._draft.mkdir(parents=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._draft, ignore_errors=True)

    def writer(self, name: str, max_lines: int, max_bytes: int = MAX_CHUNK_BYTES) -> ChunkWriter:
        """Return a writer of the chunks of one name."""
        self.starts[name] = [0]
        return ChunkWriter(self, name, max_lines, max_bytes)

    def write(self, name: str, body: str, lines: int) -> None:
        """Write the next chunk of `name`: `body` is its lines, with commas between them."""
        starts = self.starts[name]
        text = f'contradaChunk("{name}",{len(starts) - 1},[{body}])\n'
        (self._draft / f"{name}-{len(starts) - 1:05}.js").write_text(text, encoding="ascii")
        starts.append(starts[-1] + lines)
        self.total_bytes += len(text)

    def embedded(self, most: int = MAX_EMBEDDED_BYTES) -> str | None:
        """Return all chunks as one script if they have at most `most` bytes; None if they are larger."""
        if self.total_bytes > most:
            return None
        return "".join(path.read_text(encoding="ascii") for path in sorted(self._draft.iterdir()))

    def keep(self) -> None:
        """Replace the folder by the new chunks."""
        self.remove()
        if self.folder.exists():
            raise ContradaError(f"{self.folder} has other files; move them, or write the report to another path")
        self._draft.rename(self.folder)

    def remove(self) -> None:
        """Remove the folder of an earlier report, if there is one; a folder with other files is left with these."""
        if not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            if CHUNK_FILE.fullmatch(path.name):
                path.unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()


class ChunkWriter:
    """Collect lines into chunks of at most `max_lines` lines and about `max_bytes` bytes."""

    def __init__(self, folder: ChunkFolder, name: str, max_lines: int, max_bytes: int) -> None:
        self._folder, self._name, self._max_lines, self._max_bytes = folder, name, max_lines, max_bytes
        self._lines: list[str] = []
        self._bytes = 0

    def add(self, lines: Iterable[str]) -> None:
        """Add lines; a chunk is written as soon as it is full."""
        for line in lines:
            if self._lines and (len(self._lines) >= self._max_lines or self._bytes + len(line) > self._max_bytes):
                self.close()
            self._lines.append(line)
            self._bytes += len(line) + 1

    def close(self) -> None:
        """Write the lines that are left."""
        if self._lines:
            self._folder.write(self._name, ",\n".join(self._lines), len(self._lines))
        self._lines, self._bytes = [], 0
