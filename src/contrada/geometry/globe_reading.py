"""Read columns of regions on the globe: wrapped at the date line, and with edges near geodesics."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrada.errors import RegionError
from contrada.geometry.arrays import concatenate, take
from contrada.geometry.column import RegionArray, Sifted
from contrada.geometry.crs import Crs, common_crs, resolved
from contrada.geometry.faults import CRS_FAULTS, FaultCode, Rejection, error_of, first_error
from contrada.geometry.globe import (
    HALF,
    Globe,
    densified_ring,
    may_need_wrap,
    needs_wrap,
    wrapped_longitudes,
    wrapped_polygons,
)
from contrada.geometry.point import PointArray
from contrada.geometry.sources import RawRegions, raw_from_coordinates, raw_from_shapely
from contrada.geometry.validation import parts_of, sift


def sift_on_globe(raw: RawRegions, crs: Any, repair: bool, globe: Globe) -> Sifted:
    """Return the valid rows as a column, as `sift` does, after what `globe` asks for."""
    named, _ = resolved(raw.named, common_crs(raw.crs, crs))
    globe.check_crs(named)
    sifted = sift(raw, crs, repair)
    if globe.wrap is not None:
        sifted = _with_wrapped_rows(sifted, raw, named, globe)
    return sifted if globe.densify is None else _densified(sifted, globe.densify)


def _with_wrapped_rows(sifted: Sifted, raw: RawRegions, crs: Crs | None, globe: Globe) -> Sifted:
    """Replace what was found of rows that cross the date line, or go around a pole, by their wrapped regions."""
    assert globe.wrap is not None
    rings = np.flatnonzero(needs_wrap(raw.xy, raw.ring_offsets, globe.wrap))
    parts = np.searchsorted(raw.part_offsets, rings, side="right") - 1
    rows = np.unique(np.searchsorted(raw.region_offsets, parts, side="right") - 1)
    foreign = {bad.row for bad in sifted.rejected if bad.fault in CRS_FAULTS}
    made, kept, refused = [], [], []
    for row in rows.tolist():
        if row in foreign:
            continue
        try:
            shape = wrapped_polygons(parts_of(raw, row), globe.wrap)
        except RegionError as error:
            refused.append(Rejection(row, f"wrap: {error}", FaultCode.OFF_THE_GLOBE))
            continue
        if shape is not None:  # otherwise it is invalid, and `sifted` says why
            made.append(shape)
            kept.append(row)
    # Rounding where the date line cuts an edge may make two vertices one.
    new = sift(raw_from_shapely(made), crs, repair=True) if made else None
    return _merged(sifted, new, np.array(kept, np.int64), refused)


def _merged(old: Sifted, new: Sifted | None, rows: np.ndarray[Any, Any], refused: list[Rejection]) -> Sifted:
    """Return `old` with the rows of `new`, and of `refused`, in place of its own."""
    replaced = {*rows.tolist(), *(bad.row for bad in refused)}
    stays = np.flatnonzero(~np.isin(old.rows, list(replaced)))
    rejected = [bad for bad in old.rejected if bad.row not in replaced] + refused
    columns, numbers = [old.regions[stays]], [old.rows[stays]]
    if new is not None:
        columns.append(new.regions)
        numbers.append(rows[new.rows])
        rejected += [bad._replace(row=int(rows[bad.row])) for bad in new.rejected]
    found = np.concatenate(numbers)
    order = np.argsort(found, kind="stable")
    arrays = take(concatenate([column.arrays for column in columns]), order)
    crs = old.regions.crs
    rejected.sort(key=lambda bad: bad.row)
    repaired = np.setdiff1d(old.repaired, list(replaced))
    return Sifted(RegionArray(arrays, crs), found[order], tuple(rejected), repaired)


def _densified(sifted: Sifted, metres: float) -> Sifted:
    """Return the column with vertices added along geodesics; a region that becomes invalid is rejected."""
    columns, rows, rejected = [], [], []
    crs = sifted.regions.crs
    for row, region in zip(sifted.rows.tolist(), sifted.regions, strict=True):
        try:
            parts = [[densified_ring(ring, metres, crs) for ring in (shell, *holes)] for shell, holes in region.parts]
        except RegionError as error:
            rejected.append(Rejection(row, str(error), FaultCode.OFF_THE_GLOBE))
            continue
        found = sift(raw_from_coordinates(parts), crs)
        if found.rejected:
            bad = found.rejected[0]
            rejected.append(bad._replace(row=row, reason=f"after densify: {bad.reason}"))
        else:
            columns.append(found.regions.arrays)
            rows.append(row)
    all_rejected = sorted([*sifted.rejected, *rejected], key=lambda bad: bad.row)
    good = np.array(rows, np.int64)
    repaired = np.intersect1d(sifted.repaired, good)
    return Sifted(RegionArray(concatenate(columns), crs), good, tuple(all_rejected), repaired)


def wrapped_column(column: RegionArray, wrap: Any, crs: Any) -> RegionArray:
    """Return the regions of a column within longitude -180..180, as `RegionArray.wrapped` says."""
    return _checked(column, Globe.of(wrap, None), crs)


def densified_column(column: RegionArray, metres: Any) -> RegionArray:
    """Return the regions of a column with edges near geodesics, as `RegionArray.densified` says."""
    return _checked(column, Globe.of(None, metres), None)


def _checked(column: RegionArray, globe: Globe | None, crs: Any) -> RegionArray:
    if globe is None:
        return column
    found = sift_on_globe(raw_from_shapely(column.to_shapely()), common_crs(column.crs, crs), False, globe)
    if found.rejected:
        raise error_of(found.rejected[0]) if len(column) == 1 else first_error(found.rejected)
    return found.regions


def column_on_globe(column: RegionArray | PointArray, globe: Globe) -> RegionArray | PointArray:
    """Return regions or points that were read, wrapped; rows that stay within -180..180 do not change."""
    globe.check_crs(column.crs)
    assert globe.wrap is not None
    if isinstance(column, PointArray):
        is_far = len(column) and np.abs(column.xy[:, 0]).max() > HALF
        return PointArray(wrapped_longitudes(column.xy), crs=column.crs) if is_far else column
    far = np.flatnonzero(may_need_wrap(column.bounds, globe.wrap))
    if not len(far):
        return column
    wrapped = _checked(column[far], globe, column.crs)
    places = np.arange(len(column))
    places[far] = len(column) + np.arange(len(far))
    return RegionArray(take(concatenate([column.arrays, wrapped.arrays]), places), column.crs)


def region_on_globe(raw: RawRegions, crs: Any, globe: Globe) -> RegionArray:
    """Return one raw region, wrapped, as a column; a bad one raises."""
    found = sift_on_globe(raw, crs, False, globe)
    if found.rejected:
        raise error_of(found.rejected[0])
    return found.regions
