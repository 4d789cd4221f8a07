"""Outlines on Matplotlib axes. Matplotlib is imported when a plot is asked for, and need not be installed before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from contrada.drawing.outlines import Box, Outline, place_within
from contrada.drawing.svg import FILL_OPACITY
from contrada.errors import ArgumentError, ContradaError
from contrada.installation import missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGIN = 0.05  # of the longer side, around everything
MAX_COORDINATE = 1e100  # Matplotlib computes with squares of coordinates


def axes_for(ax: Any = None) -> Axes:
    """Return `ax`, or the axes of a new figure; a ContradaError says how to install Matplotlib where it is missing."""
    try:
        from matplotlib import pyplot
        from matplotlib.axes import Axes
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        raise ContradaError(missing("plots need Matplotlib", "plot")) from error
    if ax is None:
        return pyplot.subplots(layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise ArgumentError(f"ax: need Matplotlib axes, got {type(ax).__name__}")
    return ax


def checked_colour(colour: Any) -> Any:
    """Return a colour that Matplotlib knows; raise ArgumentError for another value."""
    from matplotlib.colors import is_color_like

    try:
        is_known = bool(is_color_like(colour))
    except (TypeError, ValueError, AttributeError):
        is_known = False
    if not is_known:
        raise ArgumentError(f"color: need a colour of Matplotlib such as 'tab:blue' or '#2f81c7', got {colour!r:.40}")
    return colour


def checked_box(box: Box) -> Box:
    """Return a box that Matplotlib can show; raise ArgumentError for a larger one."""
    if max(map(abs, box)) > MAX_COORDINATE:
        raise ArgumentError(f"the box is {list(box)}; Matplotlib draws coordinates up to {MAX_COORDINATE:g}")
    return box


def draw(ax: Axes, outlines: Sequence[Outline], *, colour: Any, **style: Any) -> None:
    """Add outlines to axes in one collection: regions filled with holes left out, points as dots."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    regions = [outline for outline in outlines if len(outline.xy) > 1]
    dots = [outline.xy[0].tolist() for outline in outlines if len(outline.xy) == 1]
    label, zorder = style.pop("label", None), style.pop("zorder", 2.0)
    fill = to_rgba(colour, style.pop("opacity", FILL_OPACITY))
    if regions:
        made = PolyCollection([], facecolor=fill, edgecolor=colour, zorder=zorder, **style)
        codes: list[Any] = [_codes(one) for one in regions]  # the stubs of Matplotlib ask for integers
        made.set_verts_and_codes([one.xy for one in regions], codes)
        made.set_label(label or "_regions")
        ax.add_collection(made, autolim=False)
    if dots:
        x, y = zip(*dots, strict=True)
        label = None if regions else label
        ax.plot(x, y, "o", color=colour, markersize=5, zorder=zorder, label=label or "_points")


def _codes(outline: Outline) -> NDArray[np.uint8]:
    """Return the codes of a path with all rings of an outline; holes stay empty, since they run the other way round."""
    from matplotlib.path import Path

    codes = np.full(len(outline.xy), Path.LINETO, np.uint8)
    codes[outline.offsets[1:] - 1] = Path.CLOSEPOLY
    codes[outline.offsets[:-1]] = Path.MOVETO
    return codes


def show_box(ax: Axes, box: Box) -> None:
    """Let axes show a box with a margin, one unit as long in both directions; what they show already stays in view."""
    xmin, ymin, xmax, ymax = box
    margin = MARGIN * max(xmax - xmin, ymax - ymin) or max(1e-6 * max(abs(xmin), abs(ymin)), 1e-3)
    ax.set_aspect("equal")
    ax.update_datalim([(xmin - margin, ymin - margin), (xmax + margin, ymax + margin)])
    ax.autoscale_view(tight=True)


def write_in(ax: Axes, outline: Outline, text: str, colour: Any) -> None:
    """Write a text into an outline, readable on lines; dollars in it are dollars, not mathematics."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground=ax.get_facecolor())]
    ax.annotate(
        text, place_within(outline), ha="center", va="center", fontsize="small", color=colour, parse_math=False,
        zorder=5, clip_on=True, path_effects=halo,
    )  # fmt: skip
