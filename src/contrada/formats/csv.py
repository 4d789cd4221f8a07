"""Read lines of CSV as messages: a header names the attributes, one column may hold WKT."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

from contrada.doors import input_errors, reason_of
from contrada.errors import ContradaError, FormatError
from contrada.formats.records import Read, Record, Rejected, lines
from contrada.formats.spatial import Spatial
from contrada.formats.times import instant_of
from contrada.geometry.crs import Crs
from contrada.geometry.faults import rejection
from contrada.geometry.wellknown import shapes_from_wkt, split_ewkt
from contrada.limits import check_limit

GEOMETRY_NAMES = frozenset(("geometry", "geom", "the_geom", "wkt"))
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,999})\Z", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z", re.ASCII)

_WORDS = {"true": True, "false": False}
_FIRST_CHARACTERS = frozenset("-0123456789tf")  # first characters of numbers and booleans


def read_csv(name: str, stream: BinaryIO, spatial: Spatial, times: Collection[str]) -> Iterator[Read | Rejected]:
    """Yield the messages of a CSV file, one per line; a field cannot continue on the next line.

    A cell is a number or a boolean if it is written as in JSON, absent if it is empty, else text.
    """
    header: list[str] | None = None
    for record in lines(stream):
        try:
            if record.error is not None:
                raise record.error
            cells = _cells(record)
            if header is None:
                header = _header(cells)
                continue
            if len(cells) != len(header):  # no exception: raising one takes as long as all the rest
                yield record.rejected(name, f"need {len(header)} fields, as in the header, got {len(cells)}")
                continue
            yield Read(name, "line", record.number, _message(header, cells, spatial, times))
        except input_errors() as error:
            yield record.rejected(name, reason_of(error))
            if header is None:
                return


def _cells(record: Record) -> list[str]:
    try:
        text = record.data.decode()
        if '"' not in text and "\r" not in text and "\n" not in text and len(text) < csv.field_size_limit():
            return text.split(",")  # takes a third of the time of a reader for one line
        return next(csv.reader([text], strict=True))
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8: {error.reason}") from error
    except csv.Error as error:
        raise FormatError(f"CSV: {error}") from error


def _header(cells: list[str]) -> list[str]:
    names = ["geometry" if cell.strip().lower() in GEOMETRY_NAMES else cell.strip() for cell in cells]
    check_limit("attributes", len(names), "the header")
    check_limit("name_bytes", max(map(len, names)), "the header")
    twice = sorted(name for name, times in Counter(names).items() if times > 1 or not name)
    if twice:
        raise FormatError(f"the header has empty or duplicate names: {', '.join(map(repr, twice))[:200]}")
    return names


def _message(header: list[str], cells: list[str], spatial: Spatial, times: Collection[str]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    try:
        for name, cell in zip(header, cells, strict=True):
            if cell != "":
                message[name] = _geometry(cell, spatial.at(name)) if name == "geometry" else _value(cell, name in times)
    except ContradaError as error:
        raise type(error)(f"attribute {name!r}: {error}") from error
    return message


def _value(cell: str, is_time: bool) -> Any:
    if is_time:
        return instant_of(cell)
    if cell[0] not in _FIRST_CHARACTERS:
        return cell
    if _INTEGER.match(cell):
        return int(cell)
    if _NUMBER.match(cell):
        return float(cell)
    return _WORDS.get(cell, cell)


def _geometry(cell: str, spatial: Spatial) -> Any:
    srid, text = split_ewkt(cell)
    (geometry,), (fault,) = shapes_from_wkt([text], on_invalid="fix")
    if geometry is None:
        raise FormatError(f"{cell[:60]!r} is not valid WKT: {rejection(0, (fault, 0, 0)).reason}")
    return spatial.of_shapely(geometry, Crs.of(srid or None) or spatial.input_crs(None))
