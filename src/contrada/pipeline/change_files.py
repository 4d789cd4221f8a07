"""Reads the changes of one file from standard input and writes them as lines of JSON; `changes.read_apart` runs it."""

from __future__ import annotations

import io
import json
import sys

from contrada.pipeline.changes import Change, read_changes


def main(source: str) -> None:
    """Write a line for each record, as soon as it is read: if this process ends, those before it are kept."""
    for item in read_changes(io.BytesIO(sys.stdin.buffer.read()), source):
        kind = "change" if isinstance(item, Change) else "rejected"
        sys.stdout.write(json.dumps([kind, list(item)]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
