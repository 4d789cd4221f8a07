"""Save a table as an immutable directory of plain arrays with a header; open it by memory map.

The live subscriptions are saved in one level. geometry/saved/directories.py describes how the directory is written,
checked and mapped. For pickle and copy, the files of the directory are put into one uncompressed tar archive.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from contrada.codes import BEYOND_BIT, WITHIN_MASK
from contrada.errors import FilterError, TableError
from contrada.geometry import Crs, LineArray, PointArray, RegionArray
from contrada.geometry.arrays import Arrays, compact
from contrada.geometry.globe import globes_of, wraps_of
from contrada.geometry.line_relating import ShapeColumn
from contrada.geometry.line_relation import ALL_LINE_RELATIONS
from contrada.geometry.metres import METRES, bad_places
from contrada.geometry.saved.directories import Format, read_directory, save_directory
from contrada.geometry.saved.directories import read_header as read_kind_header
from contrada.geometry.saved.soundness import (
    check_coordinates,
    check_lines,
    check_numbers,
    check_offsets,
    check_regions,
    require,
)
from contrada.index.lines import LineTree
from contrada.index.metres import MetricTree
from contrada.index.near import DistanceTree
from contrada.index.packed import PackedTree, tree_arrays, tree_from_arrays
from contrada.index.ranking import ScalarArrays
from contrada.index.scalars import ScalarIndex
from contrada.index.scanned import RecordView
from contrada.index.soundness import check_scalar_arrays, check_tree_arrays
from contrada.kernels.match.tables import RESIDUAL, SCALARS
from contrada.kernels.runtime.layout import AddressLayout, Field
from contrada.matching.encoding import MessageEncoder
from contrada.matching.line_constraints import LINE_KINDS, LineConstraints, LineResidual
from contrada.matching.metre_constraints import METRE_KINDS, NEAR_KINDS, constraints_in, shape_kind
from contrada.matching.names import Names, as_arrow
from contrada.matching.near_constraints import NearResidual
from contrada.matching.residual import Constraints, Residual
from contrada.matching.sources import Sources, WrittenRows
from contrada.matching.store.custom_types import CustomConstraints, CustomIndex, CustomResidual
from contrada.matching.store.level import EMPTY, Level, Slot, Tree, renumbered
from contrada.matching.store.levels import LEVEL_COUNT, Store
from contrada.matching.store.snapshot import Snapshot
from contrada.matching.store.tuning import DEFAULT_TUNING, Tuning

T = TypeVar("T")
TABLE_FORMAT = Format("contrada.ForwardingTable", 11, "saved table", TableError)
CHECKS = RESIDUAL.followed_by(Field("filters", "i4"))  # as saved: the filter of each constraint comes with them
LINE_CHECKS = AddressLayout([Field("filters", "i4"), Field("masks", "u1")])
NEAR_CHECKS = AddressLayout([Field("filters", "i4"), Field("masks", "u1"), Field("distances", "f8")])
CHECK_PARTS = ("filters", "masks", "offsets")
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, OverflowError, AssertionError)  # what damaged files cause


class Saved(NamedTuple):
    """The contents of a saved table: one level, and the names and owners of its rows."""

    level: Level
    crs: dict[str, Crs | None]
    encoder: dict[str, Any]
    keys: Any
    subscribers: Any
    filter_subscription: NDArray[np.int32] | None
    subscription_subscriber: NDArray[np.int32] | None
    rows: int
    filters: int
    several_filters: bool
    has_keys: bool
    sources: WrittenRows | None
    wrap: dict[str, str]


def packed(
    store: Store,
    crs: dict[str, Crs | None],
    keys: Names | None,
    subscribers: Names,
    sources: Sources | None = None,
    wrap: Mapping[str, str] = MappingProxyType({}),
) -> Saved:
    """Return the live subscriptions in one level, with rows, filters and subscribers renumbered from 0.

    Without `keys`, row numbers are saved in their place.
    """
    with store.lock:
        snapshot = store.snapshot
        rows = snapshot.living()
        filters = np.flatnonzero(snapshot.is_filter_alive(np.arange(snapshot.filters, dtype=np.int32)))
        is_packed = snapshot.died is None and not any(level.filters for level in snapshot.levels[1:])
        level = snapshot.levels[0] if is_packed else store.merged(snapshot)
        owners = filters if snapshot.filter_subscription is None else snapshot.filter_subscription[filters]
        named, to_subscriber = np.unique(snapshot.owners(rows), return_inverse=True)
        return Saved(
            renumbered(level, filters), dict(crs), store.encoder.saved(),
            as_arrow(range(len(rows))) if keys is None else keys.chosen(rows), subscribers.chosen(named),
            _unless_plain(np.searchsorted(rows, owners)), _unless_plain(to_subscriber),
            len(rows), len(filters), snapshot.several_filters, keys is not None,
            None if sources is None else sources.chosen(rows), dict(wrap),
        )  # fmt: skip


def store_of(saved: Saved, tuning: Tuning = DEFAULT_TUNING) -> Store:
    """Return a store over a saved table; the store can be updated."""
    owners = (saved.filter_subscription, saved.subscription_subscriber)
    levels = (saved.level, *(EMPTY,) * (LEVEL_COUNT - 1))
    snapshot = Snapshot(1, levels, saved.rows, saved.filters, *owners, None, saved.several_filters)
    return Store(snapshot, MessageEncoder.of_saved(saved.encoder), tuning)


def _unless_plain(numbers: NDArray[Any]) -> NDArray[np.int32] | None:
    """Return `numbers` as int32, or None if they are 0, 1, 2, ..."""
    return None if np.array_equal(numbers, np.arange(len(numbers))) else numbers.astype(np.int32)


def save_table(saved: Saved, directory: str | os.PathLike[str], replace: bool = False) -> None:
    """Write a table to a new directory; with `replace` an existing saved table is replaced."""
    header = {
        "rows": saved.rows,
        "filters": saved.filters,
        "several_filters": saved.several_filters,
        "has_keys": saved.has_keys,
        "crs": saved.crs,
        "wrap": saved.wrap,
        "places": saved.encoder,
        "reached": saved.level.filters,
        "scalars": _scalars_header(saved.level.scalars),
        "trees": [list(slot) for slot, tree in saved.level.trees.items() if isinstance(tree, PackedTree)],
        "checks": [list(slot) for slot, part in saved.level.checks.items() if is_related(part)],
        "near": _near_slots(saved.level),
        "lines": _line_slots(saved.level),
        "own": _custom_parts(saved.level),
    }
    save_directory(TABLE_FORMAT, directory, _arrays_of(saved), header, replace)


def open_table(directory: str | os.PathLike[str], verify: bool = True) -> Saved:
    """Return the saved table, memory-mapped; raise TableError if the directory is foreign, damaged or truncated.

    With `verify` all files are checked against their checksums. Numbers that kernels use as indexes are always checked.
    """
    import pyarrow as pa

    source = Path(directory)
    header, arrays = read_directory(TABLE_FORMAT, source, verify)
    try:
        level = _level_of(header, arrays, verify)
        keys, subscribers = _names_of("keys", arrays), _names_of("subscribers", arrays)
        owners = _first(arrays, "filter_subscription", header["filters"])
        whose = _first(arrays, "subscription_subscriber", header["rows"])
        _check_owners(header, owners, whose, len(keys), len(subscribers))
        systems = {name: Crs.of(crs) for name, crs in header["crs"].items()}
        return Saved(
            level, systems, header["places"], keys, subscribers, owners, whose,
            header["rows"], header["filters"], header["several_filters"], header["has_keys"],
            _sources_of(arrays, header["rows"]), wraps_of(globes_of(header["wrap"])),
        )  # fmt: skip
    except TableError:
        raise
    except (*DAMAGE, pa.ArrowException) as error:
        raise TableError(f"{source} is damaged: {error}") from error


def _level_of(header: dict[str, Any], arrays: dict[str, NDArray[Any]], verify: bool) -> Level:
    """Return the level of a saved table; every number that kernels use as an index is checked."""
    encoder = MessageEncoder.of_saved(header["places"])
    scalars = _scalars_of(header["scalars"], arrays, encoder.forms[: len(encoder.numbers)], header["filters"])
    numbered = header["filters"] if scalars is None else len(scalars.arrays.numbers)
    trees = {_slot(p): _tree_of(f"tree{k}", arrays, p[1], numbered) for k, p in enumerate(header["trees"])}
    checks = {_slot(p): _checks_of(f"check{k}", arrays, p[1], numbered) for k, p in enumerate(header["checks"])}
    if not verify:
        for name, array in arrays.items():
            if name.endswith(("-xy", "-bounds")):
                check_coordinates(name, array)
    near_trees, near_checks = _near_of(header["near"], arrays, numbered)
    line_trees, line_checks = _lines_of(header["lines"], arrays, numbered)
    custom_trees, custom_checks = _custom_of(header["own"])
    reached: dict[Slot, Tree] = {**trees, **near_trees, **line_trees, **custom_trees}
    further: dict[Slot, Residual | CustomResidual] = {**checks, **near_checks, **line_checks, **custom_checks}
    return Level(reached, further, scalars, header["reached"])


def _check_owners(
    header: dict[str, Any], owners: NDArray[np.int32] | None, whose: NDArray[np.int32] | None, keys: int, names: int
) -> None:
    """Raise ValueError unless the counts of filters, subscriptions and subscribers fit arrays and names."""
    rows, filters = header["rows"], header["filters"]
    require(rows >= 0 and filters >= 0 and keys == rows, f"{keys} keys for {rows} subscriptions")
    require(owners is not None or filters == rows, f"{filters} filters for {rows} subscriptions")
    require(whose is not None or names == rows, f"{names} subscribers for {rows} subscriptions")
    for name, numbers, count, stop in (
        ("filter_subscription", owners, filters, rows),
        ("subscription_subscriber", whose, rows, names),
    ):
        if numbers is not None:
            require(numbers.dtype == np.int32 and numbers.shape == (count,), f"{name} is not an array of {count} int32")
            check_numbers(name, numbers, 0, stop)


def _first(arrays: dict[str, NDArray[Any]], name: str, count: int) -> NDArray[np.int32] | None:
    """Return the first `count` entries of an array; tables saved by earlier releases have spare room after them."""
    return arrays[name][:count] if name in arrays else None


class SavedNames(NamedTuple):
    """The names of a saved table's rows: Arrow arrays over the mapped files, or lists if text and integers mix."""

    keys: Any  # of subscriptions
    subscribers: Any
    owners: NDArray[np.int32] | None  # subscriber row of each subscription; None: row k for subscription k


