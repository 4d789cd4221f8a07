"""Doors that open what was saved: tables, columns of regions and artifacts, with files changed, cut or replaced."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import contrada as ct
from hostile.arguments import table
from hostile.registry import Door

TABLE_FILES = 40  # at least as many as a saved table has
SIZE = 400  # of most files


def saved_doors() -> Iterator[Door]:
    """The doors of saved things."""
    yield Door("ForwardingTable.open, damaged", ("ForwardingTable.open",), _open_table, edits_corpus, 6)
    yield Door("ForwardingTable.verify, damaged", ("ForwardingTable.verify",), _verify_table, edits_corpus, 2)
    yield Door("RegionArray.open, damaged", ("RegionArray.open",), _open_column, edits_corpus, 3)
    yield Door("Artifact.read, hostile", ("pipeline.Artifact", "pipeline.publish"), _artifact, artifact_corpus, 1)


@cache
def _originals() -> Path:
    """A saved table, a saved column and an artifact, made once in each process."""
    from contrada.pipeline.artifacts import publish

    root = Path(tempfile.mkdtemp(prefix="originals-", dir=os.getcwd()))
    made = table()
    for k in range(20):
        made.subscribe(f"s{k % 3}", f"overlaps(area, BBOX({k}, 0, {k + 2}, 2)) AND severity > {k}", key=f"more {k}")
    made.save(root / "table")
    regions = [ct.Region.box(0, 0, k, k) for k in range(1, 9)]
    ct.RegionArray.from_regions(regions).save(root / "column")
    artifact = publish(made, root / "artifacts")
    (root / "artifact").symlink_to(root / "artifacts" / artifact.digest)
    return root


@contextmanager
def changed(name: str, edits: list[Any]) -> Iterator[Path]:
    """A copy of something that was saved, with edits: [file, place, way, value]."""
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        copy = Path(folder) / name
        shutil.copytree(_originals() / name, copy)
        files = sorted(path for path in copy.iterdir())
        for edit in edits if isinstance(edits, list) else []:
            file, place, way, value = (*edit, 0, 0, 0, 0)[:4] if isinstance(edit, list) else (0, 0, 0, 0)
            _edit(files, file, place, way, value)
        yield copy


def _edit(files: list[Path], file: Any, place: Any, way: Any, value: Any) -> None:
    if isinstance(file, str):
        chosen = [path for path in files if path.name == file] or files
        path = chosen[0]
    else:
        path = files[_number(file) % len(files)]
    if way == "replace" and isinstance(value, bytes | str):
        path.write_bytes(value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass"))
        return
    if not path.exists():  # an edit before this one removed it
        return
    data = bytearray(path.read_bytes())
    at = _number(place) % max(1, len(data))
    if way == "cut":
        del data[at:]
    elif way == "grow":
        data += bytes(_number(value) % 4096)
    elif way == "remove":
        path.unlink()
        return
    elif way == "word" and len(data) >= 8:
        at -= at % 8
        data[at : at + 8] = (_number(value) & (1 << 64) - 1).to_bytes(8, "little")
    elif data:
        data[at] ^= 1 << _number(value) % 8
    path.write_bytes(data)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else len(repr(value))


def _open_table(edits: list[Any]) -> object:
    """Open and ask: an answer must be the one that the table gave before it was saved."""
    with changed("table", edits) as path:
        opened = ct.ForwardingTable.open(path)
        found = [sorted(opened.match_keys(message), key=str) for message in MESSAGES]
        assert found == _expected(), "a damaged table answers, and wrongly"
        opened.subscribe("new", "severity > 7", key="a new key")
        opened.pack()
        return opened.stats(), opened.explain(MESSAGES[0], "k2")


MESSAGES: tuple[dict[str, Any], ...] = (
    {"severity": 4, "area": ct.Region.box(1, 1, 6, 6)},
    {"severity": 30, "area": ct.Region.box(0.5, 0.5, 16, 1)},
    {"kind": "flood", "is_open": True, "place": ct.Point(1, 2)},
)


@cache
def _expected() -> list[list[Any]]:
    opened = ct.ForwardingTable.open(_originals() / "table")
    return [sorted(opened.match_keys(message), key=str) for message in MESSAGES]


def _verify_table(edits: list[Any]) -> object:
    """Whatever verify lets pass answers as the table did."""
    with changed("table", edits) as path:
        ct.ForwardingTable.verify(path)
        opened = ct.ForwardingTable.open(path)
        assert [sorted(opened.match_keys(message), key=str) for message in MESSAGES] == _expected()


def _open_column(edits: list[Any]) -> object:
    with changed("column", edits) as path:
        column = ct.RegionArray.open(path)
        return ct.relate(column, column, threads=1), column.areas, column.to_wkb(), [hash(each) for each in column]


@cache
def edits_corpus() -> dict[str, Any]:
    """Lists of edits: bits, words and lengths in every file, and headers that lie."""
    rng = Random(3)
    bits = {
        f"bit {file} {k}": [[file, rng.randrange(1 << 20), "bit", k]] for file in range(TABLE_FILES) for k in range(8)
    }
    words = {
        f"word {file} {value}": [[file, 128 + 8 * rng.randrange(6), "word", value]]
        for file in range(TABLE_FILES) for value in (-1, 1 << 40, 7, 1 << 62)
    }  # fmt: skip
    cuts = {f"cut {file}": [[file, 130, "cut", 0]] for file in range(TABLE_FILES)}
    removed = {f"removed {file}": [[file, 0, "remove", 0]] for file in range(TABLE_FILES)}
    grown = {f"grown {file}": [[file, 0, "grow", 4096]] for file in range(TABLE_FILES)}
    headers = (
        "", "[]", "{}", "null", "[" * 10_000, '{"format": 1}', '{"format": "contrada.RegionArray"}', "\ud800",
        '{"format": "contrada.ForwardingTable", "version": 1}', "9" * 5000,
        '{"format": "contrada.RegionArray", "version": 1, "regions": 1e400, "crs": []}',
    )  # fmt: skip
    replaced = {f"header {k}": [["header.json", 0, "replace", text]] for k, text in enumerate(headers)}
    crossed = {f"file replaced {file}": [[file, 0, "replace", b"\x93NUMPY\x01\x00v\x00{'descr': '|O'}"]]
               for file in range(TABLE_FILES)}  # fmt: skip
    return {"whole": [], **bits, **words, **cuts, **removed, **grown, **replaced, **crossed}


@contextmanager
def _guarded(sandbox: Path) -> Iterator[None]:
    """Whatever would remove or write outside of the sandbox is an error, and does not happen."""
    from contrada.pipeline import artifact_cache as tables

    def inside(path: Any) -> None:
        assert Path(os.path.realpath(path)).is_relative_to(sandbox), f"would touch {path}"

    def guarded(call: Callable[..., Any]) -> Callable[..., Any]:
        def checked(path: Any, *rest: Any, **options: Any) -> Any:
            inside(path)
            return call(path, *rest, **options)

        return checked

    kept = shutil.rmtree, tables.Use.__init__
    use = tables.Use.__init__

    def init(self: Any, path: Any) -> None:
        inside(path)
        use(self, path)

    shutil.rmtree = guarded(kept[0])  # type: ignore[assignment]
    tables.Use.__init__ = init  # type: ignore[method-assign]
    try:
        yield
    finally:
        shutil.rmtree, tables.Use.__init__ = kept  # type: ignore[method-assign]


def _artifact(about: dict[str, Any]) -> object:
    """Read an artifact and make a copy of it, as a worker of Spark does."""
    from contrada.pipeline.artifact_cache import open_copy, remove_copy
    from contrada.pipeline.artifacts import Artifact

    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        sandbox = Path(os.path.realpath(folder))
        copy = sandbox / "artifact"
        shutil.copytree(_originals() / "artifact", copy)
        path = copy / "artifact.json"
        fields = json.loads(path.read_text())
        if isinstance(about, dict):
            fields.update(about)
            text = json.dumps(fields, default=repr)
        else:
            text = str(about)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        cache = sandbox / "cache"
        cache.mkdir()
        with _guarded(cache):
            artifact = Artifact.read(copy)
            opened = open_copy(artifact, cache)
            found = list(opened.table.match_keys(MESSAGES[0]))
            opened.use.close()
            remove_copy(artifact.digest, cache)
        return found


@cache
def artifact_corpus() -> dict[str, Any]:
    """Fields of artifact.json, or the whole text."""
    digests = (
        "../../x", "/any/dir", "..", ".", "", "a/b", "A" * 64, "f" * 64, "f" * 63, 7, None, ["a"], "\ud800", "a\0b",
    )  # fmt: skip
    files = (
        ["../../x"], ["/etc/passwd"], ["header.json"] * 3, "header.json", [None], [], [["a"]], ["\ud800"], ["a\0b"],
    )  # fmt: skip
    return {
        "good": {},
        **{f"digest {k}": {"digest": digest} for k, digest in enumerate(digests)},
        **{f"files {k}": {"files": value} for k, value in enumerate(files)},
        **{f"{name} is {k}": {name: value} for name in ("filters", "bytes", "attributes", "crs", "key_type", "is_plain")
           for k, value in enumerate((None, -1, "x", [], {}, 10**400, [[]]))},
        "unknown field": {"more": 1},
        "not json": "{",
        "a list": "[]",
        "deep": partial(lambda: "[" * 100_000),
        "nothing": "",
    }  # fmt: skip
