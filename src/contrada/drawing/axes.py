"""Outlines on Matplotlib axes. Matplotlib is imported when a plot is asked for, and need not be installed before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from contrada.drawing.outlines import Box, Outline, longer_side, place_within
from contrada.drawing.svg import FILL_OPACITY
from contrada.errors import ArgumentError, ContradaError
from contrada.installation import missing
from contrada.shown import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGIN = 0.05  # of the longer side, around everything
SMALL_SHARE = 1 / 12  # of the view: a smaller region has its label above
MAX_COORDINATE = 1e100  # Matplotlib computes with squares of coordinates


def require_matplotlib() -> None:
    """Raise a ContradaError that says how to install Matplotlib if it is missing."""
    try:
        import matplotlib  # noqa: F401  only whether it is there
    except ModuleNotFoundError as error:
        raise ContradaError(missing("plots need Matplotlib", "plot")) from error


def axes_for(ax: Any = None) -> Axes:
    """Return `ax`, or the axes of a new figure."""
    require_matplotlib()
    from matplotlib import pyplot
    from matplotlib.axes import Axes

    if ax is None:
        return pyplot.subplots(layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise ArgumentError(f"ax: need Matplotlib axes, got {type(ax).__name__}")
    return ax


def checked_colour(colour: Any) -> Any:
    """Return a colour that Matplotlib knows; raise ArgumentError for another value."""
    require_matplotlib()
    from matplotlib.colors import is_color_like

    try:
        is_known = bool(is_color_like(colour))
    except (TypeError, ValueError, AttributeError):
        is_known = False
    if not is_known:
        raise ArgumentError(f"color: need a colour of Matplotlib such as 'tab:blue' or '#2f81c7', got {short(colour)}")
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


def write_in(ax: Axes, outline: Outline, text: str, colour: Any, view: Box) -> None:
    """Write a text into an outline, above it if it is small in the view; dollars in it are dollars, not mathematics."""
    from matplotlib.patheffects import withStroke

    (xmin, _, xmax, ymax), is_small = outline.box, longer_side(outline.box) < SMALL_SHARE * longer_side(view)
    place = (xmin / 2 + xmax / 2, ymax) if is_small else place_within(outline)
    halo = [withStroke(linewidth=2.5, foreground=ax.get_facecolor())]
    ax.annotate(
        text, place, xytext=(0, 3 if is_small else 0), textcoords="offset points", ha="center",
        va="bottom" if is_small else "center", fontsize="small", color=colour, parse_math=False, zorder=5,
        clip_on=True, path_effects=halo,
    )  # fmt: skip
