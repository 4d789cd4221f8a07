"""Damaged Arrow, Feather and Parquet files, read through every door that takes them."""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import contrada as ct
from contrada.formats.reading import read_messages
from contrada.formats.records import Read
from generators.columnar import arrow_bytes, parquet_bytes
from generators.filters_of_every_kind import FILTERS, random_messages
from verification.damage import damaged

ROWS = 40


def read_case(number: int) -> None:
    """Damage a file and read it through one door, as the number says."""
    rng = np.random.default_rng([number, 11])
    files = good_files()
    name = sorted(files)[int(rng.integers(0, len(files)))]
    door = DOORS[int(rng.integers(0, len(DOORS)))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        door(damaged(files[name], rng), name)


@cache
def good_files() -> dict[str, bytes]:
    """Good files of every kind, by a name that tells their format."""
    made = {}
    for name, table in (("kinds", kinds_table()), ("encoded", encoded_table()), ("shapes", shapes_table())):
        for codec in (None, "lz4", "zstd"):
            made[f"{name}.{codec or 'uncompressed'}.arrow"] = arrow_bytes(table, codec, pa.ipc.new_file, 16)
        made[f"{name}.arrows"] = arrow_bytes(table, rows=16)
        if name == "encoded":
            table = table.drop_columns(["runs"])
        for codec in ("none", "snappy", "zstd"):
            made[f"{name}.{codec}.parquet"] = parquet_bytes(table, compression=codec, row_group_size=16)
    return made


def kinds_table() -> Any:
    """Messages with values of every kind, with columns that make them subscriptions and changes too."""
    table = random_messages(ROWS).append_column("key", pa.array([f"k{k}" for k in range(ROWS)]))
    filters = pa.array([FILTERS[k % len(FILTERS)] for k in range(ROWS)])
    return table.append_column("filter", filters).append_column("action", pa.array(["subscribe"] * ROWS))


def encoded_table() -> Any:
    """Columns with dictionaries, runs, views, lists, maps and wide types."""
    texts = [f"text {k % 7} of some length" for k in range(ROWS)]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([8, 16, 24, 32, 40], pa.int32()), pa.array(list("abcde")))
    return pa.table(
        {
            "key": pa.array(range(ROWS), pa.int64()),
            "name": pa.array(texts).dictionary_encode(),
            "runs": runs,
            "view": pa.array(texts, pa.string_view()),
            "large": pa.array(texts, pa.large_string()),
            "area": pa.array([ct.Region.box(k, 0, k + 2, 2).to_wkb() for k in range(ROWS)], pa.large_binary()),
            "tags": pa.array([["a", "bc"] * (k % 3) for k in range(ROWS)]),
            "map": pa.array([[("a", k)] for k in range(ROWS)], pa.map_(pa.string(), pa.int64())),
            "at": pa.array(range(ROWS), pa.timestamp("ns", "UTC")),
            "wind": pa.array([{"speed": k, "from": texts[k]} for k in range(ROWS)]),
        }
    )


def shapes_table() -> Any:
    """Regions and points in WKB and in every layout of GeoArrow."""
    regions = [ct.Region.box(k, 0, k + 2, 2 + k % 3) for k in range(ROWS)]
    points = ct.PointArray([(k, k + 1) for k in range(ROWS)], crs="EPSG:25832")
    rings = pa.array([[[{"x": x, "y": y} for x, y in ((0, 0), (4, 0), (4, 4), (0, 0))]]] * ROWS)
    return pa.table(
        {
            "message_id": pa.array([str(k) for k in range(ROWS)]),
            "area": ct.RegionArray.from_regions(regions).to_arrow().storage,
            "rings": rings,
            "place": points.to_arrow().storage,
            "spot": pa.array([{"x": float(k), "y": 1.0} for k in range(ROWS)]),
            "wkb": pa.array([ct.Point(k, 1).to_wkb() for k in range(ROWS)]),
        }
    )


def _messages(data: bytes, name: str, buffer: float | None = None) -> None:
    crs = None if buffer is None else "EPSG:25832"
    stream = io.BytesIO(data)
    stream.name = name
    for item in read_messages(stream, crs=crs, buffer=buffer):
        assert isinstance(item, Read) or len(item.reason) < 10_000, "a reason that prints memory"
        repr(item)


def _subscriptions(data: bytes, name: str) -> None:
    from contrada.formats.subscriptions import read_subscription_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        for asked in _TEMPLATES:
            template = ct.parse(asked)
            found = read_subscription_table(path, template)
            repr(found.rejected)
            ct.ForwardingTable().subscribe_many(found.table, template)


_TEMPLATES = ("S_INTERSECTS(area, $area)", "name = $name AND at >= $at", "name LIKE $large OR speed > $wind.speed")


def _table(data: bytes, name: str) -> Any:
    """The table of a file as a user has it who read it without us; without columns if that fails."""
    try:
        if name.endswith("parquet"):
            return pq.read_table(pa.BufferReader(data))
        reader = pa.ipc.open_file(data) if name.endswith("arrow") else pa.ipc.open_stream(data)
        return reader.read_all()
    except (pa.ArrowException, OSError, ValueError):
        return pa.table({})


def _match(data: bytes, name: str) -> None:
    table = _table(data, name)
    for asked in (_filters(("",)), _filters(("S_INTER", "meets", "equals"))):
        repr(asked.match_many(table, by="subscription").rejected)


@cache
def _filters(beginnings: tuple[str, ...]) -> Any:
    table = ct.ForwardingTable()
    for key, text in enumerate(FILTERS):
        if text.startswith(beginnings):
            table.subscribe(key, text, key)
    return table


def _bind(data: bytes, name: str) -> None:
    table = _table(data, name)
    for asked in _TEMPLATES:
        with suppress(ct.ContradaError):
            ct.ForwardingTable().subscribe_many(table, ct.parse(asked))


def _columns(data: bytes, name: str) -> None:
    for column in _table(data, name).columns:
        for read in (ct.read_regions, ct.read_points, ct.RegionArray.from_wkb):
            with suppress(ct.ContradaError):
                repr(read(column))


DOORS: tuple[Callable[[bytes, str], None], ...] = (
    _messages, _messages, partial(_messages, buffer=1.0), _subscriptions, _match, _bind, _columns,
)  # fmt: skip
