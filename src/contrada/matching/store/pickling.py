"""Convert a saved table to bytes and back, for pickle and copy: its files in one uncompressed tar archive."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def packed_bytes(save: Callable[[Path], None]) -> bytes:
    """Return the directory that `save` writes, as bytes."""
    with tempfile.TemporaryDirectory(prefix="contrada-pickle-") as temporary:
        save(Path(temporary) / "table")
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            archive.add(Path(temporary) / "table", "table")
        return stream.getvalue()


def opened_bytes(data: bytes, open: Callable[[Path], T]) -> T:
    """Call `open` on the directory in `data`; mapped files stay readable after the directory is deleted."""
    with tempfile.TemporaryDirectory(prefix="contrada-pickle-") as temporary:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(temporary, filter="data")
        return open(Path(temporary) / "table")
