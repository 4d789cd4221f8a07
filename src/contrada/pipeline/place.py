"""A directory on a file system or object store, for small files that are there whole or not at all."""

from __future__ import annotations

import os
import uuid

from contrada.pipeline.artifacts import WITHOUT_RENAME, store_of


class Place:
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

    def inner(self, name: str) -> Place:
        """A directory below this one."""
        return Place(f"{self.where}/{name}")

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
        fresh = f"{os.path.dirname(target)}/.new-{uuid.uuid4().hex}"
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
        from pyarrow.fs import FileSelector

        found = self._store.get_file_info(FileSelector(f"{self._root}/{folder}".rstrip("/"), allow_not_found=True))
        return sorted(item.base_name for item in found if not item.base_name.startswith((".", "_")))

    def remove(self, name: str) -> None:
        """Remove a file or a directory; what is not there is no error."""
        from pyarrow.fs import FileType

        path = f"{self._root}/{name}"
        kind = self._store.get_file_info(path).type
        if kind == FileType.Directory:
            self._store.delete_dir(path)
        elif kind != FileType.NotFound:
            self._store.delete_file(path)
