"""Show regions in notebooks and on Matplotlib axes. For display only: long outlines are thinned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.amounts import counted
from contrada.codes import HOLE
from contrada.drawing.axes import axes_for, checked_box, checked_colour, draw, show_box
from contrada.drawing.cards import card, element, figures, joined
from contrada.drawing.outlines import Box, Outline, frame_of
from contrada.drawing.svg import COLOURS, Layer, svg
from contrada.errors import ArgumentError
from contrada.geometry.arrays import compact
from contrada.geometry.circle import Circle
from contrada.geometry.point import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from contrada.geometry.column import RegionArray
    from contrada.geometry.crs import Crs
    from contrada.geometry.region import Region

SIZE = 320, 240  # pixels, at most
MAX_REGIONS = 400  # of a column, in one picture of a notebook
MAX_PLOTTED = 20_000  # of a column, on Matplotlib axes
MAX_CRS_CHARS = 30


def outline_of(value: Region | Point | Circle) -> Outline:
    """Return what is drawn of a region, point or circle."""
    if isinstance(value, Circle):
        drawn = value.to_shapely()
        if drawn.geom_type == "Point":
            return outline_of(value.center)
        xy = np.ascontiguousarray(drawn.exterior.coords)
        return Outline(xy, np.array([0, len(xy)]), drawn.bounds)
    if isinstance(value, Point):
        return Outline(np.array([[value.x, value.y]]), np.array([0, 1]), (value.x, value.y, value.x, value.y))
    arrays = compact(value._column.arrays)
    return Outline(arrays.xy, arrays.ring_offsets, value.bounds)


def column_outlines(column: RegionArray, most: int) -> list[Outline]:
    """Return the outlines of at most so many regions, evenly chosen from the first to the last."""
    rows = np.unique(np.linspace(0, len(column) - 1, min(most, len(column))).astype(int))
    return [outline_of(column[row]) for row in rows.tolist()]


def described_region(region: Region) -> str:
    """Return in words what a region consists of.

    >>> from contrada import Region
    >>> described_region(Region([(0, 0), (4, 0), (4, 4)], [[(2, 1), (3, 1), (3, 2)]], crs="EPSG:25832"))
    'Polygon with 1 hole, 6 vertices, EPSG:25832'
    """
    arrays = compact(region._column.arrays)
    holes = int(np.count_nonzero(arrays.ring_flags & HOLE))
    parts = len(arrays.ring_flags) - holes
    kind = "Polygon" if parts == 1 else f"MultiPolygon of {parts:,} parts"
    with_holes = f" with {counted(holes, 'hole')}" if holes else ""
    vertices = counted(len(arrays.xy) - len(arrays.ring_flags), "vertex", "vertices")
    return f"{kind}{with_holes}, {vertices}{_shown_crs(region.crs)}"


def described_column(column: RegionArray) -> str:
    """Return in words what a column of regions holds.

    >>> from contrada import Region, RegionArray
    >>> described_column(RegionArray.from_regions([Region.box(0, 0, 1, 1), Region.box(0, 0, 2, 2)]))
    'RegionArray of 2 regions, 8 vertices'
    """
    arrays = compact(column.arrays)
    vertices = counted(len(arrays.xy) - len(arrays.ring_flags), "vertex", "vertices")
    return f"RegionArray of {counted(len(column), 'region')}, {vertices}{_shown_crs(column.crs)}"


def region_svg(region: Region, alone: bool = True) -> str:
    """Return a picture of one region."""
    frame = frame_of(region.bounds, SIZE)
    return svg(frame, [Layer("region", [outline_of(region)])], described_region(region), alone=alone)


def region_html(region: Region) -> str:
    """Return a picture of one region, what it consists of, and where it lies."""
    caption = joined(element("div", described_region(region)), element("div", _shown_box(region.bounds)))
    return card(figures([(region_svg(region, alone=False), caption)]))


def column_svg(column: RegionArray, alone: bool = True) -> str:
    """Return a picture of a column, or of some of its regions."""
    frame = frame_of(_column_box(column) if len(column) else (0.0, 0.0, 1.0, 1.0), SIZE)
    outlines = column_outlines(column, MAX_REGIONS) if len(column) else []
    return svg(frame, [Layer("region", outlines, 1.0)], described_column(column), alone=alone)


def column_html(column: RegionArray) -> str:
    """Return a picture of a column with the number of regions; of a long column it says how many are drawn."""
    if not len(column):
        return card(element("p", described_column(column)))
    lines = [described_column(column), _shown_box(_column_box(column))]
    if len(column) > MAX_REGIONS:
        lines.append(f"drawn: {MAX_REGIONS} of {len(column):,}, evenly chosen")
    caption = joined(*(element("div", line) for line in lines))
    return card(figures([(column_svg(column, alone=False), caption)]))


def plot_column(column: RegionArray, ax: Any, color: Any, label: Any) -> Axes:
    """Draw the regions of a column on axes, new ones if there are none."""
    if label is not None and not isinstance(label, str):
        raise ArgumentError(f"label: need text, got {type(label).__name__}")
    box = checked_box(_column_box(column)) if len(column) else None
    colour = COLOURS["region"] if color is None else checked_colour(color)
    axes = axes_for(ax)
    if box is not None:
        show_box(axes, box)
        draw(axes, column_outlines(column, MAX_PLOTTED), colour=colour, label=label)
    return axes


def _column_box(column: RegionArray) -> Box:
    xmin, ymin = column.bounds[:, :2].min(axis=0).tolist()
    xmax, ymax = column.bounds[:, 2:].max(axis=0).tolist()
    return xmin, ymin, xmax, ymax


def _shown_box(box: Box) -> str:
    xmin, ymin, xmax, ymax = (f"{side:.6g}" for side in box)
    return f"x {xmin} to {xmax}, y {ymin} to {ymax}"


def _shown_crs(crs: Crs | None) -> str:
    """Return the CRS behind a comma; a system without a code is written in PROJJSON, which is long."""
    if not crs:
        return ""
    return f", {crs}" if len(crs) <= MAX_CRS_CHARS else ", a CRS without a code"
