"""List the files of a batch from the checkpoint of Spark's file source, including empty and missing files.

`offsets/<batch>` ends with the last log entry of the batch; `sources/0/<entry>` lists files, one line of JSON each.
Every tenth entry is `<entry>.compact`, which repeats the files of all entries before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from contrada.errors import TableError
from contrada.pipeline.storage import Storage

LOG = "sources/0"
COMPACT = ".compact"


def files_of_batch(checkpoint: Storage, number: int) -> list[str]:
    """Return the URIs of the files of a batch; a checkpoint without them is a TableError."""
    first = _last_entry(checkpoint, number - 1) + 1 if number else 0
    names = checkpoint.names(LOG)
    found: dict[str, None] = {}
    for entry in range(first, _last_entry(checkpoint, number) + 1):
        name = _name_of(names, entry)
        if name is None:
            raise TableError(f"{checkpoint.where}/{LOG} has no entry {entry}, needed by batch {number}")
        found |= {line["path"]: None for line in _lines(checkpoint, f"{LOG}/{name}") if line["batchId"] == entry}
    return list(found)


def _name_of(names: list[str], entry: int) -> str | None:
    """Return the name of the file that holds an entry: its own, or the next compact one."""
    if str(entry) in names:
        return str(entry)
    compact = [int(name.removesuffix(COMPACT)) for name in names if name.endswith(COMPACT)]
    later = [number for number in compact if number >= entry]
    return f"{min(later)}{COMPACT}" if later else None


def _last_entry(checkpoint: Storage, number: int) -> int:
    *_, last = _lines(checkpoint, f"offsets/{number}")
    if not isinstance(last.get("logOffset"), int):
        raise TableError(
            f"{checkpoint.where}/offsets/{number}: the last line is not an offset of a file source: {str(last)[:100]}"
        )
    return int(last["logOffset"])


def _lines(checkpoint: Storage, name: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a log file, after the line with its version."""
    data = checkpoint.read(name)
    if data is None:
        raise TableError(f"{checkpoint.where}/{name} is missing; it lists the files of a batch")
    try:
        for line in data.decode().splitlines()[1:]:
            yield dict(json.loads(line))
    except (ValueError, TypeError) as error:
        raise TableError(f"{checkpoint.where}/{name} is damaged: {error}") from error
