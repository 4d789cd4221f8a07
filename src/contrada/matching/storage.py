"""A saved table: an immutable directory of plain arrays under a header, mapped when opened.

`header.json` names the format, its version, and for every array its type, shape and checksum. The directory is written
under another name and renamed, so it is there whole or not at all.
"""

from __future__ import annotations

import io
import json
import math
import os
import tempfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import FilterError, TableError
from contrada.geometry import Crs, PointArray, RegionArray
from contrada.geometry.arrays import Arrays
from contrada.index.packed import PackedTree, check_kinds, tree_arrays, tree_from_arrays
from contrada.index.scalars import Arrays as ScalarArrays
from contrada.index.scalars import ScalarIndex, scalars_from_arrays
from contrada.index.scanned import Scanned
from contrada.matching.checks import Checks, Constraints
from contrada.matching.level import Level, Place
from contrada.matching.names import Names
from contrada.matching.own import OwnChecks, OwnConstraints, OwnIndex

FORMAT = "contrada.ForwardingTable"
VERSION = 7
CHUNK = 1 << 24
CHECK_KINDS = {"filters": (np.int32, 0), "masks": (np.uint8, 0), "offsets": (np.int32, 0)}


class Saved(NamedTuple):
    """What a saved table holds: one level, and the names and owners of its rows."""

    level: Level
    crs: dict[str, Crs | None]
    places: dict[str, Any]
    keys: Any
    subscribers: Any
    filter_subscription: NDArray[np.int32] | None
    subscription_subscriber: NDArray[np.int32] | None
    rows: int
    filters: int
    several_filters: bool
    has_keys: bool


def save_table(saved: Saved, directory: str | os.PathLike[str]) -> None:
    """Write a table to a new directory."""
    target = Path(directory)
    if target.exists():
        raise TableError(f"{target} exists already")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as temporary:
        made = Path(temporary) / "table"
        made.mkdir()
        arrays = _arrays_of(saved)
        described = {name: _write(made / f"{name}.npy", array) for name, array in arrays.items()}
        header = {
            "format": FORMAT,
            "version": VERSION,
            "rows": saved.rows,
            "filters": saved.filters,
            "several_filters": saved.several_filters,
            "has_keys": saved.has_keys,
            "crs": saved.crs,
            "places": saved.places,
            "reached": saved.level.filters,
            "scalars": _scalars_header(saved.level.scalars),
            "trees": [list(place) for place, tree in saved.level.trees.items() if isinstance(tree, PackedTree)],
            "checks": [list(place) for place, part in saved.level.checks.items() if isinstance(part, Checks)],
            "own": _own_parts(saved.level),
            "arrays": described,
        }
        (made / "header.json").write_text(json.dumps(header, indent=1))
        made.rename(target)


def open_table(directory: str | os.PathLike[str]) -> Saved:
    """The saved table, mapped and hardly read; a foreign, damaged or truncated directory is a TableError."""
    source = Path(directory)
    header = read_header(source)
    try:
        arrays = {name: _map(source, name, what) for name, what in header["arrays"].items()}
        trees = {_place(p): _tree_of(f"tree{k}", arrays, p[1]) for k, p in enumerate(header["trees"])}
        checks = {_place(p): _checks_of(f"check{k}", arrays, p[1]) for k, p in enumerate(header["checks"])}
        own_trees, own_checks = _own_of(header["own"])
        level = Level(
            {**trees, **own_trees},
            {**checks, **own_checks},
            _scalars_of(header["scalars"], arrays),
            header["reached"],
        )
        return Saved(
            level, _systems(header["crs"]), header["places"],
            _names_of("keys", arrays), _names_of("subscribers", arrays),
            _first(arrays, "filter_subscription", header["filters"]),
            _first(arrays, "subscription_subscriber", header["rows"]),
            header["rows"], header["filters"], header["several_filters"], header["has_keys"],
        )  # fmt: skip
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{source} is damaged: {error}") from error


def _first(arrays: dict[str, NDArray[Any]], name: str, count: int) -> NDArray[np.int32] | None:
    """Return the first `count` entries of an array; tables saved by earlier releases have spare room after them."""
    return arrays[name][:count] if name in arrays else None


def _systems(saved: dict[str, Any]) -> dict[str, Crs | None]:
    """The CRS of each attribute; text that names no system is a CrsError."""
    return {name: Crs.of(crs) for name, crs in saved.items()}


class SavedNames(NamedTuple):
    """Whom the rows of a saved table's answers stand for: Arrow arrays over the mapped files, lists where names mix."""

    keys: Any  # of subscriptions
    subscribers: Any
    owners: NDArray[np.int32] | None  # the subscriber of each subscription; None: subscriber k of subscription k


