"""Damaged directories of saved tables and columns: an answer that is right, or an error.

The table has constraints of every kind: on regions and points, reached and further ones, scalars, text, patterns and
sets, templates, names of text and numbers, and a type that was added.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import contrada as ct
from contrada.errors import TableError
from generators.filters_of_every_kind import FILTERS, random_messages
from verification.damage import damaged

ROWS = 40  # messages that are matched
_OPERATORS: tuple[ct.Relation | ct.RelationSet, ...] = (
    ct.RelationSet.S_INTERSECTS, ct.Relation.DISJOINT, ct.Relation.CONTAINS, ct.Relation.INSIDE
)  # fmt: skip


# What a file is replaced by: headers of other formats and versions, and an array of objects.
OTHER_CONTENT = (
    b"", b"[]", b"{}", b"null", b"[" * 10_000, b'{"format": 1}', b'{"format": "contrada.RegionArray"}', b"\xed\xa0\x80",
    b'{"format": "contrada.ForwardingTable", "version": 1}', b"9" * 5000, b"\x93NUMPY\x01\x00v\x00{'descr': '|O'}",
    b'{"format": "contrada.RegionArray", "version": 1, "regions": 1e400, "crs": []}',
)  # fmt: skip


class Network(ct.ValueType):
    """IPv4 addresses and networks that hold them, for tables with constraints of a type that was added."""

    name, operators = "damaged network", ("in network",)

    def accepts(self, value: Any) -> bool:
        """True for addresses."""
        return isinstance(value, IPv4Address)

    def takes(self, operator: str, operand: Any) -> bool:
        """True for networks."""
        return isinstance(operand, IPv4Network)

    def holds(self, operator: str, operand: Any, value: Any) -> bool:
        """Whether a network holds an address."""
        return value in operand

    def dump(self, operand: Any) -> str:
        """Return a network as text."""
        return str(operand)

    def load(self, dumped: Any) -> IPv4Network:
        """Return the network of a text; other text is a ValueError, as a user's type would raise it."""
        return IPv4Network(dumped)


def table_case(number: int) -> None:
    """Damage a file of a saved table; what opens must answer as before, and without checksums it must not crash."""
    rng = np.random.default_rng([number, 21])
    place, right = good_table(number % 3)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "table"
        shutil.copytree(place, copy)
        _damage_one(copy, rng)
        for is_verified in (False, True):
            with suppress(TableError):
                if is_verified:
                    ct.ForwardingTable.verify(copy)
                table = ct.ForwardingTable.open(copy)
                assert answers(table) == right, "a damaged table gives other answers"
                table.subscribe("late", "size > 1", "late")
                table.pack()
                str((table.stats(), table.explain({"size": 2}, "late")))
        ask_anyway(copy)


def ask_anyway(copy: Path) -> None:
    """Open a table without checksums and ask it: answers may be wrong, but no index leaves its array."""
    with suppress(ct.ContradaError):
        table = ct.ForwardingTable.open(copy, verify=False)
        answers(table)
        table.subscribe("late", "size > 1 AND S_INTERSECTS(area, POLYGON((0 0, 4 0, 4 4, 0 0)))", "late")
        table.save(copy.parent / "again")
        answers(ct.ForwardingTable.open(copy.parent / "again"))


def column_case(number: int) -> None:
    """The same for a column of regions."""
    rng = np.random.default_rng([number, 22])
    place, right = good_column()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "column"
        shutil.copytree(place, copy)
        _damage_one(copy, rng)
        with suppress(ct.RegionError):
            assert ct.RegionArray.open(copy).to_wkb().to_pylist() == right, "a damaged column holds other regions"
        with suppress(ct.RegionError):
            column = ct.RegionArray.open(copy, verify=False)
            ct.relate(column, ct.Region.box(3, 0, 9, 4))
            ct.relate(column[::-1], column)
            str((column.to_wkb(), column.areas, [hash(each) for each in column]))


