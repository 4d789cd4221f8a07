"""RegionArray: a column of regions in flat arrays, the form that kernels, tables and Spark batches use."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contrada import kernels
from contrada.arguments import checks_methods
from contrada.codes import MAX_SCANNED_VERTICES
from contrada.errors import RegionError
from contrada.geometry.arrays import Arrays, compact, concatenate, take
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.faults import Rejection, first_error
from contrada.geometry.immutable import Immutable
from contrada.geometry.interchange import column_to_shapely, column_to_wkb
from contrada.geometry.saved.directories import Format, read_directory, save_directory
from contrada.geometry.saved.soundness import check_coordinates, check_regions, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from contrada.geometry.reading import SourceKind
    from contrada.geometry.region import Region


KernelArrays = tuple[NDArray[Any], ...]  # arrays and edge index of a column, as relation kernels take them
NO_CHAINS = np.empty((0, 4)), np.full(1, -1, np.int64)  # edge index of one small region
NO_CHAINS[1].setflags(write=False)
_SAVED = Format("contrada.RegionArray", 2, "saved column of regions", RegionError)
_DTYPES = (np.float64, np.int64, np.int32, np.uint8, np.float64)  # of `Arrays`


class Sifted(NamedTuple):
    """Good rows of a batch as a column, and the rejected rows with reasons; no row is lost.

    `rows[k]` is the input row of region k; `repaired` lists the input rows that were repaired.
    """

    regions: RegionArray
    rows: NDArray[np.int64]
    rejected: tuple[Rejection, ...]
    repaired: NDArray[np.int64]


@checks_methods(
    "from_wkt", "from_wkb", "from_geojson", "from_shapely", "from_arrow", "from_regions", "to_wkb", "save", "open",
    "plot", "wrapped", "densified",
)  # fmt: skip
class RegionArray(Immutable):
    """Immutable column of valid regions.

    xy (V, 2) holds closed rings one after another, with the interior left of every edge: shells run counter-clockwise,
    holes clockwise. Ring r is xy[ring_offsets[r]:ring_offsets[r + 1]], region i has the rings
    region_offsets[i]:region_offsets[i + 1], each shell followed by its holes. Slices share these arrays.

    >>> squares = RegionArray.from_wkt(["POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))", "POLYGON((5 5, 6 5, 6 6, 5 5))"])
    >>> len(squares), squares.bounds[1].tolist()
    (2, [5.0, 5.0, 6.0, 6.0])
    """

    __slots__ = ("_arrays", "_chains", "_crs")
    _arrays: Arrays
    _chains: tuple[NDArray[np.float64], NDArray[np.int64]] | None
    _crs: Crs | None

    def __init__(self, arrays: Arrays, crs: Any = None) -> None:
        """Wrap arrays of the form that `RegionArray` describes, unchecked. Users call the `from_` methods."""
        for array in arrays:
            array.setflags(write=False)
        object.__setattr__(self, "_arrays", arrays)
        object.__setattr__(self, "_crs", Crs.of(crs))
        object.__setattr__(self, "_chains", None)

    @classmethod
    def _of_kernel_arrays(cls, arrays: KernelArrays, crs: Any = None) -> RegionArray:
        """Wrap the result of `_kernel_arrays`; nothing is checked."""
        made = cls(Arrays(*arrays[:5]), crs)
        object.__setattr__(made, "_chains", arrays[5:])
        return made

    # Reading

    @classmethod
    def from_wkb(cls, values: Any, *, crs: Any = None, repair: bool = False) -> RegionArray:
        """Read regions from WKB or EWKB: an Arrow array, or a sequence of bytes or hex text.

        The first bad row raises a RegionError that names it; `read_regions` sets bad rows aside instead. `repair`
        repairs regions that can be repaired.

        >>> from contrada import Region
        >>> RegionArray.from_wkb([Region.box(0, 0, 1, 1).to_wkb(), b"rubbish"])
        Traceback (most recent call last):
        contrada.errors.RegionError: row 1: malformed or truncated geometry
        """
        return _read("wkb", values, crs, repair)

    @classmethod
    def from_wkt(cls, values: Iterable[str | None], *, crs: Any = None, repair: bool = False) -> RegionArray:
        """Read regions from WKT texts; otherwise like `from_wkb`.

        >>> RegionArray.from_wkt(["POLYGON((0 0, 2 0, 2 2, 0 0))"])[0].area
        2.0
        """
        return _read("wkt", values, crs, repair)

    @classmethod
    def from_shapely(cls, values: Any, *, crs: Any = None, repair: bool = False) -> RegionArray:
        """Read regions from Shapely polygons and multipolygons; otherwise like `from_wkb`.

        The CRS of a GeoSeries, or of another array that has one, is read; if `crs` differs from it, a CrsError is
        raised.
        """
        return _read("shapely", values, crs, repair)

    @classmethod
    def from_geojson(cls, values: Iterable[Any], *, crs: Any = None, repair: bool = False) -> RegionArray:
        """Read regions from GeoJSON geometries or features, as dicts or text; otherwise like `from_wkb`."""
        return _read("geojson", values, crs, repair)

    @classmethod
    def from_arrow(cls, values: Any, *, crs: Any = None, repair: bool = False) -> RegionArray:
        """Read regions from an Arrow array of GeoArrow (multi)polygons, WKB or WKT; otherwise like `from_wkb`.

        Accepts any object with the Arrow PyCapsule interface; the CRS of an extension type is read.
        """
        return _read("arrow", values, crs, repair)

    @classmethod
    def from_regions(cls, regions: Sequence[Region]) -> RegionArray:
        """Return a column of regions that are already valid."""
        crs = None
        for region in regions:
            crs = common_crs(crs, region.crs)
        return cls(concatenate([region._column.arrays for region in regions]), crs)

    # Writing

    def to_shapely(self) -> NDArray[np.object_]:
        """Return Shapely polygons, and multipolygons for regions of several parts; no coordinate changes.

        The EPSG code of the CRS, if it has one, becomes their SRID.
        """
        return column_to_shapely(self)

    def to_wkb(self, srid: bool = False) -> Any:
        """Return an Arrow array of WKB; no coordinate changes.

        `srid` makes it EWKB, which names the EPSG code of the CRS; a CRS without an EPSG code raises a CrsError.
        """
        return column_to_wkb(self, srid)

    def to_arrow(self) -> Any:
        """Return a GeoArrow array of multipolygons (interleaved coordinates) with the CRS; no coordinate changes."""
        from contrada.geometry.arrow.geoarrow import column_to_arrow

        return column_to_arrow(self)

    def save(self, directory: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the column to a new directory of plain NumPy files; `open` maps them.

        `replace` replaces a saved column at that place.
        """
        header = {"regions": len(self), "crs": self._crs}
        save_directory(_SAVED, directory, compact(self._arrays)._asdict(), header, replace)

    @classmethod
    def open(cls, directory: str | os.PathLike[str], *, verify: bool = True) -> RegionArray:
        """Open a saved column, memory-mapped: processes share its pages.

        All of it is read and compared with its checksums first, unless `verify=False`; its offsets are always checked.
        """
        source = Path(directory)
        header, found = read_directory(_SAVED, source, verify)
        try:
            arrays = Arrays(*(found[name] for name in Arrays._fields))
            for name, kind in zip(Arrays._fields, _DTYPES, strict=True):
                require(found[name].dtype == kind, f"{name} has type {found[name].dtype}")
            check_regions(arrays, int(header["regions"]))
            if not verify:
                check_coordinates("xy", arrays.xy)
                check_coordinates("bounds", arrays.bounds)
            return cls(arrays, header["crs"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise RegionError(f"{source} is damaged: {error}") from error

    # The column itself

    @property
    def arrays(self) -> Arrays:
        """The flat arrays; offsets are absolute, so a slice shows the whole of xy, ring_offsets and ring_flags."""
        return self._arrays

    @property
    def bounds(self) -> NDArray[np.float64]:
        """The boxes of the regions, (n, 4): xmin, ymin, xmax, ymax."""
        return self._arrays.bounds

    @property
    def crs(self) -> Crs | None:
        """The coordinate reference system, if known."""
        return self._crs

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays; an edge index, once built, adds about five bytes per vertex of large regions."""
        return sum(array.nbytes for array in self._arrays)

    @property
    def areas(self) -> NDArray[np.float64]:
        """Areas, in floating point."""
        return np.asarray(kernels.measure_regions(*self._arrays[:3])[:, 0])

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Lengths of the boundaries, holes included, in floating point."""
        return np.asarray(kernels.measure_regions(*self._arrays[:3])[:, 1])

    @property
    def is_simple(self) -> NDArray[np.bool_]:
        """Whether each region is a simple polygon: one ring."""
        return np.asarray(np.diff(self._arrays.region_offsets) == 1)

    def wrapped(self, wrap: str = "longitude", *, crs: Any = None) -> RegionArray:
        """Return the regions within longitude -180..180: those that cross the date line are cut there.

        With `wrap="shorter"` every edge of more than 180 degrees goes the shorter way round, and an outline around a
        pole becomes the region between the outline and the pole. `crs` is for a column that has none.

        >>> east = RegionArray.from_wkt(["POLYGON((170 0, 190 0, 190 9, 170 9, 170 0))"])
        >>> [shell[:, 0].max().item() for shell, _ in east.wrapped()[0].parts]
        [-170.0, 180.0]
        """
        from contrada.geometry.globe_reading import wrapped_column

        return wrapped_column(self, wrap, crs)

    def densified(self, metres: float) -> RegionArray:
        """Return the regions with vertices added along the geodesics of their edges.

        Coordinates are longitude and latitude, on WGS 84 unless the CRS names another ellipsoid. Every edge, straight
        in longitude and latitude, then stays within `metres` of the geodesic between the given vertices.

        >>> RegionArray.from_wkt(["POLYGON((0 50, 60 50, 30 70, 0 50))"]).densified(1000)
        <RegionArray of 1 regions, 97 vertices>
        """
        from contrada.geometry.globe_reading import densified_column

        return densified_column(self, metres)

    def _kernel_arrays(self) -> KernelArrays:
        """Return the arrays for relation kernels, with the edge index of large regions, built once and kept."""
        if self._chains is None:
            a = self._arrays
            ends = a.ring_offsets[a.region_offsets]
            if len(ends) == 2 and ends.item(1) - ends.item(0) <= MAX_SCANNED_VERTICES:  # the column of one region
                boxes, chains = NO_CHAINS
            elif (np.diff(ends) > MAX_SCANNED_VERTICES).any():
                boxes, chains = kernels.build_chains(a.xy, a.ring_offsets, a.region_offsets)
            else:
                boxes, chains = np.empty((0, 4)), np.full(len(self), -1, np.int64)
            chains.setflags(write=False)
            object.__setattr__(self, "_chains", (boxes, chains))
        assert self._chains is not None
        return (*self._arrays, *self._chains)

    def __len__(self) -> int:
        return len(self._arrays.bounds)

    @overload
    def __getitem__(self, item: int) -> Region: ...
    @overload
    def __getitem__(self, item: slice | ArrayLike) -> RegionArray: ...
    def __getitem__(self, item: int | slice | ArrayLike) -> Region | RegionArray:
        """Return one region, a slice that shares the arrays, or a copy of chosen rows (integers or a boolean mask)."""
        if isinstance(item, (int, np.integer)):
            from contrada.geometry.region import Region

            row = range(len(self))[item]
            return Region._from_column(self._slice(row, row + 1))
        if isinstance(item, slice):
            start, stop, step = item.indices(len(self))
            if step == 1:
                return self._slice(start, max(start, stop))
            return RegionArray(take(self._arrays, np.arange(start, stop, step)), self._crs)
        rows = np.asarray(item)
        if rows.dtype == object:  # NumPy would write out Decimal("1E+999999") as an integer
            raise IndexError(f"rows: need integers, a slice or a mask, got {type(item).__name__}")
        if rows.dtype == bool:
            if len(rows) != len(self):
                raise IndexError(f"the mask has {len(rows)} values, but the column has {len(self)} regions")
            rows = np.flatnonzero(rows)
        return RegionArray(take(self._arrays, rows), self._crs)

    def _slice(self, start: int, stop: int) -> RegionArray:
        a = self._arrays
        arrays = a._replace(region_offsets=a.region_offsets[start : stop + 1], bounds=a.bounds[start:stop])
        part = RegionArray(arrays, self._crs)
        if self._chains is not None:
            object.__setattr__(part, "_chains", (self._chains[0], self._chains[1][start:stop]))
        return part

    def __iter__(self) -> Iterator[Region]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegionArray) and len(self) == len(other) and all(map(operator.eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[object, tuple[Any, ...]]:
        return RegionArray, (compact(self._arrays), self._crs)

    def plot(self, ax: Any = None, *, color: Any = None, label: str | None = None) -> Axes:
        """Draw the regions with Matplotlib, on `ax` or on new axes, and return the axes.

        Holes are left out, and both directions have the same scale. `label` is for a legend. Of more than 20,000
        regions so many are drawn, evenly chosen. Needs the extra `plot`.

        >>> squares = RegionArray.from_wkt(["POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))", "POLYGON((5 5, 6 5, 6 6, 5 5))"])
        >>> axes = squares.plot(color="tab:green")
        >>> axes.get_aspect(), len(axes.collections[0].get_paths())
        (1.0, 2)
        """
        from contrada.geometry.pictures import plot_column

        return plot_column(self, ax, color, label)

    def _repr_svg_(self) -> str:
        """Return a picture for Jupyter, of a long column with some of its regions."""
        from contrada.geometry.pictures import column_svg

        return column_svg(self)

    def _repr_html_(self) -> str:
        """Return a picture for Jupyter in the colours of the notebook, and how many regions it shows."""
        from contrada.geometry.pictures import column_html

        return column_html(self)

    def __repr__(self) -> str:
        vertices = int(np.diff(self._arrays.ring_offsets[self._arrays.region_offsets]).sum())
        crs = f", {self._crs}" if self._crs else ""
        return f"<RegionArray of {len(self)} regions, {vertices} vertices{crs}>"


def _read(kind: SourceKind, values: Any, crs: Any, repair: bool) -> RegionArray:
    """Return the column of regions that `values` of one kind hold; the first bad row raises."""
    from contrada.geometry.reading import sift_regions

    sifted = sift_regions(kind, values, crs, repair)
    if sifted.rejected:
        raise first_error(sifted.rejected)
    return sifted.regions