def saved_names(directory: str | os.PathLike[str]) -> SavedNames:
    """The names of a saved table as columns, for whoever turns whole answers into names."""
    saved = open_table(directory)
    return SavedNames(saved.keys, saved.subscribers, saved.subscription_subscriber)


def verify_table(directory: str | os.PathLike[str]) -> None:
    """Read everything against the checksums; the first file that differs is a TableError that names it."""
    source = Path(directory)
    for name, what in read_header(source)["arrays"].items():
        _map(source, name, what)
        if _checksum(source / f"{name}.npy") != what["crc32"]:
            raise TableError(f"{source}: {name}.npy is damaged: its checksum differs")


def read_header(source: Path) -> dict[str, Any]:
    """What `header.json` of a saved table says; a foreign or damaged one is a TableError."""
    try:
        header: Any = json.loads((source / "header.json").read_text())
    except (OSError, ValueError) as error:
        raise TableError(f"{source} is not a saved table: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise TableError(f"{source} is not a saved table: its header is another's")
    if header.get("version") != VERSION:
        raise TableError(f"{source} has version {header.get('version')}; this release reads version {VERSION}")
    checked: dict[str, Any] = header
    return checked


def _write(path: Path, array: NDArray[Any]) -> dict[str, Any]:
    np.save(path, np.ascontiguousarray(array))
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "crc32": _checksum(path),
        "bytes": path.stat().st_size,
    }


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            value = zlib.crc32(block, value)
    return value


def _map(source: Path, name: str, what: dict[str, Any]) -> NDArray[Any]:
    """An array of a saved table, mapped; its file begins as NumPy begins the file of such an array, or is damaged.

    The beginning is compared, not parsed: NumPy parses it as Python, and when two threads did that at once CPython
    3.11 raised a SystemError ("AST constructor recursion depth mismatch"). Tables are opened in the background too.
    """
    path = source / f"{name}.npy"
    try:
        dtype, shape = np.dtype(what["dtype"]), tuple(what["shape"])
        begin = _beginning(dtype, shape)
        with path.open("rb") as file:
            given, size = file.read(len(begin)), os.fstat(file.fileno()).st_size
            if size != what["bytes"]:
                raise TableError(f"{source}: {name}.npy has {size} bytes, not {what['bytes']}")
            if given != begin or size != len(begin) + dtype.itemsize * math.prod(shape):
                raise TableError(f"{source}: {name}.npy is no {dtype.str} {list(shape)}, as the header says")
            if 0 in shape:  # nothing to map
                array: NDArray[Any] = np.empty(shape, dtype)
            else:
                array = np.asarray(np.memmap(file, dtype, "r", len(begin), shape))
    except OSError as error:
        raise TableError(f"{source}: {name}.npy cannot be read: {error}") from error
    array.setflags(write=False)
    return array