def saved_names(directory: str | os.PathLike[str]) -> SavedNames:
    """Return the names of a saved table as columns, to name the rows of whole answers; checksums are not checked."""
    source = Path(directory)
    wanted = ("keys-", "subscribers-", "subscription_subscriber")
    header, arrays = read_directory(TABLE_FORMAT, source, False, lambda name: name.startswith(wanted))
    owners = _first(arrays, "subscription_subscriber", header["rows"])
    return SavedNames(_names_of("keys", arrays), _names_of("subscribers", arrays), owners)


def read_header(source: Path) -> dict[str, Any]:
    """Return the contents of `header.json`; raise TableError if it is foreign or damaged."""
    return read_kind_header(TABLE_FORMAT, source)


def is_related(part: Residual | CustomResidual) -> bool:
    """Return True for residual constraints on the eight relations."""
    return isinstance(part, Residual) and not isinstance(part, NearResidual | LineResidual)


def _near_slots(level: Level) -> list[list[str]]:
    """Return the slots of distance constraints, those of trees before those of residual constraints."""
    trees = [[*slot, "tree"] for slot, tree in level.trees.items() if isinstance(tree, DistanceTree)]
    return trees + [[*slot, "checks"] for slot, part in level.checks.items() if isinstance(part, NearResidual)]


