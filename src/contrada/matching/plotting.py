"""Plot a message, the subscriptions that it hits, and those near it that it misses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.drawing.axes import axes_for, checked_box, draw, show_box, write_in
from contrada.drawing.outlines import Box, Outline, longer_side, union_box
from contrada.drawing.svg import COLOURS
from contrada.errors import ArgumentError
from contrada.geometry import Circle, Point, Region
from contrada.geometry.circle import SpatialValue
from contrada.geometry.pictures import outline_of
from contrada.index.items import boxes_of
from contrada.index.packed import PackedTree
from contrada.matching.explain import ConstraintExplained, Explanation, FilterExplained, shortened
from contrada.matching.store.custom_types import CustomIndex, CustomResidual
from contrada.matching.store.snapshot import Snapshot
from contrada.shown import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LABELS = 40  # more would cover one another
LABEL_CHARS = 24
LONE_POINT_MISSES = 20  # shown around a point that hits no region: there is no extent to choose by
STYLES = {"near": ("dotted", 2.0), "missed": ("dashed", 2.2), "hit": ("solid", 2.4)}  # of lines, and how far above


class Drawn(NamedTuple):
    """A subscription in a plot: its key, what is drawn of it, and why it is hit or missed."""

    key: str
    outlines: list[Outline]
    why: Explanation


def plotted_attribute(message: Mapping[str, Any], asked: Sequence[str], attribute: Any) -> str:
    """Return the attribute to plot: the given one, or the first region or point that subscriptions ask about."""
    spatial = [name for name, value in message.items() if isinstance(value, Region | Point | Circle)]
    if attribute is not None:
        if not isinstance(attribute, str) or attribute not in spatial:
            raise ArgumentError(f"attribute: need a region or point of the message, {spatial}; got {short(attribute)}")
        return attribute
    if not spatial:
        raise ArgumentError("the message has no region or point that a subscription asks about")
    return next((name for name in spatial if name in asked), spatial[0])


def plot_message(
    snapshot: Snapshot, value: SpatialValue, attribute: str, hits: NDArray[np.int64],
    explained: Callable[[int], Explanation], ax: Any, limit: int,
) -> Axes:  # fmt: skip
    """Draw a region or point of a message and subscriptions: those in the rows `hits`, and misses near the message.

    `explained` explains the message against the subscription in a row. At most `limit` of each are drawn.
    """
    message = outline_of(value)
    hit = [_drawn(explained(row), attribute) for row in hits[:limit].tolist()]
    focus = union_box([message.box, *(outline.box for drawn in hit for outline in drawn.outlines)])
    near = near_rows(snapshot, attribute, message.box, longer_side(focus) / 2)
    near = near[~np.isin(near, hits)]
    missed = [_drawn(explained(row), attribute) for row in near[:limit].tolist()]
    others = [drawn for drawn in missed if _is_near_miss(drawn.why, attribute)]
    apart = [drawn for drawn in missed if not _is_near_miss(drawn.why, attribute)]
    box = checked_box(union_box([focus, *(outline.box for drawn in missed for outline in drawn.outlines)]))
    axes = axes_for(ax)
    show_box(axes, box)
    _draw_kind(axes, apart, "near", f"missed by region: {len(apart):,}")
    _draw_kind(axes, others, "missed", f"missed by another condition: {len(others):,}")
    _draw_kind(axes, hit, "hit", _hit_label(hit, len(hits)))
    draw(axes, [message], colour=COLOURS["message"], label="message", zorder=2.6, linewidth=2.0, opacity=0.18)
    if sum(len(drawn.outlines) for drawn in (*hit, *missed)) <= MAX_LABELS:
        for kind, group in {"near": apart, "missed": others, "hit": hit}.items():
            _write_keys(axes, group, kind, box)
    axes.set_title(f"{len(hits):,} of {len(snapshot.living()):,} subscriptions hit")
    axes.set_xlabel(_axis_name("x", value), parse_math=False)
    axes.set_ylabel(_axis_name("y", value), parse_math=False)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small", frameon=False)  # beside what is drawn
    return axes


def near_rows(snapshot: Snapshot, attribute: str, box: Box, reach: float) -> NDArray[np.int64]:
    """Return the rows of live subscriptions with a region or point within `reach` of a box, nearest first.

    Boxes stand for regions. If `reach` is 0, the few nearest are returned. Takes O(n) for n constraints, in NumPy.
    """
    rows, gaps = [np.empty(0, np.int64)], [np.empty(0)]
    for level in snapshot.levels:
        for (name, _), part in (*level.trees.items(), *level.checks.items()):
            if name != attribute or isinstance(part, CustomIndex | CustomResidual):
                continue
            own = _gaps(boxes_of(part.column), box)
            if isinstance(part, PackedTree):  # in which several constraints may share an item
                own = np.repeat(own, np.diff(part.offsets))
            places = np.flatnonzero(own <= reach) if reach else np.argsort(own, kind="stable")[:LONE_POINT_MISSES]
            filters = level.filters_under(part)[places]
            owners = snapshot.filter_subscription
            rows.append((filters if owners is None else owners[filters]).astype(np.int64))
            gaps.append(own[places])
    found, gap = np.concatenate(rows), np.concatenate(gaps)
    order = np.lexsort((found, gap))
    found = found[order]
    firsts = np.sort(np.unique(found, return_index=True)[1])
    nearest = found[firsts]
    return nearest[snapshot.is_alive(nearest)][: None if reach else LONE_POINT_MISSES]


def _gaps(boxes: NDArray[np.float64], box: Box) -> NDArray[np.float64]:
    """Return how far boxes are from a box, along the axis on which they are farther apart; 0 if they meet."""
    below, above = np.asarray(box[:2]) - boxes[:, 2:], boxes[:, :2] - np.asarray(box[2:])
    return np.asarray(np.maximum(np.maximum(below, above), 0.0).max(axis=1, initial=0.0))


def _drawn(why: Explanation, attribute: str) -> Drawn:
    """Return what is drawn of a subscription: its regions and points on the attribute, each once."""
    values = dict.fromkeys(one.constraint.value for one in _spatial(why, attribute))
    return Drawn(_shown_key(why.key), [outline_of(value) for value in values], why)


def _spatial(why: Explanation, attribute: str) -> list[ConstraintExplained]:
    found = [one for part in why.filters for one in part.constraints if one.constraint.attribute == attribute]
    return [one for one in found if isinstance(one.constraint.value, Region | Point)]


def _is_near_miss(why: Explanation, attribute: str) -> bool:
    """Return True if in some filter all that is asked of the attribute holds, so that another condition fails."""
    return any(
        all(one.truth for one in part.constraints if one.constraint.attribute == attribute) and _asks(part, attribute)
        for part in why.filters
    )


def _asks(part: FilterExplained, attribute: str) -> bool:
    return any(one.constraint.attribute == attribute for one in part.constraints)


def _draw_kind(ax: Axes, group: Sequence[Drawn], kind: str, label: str) -> None:
    outlines = [outline for drawn in group for outline in drawn.outlines]
    if outlines:
        line, zorder = STYLES[kind]
        draw(ax, outlines, colour=COLOURS[kind], label=label, zorder=zorder, linestyle=line, linewidth=1.5)


def _hit_label(hit: Sequence[Drawn], hits: int) -> str:
    """Return how many subscriptions are hit, and how many of them are drawn."""
    drawn = sum(bool(one.outlines) for one in hit)
    return f"hit: {hits:,}" if drawn == hits else f"hit: {hits:,}, drawn: {drawn:,}"


def _write_keys(ax: Axes, group: Sequence[Drawn], kind: str, view: Box) -> None:
    for drawn in group:
        for outline in drawn.outlines:
            write_in(ax, outline, drawn.key, COLOURS[kind], view)


def _shown_key(key: object) -> str:
    return shortened(str(key) if isinstance(key, str) else short(key), LABEL_CHARS)


def _axis_name(name: str, value: SpatialValue) -> str:
    """Return the name of an axis, with the code of the CRS if it has one."""
    return f"{name} ({value.crs})" if value.crs is not None and len(value.crs) <= LABEL_CHARS else name
