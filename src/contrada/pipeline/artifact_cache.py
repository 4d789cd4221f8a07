"""Cache of artifacts on an executor's machine: each is fetched once per host and mapped by all Python workers.

`<cache>/tables/<digest>/` is a verified copy. A process holds `<digest>.lock` while it makes or checks the copy. A
process that has the table open holds a shared lock on `<digest>.use`, whose mtime is the time of the last use.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock
from pyarrow import ArrowException
from pyarrow.fs import LocalFileSystem, copy_files

from contrada import forking, jit
from contrada.amounts import byte_size
from contrada.errors import TableError
from contrada.matching import ForwardingTable
from contrada.matching.store.storage import SavedNames, saved_names
from contrada.pipeline import manifests
from contrada.pipeline.artifacts import Artifact, content_digest
from contrada.pipeline.kept import FILE, KeptColumns
from contrada.pipeline.storage import store_of

MAX_OPEN_TABLES = 4  # tables that a worker keeps open between jobs
MAX_OPEN_PARTITION_BYTES = 512 << 20  # total size of the partitions that a worker keeps open
MAX_UNUSED_SECONDS = 7 * 24 * 3600  # copies unused for longer are removed
MAX_CACHE_BYTES = 32 << 30  # above this total size, the least recently used copies are removed
VERIFIED = "verified.json"


class Use:
    """A shared lock that marks a copy as in use until `close` or garbage collection."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        fcntl.flock(self.file, fcntl.LOCK_SH)
        self.closed = False

    def close(self) -> None:
        """Release the lock."""
        if not self.closed:
            self.closed = True
            os.close(self.file)

    __del__ = close


class OpenTable(NamedTuple):
    """A table open in this process, and the names of its rows as columns."""

    table: ForwardingTable
    names: SavedNames
    use: Use
    bytes: int
    place: Path

    def kept(self, kind: Any) -> KeptColumns | None:
        """Return the columns of subscriptions that matches carry, of an Arrow type; None if it is None."""
        rows = len(self.names.keys)
        return KeptColumns.read(self.place, kind, rows) if kind is not None and rows else None


_OPEN: OrderedDict[str, OpenTable] = OrderedDict()
_LOCK = forking.make_lock(forking.OPENING)


def cache_home() -> Path:
    """Return this user's cache directory, which also holds the compiled kernels."""
    kernels = jit.cache_directory()
    return kernels.parent.parent if kernels.parent.name == "kernels" else kernels


def opened(artifact: Artifact) -> OpenTable:
    """Return the open, memory-mapped table of an artifact; up to `MAX_OPEN_TABLES` stay open in this process."""
    return _opened(artifact, lambda: len(_OPEN) >= MAX_OPEN_TABLES)


def opened_part(artifact: Artifact) -> OpenTable:
    """Open a partition's table; others stay open if they are small and address space is not limited.

    A partition may be as large as a worker's memory, and Spark limits that memory by limiting address space.
    """
    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    most = 0 if limited else MAX_OPEN_PARTITION_BYTES
    return _opened(artifact, lambda: sum(one.bytes for one in _OPEN.values()) + artifact.bytes > most)


def open_digests() -> list[str]:
    """Return the digests of the artifacts that this process keeps open, the least recently used first."""
    return list(_OPEN)


def _opened(artifact: Artifact, is_full: Callable[[], bool]) -> OpenTable:
    with _LOCK:
        found = _OPEN.get(artifact.digest)
        if found is None:
            while _OPEN and is_full():
                _OPEN.popitem(last=False)[1].use.close()
            found = _OPEN[artifact.digest] = open_copy(artifact, cache_home() / "tables")
        _OPEN.move_to_end(artifact.digest)
        return found


def open_copy(artifact: Artifact, root: Path) -> OpenTable:
    """Open the copy of an artifact under `root`; fetch the artifact first if the copy is missing or damaged."""
    manifests.digest(artifact.digest)
    root.mkdir(parents=True, exist_ok=True)
    copy, used, lock = (own_path(root, artifact.digest + suffix) for suffix in ("", ".use", ".lock"))
    use = Use(used)
    try:
        with FileLock(lock):
            if not _is_good(copy, artifact.digest):
                shutil.rmtree(copy, ignore_errors=True)
                _fetch(artifact, copy)
                remove_unused(root)
            os.utime(use.file)
            # No second verification: _is_good and _fetch have checked the checksums.
            return OpenTable(ForwardingTable.open(copy, verify=False), saved_names(copy), use, artifact.bytes, copy)
    except BaseException as error:
        use.close()
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            raise TableError(
                f"a table of {byte_size(artifact.bytes)} does not fit into the memory of the Python worker ({error});"
                ' compile with plan="partitioned", or with smaller partitions'
            ) from error
        raise