def _near_arrays(level: Level) -> dict[str, NDArray[Any]]:
    """Return the arrays of distance constraints, numbered as in `_near_slots`; indexes are built when opened."""
    parts: list[DistanceTree | NearResidual] = [tree for tree in level.trees.values() if isinstance(tree, DistanceTree)]
    parts += [part for part in level.checks.values() if isinstance(part, NearResidual)]
    arrays: dict[str, NDArray[Any]] = {}
    for k, part in enumerate(parts):
        filters = part.rows if isinstance(part, DistanceTree) else part.filters
        own = {"filters": filters, "masks": part.masks, "distances": part.distances}
        own |= column_arrays(part.column)
        arrays |= {f"near{k}-{name}": array for name, array in own.items()}
    return arrays


def _near_of(
    slots: list[list[str]], arrays: dict[str, NDArray[Any]], numbered: int
) -> tuple[dict[Slot, DistanceTree], dict[Slot, NearResidual]]:
    """Return the distance constraints of a saved table; raise ValueError unless filters are below `numbered`."""
    trees, checks = dict[Slot, DistanceTree](), dict[Slot, NearResidual]()
    for k, (attribute, kind, form) in enumerate(slots):
        require(kind in NEAR_KINDS and form in ("tree", "checks"), f"distance constraints of unknown kind {kind!r:.60}")
        filters, masks, distances = (arrays[f"near{k}-{name}"] for name in ("filters", "masks", "distances"))
        NEAR_CHECKS.check({"filters": filters, "masks": masks, "distances": distances})
        count = len(filters)
        require(count > 0 and len(masks) == len(distances) == count, "filters, masks and distances differ in number")
        check_numbers("filters", filters, 0, numbered)
        check_numbers("masks", masks, 1, BEYOND_BIT + WITHIN_MASK)
        require(bool(((distances >= 0) & (distances < np.inf)).all()), "a distance is negative or infinite")
        column = _column_of(f"near{k}", arrays, shape_kind(kind), count)
        unit = METRES if kind in METRE_KINDS else None
        if unit is not None:
            require(not len(bad_places(column)), "a shape with a distance in metres leaves longitudes and latitudes")
        if form == "tree":
            require(len(np.unique(filters)) == count, "a filter is reached twice")
            tree_type = DistanceTree if unit is None else MetricTree
            trees[attribute, kind] = tree_type(column, masks, distances, filters, is_ordered=True)
        else:
            require(bool((filters[1:] >= filters[:-1]).all()), "filters are not in ascending order")
            checks[attribute, kind] = constraints_in(unit, filters, masks, column, distances).checks()
    return trees, checks


