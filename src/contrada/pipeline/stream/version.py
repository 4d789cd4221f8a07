"""A version of a stream's subscriptions, and its file: a compiled table, and the segments of changes after it."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

from contrada.errors import TableError
from contrada.pipeline import manifests
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.partitioned.partitions import PartitionedArtifact

Table = Artifact | PartitionedArtifact
# A table in partitions is named in the file of a version: its own manifest lists the partitions.
NAMED: dict[str, manifests.Check] = {
    "path": manifests.location,
    "digest": manifests.digest,
    "tables": manifests.list_of(manifests.digest),
}


class Version(NamedTuple):
    """The subscriptions at some time: a table, changes since, and the attributes that both test."""

    number: int
    artifact: Table
    segments: tuple[int, ...]  # versions whose changes are not in the table
    changes: int  # in these segments
    attributes: tuple[str, ...]
    subscriptions: int
    state: Any  # of the source of changes

    def text(self) -> bytes:
        """Return the version as JSON."""
        return json.dumps({**self._asdict(), "artifact": _saved(self.artifact)}).encode()


def digests_of(table: Table) -> set[str]:
    """Return the digests of all directories that a table consists of."""
    if isinstance(table, Artifact):
        return {table.digest}
    return {table.digest, table.router.digest, *(part.artifact.digest for part in table.partitions)}


def _saved(table: Table) -> dict[str, Any]:
    if isinstance(table, Artifact):
        return table._asdict()
    return {"path": table.path, "digest": table.digest, "tables": sorted(digests_of(table))}


def _table(about: Any) -> Table:
    if not isinstance(about, dict) or "tables" not in about:
        return Artifact.of(about)
    named = manifests.fields(about, NAMED)
    return _partitioned(named["path"], named["digest"])


@lru_cache(maxsize=4)
def _partitioned(path: str, digest: str) -> PartitionedArtifact:
    """Read the manifest of a table in partitions; it never changes."""
    found = PartitionedArtifact.read(path)
    if found.digest != digest:
        raise TableError(f"{path} has the digest {found.digest}, the version of the stream needs {digest}")
    return found


FIELDS: dict[str, manifests.Check] = {
    **dict.fromkeys(("number", "changes", "subscriptions"), manifests.count),
    "artifact": _table,
    "segments": manifests.list_of(manifests.count),
    "attributes": manifests.list_of(manifests.text),
    "state": manifests.anything,
}
