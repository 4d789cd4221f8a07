"""A program that writes through SqliteStore: `python -m power_loss.writer DIRECTORY SEED COUNT [careless]`.

After each change it prints "acknowledged N". With `careless` it writes the same without synchronising.
"""

from __future__ import annotations

import os
import random
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from contrada.service.store.message_store import StoreChange, StoredMessage
from contrada.service.store.sqlite import FILE, SqliteStore

KIND = "kind"


def mark(sequence: int) -> str:
    """Return the text with which the body of a message begins."""
    return f"<message {sequence:08}>"


def changes(seed: int, count: int) -> Iterator[StoreChange]:
    """Yield changes: messages of up to 20 kB, records that come and go, trims."""
    draw = random.Random(seed)
    sequence = total = 0
    for number in range(1, count + 1):
        change = StoreChange()
        for _ in range(draw.choice([0, 1, 1, 1, 2, 20])):
            sequence += 1
            body = mark(sequence).encode() + draw.randbytes(draw.choice([0, 100, 600, 600, 5_000, 20_000]))
            total += len(body)
            change.messages.append(StoredMessage(sequence, number, "t", str(sequence), "f", body, b"\0", total))
        for _ in range(draw.choice([0, 1, 5])):
            value = draw.choice([None, draw.randbytes(50), draw.randbytes(3_000)])
            change.records.append((KIND, str(draw.randrange(60)), value))
        if draw.random() < 0.05:
            change.trim = sequence - draw.randrange(300)
        yield change


class CarelessStore:
    """Writes like SqliteStore, but never waits for the disk."""

    def __init__(self, directory: Path) -> None:
        SqliteStore(directory).close()
        self._connection = sqlite3.connect(directory / FILE, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = OFF")

    def write(self, change: StoreChange) -> None:
        """Write messages."""
        self._connection.executemany("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", change.messages)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def main(directory: str, seed: str, count: str, *options: str) -> None:
    """Write changes and acknowledge each."""
    store = CarelessStore(Path(directory)) if options else SqliteStore(Path(directory))
    for number, change in enumerate(changes(int(seed), int(count)), 1):
        store.write(change)
        os.write(1, f"acknowledged {number}\n".encode())
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