def _line_parts(level: Level) -> list[tuple[Slot, LineTree | LineResidual]]:
    """Return the constraints on OGC's relations, those of trees before residual ones."""
    trees: list[tuple[Slot, LineTree | LineResidual]]
    trees = [(slot, tree) for slot, tree in level.trees.items() if isinstance(tree, LineTree)]
    return trees + [(slot, part) for slot, part in level.checks.items() if isinstance(part, LineResidual)]


def _line_slots(level: Level) -> list[list[str]]:
    """Return the slots of constraints on OGC's relations, as `_line_parts` orders them."""
    return [[*slot, "tree" if isinstance(part, LineTree) else "checks"] for slot, part in _line_parts(level)]


def _line_arrays(level: Level) -> dict[str, NDArray[Any]]:
    """Return the arrays of constraints on OGC's relations, numbered as in `_line_slots`."""
    arrays: dict[str, NDArray[Any]] = {}
    for k, (_, part) in enumerate(_line_parts(level)):
        own = {"filters": part.rows if isinstance(part, LineTree) else part.filters, "masks": part.masks}
        own |= column_arrays(part.column)
        arrays |= {f"lines{k}-{name}": array for name, array in own.items()}
    return arrays


def _lines_of(
    slots: list[list[str]], arrays: dict[str, NDArray[Any]], numbered: int
) -> tuple[dict[Slot, LineTree], dict[Slot, LineResidual]]:
    """Return the constraints on OGC's relations of a saved table; filters must be below `numbered`."""
    trees, checks = dict[Slot, LineTree](), dict[Slot, LineResidual]()
    for k, (attribute, kind, form) in enumerate(slots):
        require(kind in LINE_KINDS and form in ("tree", "checks"), f"line constraints of unknown kind {kind!r:.60}")
        filters, masks = (arrays[f"lines{k}-{name}"] for name in ("filters", "masks"))
        LINE_CHECKS.check({"filters": filters, "masks": masks})
        count = len(filters)
        require(count > 0 and len(masks) == count, "filters and masks differ in number")
        check_numbers("filters", filters, 0, numbered)
        check_numbers("masks", masks, 0, ALL_LINE_RELATIONS + 1)
        column = _column_of(f"lines{k}", arrays, kind.rpartition(" ")[2], count)
        if form == "tree":
            require(len(np.unique(filters)) == count, "a filter is reached twice")
            trees[attribute, kind] = LineTree(column, masks, filters, is_ordered=True)
        else:
            require(bool((filters[1:] >= filters[:-1]).all()), "filters are not in ascending order")
            checks[attribute, kind] = LineConstraints(filters, masks, column).checks()
    return trees, checks


