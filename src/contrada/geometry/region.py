"""Region: one valid polygon or multipolygon, with or without holes. An immutable value."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from contrada.arguments import checks_methods
from contrada.codes import MAX_SCANNED_VERTICES
from contrada.errors import RegionError
from contrada.forking import cached_property
from contrada.geometry import interchange, sources
from contrada.geometry.arrays import Arrays, compact
from contrada.geometry.column import KernelArrays, RegionArray, Sifted
from contrada.geometry.crs import Crs
from contrada.geometry.faults import error_of
from contrada.geometry.immutable import Immutable
from contrada.geometry.validation import arrays_of_one, is_on_the_globe, read_one, sift
from contrada.geometry.wellknown import wkb_of_plain_polygon

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Coordinates = Iterable[Sequence[float]]

_BOX_WKB = struct.Struct("<BIII10d")


@checks_methods(
    "__init__", "from_wkt", "from_wkb", "from_geojson", "from_shapely", "box", "to_wkb", "plot", "wrapped",
    "densified",
)  # fmt: skip
class Region(Immutable):
    """Non-empty regular closed set bounded by a valid Polygon or MultiPolygon.

    Made from the coordinates of one polygon, or by `from_wkt`, `from_wkb`, `from_geojson`, `from_shapely`. Input is
    validated once; a RegionError names the place of the fault, `repair=True` repairs faults that can be repaired. Rings
    may start anywhere, run either way and be left open. Two regions are equal, and hash alike, iff they have the same
    rings: start, direction and order of rings do not count, nor does the CRS.

    >>> a = Region([(0, 0), (4, 0), (4, 4), (0, 4)])
    >>> a == Region.from_wkt("POLYGON((4 4, 4 0, 0 0, 0 4, 4 4))")
    True
    >>> a.area, a.bounds
    (16.0, (0.0, 0.0, 4.0, 4.0))
    """

    def __init__(
        self, shell: Coordinates, holes: Iterable[Coordinates] = (), *, crs: Any = None, repair: bool = False
    ) -> None:
        self.__dict__["_column"] = _only(sift(sources.raw_from_coordinates([[shell, *holes]]), crs, repair))

    @cached_property
    def _column(self) -> RegionArray:
        """The region as a column of one."""
        return RegionArray._of_kernel_arrays(self._kernel_arrays, self.crs)

    @cached_property
    def _kernel_arrays(self) -> KernelArrays:
        """Arrays of `_column` as kernels take them; a small region that was read alone has these before its column."""
        return self._column._kernel_arrays() if "_column" in self.__dict__ else arrays_of_one(self._leading_box)

    @cached_property
    def _leading_box(self) -> NDArray[np.float64]:
        """Array that begins with the box; a small region that was read alone has its vertices behind it."""
        box: NDArray[np.float64] = self._column.bounds[0]
        return box

    @cached_property
    def crs(self) -> Crs | None:
        """The coordinate reference system, if known."""
        return self._column.crs

    @classmethod
    def _from_column(cls, column: RegionArray) -> Region:
        """Return the only region of a column of one; nothing is copied or checked."""
        made = cls.__new__(cls)
        made.__dict__["_column"] = column
        return made

    @classmethod
    def _from_raw(cls, raw: sources.RawRegions, crs: Any, repair: bool) -> Region:
        return cls._from_column(_only(sift(raw, crs, repair)))

    @classmethod
    def from_wkt(cls, text: str, *, crs: Any = None, repair: bool = False) -> Region:
        """Return the region of a WKT (or EWKT) Polygon or MultiPolygon.

        >>> Region.from_wkt("POLYGON((0 0, 1 0, 0 1, 0 0))").area
        0.5
        """
        plain = wkb_of_plain_polygon(text)
        quick = None if plain is None else cls._quick(plain, crs)
        return cls._from_raw(sources.raw_from_wkt([text]), crs, repair) if quick is None else quick

    @classmethod
    def from_wkb(cls, data: bytes | str, *, crs: Any = None, repair: bool = False) -> Region:
        """Return the region of a WKB or EWKB Polygon or MultiPolygon, bytes or hex; an SRID becomes the CRS."""
        quick = cls._quick(data, crs) if isinstance(data, bytes) else None
        return cls._from_raw(sources.raw_from_wkb([data]), crs, repair) if quick is None else quick

    @classmethod
    def _quick(cls, data: bytes, crs: Any) -> Region | None:
        """Return the region of the WKB of a valid polygon; None for everything else."""
        read = read_one(data)
        if read is None:
            return None
        crs = Crs.of(crs)
        if crs is not None and not is_on_the_globe(read, crs):
            return None
        return cls._of_one_ring(read, crs)

    @classmethod
    def _of_one_ring(cls, leading_box: NDArray[np.float64], crs: Crs | None) -> Region:
        """Return the region of one small ring, valid and run as columns have it: its box and then its vertices."""
        made = cls.__new__(cls)
        own = made.__dict__
        own["_leading_box"], own["crs"] = leading_box, crs
        return made

    def _packed(self) -> tuple[bytes, ...]:
        """Return the arrays as bytes, for `_unpacked`: one ring that is scanned is one value, others are three."""
        if len(self._leading_box) > 4:
            return (self._leading_box.tobytes(),)
        a = compact(self._column.arrays)
        data = a.bounds.tobytes() + a.xy.tobytes()
        if len(a.ring_flags) == 1 and len(a.xy) <= MAX_SCANNED_VERTICES:
            return (data,)
        return data, a.ring_offsets.tobytes(), a.ring_flags.tobytes()

    @classmethod
    def _unpacked(cls, packed: Sequence[bytes], crs: Crs | None) -> Region:
        """Return the region that `_packed` returned as bytes; nothing is checked."""
        leading_box: NDArray[np.float64] = np.frombuffer(packed[0])
        if len(packed) == 1:
            return cls._of_one_ring(leading_box, crs)
        rings, flags = np.frombuffer(packed[1], np.int64), np.frombuffer(packed[2], np.uint8)
        xy, bounds = leading_box[4:].reshape(-1, 2), leading_box[:4].reshape(1, 4)
        return cls._from_column(RegionArray(Arrays(xy, rings, np.array([0, len(flags)], np.int32), flags, bounds), crs))

    @classmethod
    def from_geojson(cls, value: Any, *, crs: Any = None, repair: bool = False) -> Region:
        """Return the region of a GeoJSON geometry or feature, a dict or text.

        >>> Region.from_geojson({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]}).area
        0.5
        """
        return cls._from_raw(sources.raw_from_geojson([value]), crs, repair)

    @classmethod
    def from_shapely(cls, geometry: Any, *, crs: Any = None, repair: bool = False) -> Region:
        """Return the region of a Shapely Polygon or MultiPolygon."""
        return cls._from_raw(sources.raw_from_shapely([geometry]), crs, repair)

    @classmethod
    def box(cls, xmin: float, ymin: float, xmax: float, ymax: float, *, crs: Any = None) -> Region:
        """Return an axis-parallel rectangle.

        >>> Region.box(0, 0, 2, 1).area
        2.0
        """
        if not (xmin < xmax and ymin < ymax):
            raise RegionError(f"box is {[xmin, ymin, xmax, ymax]}; need xmin < xmax and ymin < ymax")
        corners = [(xmin, ymin), (xmax, ymin), (xmax, ymax), (xmin, ymax), (xmin, ymin)]
        try:
            wkb = _BOX_WKB.pack(1, 3, 1, 5, *chain.from_iterable(corners))  # faster than from coordinates
        except (struct.error, OverflowError):
            return cls(corners, crs=crs)  # raises and says what is wrong
        return cls.from_wkb(wkb, crs=crs)

    def to_wkt(self) -> str:
        """Return WKT whose numbers read back to the same coordinates.

        >>> Region.box(0, 0, 0.1, 1).to_wkt()
        'POLYGON ((0 0, 0.1 0, 0.1 1, 0 1, 0 0))'
        """
        return interchange.polygons_to_wkt(self.parts)

    def to_wkb(self, srid: bool = False) -> bytes:
        """Return little-endian WKB; no coordinate changes.

        `srid` makes it EWKB, which names the EPSG code of the CRS; a CRS without an EPSG code raises a CrsError.

        >>> Region.from_wkb(Region.box(0, 0, 1, 1, crs="EPSG:25832").to_wkb(srid=True)).crs
        'EPSG:25832'
        """
        data: bytes = self._column.to_wkb(srid)[0].as_py() if srid else interchange.polygons_to_wkb(self.parts)
        return data

    def to_geojson(self) -> dict[str, Any]:
        """Return a GeoJSON geometry, right-handed as RFC 7946 asks.

        >>> Region.box(0, 0, 1, 1).to_geojson()["type"]
        'Polygon'
        """
        return interchange.polygons_to_geojson(self.parts)

    def to_shapely(self) -> Any:
        """Return a Shapely Polygon or MultiPolygon; no coordinate changes, the EPSG code is its SRID."""
        return self._column.to_shapely()[0]

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        return self.to_geojson()

    @cached_property
    def parts(self) -> tuple[tuple[NDArray[np.float64], tuple[NDArray[np.float64], ...]], ...]:
        """The polygons: shell and holes of each, as closed rings of vertices."""
        if "_leading_box" in self.__dict__ and len(self._leading_box) > 4:  # one ring
            return ((self._kernel_arrays[0], ()),)
        return interchange.column_parts(self._column)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The box xmin, ymin, xmax, ymax."""
        xmin, ymin, xmax, ymax = self._leading_box[:4].tolist()
        return xmin, ymin, xmax, ymax

    @property
    def area(self) -> float:
        """The area, in floating point."""
        return float(self._column.areas[0])

    @property
    def length(self) -> float:
        """The length of the boundary, holes included, in floating point."""
        return float(self._column.lengths[0])

    @property
    def is_simple(self) -> bool:
        """True for a simple polygon: one part without holes."""
        return bool(self._column.is_simple[0])

    def wrapped(self, wrap: str = "longitude", *, crs: Any = None) -> Region:
        """Return the region within longitude -180..180, cut at the date line if it crosses it; see `RegionArray`.

        >>> Region.box(170, 0, 190, 9).wrapped(crs="EPSG:4326").bounds
        (-180.0, 0.0, 180.0, 9.0)
        """
        return self._column.wrapped(wrap, crs=crs)[0]

    def densified(self, metres: float) -> Region:
        """Return the region with vertices along geodesics, within `metres` of which all edges are; see `RegionArray`.

        >>> flight_zone = Region([(0, 50), (60, 50), (30, 70)], crs="EPSG:4326")
        >>> round(flight_zone.densified(1000).bounds[1], 1), round(flight_zone.densified(1000).area - flight_zone.area)
        (50.0, -4)
        """
        return self._column.densified(metres)[0]

    @cached_property
    def _canonical(self) -> tuple[bytes, ...]:
        """Rings in sorted order, each starting at its least vertex; the interior fixes their direction."""
        arrays = self._column.arrays
        first, last = arrays.region_offsets.tolist()
        ends = arrays.ring_offsets[first : last + 1].tolist()
        return tuple(sorted(_from_least_vertex(arrays.xy[start:end]) for start, end in pairwise(ends)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Region) and self._canonical == other._canonical

    def __hash__(self) -> int:
        return hash(self._canonical)

    def __reduce__(self) -> tuple[object, tuple[RegionArray]]:
        return Region._from_column, (self._column,)

    def plot(self, ax: Any = None, *, color: Any = None, label: str | None = None) -> Axes:
        """Draw the region with Matplotlib, on `ax` or on new axes, and return the axes.

        Holes are left out, and both directions have the same scale. `label` is for a legend. Needs the extra `plot`.

        >>> axes = Region.box(0, 0, 4, 2).plot(label="harbour")
        >>> axes.get_aspect(), axes.get_legend_handles_labels()[1]
        (1.0, ['harbour'])
        """
        return self._column.plot(ax, color=color, label=label)

    def _repr_svg_(self) -> str:
        """Return a picture for Jupyter; long outlines are thinned in it."""
        from contrada.geometry.pictures import region_svg

        return region_svg(self)

    def _repr_html_(self) -> str:
        """Return a picture for Jupyter in the colours of the notebook, with what the region consists of."""
        from contrada.geometry.pictures import region_html

        return region_html(self)

    def __repr__(self) -> str:
        # Format only the first vertices, as formatting 4,000 vertices takes 8 ms.
        some = [(shell[:40], tuple(hole[:40] for hole in holes[:8])) for shell, holes in self.parts[:8]]
        text = interchange.polygons_to_wkt(some)
        return f"<Region {text if len(text) <= 80 else text[:77] + '...'}>"


def _from_least_vertex(ring: NDArray[np.float64]) -> bytes:
    vertices = ring[:-1]
    if len(vertices) <= 8:  # Python is faster for these
        points = vertices.tolist()
        start = points.index(min(points))
    else:
        start = int(np.lexsort((vertices[:, 1], vertices[:, 0]))[0])
    return vertices[start:].tobytes() + vertices[:start].tobytes()


def _only(sifted: Sifted) -> RegionArray:
    """Return the column of one region, or raise an error that says what is wrong with it."""
    if sifted.rejected:
        raise error_of(sifted.rejected[0])
    return sifted.regions
