"""Draw the map of a report as inline SVG, and the JSON for its script."""

from __future__ import annotations

import json
import math
from html import escape

import numpy as np
import pyarrow as pa

from contrada.amounts import counted
from contrada.geometry.outline import common_box, extents, svg_paths
from contrada.report.charts import label
from contrada.report.sample import DrawnSample

MAP_WIDTH = 20_000  # width of the map in its own units
SHADES = 5  # shades of regions that matched
MARGIN_SHARE = 0.04  # margin around the map, as a share of its size


def shade(matches: int, most: int) -> int:
    """Return the shade of a region: 0 without a match, then 1 to SHADES by the logarithm of its matches.

    >>> [shade(matches, 1000) for matches in (0, 1, 5, 100, 1000)]
    [0, 1, 2, 4, 5]
    """
    if matches <= 0:
        return 0
    return min(SHADES, 1 + int(SHADES * math.log(matches) / math.log(most + 1))) if most > 1 else SHADES


def legend(most: int) -> list[tuple[int, str]]:
    """Return the shades with the numbers of matches that they stand for.

    >>> legend(1000)
    [(0, '0'), (1, '1-3'), (2, '4-15'), (3, '16-63'), (4, '64-251'), (5, '252-1k')]
    """
    if most == 1:
        return [(0, "0"), (SHADES, "1")]
    edges = [math.ceil((most + 1) ** (step / SHADES) - 1e-9) for step in range(SHADES + 1)]
    spans = [(step + 1, edges[step], edges[step + 1] - 1) for step in range(SHADES)]
    return [(0, "0")] + [(step, label(low, high)) for step, low, high in spans if low <= high]


def map_drawing(sample: DrawnSample, most: int) -> tuple[str, str]:
    """Return the map as SVG, and the data of its script as JSON that is safe inside a script element."""
    of_regions = pa.array([region.wkb for region in sample.regions], type=pa.binary())
    of_messages = pa.array([message.wkb for message in sample.messages], type=pa.binary())
    # The map shows the extent of the subscriptions; a message may reach far beyond.
    box = common_box(of_regions) or common_box(of_messages)
    if box is None:
        return "", "{}"
    margin = MARGIN_SHARE * max(box[2] - box[0], box[3] - box[1]) or 1.0
    box = (box[0] - margin, box[1] - margin, box[2] + margin, box[3] + margin)
    height = round(MAP_WIDTH * (box[3] - box[1]) / (box[2] - box[0]))
    order = np.argsort(-extents(of_regions), kind="stable")  # largest first, so that none is hidden under a larger one
    drawn = _reordered(sample, order.tolist())
    regions = [
        _path(path, f"{one.key} · {one.subscriber}", one.matches, f' class="q{shade(one.matches, most)}"')
        for one, path in zip(drawn.regions, svg_paths(of_regions.take(order), box, MAP_WIDTH), strict=True)
    ]
    messages = [
        _path(path, f"message {one.name}", one.matches)
        for one, path in zip(sample.messages, svg_paths(of_messages, box, MAP_WIDTH), strict=True)
    ]
    known = counted(len(sample.regions), "subscription region"), counted(len(sample.messages), "message")
    said = f"Map of {known[0]} and {known[1]}"
    drawing = (
        f'<svg id="map" viewBox="0 0 {MAP_WIDTH} {height}" role="img" aria-label="{said}" tabindex="0">'
        f"<title>{said}</title>"
        f'<g id="regions">{"".join(regions)}</g><g id="messages">{"".join(messages)}</g></svg>'
    )
    return drawing, _facts(drawn)


def _path(outline: str, name: str, matches: int, kind: str = "") -> str:
    title = escape(f"{name}: {counted(matches, 'match', 'matches')}")
    return f'<path{kind} d="{outline}"><title>{title}</title></path>'


def _reordered(sample: DrawnSample, order: list[int]) -> DrawnSample:
    """Return the sample with its regions in another order."""
    position = {row: place for place, row in enumerate(order)}
    messages = (
        message._replace(regions=tuple(sorted(position[row] for row in message.regions))) for message in sample.messages
    )
    return DrawnSample(tuple(messages), tuple(sample.regions[row] for row in order))


def _facts(sample: DrawnSample) -> str:
    facts = {
        "regions": [[region.key, region.subscriber, region.matches] for region in sample.regions],
        "messages": [
            {"name": m.name, "attributes": m.attributes, "matches": m.matches, "regions": m.regions}
            for m in sample.messages
        ],
    }
    # No `<` is left that could end the script element or begin a comment in it.
    return json.dumps(facts, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
