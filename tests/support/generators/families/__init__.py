"""Families of pairs of regions that are hard to relate, for property tests and for `make verify`.

Everything follows from the random generator that is passed in. Most families start from small integers,
on which the second region is derived from the first exactly, so that contacts are real; the distorted
ones round afterwards, so that contacts are nearly missed.
"""

from __future__ import annotations

from generators.families import composed, curves, distorted, hostile, large, simple
from generators.families.family import CONTACT, NEARLY_EQUAL, Family

__all__ = ["FAMILIES", "Family", "family"]

FAMILIES: tuple[Family, ...] = (
    Family("coarse grid", "polygons of 3-9 vertices on grids of 0..4 to 0..8", simple.coarse),
    Family("triangles", "triangles on such grids", simple.triangles),
    Family("shared edges", "simple polygons with a piece of an edge in common", simple.shared_edges, CONTACT),
    Family("shared vertices", "simple polygons with a vertex in common", simple.shared_vertices, CONTACT),
    Family("mosaics", "unions of cells of one mosaic", composed.mosaics),
    Family("holes", "holes apart from the shell", composed.holes),
    Family("holes at vertices", "holes that touch a ring at a vertex", composed.holes_at_vertices),
    Family("holes at edges", "holes that touch a ring within an edge", composed.holes_at_edges),
    Family("hole fillers", "regions that fill holes exactly", composed.fillers),
    Family("parts", "several parts, apart", composed.parts),
    Family("touching parts", "parts that touch at points", composed.touching_parts),
    Family("fans", "many parts and holes that meet in one point", composed.fans),
    Family("nested parts", "a part inside the hole of another", composed.nested_parts, weight=0.5),
    Family("redescribed", "equal and nearly equal, other vertices", composed.redescribed, NEARLY_EQUAL),
    Family("shifted", "a million away from the origin", distorted.shifted),
    Family("tiny 1e-9", "coordinates about 1e-9", distorted.scaled(1e-9)),
    Family("tiny 1e-100", "coordinates about 1e-100", distorted.scaled(1e-100)),
    Family("huge 1e100", "coordinates about 1e100", distorted.scaled(1e100)),
    Family("stretched", "coordinates of all magnitudes together", distorted.stretched),
    Family("rotated", "turned by any angle: nearly collinear", distorted.rotated),
    Family("tenths", "multiples of 0.1", distorted.tenths),
    Family("slivers", "squeezed by maps of determinant one", distorted.slivers),
    Family("spirals", "strips along a spiral", curves.spirals),
    Family("combs", "teeth that reach into gaps", curves.combs),
    Family("hundreds", "100-400 vertices, some with thousands", large.hundreds, weight=0.25),
    Family("hostile", "fans, stars, spirals, slivers, combs that take a sweep line", hostile.hostile, weight=0.5),
)


def family(name: str) -> Family:
    """Return the family of that name."""
    for candidate in FAMILIES:
        if candidate.name == name:
            return candidate
    raise KeyError(f"no family {name!r}; there are {', '.join(f.name for f in FAMILIES)}")
