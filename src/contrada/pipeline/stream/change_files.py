"""Read the changes of one file from standard input, write them as JSON lines; run by `changes.read_apart`."""

from __future__ import annotations

import io
import json
import sys

from contrada.pipeline.stream.apart import limit_memory, with_memory_limit
from contrada.pipeline.stream.changes import Change, read_changes


def main(source: str) -> None:
    """Write each record as soon as it is read: if this process crashes, the earlier records are kept."""
    limit_memory()
    for item in read_changes(io.BytesIO(sys.stdin.buffer.read()), source):
        told = item if isinstance(item, Change) else item._replace(reason=with_memory_limit(item.reason))
        print(json.dumps(["change" if isinstance(item, Change) else "rejected", *told]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
