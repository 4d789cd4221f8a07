"""A directory on a file system or object store, for small files that are there whole or not at all."""

from __future__ import annotations

import os
import uuid
from typing import Any

from contrada.pipeline.artifacts import WITHOUT_RENAME, store_of

UNFINISHED = ".new-"  # first in the names of what is being written


class Storage:
    """Files by their names under one directory, which is made when something is written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     place = Place(directory)
    ...     place.write("versions/1.json", b"{}")
    ...     place.names("versions"), place.read("versions/1.json"), place.read("versions/2.json")
    (['1.json'], b'{}', None)
    """

    def __init__(self, where: str | os.PathLike[str]) -> None:
        text = os.fspath(where)
        self.where = text.rstrip("/") if "://" in text or text.startswith("file:") else os.path.abspath(text)
        self._store, self._root = store_of(self.where)

    def inner(self, name: str) -> Storage:
        """A directory below this one."""
        return Storage(f"{self.where}/{name}")

    def read(self, name: str) -> bytes | None:
        """What a file holds; None if it is not there."""
        try:
            with self._store.open_input_stream(f"{self._root}/{name}") as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Put a file in its place in one step; an older one is replaced."""
        target = f"{self._root}/{name}"
        self._store.create_dir(os.path.dirname(target), recursive=True)
        if self._store.type_name in WITHOUT_RENAME:  # there a file is there when it is whole
            self._write(target, data)
            return
        fresh = f"{os.path.dirname(target)}/{UNFINISHED}{uuid.uuid4().hex}"
        self._write(fresh, data)
        if self._store.type_name == "local":
            os.replace(fresh, target)
        else:
            self._store.move(fresh, target)

    def _write(self, path: str, data: bytes) -> None:
        with self._store.open_output_stream(path) as file:
            file.write(data)

    def names(self, folder: str = "") -> list[str]:
        """The names of what is in a folder, sorted; hidden ones (`.` or `_` first) are left out."""
        return list(self.sizes(folder))

    def sizes(self, folder: str = "") -> dict[str, int]:
        """The names of what is in a folder, sorted, with the bytes of files; without hidden ones."""
        found = [item for item in self._listed(folder) if not item.base_name.startswith((".", "_"))]
        return {item.base_name: item.size or 0 for item in sorted(found, key=lambda item: item.base_name)}

    def _listed(self, folder: str) -> list[Any]:
        from pyarrow.fs import FileSelector

        selector = FileSelector(f"{self._root}/{folder}".rstrip("/"), allow_not_found=True)
        return list(self._store.get_file_info(selector))

    def remove_unfinished(self, folder: str = "") -> None:
        """Remove what somebody began to write in a folder, and did not bring to an end."""
        for item in self._listed(folder):
            if item.base_name.startswith(UNFINISHED):
                self.remove(f"{folder}/{item.base_name}".lstrip("/"))

    def remove(self, name: str) -> None:
        """Remove a file or a directory; what is not there is no error. A link is removed, not what it names."""
        from pyarrow.fs import FileType

        path = f"{self._root}/{name}"
        if self._store.type_name == "local" and os.path.islink(path):
            os.unlink(path)
            return
        kind = self._store.get_file_info(path).type
        if kind == FileType.Directory:
            self._store.delete_dir(path)
        elif kind != FileType.NotFound:
            self._store.delete_file(path)
