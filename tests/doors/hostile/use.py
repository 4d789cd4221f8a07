"""Use what a door returned: many faults show only when a value is printed, related, matched or written."""

from __future__ import annotations

from itertools import islice
from typing import Any

import contrada as ct
from contrada.geometry import SiftedLines
from contrada.geometry.column import Sifted
from contrada.geometry.point import SiftedPoints

MOST_PRINTED = 2000  # vertices of a region that is printed


def use(value: Any) -> object:
    """Use a value as its type allows."""
    if isinstance(value, ct.Region):
        return use_region(value)
    if isinstance(value, ct.RegionArray):
        return use_column(value)
    if isinstance(value, ct.Line | ct.LineArray):
        return use_lines(value)
    if isinstance(value, Sifted | SiftedPoints | SiftedLines):
        use(value[0])
        return [str(rejection) for rejection in value.rejected]
    if isinstance(value, ct.Point):
        return value.to_wkt(), value.to_wkb(), hash(value), ct.relate(value, value), repr(value)
    if isinstance(value, ct.Circle):
        assert ct.Circle.from_text(value.to_text()) == ct.Circle.from_wkb(value.to_wkb()) == value
        return value.bounds, value.to_geojson(), hash(value), ct.relate(value, value.center), repr(value)
    if isinstance(value, ct.PointArray):
        return value.to_wkb(), ct.relate(value, value, threads=1), repr(value)
    if isinstance(value, ct.Constraint | ct.Filter | ct.Predicate):
        return use_asked(value)
    if isinstance(value, ct.Matches | ct.ManyMatches | ct.Explanation | ct.TrackEvents):
        return repr(value)[:1000], value._repr_html_()
    if type(value).__module__.startswith("matplotlib"):
        return close_plot(value)
    return repr(value)[:1000] if type(value).__module__.startswith("contrada") else str(type(value))


def use_lines(value: ct.Line | ct.LineArray) -> object:
    """Relate lines to themselves and to others, and write them."""
    column = value if isinstance(value, ct.LineArray) else ct.LineArray.from_lines([value])
    for line in islice(column, 3):
        start = ct.Point(*line.parts[0][0].tolist(), crs=line.crs)
        assert ct.intersects(start, line)
        ct.de9im(line, line, threads=1)
        if len(line.to_wkb()) < 16 * MOST_PRINTED:
            assert ct.Line.from_wkt(line.to_wkt()) == line
            hash(line)
    return column.to_wkb(), column.lengths, repr(value), column.to_arrow()


def close_plot(axes: Any) -> object:
    """Draw a plot and close its figure, which Matplotlib would keep."""
    from matplotlib import pyplot

    axes.figure.canvas.draw()
    pyplot.close(axes.figure)
    return axes.get_title()


def use_region(region: ct.Region) -> object:
    """Relate a region to itself and to others, and write it."""
    xmin, ymin, xmax, ymax = region.bounds
    ct.relate(region, region, threads=1)
    ct.relate(ct.Point(xmin, ymin, crs=region.crs), region, threads=1)
    if xmin < (xmin + xmax) / 2 < xmax and ymin < (ymin + ymax) / 2 < ymax:
        half = ct.Region.box(xmin, ymin, (xmin + xmax) / 2, (ymin + ymax) / 2, crs=region.crs)
        ct.relate(region, half, threads=1)
    if len(region.to_wkb()) < 16 * MOST_PRINTED:
        assert ct.Region.from_wkt(region.to_wkt()) == region
        hash(region)
    return region.area, region.length, repr(region), region._repr_svg_()


def use_column(column: ct.RegionArray) -> object:
    """Relate a column to itself and write it."""
    for region in islice(column, 3):
        use_region(region)
    return ct.relate(column, column, threads=1), column.to_wkb(), column.areas, repr(column), column._repr_html_()


def use_asked(asked: Any) -> object:
    """Print what is asked, simplify it, subscribe with it and match a message."""
    table, text = ct.ForwardingTable(), str(asked)
    if getattr(asked, "columns", None) or "$" in text:
        return text
    table.subscribe("a", asked)
    table.subscribe("b", ct.simplify(asked))
    return text, list(table.match({"severity": 4, "area": ct.Region.box(0, 0, 1, 1)}))