def own_path(root: Path, name: str) -> Path:
    """Return the path of `name` in the cache; a symbolic link there is removed, never followed.

    Raises TableError, before anything is written or removed, if the resolved path lies outside `root`.
    """
    path: Path = root / manifests.plain_name(name)
    if path.is_symlink():
        path.unlink(missing_ok=True)
    if not manifests.is_below(path, root):
        raise TableError(f"{path} is outside the cache {root}; refusing to write or remove it")
    return path


def remove_unused(root: Path, now: float | None = None, most_bytes: int = MAX_CACHE_BYTES) -> None:
    """Remove copies unused for `MAX_UNUSED_SECONDS`, and the oldest above `most_bytes`; copies in use stay."""
    now = time.time() if now is None else now
    copies = sorted(
        (use.stat().st_mtime, _size(use.with_suffix("")), use) for use in root.glob("*.use") if _marks_copy(use)
    )
    total = sum(size for _, size, _ in copies)
    for last, size, use in copies:
        if (now - last > MAX_UNUSED_SECONDS or total > most_bytes) and _remove(use):
            total -= size


def remove_copy(digest: str, root: Path) -> bool:
    """Remove the copy of an artifact that is no longer needed; return False if it is in use or missing."""
    if not manifests.is_digest(digest):
        return False
    with _LOCK:
        forgotten = _OPEN.pop(digest, None)
        if forgotten is not None:
            forgotten.use.close()
    return _marks_copy(root / f"{digest}.use") and _remove(root / f"{digest}.use")


def _marks_copy(use: Path) -> bool:
    """Return True if the file exists and belongs to a copy in the cache; links do not count."""
    copy = use.with_suffix("")
    is_linked = use.is_symlink() or copy.is_symlink()
    return manifests.is_digest(copy.name) and use.is_file() and copy.is_dir() and not is_linked


def _remove(use: Path) -> bool:
    """Remove a copy unless it is in use; a process that needs it later waits for the lock and fetches it again."""
    with use.open("a") as file, suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(use.with_suffix(""), ignore_errors=True)
        return True
    return False


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.npy"))


def _is_good(copy: Path, digest: str) -> bool:
    """Return True if the copy's files are unchanged since verification, or pass it again."""
    with suppress(OSError, ValueError):  # includes TableError
        if json.loads((copy / VERIFIED).read_text()) != _state(copy):
            _verify(copy, digest)
            _note(copy)
        return True
    return False


def _verify(copy: Path, digest: str) -> None:
    """Check that a copy's header matches its digest and that its files match the checksums in the header."""
    if content_digest(copy) != digest:
        what = "header.json or " + FILE if (copy / FILE).exists() else "header.json"
        raise TableError(f"{copy}: {what} is damaged: the checksum does not match")
    ForwardingTable.verify(copy)


def _state(copy: Path) -> dict[str, list[int]]:
    """Return the size and mtime of every file of a table."""
    files = sorted(path for path in copy.iterdir() if path.name != VERIFIED)
    return {path.name: [path.stat().st_size, path.stat().st_mtime_ns] for path in files}


def _note(copy: Path) -> None:
    """Record the state of the verified files; an existing file or link of that name is replaced, not written to."""
    fresh = copy.with_name(f".{copy.name}-{os.getpid()}-{threading.get_ident()}.{VERIFIED}")
    fresh.write_text(json.dumps(_state(copy)))
    fresh.replace(copy / VERIFIED)


def _fetch(artifact: Artifact, copy: Path) -> None:
    """Copy an artifact's files to a temporary directory, verify them, and rename; a bad source is a TableError."""
    store, place = store_of(artifact.path)
    with tempfile.TemporaryDirectory(prefix=f".{copy.name[:12]}-", dir=copy.parent) as temporary:
        made = Path(temporary) / "table"
        made.mkdir()
        try:
            for name in map(manifests.plain_name, artifact.files):
                if not (store.type_name == "local" and _linked(f"{place}/{name}", made / name)):
                    copy_files(
                        f"{place}/{name}", str(made / name),
                        source_filesystem=store, destination_filesystem=LocalFileSystem(),
                    )  # fmt: skip
        except (OSError, ArrowException) as error:
            raise TableError(f"the artifact {artifact.path} cannot be fetched: {error}") from error
        try:
            _verify(made, artifact.digest)
        except TableError as error:
            raise TableError(
                f"the artifact {artifact.path} is damaged: {error}; compile to another directory"
            ) from error
        _note(made)
        made.rename(copy)


def _linked(source: str, target: Path) -> bool:
    """Hard-link a file on the same device, so nothing is copied; return False for symbolic links and on failure."""
    with suppress(OSError):
        if not os.path.islink(source):
            os.link(source, target)
            return True
    return False
