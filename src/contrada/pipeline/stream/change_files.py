"""Reads the changes of one file from standard input and writes them as lines of JSON; `changes.read_apart` runs it."""

from __future__ import annotations

import io
import json
import sys

from contrada.pipeline.stream.apart import limit_memory, with_memory_limit
from contrada.pipeline.stream.changes import Change, read_changes


def main(source: str) -> None:
    """Write a line for each record, as soon as it is read: if this process ends, those before it are kept."""
    limit_memory()
    for item in read_changes(io.BytesIO(sys.stdin.buffer.read()), source):
        kind = "change" if isinstance(item, Change) else "rejected"
        told = item if isinstance(item, Change) else item._replace(reason=with_memory_limit(item.reason))
        sys.stdout.write(json.dumps([kind, list(told)]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