def _slot(pair: list[Any]) -> Slot:
    attribute, kind = pair
    if kind not in ("region", "point"):
        raise ValueError(f"a tree has the unknown kind {kind!r:.60}")
    return str(attribute), str(kind)


def _arrays_of(saved: Saved) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for k, tree in enumerate(tree for tree in saved.level.trees.values() if isinstance(tree, PackedTree)):
        arrays.update({f"tree{k}-{name}": array for name, array in tree_arrays(tree).items()})
    arrays.update(_near_arrays(saved.level))
    arrays.update(_line_arrays(saved.level))
    for k, checks in enumerate(part for part in saved.level.checks.values() if is_related(part)):
        assert isinstance(checks, Residual)
        arrays.update({f"check{k}-{name}": getattr(checks, name) for name in CHECK_PARTS})
        arrays.update({f"check{k}-{name}": array for name, array in column_arrays(checks.column).items()})
    if isinstance(saved.level.scalars, ScalarIndex):
        arrays.update({f"scalars-{name}": array for name, array in saved.level.scalars.arrays._asdict().items()})
    for name, names in (("keys", saved.keys), ("subscribers", saved.subscribers)):
        arrays.update({f"{name}-{part}": array for part, array in _name_arrays(names).items()})
    for name in ("filter_subscription", "subscription_subscriber"):
        array = getattr(saved, name)
        if array is not None:
            arrays[name] = array
    if saved.sources is not None and saved.sources.texts:
        arrays["source_of"] = saved.sources.number_of
        arrays.update({f"sources-{part}": array for part, array in _name_arrays(saved.sources.texts).items()})
    return arrays


def _sources_of(arrays: dict[str, NDArray[Any]], rows: int) -> WrittenRows | None:
    """Return what was written for the rows of a saved table; None if nothing was, or an earlier release saved it."""
    if "source_of" not in arrays:
        return None
    texts, number_of = _names_of("sources", arrays), arrays["source_of"]
    require(not isinstance(texts, list) and number_of.shape == (rows,), "sources do not fit the subscriptions")
    require(number_of.dtype == np.int32, "sources are not numbered by int32")
    check_numbers("source_of", number_of, -1, len(texts))
    return WrittenRows(texts.to_pylist(), number_of)


