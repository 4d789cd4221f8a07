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
from typing import Any
from unittest.mock import patch
from zlib import crc32

import contrada as ct
from hostile.arguments import table
from hostile.registry import Door
from verification.damaged_tables import column_case, table_case

# Names from which the damage to a file follows; a mutation of a name is the name of another damage.
DAMAGES = {f"damage {k}": f"damage {k}" for k in range(400)}


def saved_doors() -> Iterator[Door]:
    """The doors of saved things."""
    damaged = {
        "ForwardingTable.open, damaged": (("ForwardingTable.open", "ForwardingTable.verify"), table_case, 8),
        "RegionArray.open, damaged": (("RegionArray.open",), column_case, 3),
    }
    for name, (entries, case, weight) in damaged.items():
        yield Door(name, entries, partial(_damaged, case), lambda: DAMAGES, weight)
    yield Door("Artifact.read, hostile", ("pipeline.Artifact", "pipeline.publish"), _artifact, artifact_corpus, 1)


def _damaged(case: Callable[[int], None], name: str) -> None:
    case(crc32(name.encode("utf-8", "surrogatepass")))


@cache
def _original() -> Path:
    """An artifact, made once in each process."""
    from contrada.pipeline.artifacts import publish

    root = Path(tempfile.mkdtemp(prefix="originals-", dir=os.getcwd()))
    return root / publish(table(), root).digest


@contextmanager
def _guarded(sandbox: Path) -> Iterator[None]:
    """Whatever would remove or write outside of the sandbox is an error, and does not happen."""
    from contrada.pipeline.artifact_cache import Use

    def guarded(call: Callable[..., Any], place: int) -> Callable[..., Any]:
        def checked(*arguments: Any, **options: Any) -> Any:
            path = os.path.realpath(arguments[place])
            assert Path(path).is_relative_to(sandbox), f"would touch {path}"
            return call(*arguments, **options)

        return checked

    removing = patch.object(shutil, "rmtree", guarded(shutil.rmtree, 0))
    with removing, patch.object(Use, "__init__", guarded(Use.__init__, 1)):
        yield


def _artifact(about: dict[str, Any]) -> object:
    """Read an artifact and make a copy of it, as a worker of Spark does."""
    from contrada.pipeline.artifact_cache import open_copy, remove_copy
    from contrada.pipeline.artifacts import Artifact

    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        sandbox = Path(os.path.realpath(folder))
        copy = sandbox / "artifact"
        shutil.copytree(_original(), copy)
        path = copy / "artifact.json"
        fields = json.loads(path.read_text())
        text = json.dumps({**fields, **about}, default=repr) if isinstance(about, dict) else str(about)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        cache = sandbox / "cache"
        cache.mkdir()
        with _guarded(cache):
            artifact = Artifact.read(copy)
            opened = open_copy(artifact, cache)
            found = list(opened.table.match_keys({"severity": 4, "area": ct.Region.box(1, 1, 6, 6)}))
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
        **{f"{name} is {k}": {name: value}
           for name in ("filters", "bytes", "attributes", "crs", "key_type", "is_spatial_only")
           for k, value in enumerate((None, -1, "x", [], {}, 10**400, [[]]))},
        "unknown field": {"more": 1},
        "not json": "{",
        "a list": "[]",
        "deep": lambda: "[" * 100_000,
        "nothing": "",
    }  # fmt: skip