def _damage_one(folder: Path, rng: np.random.Generator) -> None:
    """Change one file of a directory: large files as often as small ones, the header in one case of ten."""
    files = sorted(folder.iterdir())
    headers = [file for file in files if file.suffix == ".json"]
    if headers and rng.random() < 0.1:  # constraints of added types stand there
        files = headers
    file = files[int(rng.integers(0, len(files)))]
    data = file.read_bytes()
    if rng.random() < 0.05:
        file.unlink()
    elif rng.random() < 0.1:
        file.write_bytes(rng.choice(OTHER_CONTENT))
    elif rng.random() < 0.8 and len(data) > 128 and file.suffix == ".npy":  # behind what NumPy begins with
        file.write_bytes((data[:128] + damaged(data[128:], rng)).ljust(len(data), b"\0")[: len(data)])
    else:
        file.write_bytes(damaged(data, rng))


def answers(table: ct.ForwardingTable) -> list[Any]:
    """What a table answers to messages of every kind, one by one and as a batch."""
    found = table.match_many(_messages(), by="subscription")
    one_by_one = [sorted(map(str, table.match_keys(message))) for message in _shapes()]
    names = table.keys_of(found.rows), table.subscribers_of(found.rows, "subscription")
    return [found.offsets.tolist(), *names, one_by_one]


@cache
def _messages() -> Any:
    return random_messages(ROWS)


@cache
def _shapes() -> list[dict[str, Any]]:
    return [
        {"area": _circle(5, 5, 4, 3, 90), "size": 2.0, "name": "abc", "source": IPv4Address(1 << 28 | 5)},
        {"area": ct.Point(2, 2), "size": 0, "source": "no address"},
        {"name": "a", "source": IPv4Address(7)},
        {},
    ]


@cache
def _folder() -> Any:
    return tempfile.TemporaryDirectory()


@cache
def good_table(which: int) -> tuple[Path, list[Any]]:
    """A saved table and its answers: of every kind of filter, of regions alone, or of a template."""
    table = ct.ForwardingTable()
    if which == 0:
        for k, text in enumerate(FILTERS * 3):
            table.subscribe(f"s{k % 17}" if k % 2 else k % 5, text, f"k{k}" if k % 3 else k)
        _subscribe_networks(table)
    elif which == 1:
        for k, region in enumerate(_circles()):
            table.subscribe(k % 30, ct.Constraint("area", _OPERATORS[k % 4], region))
    else:
        rows = pa.table(
            {
                "area": [ct.Region.box(k % 9, k % 7, k % 9 + 2, k % 7 + 1).to_wkb() for k in range(200)],
                "least": [float(k % 11) for k in range(200)],
                "name": [f"a{k % 13}%" for k in range(200)],
                "key": [f"key {k}" for k in range(200)],
            }
        )
        table.subscribe_many(
            rows, ct.parse("S_INTERSECTS(area, $area) AND size >= $least OR name LIKE $name AND size < $least")
        )
    place = Path(_folder().name) / f"table{which}"
    table.save(place)
    return place, answers(ct.ForwardingTable.open(place))


def _subscribe_networks(table: ct.ForwardingTable) -> None:
    """Add filters with a constraint of an added type: alone, beside a region and beside a number."""
    ct.register_type(Network())
    for k in range(30):
        own = ct.Constraint("source", "in network", IPv4Network((k % 4 << 28, 4 + k % 5)))
        beside = (
            (),
            (ct.Constraint("area", _OPERATORS[0], ct.Region.box(0, 0, 1 + k, 3)),),
            (ct.Constraint("size", ">", k % 5),),
        )[k % 3]
        table.subscribe(f"net{k % 7}", ct.Filter([own, *beside]), f"own{k}")


def _circle(x: float, y: float, width: float, height: float, vertices: int) -> ct.Region:
    """A region like an ellipse around a point."""
    return ct.Region([(x + width * np.cos(t), y + height * np.sin(t)) for t in np.linspace(0, 6.2, vertices)])


def _circles() -> list[ct.Region]:
    return [_circle(k % 10, k % 7, 0.5 + k % 4, 0.5 + k % 4, 80 if k % 6 == 0 else 5 + k % 9) for k in range(150)]


@cache
def good_column() -> tuple[Path, list[bytes]]:
    """A saved column of regions, and their WKB."""
    box = ct.Region.from_shapely(ct.Region.box(0, 0, 6, 6).to_shapely())
    column = ct.RegionArray.from_regions([*_circles(), box])
    place = Path(_folder().name) / "column"
    column.save(place)
    return place, column.to_wkb().to_pylist()
