"""Artifacts: compiled tables in storage that driver and executors share, named by the digest of their content.

`<artifacts>/<digest>/` holds the files of a saved table and `artifact.json`, the facts that planning needs. The
directory is written under a temporary name and renamed; in a store without rename, `artifact.json` is written last. So
an artifact is either complete or absent, and two writers of the same table do not disturb each other.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pyarrow.fs import FileType, LocalFileSystem, copy_files

from contrada.errors import TableError
from contrada.matching import ForwardingTable
from contrada.matching.census import kinds_by_attribute
from contrada.matching.store.storage import read_header, saved_names
from contrada.pipeline import kept, manifests
from contrada.pipeline.storage import WITHOUT_RENAME, Storage, store_of

ABOUT, HEADER = "artifact.json", "header.json"
REFRESH_SECONDS = 3600.0  # a use is noted at most so often
T = TypeVar("T")

TABLE_FIELDS: dict[str, manifests.Check] = {  # of whole and of partitioned tables
    "path": manifests.location,
    "digest": manifests.digest,
    **dict.fromkeys(("filters", "subscriptions", "bytes"), manifests.count),
    "attributes": manifests.list_of(manifests.text),
    "crs": manifests.map_of(manifests.optional_text),
    **dict.fromkeys(("key_type", "subscriber_type"), manifests.name_type),
}
FIELDS = {
    **TABLE_FIELDS,
    "files": manifests.list_of(manifests.plain_name),
    "is_spatial_only": manifests.boolean,
    "kinds": manifests.map_of(manifests.list_of(manifests.text)),
    "kept": manifests.text,
}


class Artifact(NamedTuple):
    """A compiled table in shared storage: its path, its digest, and the attributes that its filters test."""

    path: str
    digest: str
    filters: int
    subscriptions: int
    bytes: int
    attributes: tuple[str, ...]
    crs: dict[str, str | None]  # of attributes with regions or points
    key_type: str  # a Spark type: string, or one of the integer types
    subscriber_type: str
    files: tuple[str, ...]
    is_spatial_only: bool = False  # every filter is a single constraint, on a region or a point
    kinds: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - kinds of values by attribute; never modified
    kept: str = ""  # Spark's schema of the columns that matches may carry, as JSON

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Artifact:
        """Read the artifact that `compile` or `publish` wrote to a directory or URI."""
        return read_manifest(path, ABOUT, "an artifact", cls.of)

    @classmethod
    def of(cls, about: Any) -> Artifact:
        """Build an artifact from the fields of its JSON; a field of a wrong type or range is a TableError."""
        made = cls(**manifests.fields(about, FIELDS, frozenset({"is_spatial_only", "kinds", "kept"})))
        if HEADER not in made.files or len(set(made.files)) < len(made.files):
            raise TableError(f"files: need {HEADER} and no duplicates, got {', '.join(made.files)[:100]!r}")
        return made

    def text(self) -> str:
        """Return the content of `artifact.json`."""
        own = self._asdict()
        del own["path"]  # the same store may have several paths
        if not self.kept:
            del own["kept"]  # earlier versions know no such field
        return json.dumps(own, indent=1)


def read_manifest(path: str | os.PathLike[str], name: str, what: str, of: Callable[[Any], T]) -> T:
    """Return `of` of the object in a manifest, with its `path`; a missing or damaged one is a TableError."""
    store, place = store_of(path)
    try:
        with store.open_input_stream(f"{place}/{name}") as file:
            about = manifests.map_of(manifests.anything)(manifests.parsed(file.read()))
        return of({**about, "path": os.fspath(path)})
    except (OSError, TableError) as error:
        raise TableError(f"{os.fspath(path)} is not {what}: {name}: {error}") from error


def publish(
    table: ForwardingTable,
    artifacts: str | os.PathLike[str],
    *,
    key_type: str | None = None,
    subscriber_type: str | None = None,
    keeping: tuple[kept.KeptRows, str] | None = None,
) -> Artifact:
    """Save a table as an artifact, unless an artifact with the same content exists, which then counts as used now.

    Keys and subscribers are bigint in Spark if all of them are integers, else string; `key_type` and `subscriber_type`
    override this. `keeping` holds the columns that matches may carry, and their schema.

    >>> import contrada, tempfile
    >>> table = contrada.ForwardingTable()
    >>> key = table.subscribe("ops-team", "severity >= 3")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     publish(table, directory).attributes
    ('severity',)
    """
    store, root = store_of(artifacts)
    is_local = store.type_name == "local"
    if is_local:
        os.makedirs(root, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=root if is_local else None) as temporary:
        made = Path(temporary) / "table"
        table.save(made)
        if keeping is not None:
            keeping[0].write(made, saved_names(made).keys)
        artifact = _described(made, os.fspath(artifacts), key_type, subscriber_type)
        if keeping is not None:
            artifact = artifact._replace(kept=keeping[1])
        target = f"{root}/{artifact.digest}"
        if not _exists(store, f"{target}/{ABOUT}"):
            (made / ABOUT).write_text(artifact.text())
            _place(store, made, root, target, artifact) if not is_local else _rename(made, target)
        elif is_due(store.get_file_info(f"{target}/{ABOUT}").mtime_ns):
            rewrite(Storage(artifacts), f"{artifact.digest}/{ABOUT}")
    return artifact


def is_due(written_ns: int | None) -> bool:
    """Return True if a manifest was written so long ago that a use of the artifact is to be noted."""
    return written_ns is not None and time.time() - written_ns / 1e9 > REFRESH_SECONDS


def rewrite(place: Storage, name: str) -> None:
    """Write a manifest again, so that the age of its artifact starts anew: old artifacts are pruned."""
    data = place.read(name)
    if data is not None:
        place.write(name, data)


def _described(made: Path, artifacts: str, key_type: str | None, subscriber_type: str | None) -> Artifact:
    header = read_header(made)
    digest = content_digest(made)
    asked = {*header["crs"], *(place[0] for place in header["places"]["places"])}
    files = sorted(path.name for path in made.iterdir())
    kinds = kinds_by_attribute(header["places"]["places"], [*header["trees"], *header["checks"]], header["crs"])
    natural = ["bigint" if f"{names}-numbers" in header["arrays"] else "string" for names in ("keys", "subscribers")]
    return Artifact(
        f"{artifacts.rstrip('/')}/{digest}",
        digest,
        header["filters"],
        header["rows"],
        sum((made / name).stat().st_size for name in files),
        tuple(sorted(asked)),
        header["crs"],
        key_type or natural[0],
        subscriber_type or natural[1],
        tuple(files),
        header["scalars"] is None and not header["checks"] and not header["own"],
        {attribute: tuple(some) for attribute, some in kinds.items()},
    )


def content_digest(directory: Path) -> str:
    """Return the digest that names a saved table: of its header, which has checksums, and of its kept columns."""
    content = hashlib.sha256((directory / HEADER).read_bytes())
    if (directory / kept.FILE).exists():
        with (directory / kept.FILE).open("rb") as file:
            content.update(hashlib.file_digest(file, "sha256").digest())
    return content.hexdigest()


def _exists(store: Any, path: str) -> bool:
    return bool(store.get_file_info(path).type != FileType.NotFound)


def _rename(made: Path, target: str) -> None:
    """Rename a complete directory to `target`; a damaged one there is replaced, a complete one stays."""
    if os.path.exists(target) and not os.path.exists(f"{target}/{ABOUT}"):
        shutil.rmtree(target, ignore_errors=True)
    try:
        made.rename(target)
    except OSError:
        if not os.path.exists(f"{target}/{ABOUT}"):
            raise


def _place(store: Any, made: Path, root: str, target: str, artifact: Artifact) -> None:
    """Copy a table to a store that is not on this machine."""
    renames = store.type_name not in WITHOUT_RENAME
    place = f"{root}/.new-{uuid.uuid4().hex}" if renames else target
    store.create_dir(place)
    for name in (*artifact.files, ABOUT):
        copy_files(
            str(made / name), f"{place}/{name}", source_filesystem=LocalFileSystem(), destination_filesystem=store
        )
    if not renames:
        return
    try:
        store.move(place, target)
    except OSError:
        store.delete_dir(place)
        if not _exists(store, f"{target}/{ABOUT}"):
            raise
