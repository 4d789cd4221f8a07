"""Sift columns of geometry: valid regions and points become WKB, reprojected and buffered; others are rejected."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from contrada.errors import CrsError
from contrada.formats.spatial import OTHER_TYPES, Spatial
from contrada.geometry import PointArray, Region, RegionArray, Rejection
from contrada.geometry.arrow.mixed import ValueRows, parts_by_crs, sift_mixed
from contrada.geometry.crs import Crs, is_geographic
from contrada.geometry.faults import FaultCode
from contrada.geometry.reading import sift_regions

_NO_ROWS = np.empty(0, np.int64)


class Kept(NamedTuple):
    """The good rows of a geometry column as an Arrow column of WKB, in order; the others with reasons.

    `rows[k]` is the input row of value k; `repaired` lists the input rows that were repaired.
    """

    wkb: Any
    rows: NDArray[np.int64]
    rejected: tuple[Rejection, ...]
    repaired: NDArray[np.int64]


def sift_column(column: Any, spatial: Spatial, crs: Crs | None = None, repair: bool = False) -> Kept:
    """Sift an Arrow column of WKB or GeoArrow according to `spatial`; nulls are rejected, too.

    `crs` is the CRS of the column; a row whose SRID names another is rejected, unless all are reprojected. Whole
    columns are reprojected at once; points and lines are buffered one by one.

    >>> import pyarrow as pa
    >>> squares = pa.chunked_array([[Region.box(0, 0, 1, 1).to_wkb(), None]])
    >>> kept = sift_column(squares, Spatial())
    >>> kept.rows.tolist(), kept.rejected[0].reason
    ([0], 'no geometry (null)')
    """
    from contrada.geometry.arrow.geoarrow import with_crs

    mixed = (sift_mixed if spatial.to_crs is None else parts_by_crs)(column, crs, repair)
    rejected, repaired, done = list(mixed.rejected), [mixed.repaired], []
    widened = [_NO_ROWS]
    for part in mixed.parts:
        if isinstance(part.column, PointArray) and spatial.buffer is not None:
            widened.append(part.rows)
            continue
        placed, bad, mended = _placed(part, spatial, repair)
        done.append(placed)
        rejected += bad
        repaired.append(mended)
    if spatial.buffer is not None:
        widened.append(np.array([bad.row for bad in rejected if bad.fault in OTHER_TYPES], np.int64))
        rejected = [bad for bad in rejected if bad.fault not in OTHER_TYPES]
        whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        placed, bad = _widened(with_crs(whole, crs), np.concatenate(widened), spatial)
        done.append(placed)
        rejected += bad
    rows = np.concatenate([_NO_ROWS, *(part.rows for part in done)])
    parts = [part.column.to_wkb() for part in done] or [pa.array([], pa.binary())]
    wkb = pa.concat_arrays(parts) if len(parts) > 1 else parts[0]
    mended = np.concatenate(repaired)
    kept_repaired = np.intersect1d(mended, rows) if len(mended) else mended
    if not (rows[1:] > rows[:-1]).all():
        order = np.argsort(rows, kind="stable")
        wkb, rows = wkb.take(pa.array(order)), rows[order]
    return Kept(wkb, rows, tuple(map(_told, sorted(rejected))), kept_repaired)


def _told(bad: Rejection) -> Rejection:
    """Add to the reason of a rejection that a buffer would help."""
    is_other = bad.fault in OTHER_TYPES
    return bad._replace(reason=f"{bad.reason}; buffer= makes a region of it") if is_other else bad


def _placed(part: ValueRows, spatial: Spatial, repair: bool) -> tuple[ValueRows, list[Rejection], NDArray[np.int64]]:
    """Reproject a column to `spatial.to_crs`; return it, rejections, and the rows that were repaired."""
    column, rows = part
    bad: list[Rejection] = []
    if isinstance(column, PointArray) and column.crs is not None and is_geographic(column.crs):
        outside = (np.abs(column.xy) > [180, 90]).any(axis=1)
        bad = [_rejected(int(rows[k]), f"({x}, {y}) is outside longitude -180..180, latitude -90..90")
               for k, (x, y) in zip(np.flatnonzero(outside), column.xy[outside].tolist(), strict=True)]  # fmt: skip
        column, rows = column[~outside], rows[~outside]
    if spatial.to_crs is None or not len(rows):
        return ValueRows(column, rows), bad, _NO_ROWS
    if column.crs is None:
        raise CrsError(f"cannot reproject to {spatial.to_crs.label}: the input names no CRS; pass crs=")
    geometries = shapely.set_srid(column.to_shapely(), 0)
    xy, owners = shapely.get_coordinates(geometries, return_index=True)
    moved = spatial.moved(xy, column.crs)
    lost, first = np.unique(owners[~np.isfinite(moved).all(axis=1)], return_index=True)
    vertices = xy[~np.isfinite(moved).all(axis=1)][first]
    bad += [_rejected(int(rows[k]), spatial.no_place(vertex)) for k, vertex in zip(lost, vertices, strict=True)]
    stays = ~np.isin(np.arange(len(rows)), lost)
    geometries, rows = shapely.set_coordinates(geometries, moved)[stays], rows[stays]
    if isinstance(column, PointArray):
        return ValueRows(PointArray.from_shapely(geometries, crs=spatial.to_crs), rows), bad, _NO_ROWS
    sifted = sift_regions("shapely", geometries, spatial.to_crs, repair)
    bad += [item._replace(row=int(rows[item.row])) for item in sifted.rejected]
    return ValueRows(sifted.regions, rows[sifted.rows]), bad, rows[sifted.repaired]


def _widened(column: Any, rows: NDArray[np.int64], spatial: Spatial) -> tuple[ValueRows, list[Rejection]]:
    """Return the regions around points, lines and collections."""
    regions: dict[int, Region] = {}  # by row
    bad: list[Rejection] = []
    for k, found in spatial.of_column(column.take(pa.array(rows))):
        if isinstance(found, Rejection):
            bad.append(found._replace(row=int(rows[k])))
        elif isinstance(found, Region):  # nothing else has been buffered
            regions[int(rows[k])] = found
    return ValueRows(RegionArray.from_regions(list(regions.values())), np.array(list(regions), np.int64)), bad


def _rejected(row: int, reason: str) -> Rejection:
    return Rejection(row, reason, FaultCode.OFF_THE_GLOBE)
