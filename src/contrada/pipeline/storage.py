"""A directory on a file system or object store, for small files that are written atomically."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from pyarrow import ArrowException
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from contrada.errors import TableError
from contrada.pipeline import manifests

WITHOUT_RENAME = ("s3", "gcs", "abfs")  # object stores, where a rename copies every object
HADOOP_S3 = ("s3a", "s3n")
UNFINISHED_PREFIX = ".new-"  # prefix of files being written


def is_uri(place: str) -> bool:
    """Return True for a URI, and False for a path."""
    return "://" in place or place.startswith("file:")


def full_place(where: str | os.PathLike[str]) -> str:
    """Return the absolute path of a path, and a URI without slashes at its end."""
    text = os.fspath(where)
    return text.rstrip("/") if is_uri(text) else os.path.abspath(text)


def store_of(where: str | os.PathLike[str]) -> tuple[Any, str]:
    """Return the file system of a path or URI, and the path within it."""
    text = os.fspath(where)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TableError(f"{text!a} is no place for artifacts: PyArrow opens names in UTF-8 only") from error
    if not is_uri(text):
        return LocalFileSystem(), os.path.abspath(text)
    try:
        store, place = FileSystem.from_uri(arrow_uri(text))
    except (ArrowException, OSError) as error:
        raise TableError(f"{text} is not a directory or URI for artifacts: {error}") from error
    return store, place.rstrip("/")


def arrow_uri(uri: str) -> str:
    """Return a URI as PyArrow knows it: Hadoop's names of S3 become `s3`.

    >>> arrow_uri("s3a://bucket/tables"), arrow_uri("hdfs://host/tables")
    ('s3://bucket/tables', 'hdfs://host/tables')
    """
    scheme, separator, rest = uri.partition("://")
    return f"s3://{rest}" if separator and scheme in HADOOP_S3 else uri


def path_of(uri: str) -> str:
    """Return the path in a file URI; anything else is returned as it is.

    >>> path_of("file:/data/a%20b+c.parquet"), path_of("s3://bucket/a.parquet")
    ('/data/a b+c.parquet', 's3://bucket/a.parquet')
    """
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri


class Storage:
    """Files by name under one directory, which the first write creates.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     place = Storage(directory)
    ...     place.write("versions/1.json", b"{}")
    ...     place.names("versions"), place.read("versions/1.json"), place.read("versions/2.json")
    (['1.json'], b'{}', None)
    """

    def __init__(self, where: str | os.PathLike[str]) -> None:
        self.where = full_place(where)
        self._store, self._root = store_of(self.where)

    def inner(self, name: str) -> Storage:
        """Return the storage of a subdirectory."""
        return Storage(f"{self.where}/{name}")

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""
        with suppress(FileNotFoundError), self._store.open_input_stream(f"{self._root}/{name}") as file:
            return bytes(file.read())
        return None

    def fields(self, name: str, checks: Mapping[str, manifests.Check]) -> dict[str, Any] | None:
        """Return the checked fields of a JSON file, None if it does not exist; a damaged file is a TableError."""
        data = self.read(name)
        try:
            return None if data is None else manifests.fields(manifests.parsed(data), checks)
        except TableError as error:
            raise TableError(f"{self.where}/{name} is damaged: {error}") from error

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically; an existing one is replaced."""
        target = f"{self._root}/{name}"
        folder = os.path.dirname(target)
        self._store.create_dir(folder, recursive=True)
        # A store without rename shows only complete files.
        fresh = f"{folder}/{UNFINISHED_PREFIX}{uuid.uuid4().hex}" if self.has_rename else target
        with self._store.open_output_stream(fresh) as file:
            file.write(data)
        if self.has_rename:
            self._store.move(fresh, target)

    def names(self, folder: str = "") -> list[str]:
        """List a folder, sorted; hidden names (starting with `.` or `_`) are left out."""
        return list(self.sizes(folder))

    def sizes(self, folder: str = "") -> dict[str, int]:
        """List a folder, sorted, with the size of files in bytes; hidden names are left out."""
        found = [item for item in self._listed(folder) if not item.base_name.startswith((".", "_"))]
        return {item.base_name: item.size or 0 for item in sorted(found, key=lambda item: item.base_name)}

    def files_below(self, folder: str = "") -> list[tuple[str, int]]:
        """Return the paths and sizes in bytes of all files below a folder, hidden ones too, sorted."""
        selector = FileSelector(f"{self._root}/{folder}".rstrip("/"), allow_not_found=True, recursive=True)
        found = [item for item in self._store.get_file_info(selector) if item.type == FileType.File]
        return sorted((item.path[len(self._root) :].lstrip("/"), item.size or 0) for item in found)

    def folders(self) -> list[str]:
        """Return the names of all directories, hidden ones too, sorted."""
        return sorted(item.base_name for item in self._listed("") if item.type == FileType.Directory)

    def last_written(self, folder: str) -> float:
        """Return when anything in a folder was last written, in seconds since 1970; 0 if the store does not tell."""
        place = f"{self._root}/{folder}"
        found = self._store.get_file_info(FileSelector(place, allow_not_found=True, recursive=True))
        times = [one.mtime_ns for one in (self._store.get_file_info(place), *found)]
        return max((time / 1e9 for time in times if time is not None), default=0.0)

    def times(self, folder: str = "") -> dict[str, float]:
        """Return when the files of a folder were written, in seconds since 1970; hidden names are left out."""
        found = [item for item in self._listed(folder) if item.type == FileType.File]
        return {one.base_name: one.mtime_ns / 1e9 for one in found if not one.base_name.startswith((".", "_"))}

    def opened(self, name: str) -> Any:
        """Open a file for reading at any position."""
        return self._store.open_input_file(f"{self._root}/{name}")

    def is_taken(self) -> bool:
        """Return True if the place is a file, or a directory that is not empty."""
        return bool(self._store.get_file_info(self._root).is_file or self._listed(""))

    def _listed(self, folder: str) -> list[Any]:
        selector = FileSelector(f"{self._root}/{folder}".rstrip("/"), allow_not_found=True)
        return list(self._store.get_file_info(selector))

    @property
    def has_rename(self) -> bool:
        """Return False for object stores, where a rename copies every object."""
        return self._store.type_name not in WITHOUT_RENAME

    def move(self, name: str, to: str) -> None:
        """Rename a file or directory; an object store copies the file."""
        self._store.move(f"{self._root}/{name}", f"{self._root}/{to}")

    def remove_unfinished(self, folder: str = "") -> None:
        """Remove files in a folder whose writing was interrupted."""
        for item in self._listed(folder):
            if item.base_name.startswith(UNFINISHED_PREFIX):
                self.remove(f"{folder}/{item.base_name}".lstrip("/"))

    def remove(self, name: str) -> None:
        """Remove a file or a directory if it exists; of a symbolic link only the link."""
        path = f"{self._root}/{name}"
        if self._store.type_name == "local" and os.path.islink(path):
            os.unlink(path)
            return
        kind = self._store.get_file_info(path).type
        if kind == FileType.Directory:
            self._store.delete_dir(path)
        elif kind != FileType.NotFound:
            self._store.delete_file(path)
