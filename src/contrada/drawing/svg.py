"""SVG pictures of outlines: small, readable on light and dark backgrounds, inline in HTML or alone."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from contrada.drawing.outlines import MAX_VERTICES, UNITS, Frame, Outline, paths

# Each has a contrast of at least 3 on white and on the dark backgrounds of notebooks, since an SVG image cannot know
# the background that it is shown on. A page may choose others by the variables.
COLOURS = {
    "region": "#2f81c7",
    "message": "#2f81c7",
    "subscription": "#c8641b",
    "hit": "#2e9245",
    "missed": "#d64545",
    "near": "#808080",
}
DARK_COLOURS = {"region": "#6cb2f0", "message": "#6cb2f0", "subscription": "#f0a05a"}
DASHED = {"subscription"}  # told apart without colours too
FILL_OPACITY = 0.22
EDGE = ";outline:1px solid rgba(128,128,128,.25)"  # shows where a picture in a page ends
DOT_WIDTH = 3.0  # times the width of a line


class Layer(NamedTuple):
    """Outlines that are drawn alike; `kind` is a key of COLOURS."""

    kind: str
    outlines: Sequence[Outline]
    stroke: float = 1.5  # pixels


def svg(frame: Frame, layers: Sequence[Layer], label: str, *, alone: bool = False) -> str:
    """Return a picture of layers, the first at the bottom; `label` is read aloud in place of it.

    An SVG that stands alone has a namespace, and colours of its own where the reader prefers dark pages.

    >>> from contrada.drawing.outlines import frame_of
    >>> svg(frame_of((0, 0, 1, 1), (64, 64)), [], "nothing <here>")
    '<svg width="64" height="64" viewBox="0 0 640 640" role="img" aria-label="nothing &lt;here&gt;" ...></svg>'
    """
    share = MAX_VERTICES // max(1, len(layers))
    drawn = [f"<title>{escape(label)}</title>"] if alone else []
    if alone:
        chosen = ";".join(f"--contrada-{kind}:{colour}" for kind, colour in DARK_COLOURS.items())
        drawn.append(f"<style>@media (prefers-color-scheme: dark){{:root{{{chosen}}}}}</style>")
    drawn += [_group(layer, frame, share) for layer in layers]
    head = f'width="{frame.width // UNITS}" height="{frame.height // UNITS}" viewBox="0 0 {frame.width} {frame.height}"'
    if alone:
        head = f'xmlns="http://www.w3.org/2000/svg" {head}'
    fit = f'style="max-width:100%;height:auto;overflow:hidden{"" if alone else EDGE}"'
    return f'<svg {head} role="img" aria-label="{escape(label)}" {fit}>{"".join(drawn)}</svg>'


def colour_style(kind: str) -> str:
    """Return the CSS colour of a kind: the variable of the page, if it has one."""
    return f"var(--contrada-{kind},{COLOURS[kind]})"


def _group(layer: Layer, frame: Frame, vertices: int) -> str:
    """Return the paths of a layer under one style; dots are wider than lines."""
    drawings = paths(layer.outlines, frame, vertices)
    shapes = "".join(f'<path d="{one.shape}"/>' for one in drawings if one.shape)
    dots = "".join(one.dots for one in drawings)
    colour = colour_style(layer.kind)
    lines = f"stroke:{colour};stroke-linejoin:round;stroke-linecap:round;stroke-width:{layer.stroke * UNITS:g}"
    fill = f"fill:{colour};fill-opacity:{FILL_OPACITY};fill-rule:evenodd"
    dash = f";stroke-dasharray:{4 * UNITS} {3 * UNITS}" if layer.kind in DASHED else ""
    made = f'<g style="{lines};{fill}{dash}">{shapes}</g>' if shapes else ""
    width = layer.stroke * DOT_WIDTH * UNITS
    return made + (f'<path d="{dots}" style="{lines};stroke-width:{width:g}"/>' if dots else "")
