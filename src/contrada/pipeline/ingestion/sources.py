"""Find the files of a source, their formats, and licence or attribution texts beside them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from contrada.errors import FormatError
from contrada.formats.records import PEEK_BYTES, guess_format

PARQUET, LINES, GIS = "parquet", "ndjson", "gis"
SUFFIXES = {
    ".parquet": PARQUET, ".geoparquet": PARQUET, ".pq": PARQUET, ".ndjson": LINES, ".jsonl": LINES,
    ".geojsonl": LINES, ".ndgeojson": LINES, ".geojsons": "geojsonseq", ".geojsonseq": "geojsonseq",
}  # fmt: skip
JSON_SUFFIXES = (".json", ".geojson")
JSON_FORMATS = ("json", "ndjson", "geojsonseq")
# Skipped in directories: parts of a Shapefile, which are read with it, and other files that are not data.
COMPANIONS = frozenset({
    ".shx", ".dbf", ".prj", ".cpg", ".qix", ".qpj", ".sbn", ".sbx", ".fbn", ".fbx", ".ain", ".aih", ".atx", ".ixs",
    ".mxs", ".idm", ".ind", ".crc", ".txt", ".md", ".html", ".pdf", ".rst", ".png", ".jpg", ".qml", ".sld", ".lyr",
    ".gpkg-wal", ".gpkg-shm",
})  # fmt: skip
NOTES = ("license", "licence", "attribution", "copyright", "copying")
MAX_NOTE_LENGTH = 4000  # characters


class File(NamedTuple):
    """A file to read: its path, format and size."""

    path: str
    format: str
    size: int


def files_of(sources: Sequence[str | os.PathLike[str]]) -> list[File]:
    """List the files of `sources`, each once; a directory gives all files below it in the order of their names."""
    found: dict[str, File] = {}
    for source in sources:
        path = Path(os.fspath(source).removeprefix("file://"))
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        for inner in _below(path):
            whole = Path(os.path.abspath(inner))
            found.setdefault(str(whole), File(str(whole), _format(whole), whole.stat().st_size))
    if not found:
        raise FormatError(f"no file to read in {', '.join(os.fspath(source) for source in sources)}")
    return list(found.values())


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir() or path.suffix.lower() == ".gdb":  # a geodatabase is a directory
        yield path
        return
    for inner in sorted(path.iterdir()):
        if not inner.name.startswith((".", "_")) and not _is_beside(inner):
            yield from _below(inner)


def _is_beside(path: Path) -> bool:
    """Return True for a file that lies beside data and is not data."""
    name = path.name.lower()
    is_other = path.suffix.lower() in COMPANIONS or name.endswith(".shp.xml") or name == "dataset.json"
    return not path.is_dir() and (is_other or _is_note(path))


def _is_note(path: Path) -> bool:
    return path.name.lower().startswith(NOTES) and path.suffix.lower() in ("", ".txt", ".md")


def _format(path: Path) -> str:
    """Return the format of a file, by its name or its first bytes."""
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    head = b""
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(PEEK_BYTES)
    if suffix in JSON_SUFFIXES:
        guessed = guess_format(head) if head.strip() else "json"  # an empty file is invalid JSON
        return guessed if guessed in JSON_FORMATS else GIS
    return PARQUET if head.startswith(b"PAR1") else GIS


def notes_of(files: Iterable[File]) -> dict[str, str]:
    """Return the licence and attribution texts beside files, by path."""
    folders = dict.fromkeys(Path(file.path).parent for file in files)
    beside = [path for folder in folders for path in sorted(folder.iterdir()) if path.is_file() and _is_note(path)]
    return {str(path): path.read_text(errors="replace")[:MAX_NOTE_LENGTH] for path in beside}