def _beginning(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """How NumPy begins the file of such an array."""
    target = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(target, described)
    return target.getvalue()


def _place(pair: list[Any]) -> Place:
    attribute, kind = pair
    if kind not in ("region", "point"):
        raise ValueError(f"a tree of {kind!r}")
    return str(attribute), str(kind)


def _arrays_of(saved: Saved) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for k, tree in enumerate(tree for tree in saved.level.trees.values() if isinstance(tree, PackedTree)):
        arrays.update({f"tree{k}-{name}": array for name, array in tree_arrays(tree).items()})
    for k, checks in enumerate(part for part in saved.level.checks.values() if isinstance(part, Checks)):
        arrays.update({f"check{k}-{name}": getattr(checks, name) for name in CHECK_KINDS})
        arrays.update({f"check{k}-{name}": array for name, array in _column_arrays(checks.column).items()})
    if isinstance(saved.level.scalars, ScalarIndex):
        arrays.update({f"scalars-{name}": array for name, array in saved.level.scalars.arrays._asdict().items()})
    for name, names in (("keys", saved.keys), ("subscribers", saved.subscribers)):
        arrays.update({f"{name}-{part}": array for part, array in _name_arrays(names).items()})
    for name in ("filter_subscription", "subscription_subscriber"):
        array = getattr(saved, name)
        if array is not None:
            arrays[name] = array
    return arrays


def _column_arrays(column: RegionArray | PointArray) -> dict[str, NDArray[Any]]:
    return {"xy": column.xy} if isinstance(column, PointArray) else dict(column.arrays._asdict())


def _own_parts(level: Level) -> list[dict[str, Any]]:
    """Constraints of added types, which say themselves how they are written down."""
    parts = []
    for (attribute, kind), part in (*level.trees.items(), *level.checks.items()):
        if isinstance(part, OwnIndex | OwnChecks):
            try:
                dumped = part.part.dumped()
            except NotImplementedError as error:
                raise TableError(
                    f"constraints of the type {kind!r} cannot be saved: it has no dump and load"
                ) from error
            parts.append({"attribute": attribute, "is_reached": isinstance(part, OwnIndex), **dumped})
    return parts


def _own_of(parts: list[dict[str, Any]]) -> tuple[dict[Place, OwnIndex], dict[Place, OwnChecks]]:
    trees, checks = {}, {}
    for dumped in parts:
        try:
            part, place = OwnConstraints.loaded(dumped), (dumped["attribute"], dumped["kind"])
        except FilterError as error:
            raise TableError(f"this table needs a type that is not there: {error}") from error
        if dumped["is_reached"]:
            trees[place] = part.indexed()
        else:
            checks[place] = part.checks()
    return trees, checks


def _tree_of(prefix: str, arrays: dict[str, NDArray[Any]], kind: str) -> PackedTree:
    own = {name.partition("-")[2]: array for name, array in arrays.items() if name.startswith(f"{prefix}-")}
    return tree_from_arrays(own, kind == "point")


def _checks_of(prefix: str, arrays: dict[str, NDArray[Any]], kind: str) -> Checks:
    if kind == "point":
        column: RegionArray | PointArray = PointArray(arrays[f"{prefix}-xy"])
    else:
        column = RegionArray(Arrays(*(arrays[f"{prefix}-{name}"] for name in Arrays._fields)))
    filters, masks, offsets = (arrays[f"{prefix}-{name}"] for name in CHECK_KINDS)
    check_kinds(dict(zip(CHECK_KINDS, (filters, masks, offsets), strict=True)), CHECK_KINDS)
    return Checks(Constraints(filters, masks, column), offsets)


def _scalars_header(scalars: ScalarIndex | Scanned | None) -> dict[str, Any] | None:
    """What is to be known of scalar constraints beside their arrays; a table is packed before it is saved."""
    if not isinstance(scalars, ScalarIndex):
        return None
    return {"first": scalars.first, "place": scalars.place, "expected": scalars.expected}


def _scalars_of(header: dict[str, Any] | None, arrays: dict[str, NDArray[Any]]) -> ScalarIndex | None:
    if header is None:
        return None
    own = {name: arrays[f"scalars-{name}"] for name in ScalarArrays._fields}
    place = None if header["place"] is None else _place(header["place"])
    return scalars_from_arrays(header["first"], own, place, float(header["expected"]))


def _name_arrays(names: Any) -> dict[str, NDArray[Any]]:
    """Names, a list or an Arrow array, as text with a mark for those that are integers."""
    import pyarrow as pa

    if not isinstance(names, list) and pa.types.is_integer(names.type):
        try:
            return {"numbers": np.asarray(names.cast(pa.int64()))}
        except pa.ArrowInvalid:  # unsigned, and too large for that
            names = names.to_pylist()
    if not isinstance(names, list):
        whole = pa.concat_arrays([names.cast(pa.large_string()), pa.array([], pa.large_string())])
        _, offsets, text = whole.buffers()
        ends = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
        used = np.frombuffer(text, np.uint8)[ends[0] : ends[-1]] if text is not None else np.empty(0, np.uint8)
        return {"text": used, "offsets": ends - ends[0], "is_number": np.zeros(len(whole), np.uint8)}
    if all(isinstance(name, int) for name in names) and all(-(2**63) <= name < 2**63 for name in names):
        return {"numbers": np.array(names, np.int64)}
    texts = [str(name).encode() for name in names]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return {
        "text": np.frombuffer(b"".join(texts), np.uint8),
        "offsets": np.concatenate([np.zeros(1, np.int64), ends]),
        "is_number": np.array([isinstance(name, int) for name in names], np.uint8),
    }


def _names_of(prefix: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """Names as an Arrow array over the mapped files, or as a list where text and integers mix."""
    import pyarrow as pa

    if f"{prefix}-numbers" in arrays:
        return pa.array(arrays[f"{prefix}-numbers"])
    text, offsets = arrays[f"{prefix}-text"], arrays[f"{prefix}-offsets"]
    array = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))
    is_number = arrays[f"{prefix}-is_number"]
    if not is_number.any():
        return array
    return [int(name) if number else name for name, number in zip(array.to_pylist(), is_number.tolist(), strict=True)]


def names_from(values: Any) -> Names:
    """Names with look-up, from an Arrow array or a list."""
    names = Names()
    if isinstance(values, list):
        for name in values:
            names.append(name)
    elif len(values):
        names.extend(values)
    return names
