"""Text of a report: JSON that is safe inside a script element, and filters without their coordinates."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

GEOMETRY = re.compile(r"\b(MULTI)?(POLYGON|POINT|LINESTRING)\s*Z?\s*(?=\()|\b(BBOX|ENVELOPE)\s*(?=\()", re.IGNORECASE)


def json_text(value: Any) -> str:
    """Return JSON in ASCII and without `<`: it can end no script element and begin no comment, and is JavaScript too.

    >>> json_text(["</script>", chr(0x2028), "\\n"])
    '["\\\\u003c/script>","\\\\u2028","\\\\n"]'
    """
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def without_coordinates(text: str) -> str:
    """Replace the coordinates in a filter by an ellipsis.

    >>> without_coordinates("S_INTERSECTS(area, POLYGON ((0 0, 4 0, 4 4, 0 0))) AND severity >= 3")
    'S_INTERSECTS(area, POLYGON (…)) AND severity >= 3'
    >>> without_coordinates("inside(area, BBOX(0, 0, 4, 4)) AND x = 1 AND overlaps(area, POLYGON((0 0, 4")
    'inside(area, BBOX (…)) AND x = 1 AND overlaps(area, POLYGON (…'
    """
    kept, start = [], 0
    while found := GEOMETRY.search(text, start):
        end = _closing(text, found.end())
        kept.append(text[start : found.end()].rstrip() + " (…")
        start = end
    return "".join(kept) + text[start:]


def _closing(text: str, start: int) -> int:
    """Return the position of the bracket that closes the one at `start`; the length of the text if there is none."""
    depths = accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in text[start:])
    return next((start + place for place, depth in enumerate(depths) if depth == 0), len(text))
