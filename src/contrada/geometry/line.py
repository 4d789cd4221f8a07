"""Line: one LineString or MultiLineString. An immutable value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.arguments import checks_methods
from contrada.forking import cached_property
from contrada.geometry import line_sources
from contrada.geometry.crs import Crs
from contrada.geometry.faults import error_of
from contrada.geometry.immutable import Immutable
from contrada.geometry.interchange import ring_text
from contrada.geometry.line_column import LineArray
from contrada.geometry.point import PointArray

Coordinates = Iterable[Sequence[float]]


@checks_methods("__init__", "from_wkt", "from_wkb", "from_geojson", "from_shapely", "to_wkb")
class Line(Immutable):
    """One or several chains of straight edges: a LineString or MultiLineString.

    Made from the coordinates of its parts, or by `from_wkt`, `from_wkb`, `from_geojson`, `from_shapely`. Each part has
    at least two distinct vertices; repeated vertices are left out. A line may cross itself. Its boundary follows OGC's
    mod-2 rule: the points where an odd number of parts begin or end. Two lines are equal, and hash alike, if they have
    the same parts: their order and direction do not count, nor where a closed part starts, nor the CRS.

    >>> river = Line([(0, 0), (4, 0), (4, 3)])
    >>> river == Line.from_wkt("LINESTRING(4 3, 4 0, 0 0)"), river.length, river.bounds
    (True, 7.0, (0.0, 0.0, 4.0, 3.0))
    >>> Line([(0, 0), (1, 1)], [(1, 1), (2, 0)]).to_wkt()
    'MULTILINESTRING ((0 0, 1 1), (1 1, 2 0))'
    """

    __slots__ = ("__dict__",)

    def __init__(self, *parts: Coordinates, crs: Any = None) -> None:
        self.__dict__["_column"] = _only(line_sources.raw_from_coordinates(parts), crs)

    @cached_property
    def _column(self) -> LineArray:
        """The line as a column of one."""
        raise AssertionError("set when the line is made")

    @classmethod
    def _from_column(cls, column: LineArray) -> Line:
        """Return the only line of a column of one; nothing is copied or checked."""
        made = cls.__new__(cls)
        made.__dict__["_column"] = column
        return made

    @classmethod
    def from_wkt(cls, text: str, *, crs: Any = None) -> Line:
        """Return the line of a WKT (or EWKT) LineString or MultiLineString.

        >>> Line.from_wkt("LINESTRING(0 0, 0 0, 3 4)")
        <Line LINESTRING (0 0, 3 4)>
        """
        return cls._from_column(_only(line_sources.raw_from_wkt([text]), crs))

    @classmethod
    def from_wkb(cls, data: bytes | str, *, crs: Any = None) -> Line:
        """Return the line of a WKB or EWKB LineString or MultiLineString, bytes or hex; an SRID becomes the CRS."""
        return cls._from_column(_only(line_sources.raw_from_wkb([data]), crs))

    @classmethod
    def from_geojson(cls, value: Any, *, crs: Any = None) -> Line:
        """Return the line of a GeoJSON geometry or feature, a dict or text."""
        return cls._from_column(_only(line_sources.raw_from_geojson([value]), crs))

    @classmethod
    def from_shapely(cls, geometry: Any, *, crs: Any = None) -> Line:
        """Return the line of a Shapely LineString, LinearRing or MultiLineString."""
        return cls._from_column(_only(line_sources.raw_from_shapely([geometry]), crs))

    def to_wkt(self) -> str:
        """Return WKT whose numbers read back to the same coordinates."""
        texts = [ring_text(part) for part in self.parts]
        return f"LINESTRING {texts[0]}" if len(texts) == 1 else f"MULTILINESTRING ({', '.join(texts)})"

    def to_wkb(self, srid: bool = False) -> bytes:
        """Return little-endian WKB; `srid` makes it EWKB, which names the EPSG code of the CRS.

        >>> Line.from_wkb(Line([(0, 0), (1, 1)], crs="EPSG:25832").to_wkb(srid=True)).crs
        'EPSG:25832'
        """
        data: bytes = self._column.to_wkb(srid)[0].as_py()
        return data

    def to_geojson(self) -> dict[str, Any]:
        """Return a GeoJSON geometry."""
        parts = [part.tolist() for part in self.parts]
        if len(parts) == 1:
            return {"type": "LineString", "coordinates": parts[0]}
        return {"type": "MultiLineString", "coordinates": parts}

    def to_shapely(self) -> Any:
        """Return a Shapely LineString or MultiLineString; no coordinate changes, the EPSG code is its SRID."""
        return self._column.to_shapely()[0]

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        return self.to_geojson()

    @property
    def crs(self) -> Crs | None:
        """The coordinate reference system, if known."""
        return self._column.crs

    @cached_property
    def parts(self) -> tuple[NDArray[np.float64], ...]:
        """The vertices of each part."""
        a = self._column.arrays
        first, last = a.line_offsets.tolist()
        return tuple(a.xy[start:stop] for start, stop in pairwise(a.part_offsets[first : last + 1].tolist()))

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The box xmin, ymin, xmax, ymax."""
        xmin, ymin, xmax, ymax = self._column.bounds[0].tolist()
        return xmin, ymin, xmax, ymax

    @property
    def length(self) -> float:
        """The length, in floating point."""
        return float(self._column.lengths[0])

    @property
    def boundary(self) -> PointArray:
        """The points where an odd number of parts begin or end; none for closed parts.

        >>> Line([(0, 0), (2, 0)], [(2, 0), (4, 0)]).boundary.xy.tolist()
        [[0.0, 0.0], [4.0, 0.0]]
        """
        return PointArray(self._column._boundaries()[0], crs=self.crs)

    @cached_property
    def _canonical(self) -> tuple[bytes, ...]:
        """Parts in sorted order, each in the direction, and closed parts from the vertex, that sort first."""
        return tuple(sorted(_least_form(part) for part in self.parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and self._canonical == other._canonical

    def __hash__(self) -> int:
        return hash(self._canonical)

    def __reduce__(self) -> tuple[object, tuple[LineArray]]:
        return Line._from_column, (self._column,)

    def __repr__(self) -> str:
        some = [ring_text(part[:40]) for part in self.parts[:8]]
        text = f"LINESTRING {some[0]}" if len(self.parts) == 1 else f"MULTILINESTRING ({', '.join(some)})"
        return f"<Line {text if len(text) <= 80 else text[:77] + '...'}>"


def _least_form(part: NDArray[np.float64]) -> bytes:
    if (part[0] != part[-1]).any():
        return min(part.tobytes(), part[::-1].tobytes())
    ring = part[:-1]
    least = np.flatnonzero((ring == ring[np.lexsort((ring[:, 1], ring[:, 0]))[0]]).all(axis=1))
    return min(np.roll(way, -k, axis=0).tobytes() for k in least for way in (ring, np.roll(ring[::-1], 2 * k + 1, 0)))


def _only(raw: line_sources.RawLines, crs: Any) -> LineArray:
    """Return the column of one line, or raise an error that says what is wrong with it."""
    found = line_sources.check_lines(raw, crs)
    if found.rejected:
        raise error_of(found.rejected[0])
    return LineArray(found.arrays, found.crs)
