"""Stores of artifacts: who uses which artifact, when it was last used, and removal of old ones.

`<artifacts>/_uses/<digest>/<stream>.json` records that a stream uses an artifact, and names its checkpoint. A stream
writes the record before it opens the artifact, and then looks whether the artifact is still there. `prune_artifacts`
removes the manifest of an artifact, looks for new records, and puts the manifest back if there is one. So either the
stream has an artifact that stays, or it ends with an error at its start; no lock is needed, and no rename. A record is
void when its checkpoint is gone, or no version of the stream has the artifact any more.

Publishing an artifact again, and matching with it, count as use: its manifest is written again, with a new time.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from pyarrow import ArrowException

from contrada.errors import ContradaError, TableError
from contrada.pipeline import artifacts, manifests
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.partitioned import partitions
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.storage import UNFINISHED_PREFIX, Storage
from contrada.tracking.durations import Duration, duration_ms

USES = "_uses"
STREAM_MARK = "stream.json"  # of a checkpoint, beside its versions
TABLE, PARTITIONED, UNFINISHED = "table", "partitioned", "unfinished"
MANIFESTS = {artifacts.ABOUT: TABLE, partitions.ABOUT: PARTITIONED}
MIN_RECORD_SECONDS = 3600.0  # a younger record counts, though no version has the artifact yet
USE_FIELDS: dict[str, manifests.Check] = {"checkpoint": manifests.location}


class StoredArtifact(NamedTuple):
    """An artifact in a store: its kind, size, last use, and the checkpoints of streams that use it.

    `kind` is `table`, `partitioned` or `unfinished`; `used` is in seconds since 1970. `parts` are the digests of the
    tables of a partitioned artifact, `part_of` those of the partitioned artifacts that a table belongs to.
    """

    digest: str
    kind: str
    used: float
    bytes: int
    subscriptions: int
    streams: tuple[str, ...]
    parts: tuple[str, ...] = ()
    part_of: tuple[str, ...] = ()


class Pruned(NamedTuple):
    """What `prune_artifacts` removed, or would remove, and why old artifacts stayed."""

    removed: tuple[StoredArtifact, ...]
    kept: Mapping[str, str]  # reasons by digest

    @property
    def bytes(self) -> int:
        """Return the size of what was removed."""
        return sum(one.bytes for one in self.removed)


def record_use(artifact: Artifact | PartitionedArtifact, checkpoint: Storage, stream: str) -> None:
    """Record that a stream uses an artifact that is not its own; raise TableError if the artifact is gone.

    A store that cannot be written to gives a warning: pruning from elsewhere would not see the stream.
    """
    root, _, digest = artifact.path.rpartition("/")
    store = Storage(root)
    if store.where == checkpoint.inner("artifacts").where or digest != artifact.digest:
        return
    try:
        data = json.dumps({"checkpoint": checkpoint.where}).encode()
        store.write(f"{USES}/{digest}/{manifests.plain_name(stream)}.json", data)
    except (OSError, ArrowException) as error:
        warnings.warn(
            f"{root}: cannot record that the stream of {checkpoint.where} uses artifact {digest}: {error}; "
            "`contrada artifacts prune` may remove it",
            stacklevel=2,
        )
    if not any(store.read(f"{digest}/{name}") is not None for name in MANIFESTS):
        raise TableError(f"{artifact.path} was removed; compile the subscriptions again")


def note_use(artifact: Artifact | PartitionedArtifact) -> None:
    """Write the manifest of an artifact again, so that its age starts anew; a store that refuses is left alone."""
    root, _, digest = artifact.path.rpartition("/")
    store = Storage(root)
    name = partitions.ABOUT if isinstance(artifact, PartitionedArtifact) else artifacts.ABOUT
    with suppress(OSError, ArrowException):
        written = store.times(digest).get(name)
        if artifacts.is_due(None if written is None else int(written * 1e9)):
            artifacts.rewrite(store, f"{digest}/{name}")


def list_artifacts(place: str | os.PathLike[str]) -> list[StoredArtifact]:
    """Return the artifacts in a directory or URI, the longest unused first.

    >>> import contrada, tempfile
    >>> from contrada.pipeline.artifacts import publish
    >>> table = contrada.ForwardingTable()
    >>> key = table.subscribe("ops-team", "severity >= 3")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     made = publish(table, directory)
    ...     [(one.kind, one.subscriptions, one.digest == made.digest) for one in list_artifacts(directory)]
    [('table', 1, True)]
    """
    store = _checked(place)
    return _listed(store, _records(store))


def prune_artifacts(
    place: str | os.PathLike[str], older: Duration, *, dry_run: bool = False, now: float | None = None
) -> Pruned:
    """Remove artifacts that were not used for a duration such as `"7d"`; with `dry_run`, remove nothing.

    Artifacts that a stream uses stay, and so do the tables of partitioned artifacts that stay. The directory that a
    stream keeps its own tables in is refused: the stream removes those itself.
    """
    store = _checked(place)
    seconds, now = duration_ms(older, "older") / 1000, time.time() if now is None else now
    void = _void_records(store, now - max(seconds, MIN_RECORD_SECONDS))
    found = _listed(store, {digest: own - void.get(digest, set()) for digest, own in _records(store).items()})
    old = {one.digest: one for one in found if now - one.used > seconds}
    kept = {digest: f"used by a stream: {one.streams[0]}" for digest, one in old.items() if one.streams}
    staying = {one.digest for one in found if one.digest not in old or one.digest in kept}
    for one in found:
        if one.kind == PARTITIONED and one.digest in staying:
            kept |= {part: f"part of {one.digest}" for part in one.parts if part in old and part not in kept}
    removed = [one for one in old.values() if one.digest not in kept]
    if not dry_run:
        for digest, streams in void.items():
            for stream in streams:
                store.remove(f"{USES}/{digest}/{stream}.json")
        # Partitioned artifacts go first: none of them is left without its tables.
        removed.sort(key=lambda one: one.kind != PARTITIONED)
        removed = [one for one in removed if _removed(store, one.digest, kept)]
    return Pruned(tuple(removed), kept)


def _checked(place: str | os.PathLike[str]) -> Storage:
    """Return the storage of artifacts; raise ContradaError for the own artifacts of a stream."""
    store = Storage(place)
    parent = Storage(store.where.rpartition("/")[0] or "/")
    if store.where.endswith("/artifacts") and parent.read(STREAM_MARK) is not None:
        raise ContradaError(f"{store.where} has the tables of one stream, which removes old ones itself")
    return store


Records = dict[str, set[str]]  # ids of streams by digest


def _records(store: Storage) -> Records:
    """Return the streams that have recorded a use of each artifact."""
    found: Records = {}
    for path, _ in store.files_below(USES):
        _, digest, name = [*path.split("/"), "", ""][:3]
        if manifests.is_digest(digest) and name.endswith(".json") and not name.startswith("."):
            found.setdefault(digest, set()).add(name.removesuffix(".json"))
    return found


def _void_records(store: Storage, before: float) -> Records:
    """Return the records from before a time whose stream is gone, or has gone on to other tables."""
    void: Records = {}
    for digest, streams in _records(store).items():
        written = store.times(f"{USES}/{digest}")
        for stream in streams:
            if written.get(f"{stream}.json", before) < before and not _is_used(store, digest, stream):
                void.setdefault(digest, set()).add(stream)
    return void


def _is_used(store: Storage, digest: str, stream: str) -> bool:
    """Return False if the checkpoint of a record is another stream's, or gone, or its versions lack the artifact.

    A version that has a table of a partitioned artifact uses the artifact. A record or checkpoint that cannot be read
    counts as used.
    """
    try:
        told = store.fields(f"{USES}/{digest}/{stream}.json", USE_FIELDS)
        if told is None:
            return False
        checkpoint = Storage(told["checkpoint"])
        mark = checkpoint.read(STREAM_MARK)
        if mark is None or json.loads(mark).get("id") != stream:
            return False
        wanted = [one.encode() for one in (digest, *_parts_of(store, digest))]
        versions = (checkpoint.read(f"versions/{name}") for name in checkpoint.names("versions"))
        return any(one in text for text in versions if text is not None for one in wanted)
    except (OSError, ValueError, ArrowException):  # includes TableError
        return True


def _parts_of(store: Storage, digest: str) -> tuple[str, ...]:
    """Return the digests of the tables of a partitioned artifact, none of another one."""
    if store.read(f"{digest}/{partitions.ABOUT}") is None:
        return ()
    made = PartitionedArtifact.read(f"{store.where}/{digest}")
    return (made.router.digest, *(part.artifact.digest for part in made.partitions))


def _listed(store: Storage, records: Records) -> list[StoredArtifact]:
    """Return the artifacts of a store, the longest unused first."""
    found = [_described(store, digest, records.get(digest, set())) for digest in store.folders() if _is_ours(digest)]
    owners: dict[str, list[str]] = {}
    for one in found:
        for part in one.parts:
            owners.setdefault(part, []).append(one.digest)
    named = [one._replace(part_of=tuple(owners.get(one.digest, ()))) for one in found]
    return sorted(named, key=lambda one: (one.used, one.digest))


def _is_ours(name: str) -> bool:
    return manifests.is_digest(name) or name.startswith(UNFINISHED_PREFIX)


def _described(store: Storage, digest: str, streams: Iterable[str]) -> StoredArtifact:
    files, times = store.files_below(digest), store.times(digest)
    size, path = sum(size for _, size in files), f"{store.where}/{digest}"
    names = [_checkpoint_of(store, digest, stream) for stream in sorted(streams)]
    manifest = next((name for name in MANIFESTS if name in times), None)
    used = store.last_written(digest) if manifest is None else times[manifest]
    try:
        if manifest == partitions.ABOUT:
            made = PartitionedArtifact.read(path)
            parts = _parts_of(store, digest)
            return StoredArtifact(digest, PARTITIONED, used, size, made.subscriptions, tuple(names), parts)
        if manifest is not None:
            return StoredArtifact(digest, TABLE, used, size, Artifact.read(path).subscriptions, tuple(names))
    except TableError:  # damaged: of no use, like one that was not finished
        pass
    return StoredArtifact(digest, UNFINISHED, used, size, 0, tuple(names))


def _checkpoint_of(store: Storage, digest: str, stream: str) -> str:
    """Return the checkpoint of a record, or the id of the stream if the record is damaged."""
    with suppress(OSError, TableError):
        told = store.fields(f"{USES}/{digest}/{stream}.json", USE_FIELDS)
        if told is not None:
            return str(told["checkpoint"])
    return stream


def _removed(store: Storage, digest: str, kept: dict[str, str]) -> bool:
    """Remove an artifact without records, unless a stream has recorded a use since; `kept` then has the reason."""
    held = {name: data for name in MANIFESTS if (data := store.read(f"{digest}/{name}")) is not None}
    for name in held:
        store.remove(f"{digest}/{name}")
    if _records(store).get(digest):
        for name, data in held.items():
            store.write(f"{digest}/{name}", data)
        kept[digest] = "used by a stream that has just started"
        return False
    store.remove(digest)
    store.remove(f"{USES}/{digest}")
    return True