def _custom_parts(level: Level) -> list[dict[str, Any]]:
    """Return the constraints of added types as JSON values, made by the `dump` of each type."""
    parts = []
    for (attribute, kind), part in (*level.trees.items(), *level.checks.items()):
        if isinstance(part, CustomIndex | CustomResidual):
            try:
                dumped = part.part.dumped()
            except NotImplementedError as error:
                raise TableError(
                    f"constraints of type {kind!r} cannot be saved: the type has no dump and load"
                ) from error
            parts.append({"attribute": attribute, "is_reached": isinstance(part, CustomIndex), **dumped})
    return parts


def _custom_of(parts: list[dict[str, Any]]) -> tuple[dict[Slot, CustomIndex], dict[Slot, CustomResidual]]:
    trees, checks = {}, {}
    for dumped in parts:
        try:
            part, slot = CustomConstraints.loaded(dumped), (dumped["attribute"], dumped["kind"])
        except FilterError as error:
            raise TableError(f"the table needs a type that is not registered: {error}") from error
        if dumped["is_reached"]:
            trees[slot] = part.indexed()
        else:
            checks[slot] = part.checks()
    return trees, checks


def _tree_of(prefix: str, arrays: dict[str, NDArray[Any]], kind: str, numbered: int) -> PackedTree:
    """Return a tree from saved arrays; raise ValueError or AssertionError if they do not fit each other.

    Entries must be numbers below `numbered`.
    """
    own = {name.partition("-")[2]: array for name, array in arrays.items() if name.startswith(f"{prefix}-")}
    check_tree_arrays(own, kind == "point", numbered)
    tree = tree_from_arrays(own, kind == "point")
    tree.check()
    return tree


def _checks_of(prefix: str, arrays: dict[str, NDArray[Any]], kind: str, numbered: int) -> Residual:
    """Return residual constraints from saved arrays; raise ValueError unless filters are below `numbered`."""
    filters, masks, offsets = (arrays[f"{prefix}-{name}"] for name in CHECK_PARTS)
    CHECKS.check({"filters": filters, "masks": masks, "offsets": offsets})
    count = len(filters)
    require(count > 0 and len(masks) == count, "filters and masks differ in number")
    check_numbers("filters", filters, 0, numbered)
    require(bool((filters[1:] >= filters[:-1]).all()), "filters are not in ascending order")
    check_offsets("offsets", offsets, int(filters[-1]) - int(filters[0]) + 1, count)
    require(np.array_equal(np.diff(offsets), np.bincount(filters - filters[0])), "offsets do not fit the filters")
    return Residual(Constraints(filters, masks, _column_of(prefix, arrays, kind, count)), offsets)


def column_arrays(column: ShapeColumn) -> dict[str, NDArray[Any]]:
    """Return the arrays of a column by name, as they are saved."""
    return {"xy": column.xy} if isinstance(column, PointArray) else compact(column._arrays)._asdict()


def _column_of(prefix: str, arrays: dict[str, NDArray[Any]], kind: str, count: int) -> Any:
    """Return the regions, points or lines of saved constraints; raise ValueError unless they are sound and `count`."""
    if kind == "point":
        points = arrays[f"{prefix}-xy"]
        CHECKS.check({"xy": points})
        require(len(points) == count, "points and filters differ in number")
        return PointArray(points)
    own = {name: arrays[f"{prefix}-{name}"] for name in Arrays._fields}
    CHECKS.check(own)
    if kind == "line":
        check_lines(Arrays(**own), count)
        return LineArray(Arrays(**own))
    check_regions(Arrays(**own), count)
    return RegionArray(Arrays(**own))


def _scalars_header(scalars: ScalarIndex | RecordView | None) -> dict[str, Any] | None:
    """Return the header fields of packed scalar constraints; None if there are none."""
    if not isinstance(scalars, ScalarIndex):
        return None
    return {"first": scalars.first, "place": scalars.region_slot, "expected": scalars.expected}


