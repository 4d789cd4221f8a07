"""Coordinate reference systems named by rows: SRIDs of EWKB and EWKT, the member `crs` of GeoJSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import CrsError
from contrada.geometry.crs import Crs, differing, is_same_crs
from contrada.geometry.faults import FaultCode, Rejection
from contrada.geometry.wellknown import arrow_buffers

_SRID_FLAG = 0x20  # in the highest byte of a geometry's type


class Named(NamedTuple):
    """Systems that rows name: row i names systems[codes[i]], or none if codes[i] is -1.

    A name that means no system is in `systems` as a CrsError.
    """

    codes: NDArray[np.int64]
    systems: tuple[Crs | CrsError, ...]


def named_by_srids(srids: NDArray[np.int64]) -> Named | None:
    """Return the systems of rows with these SRIDs (0 and less: none); None if no row names a system.

    >>> named_by_srids(np.array([-1, 4326]))
    Named(codes=array([-1,  0]), systems=('EPSG:4326',))
    """
    if not (srids > 0).any():
        return None
    distinct, codes = np.unique(srids, return_inverse=True)
    none = int(np.searchsorted(distinct, 0, side="right"))
    return Named(np.maximum(codes - none, -1), tuple(map(_of_srid, distinct[none:].tolist())))


def _of_srid(srid: int) -> Crs | CrsError:
    found = _tried(srid)
    return found if isinstance(found, Crs) else CrsError(f"SRID {srid} is not a known coordinate reference system")


def named_by_values(values: Sequence[Any]) -> Named | None:
    """Return the systems that `values` name, one per row; None if no row names a system."""
    if all(value is None for value in values):
        return None
    codes = np.full(len(values), -1, np.int64)
    systems: list[Crs | CrsError] = []
    known: dict[str, int] = {}
    for row, value in enumerate(values):
        if value is not None:
            codes[row] = known.setdefault(str(value), len(systems))
            if codes[row] == len(systems):
                systems.append(_tried(value))
    return Named(codes, tuple(systems))


def crs_member(value: Any) -> Any:
    """Return the name in the member `crs` of GeoJSON 2008, or the member itself if it has no name."""
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None  # malformed as a geometry, too
    member = value.get("crs") if isinstance(value, dict) else None
    properties = member.get("properties") if isinstance(member, dict) else None
    return properties["name"] if isinstance(properties, dict) and "name" in properties else member


def _tried(value: Any) -> Crs | CrsError:
    try:
        made = Crs.of(value)
    except ValueError as error:  # a CrsError, or a LimitError
        return CrsError(str(error))
    assert made is not None
    return made


def resolved(named: Named | None, crs: Crs | None) -> tuple[Crs | None, dict[int, Rejection]]:
    """Return the CRS of a column: the given `crs`, or else that of the first row that names one.

    Also returns the rejections of rows that name another system or one that does not exist, by row.
    """
    if named is None:
        return crs, {}
    is_good = np.array([isinstance(system, Crs) for system in named.systems])
    if crs is None:
        naming = np.flatnonzero((named.codes >= 0) & is_good[named.codes])
        first = named.systems[named.codes[naming[0]]] if naming.size else None
        crs = first if isinstance(first, Crs) else None
    reasons = [_reason(system, crs) for system in named.systems]
    is_bad = np.array([reason is not None for reason in reasons])
    rows = np.flatnonzero((named.codes >= 0) & is_bad[named.codes])
    rejected = {}
    for row in rows.tolist():
        system = named.codes[row]
        code = FaultCode.OTHER_CRS if is_good[system] else FaultCode.UNKNOWN_CRS
        rejected[row] = Rejection(row, str(reasons[system]), code)
    return crs, rejected


def _reason(system: Crs | CrsError, crs: Crs | None) -> str | None:
    if isinstance(system, CrsError):
        return str(system)
    if crs is None or is_same_crs(system, crs):
        return None
    return f"{differing(system, crs)} (the column's)"


def wkb_srids(values: Any) -> NDArray[np.int64]:
    """Return the SRIDs of an Arrow array of WKB by row, 0 where there is none."""
    data, positions, missing = arrow_buffers(values)
    srids = np.zeros(len(missing), np.int64)
    long = np.flatnonzero((missing == 0) & (np.diff(positions) >= 9))
    heads = data[positions[long][:, None] + np.arange(9)]  # byte order, type, SRID
    is_little = heads[:, 0] == 1
    named = (heads[:, 0] <= 1) & (np.where(is_little, heads[:, 4], heads[:, 1]) & _SRID_FLAG != 0)
    numbers = np.ascontiguousarray(heads[named, 5:])
    srids[long[named]] = np.where(is_little[named], numbers.view("<u4")[:, 0], numbers.view(">u4")[:, 0])
    return srids
