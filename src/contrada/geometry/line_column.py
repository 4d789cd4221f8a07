"""LineArray: a column of lines in flat arrays, the form that kernels, tables and Spark batches use."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from contrada import kernels
from contrada.arguments import checks_methods
from contrada.codes import LINE, MAX_SCANNED_VERTICES
from contrada.errors import RegionError
from contrada.geometry.arrays import Arrays, compact, concatenate, offsets_of, take
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.column import NO_CHAINS
from contrada.geometry.crs import Crs, common_crs, srid_of
from contrada.geometry.faults import Rejection, first_error
from contrada.geometry.immutable import Immutable
from contrada.geometry.line_sources import read_rows
from contrada.geometry.saved.directories import Format, read_directory, save_directory
from contrada.geometry.saved.soundness import check_coordinates, check_offsets, require

if TYPE_CHECKING:
    from contrada.geometry.line import Line
    from contrada.geometry.reading import SourceKind

_SAVED = Format("contrada.LineArray", 1, "saved column of lines", RegionError)
_FIELDS = {"xy": "xy", "part_offsets": "ring_offsets", "line_offsets": "region_offsets", "bounds": "bounds"}


class LineArrays(NamedTuple):
    """Flat arrays of a column of lines, as `LineArray` describes them; all read-only."""

    xy: NDArray[np.float64]
    part_offsets: NDArray[np.int64]
    line_offsets: NDArray[np.int32]
    bounds: NDArray[np.float64]


class SiftedLines(NamedTuple):
    """Good rows of a batch as a column of lines, and the rejected rows with reasons; rows[k] is the input row."""

    lines: LineArray
    rows: NDArray[np.int64]
    rejected: tuple[Rejection, ...]


@checks_methods(
    "from_wkt", "from_wkb", "from_geojson", "from_shapely", "from_arrow", "from_lines", "to_wkb", "save", "open"
)
class LineArray(Immutable):
    """Immutable column of valid lines.

    xy (V, 2) holds the vertices of all parts, one part after another; no two consecutive vertices of a part are equal.
    Part p is xy[part_offsets[p]:part_offsets[p + 1]], line i has the parts line_offsets[i]:line_offsets[i + 1]. Slices
    share these arrays.

    >>> rivers = LineArray.from_wkt(["LINESTRING(0 0, 1 0, 1 1)", "MULTILINESTRING((5 5, 6 5), (7 7, 8 8))"])
    >>> len(rivers), rivers.bounds[1].tolist(), rivers.lengths[0].item()
    (2, [5.0, 5.0, 8.0, 8.0], 2.0)
    """

    __slots__ = ("_arrays", "_chains", "_crs", "_ends")
    _arrays: Arrays  # as of regions: parts in place of rings, with the flag LINE
    _chains: tuple[NDArray[np.float64], NDArray[np.int64]] | None
    _ends: tuple[NDArray[np.float64], NDArray[np.int64]] | None
    _crs: Crs | None

    def __init__(self, arrays: Arrays, crs: Any = None) -> None:
        """Wrap arrays that `check_lines` made. Users call the `from_` methods."""
        for array in arrays:
            array.setflags(write=False)
        object.__setattr__(self, "_arrays", arrays)
        object.__setattr__(self, "_crs", Crs.of(crs))
        object.__setattr__(self, "_chains", None)
        object.__setattr__(self, "_ends", None)

    # Reading

    @classmethod
    def from_wkb(cls, values: Any, *, crs: Any = None) -> LineArray:
        """Read lines from WKB or EWKB: an Arrow array, or a sequence of bytes or hex text.

        The first bad row raises a RegionError that names it; `read_lines` sets bad rows aside instead.

        >>> LineArray.from_wkb([LineArray.from_wkt(["LINESTRING(0 0, 1 0)"]).to_wkb()[0].as_py(), b"rubbish"])
        Traceback (most recent call last):
        contrada.errors.RegionError: row 1: malformed or truncated geometry
        """
        return _read("wkb", values, crs)

    @classmethod
    def from_wkt(cls, values: Iterable[str | None], *, crs: Any = None) -> LineArray:
        """Read lines from WKT texts; otherwise like `from_wkb`."""
        return _read("wkt", values, crs)

    @classmethod
    def from_shapely(cls, values: Any, *, crs: Any = None) -> LineArray:
        """Read lines from Shapely linestrings, linear rings and multilinestrings; otherwise like `from_wkb`.

        The CRS of a GeoSeries, or of another array that has one, is read; if `crs` differs from it, a CrsError is
        raised.
        """
        return _read("shapely", values, crs)

    @classmethod
    def from_geojson(cls, values: Iterable[Any], *, crs: Any = None) -> LineArray:
        """Read lines from GeoJSON geometries or features, as dicts or text; otherwise like `from_wkb`."""
        return _read("geojson", values, crs)

    @classmethod
    def from_arrow(cls, values: Any, *, crs: Any = None) -> LineArray:
        """Read lines from an Arrow array of GeoArrow (multi)linestrings, WKB or WKT; otherwise like `from_wkb`.

        Accepts any object with the Arrow PyCapsule interface; the CRS of an extension type is read.
        """
        return _read("arrow", values, crs)

    @classmethod
    def from_lines(cls, lines: Sequence[Line]) -> LineArray:
        """Return a column of lines that are already valid."""
        crs = None
        for line in lines:
            crs = common_crs(crs, line.crs)
        return cls(concatenate([line._column._arrays for line in lines]), crs)

    # Writing

    def to_shapely(self) -> NDArray[np.object_]:
        """Return Shapely linestrings, and multilinestrings for lines of several parts; no coordinate changes.

        The EPSG code of the CRS, if it has one, becomes their SRID.
        """
        a = compact(self._arrays)
        if not len(self):
            return np.empty(0, dtype=object)
        parts = shapely.from_ragged_array(shapely.GeometryType.LINESTRING, a.xy, (a.ring_offsets,))
        counts = np.diff(a.region_offsets)
        made = parts[a.region_offsets[:-1]]
        many = np.repeat(counts > 1, counts)
        if many.any():
            owners = np.repeat(np.cumsum(counts > 1) - 1, counts)[many]
            made[counts > 1] = shapely.multilinestrings(parts[many], indices=owners)
        code = None if self._crs is None else self._crs.epsg
        return np.asarray(made if code is None else shapely.set_srid(made, code), dtype=object)

    def to_wkb(self, srid: bool = False) -> Any:
        """Return an Arrow array of WKB; no coordinate changes.

        `srid` makes it EWKB, which names the EPSG code of the CRS; a CRS without an EPSG code raises a CrsError.
        """
        if srid:
            srid_of(self._crs)  # raises if there is none
        return pa.array(shapely.to_wkb(self.to_shapely(), include_srid=srid, byte_order=1), type=pa.binary())

    def to_arrow(self) -> Any:
        """Return a GeoArrow array of multilinestrings (interleaved coordinates) with the CRS; nothing changes."""
        from contrada.geometry.arrow.lines import lines_to_arrow

        return lines_to_arrow(compact(self._arrays), self._crs)

    def save(self, directory: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the column to a new directory of plain NumPy files; `open` maps them.

        `replace` replaces a saved column at that place.
        """
        found = compact(self._arrays)._asdict()
        arrays = {name: found[field] for name, field in _FIELDS.items()}
        save_directory(_SAVED, directory, arrays, {"lines": len(self), "crs": self._crs}, replace)

    @classmethod
    def open(cls, directory: str | os.PathLike[str], *, verify: bool = True) -> LineArray:
        """Open a saved column, memory-mapped: processes share its pages.

        All of it is read and compared with its checksums first, unless `verify=False`; its offsets are always checked.
        """
        source = Path(directory)
        header, found = read_directory(_SAVED, source, verify)
        try:
            arrays = LineArrays(*(found[name] for name in _FIELDS))
            kinds = (np.float64, np.int64, np.int32, np.float64)
            for name, kind in zip(_FIELDS, kinds, strict=True):
                require(found[name].dtype == kind, f"{name} has type {found[name].dtype}")
            lines, parts = int(header["lines"]), len(arrays.part_offsets) - 1
            is_shaped = arrays.xy.shape == (len(arrays.xy), 2) and arrays.bounds.shape == (lines, 4)
            require(is_shaped, "coordinates or bounds have a wrong shape")
            check_offsets("part_offsets", arrays.part_offsets, parts, len(arrays.xy), least=2)
            check_offsets("line_offsets", arrays.line_offsets, lines, parts, least=1)
            if not verify:
                check_coordinates("xy", arrays.xy)
                check_coordinates("bounds", arrays.bounds)
            return cls(_with_flags(arrays), header["crs"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise RegionError(f"{source} is damaged: {error}") from error

    # The column itself

    @property
    def arrays(self) -> LineArrays:
        """The flat arrays; offsets are absolute, so a slice shows the whole of xy and part_offsets."""
        a = self._arrays
        return LineArrays(a.xy, a.ring_offsets, a.region_offsets, a.bounds)

    @property
    def bounds(self) -> NDArray[np.float64]:
        """The boxes of the lines, (n, 4): xmin, ymin, xmax, ymax."""
        return self._arrays.bounds

    @property
    def crs(self) -> Crs | None:
        """The coordinate reference system, if known."""
        return self._crs

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self._arrays)

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Lengths, in floating point."""
        return np.asarray(kernels.measure_regions(*self._arrays[:3])[:, 1])

    def _boundaries(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the boundary points of all lines in ascending order, and the offsets of the lines into them.

        A point is in the boundary of a line if an odd number of its parts begin or end there (OGC's mod-2 rule).
        """
        if self._ends is None:
            a = self._arrays
            first, last = int(a.region_offsets[0]), int(a.region_offsets[-1])
            owners = np.repeat(np.arange(len(self)), 2 * np.diff(a.region_offsets))
            vertices = np.stack([a.ring_offsets[first:last], a.ring_offsets[first + 1 : last + 1] - 1], axis=1)
            xy = a.xy[vertices.reshape(-1)]
            order = np.lexsort((xy[:, 1], xy[:, 0], owners))
            xy, owners = xy[order], owners[order]
            starts = np.ones(len(xy), bool)
            starts[1:] = (owners[1:] != owners[:-1]) | (xy[1:] != xy[:-1]).any(axis=1)
            firsts = np.flatnonzero(starts)
            odd = firsts[np.diff(np.append(firsts, len(xy))) % 2 == 1]
            offsets = offsets_of(np.bincount(owners[odd], minlength=len(self)))
            ends = np.ascontiguousarray(xy[odd])
            ends.setflags(write=False)
            offsets.setflags(write=False)
            object.__setattr__(self, "_ends", (ends, offsets))
        assert self._ends is not None
        return self._ends

    def _edge_index(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the boxes of the edge index of large lines, and where those of each line begin."""
        a = self._arrays
        if self._chains is None:
            sizes = np.diff(a.ring_offsets[a.region_offsets])
            if (sizes > MAX_SCANNED_VERTICES).any():
                boxes, chains = kernels.build_chains(a.xy, a.ring_offsets, a.region_offsets)
            else:
                boxes, chains = NO_CHAINS[0], np.full(len(self), -1, np.int64)
            chains.setflags(write=False)
            object.__setattr__(self, "_chains", (boxes, chains))
        assert self._chains is not None
        return self._chains

    def _kernel_arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays as kernels of lines take them: with the edge index of large lines and the boundaries."""
        a = self._arrays
        return a.xy, a.ring_offsets, a.region_offsets, a.bounds, *self._edge_index(), *self._boundaries()

    def __len__(self) -> int:
        return len(self._arrays.bounds)

    @overload
    def __getitem__(self, item: int) -> Line: ...
    @overload
    def __getitem__(self, item: slice | ArrayLike) -> LineArray: ...
    def __getitem__(self, item: int | slice | ArrayLike) -> Line | LineArray:
        """Return one line, a slice that shares the arrays, or a copy of chosen rows (integers or a boolean mask)."""
        if isinstance(item, (int, np.integer)):
            from contrada.geometry.line import Line

            row = range(len(self))[item]
            return Line._from_column(self._slice(row, row + 1))
        if isinstance(item, slice):
            start, stop, step = item.indices(len(self))
            if step == 1:
                return self._slice(start, max(start, stop))
            return LineArray(take(self._arrays, np.arange(start, stop, step)), self._crs)
        rows = np.asarray(item)
        if rows.dtype == object:  # NumPy would write out Decimal("1E+999999") as an integer
            raise IndexError(f"rows: need integers, a slice or a mask, got {type(item).__name__}")
        if rows.dtype == bool:
            if len(rows) != len(self):
                raise IndexError(f"the mask has {len(rows)} values, but the column has {len(self)} lines")
            rows = np.flatnonzero(rows)
        return LineArray(take(self._arrays, rows), self._crs)

    def _slice(self, start: int, stop: int) -> LineArray:
        a = self._arrays
        arrays = a._replace(region_offsets=a.region_offsets[start : stop + 1], bounds=a.bounds[start:stop])
        return LineArray(arrays, self._crs)

    def __iter__(self) -> Iterator[Line]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LineArray) and len(self) == len(other) and all(map(operator.eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[object, tuple[Any, ...]]:
        return LineArray, (compact(self._arrays), self._crs)

    def __repr__(self) -> str:
        vertices = int(np.diff(self._arrays.ring_offsets[self._arrays.region_offsets]).sum())
        crs = f", {self._crs}" if self._crs else ""
        return f"<LineArray of {len(self)} lines, {vertices} vertices{crs}>"


def _with_flags(a: LineArrays) -> Arrays:
    flags = np.full(len(a.part_offsets) - 1, LINE, np.uint8)
    return Arrays(a.xy, a.part_offsets, a.line_offsets, flags, a.bounds)


def sift_lines(kind: SourceKind, values: Any, crs: Any) -> SiftedLines:
    """Return the good lines of a column of one kind, and the rejected rows with reasons."""
    found = read_rows(kind, values, crs)
    return SiftedLines(LineArray(found.arrays, found.crs), found.rows, found.rejected)


def _read(kind: SourceKind, values: Any, crs: Any) -> LineArray:
    """Return the column of lines that `values` of one kind hold; the first bad row raises."""
    sifted = sift_lines(kind, values, crs)
    if sifted.rejected:
        raise first_error(sifted.rejected)
    return sifted.lines