def _scalars_of(
    header: dict[str, Any] | None, arrays: dict[str, NDArray[Any]], forms: NDArray[np.uint8], filters: int
) -> ScalarIndex | None:
    """Return the scalar constraints of a saved table; `forms[p]` is the form of slot p."""
    if header is None:
        return None
    own = {name: arrays[f"scalars-{name}"] for name in ScalarArrays._fields}
    slot = None if header["place"] is None else _slot(header["place"])
    SCALARS.check(own)
    index = ScalarIndex(header["first"], ScalarArrays(**own), slot, float(header["expected"]))
    check_scalar_arrays(index.arrays, forms)
    require(0 <= index.first <= filters - len(index.arrays.local_of), "scalar constraints refer to unknown filters")
    return index


def _name_arrays(names: Any) -> dict[str, NDArray[Any]]:
    """Return names (list or Arrow array) as int64, or as text with a flag for each integer."""
    import pyarrow as pa

    if not isinstance(names, list) and pa.types.is_integer(names.type):
        try:
            return {"numbers": np.asarray(names.cast(pa.int64()))}
        except pa.ArrowInvalid:  # uint64 beyond int64
            names = names.to_pylist()
    is_number = np.zeros(len(names), np.uint8)
    if isinstance(names, list):
        is_number[:] = [isinstance(name, int) for name in names]
        if is_number.all() and all(-(2**63) <= name < 2**63 for name in names):
            return {"numbers": np.array(names, np.int64)}
        names = pa.array(map(str, names), pa.large_string())
    whole = pa.concat_arrays([names.cast(pa.large_string()), pa.array([], pa.large_string())])
    _, offsets, text = whole.buffers()
    ends = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    used = np.frombuffer(text, np.uint8)[ends[0] : ends[-1]] if text is not None else np.empty(0, np.uint8)
    return {"text": used, "offsets": ends - ends[0], "is_number": is_number}


def _names_of(prefix: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return saved names as an Arrow array over the mapped files, or as a list if text and integers mix."""
    import pyarrow as pa

    if f"{prefix}-numbers" in arrays:
        require(arrays[f"{prefix}-numbers"].dtype == np.int64, f"{prefix} are not 64-bit integers")
        return pa.array(arrays[f"{prefix}-numbers"])
    text, offsets = arrays[f"{prefix}-text"], arrays[f"{prefix}-offsets"]
    require(text.dtype == np.uint8 and offsets.dtype == np.int64, f"{prefix} are not text")
    check_offsets(f"{prefix}-offsets", offsets, len(arrays[f"{prefix}-is_number"]), len(text))
    array = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))
    array.validate(full=True)
    is_number = arrays[f"{prefix}-is_number"]
    if not is_number.any():
        return array
    return [int(name) if number else name for name, number in zip(array.to_pylist(), is_number.tolist(), strict=True)]


def names_from(values: Any, tuning: Tuning = DEFAULT_TUNING) -> Names:
    """Return the names of an Arrow array or a list, with look-up."""
    names = Names(tuning)
    if isinstance(values, list):
        for name in values:
            names.append(name)
    elif len(values):
        names.extend(values)
    return names


def packed_bytes(save: Callable[[Path], None]) -> bytes:
    """Return the directory that `save` writes, as bytes."""
    with tempfile.TemporaryDirectory(prefix="contrada-pickle-") as temporary:
        save(Path(temporary) / "table")
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            archive.add(Path(temporary) / "table", "table")
        return stream.getvalue()


def opened_bytes(data: bytes, open: Callable[[Path], T]) -> T:
    """Call `open` on the directory in `data`; mapped files stay readable after the directory is deleted."""
    with tempfile.TemporaryDirectory(prefix="contrada-pickle-") as temporary:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(temporary, filter="data")
        return open(Path(temporary) / "table")
