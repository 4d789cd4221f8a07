"""Read the data of a report as the script of its page does: a header, and chunks within the page or beside it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapely.geometry import MultiPolygon, Point, Polygon
from shapely.geometry.base import BaseGeometry

CHUNK = re.compile(r'^contradaChunk\("([a-z]+)",(\d+),(\[.*?\])\)$', re.MULTILINE | re.DOTALL)
HEADER = re.compile(r'<script type="application/json" id="report-data">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class ReportData:
    """The header of a report, and the lines of all chunks by name."""

    header: dict[str, Any]
    lines: dict[str, list[Any]]

    def matches(self, row: int) -> dict[str, str | None]:
        """Return the keys that the message in a row matched, with the name of the relation."""
        _, steps, letters, *_ = self.lines["details"][row]
        number, found = 0, {}
        for step, letter in zip(steps, letters, strict=True):
            number += step
            relation = None if letter == "-" else self.header["relations"][int(letter)]
            found[self.lines["subscriptions"][number][0]] = relation
        return found


def read_report(page: Path) -> ReportData:
    """Return the data of a page; each chunk must hold the lines that the header names."""
    text = page.read_text(encoding="utf-8")
    found = HEADER.search(text)
    assert found is not None
    header = json.loads(found[1])
    folder = header["files"]
    texts = [text] if folder is None else [path.read_text() for path in sorted((page.parent / folder).iterdir())]
    lines: dict[str, list[Any]] = {name: [] for name in header["starts"]}
    for name, number, content in (match for text in texts for match in CHUNK.findall(text)):
        starts = header["starts"][name]
        assert len(lines[name]) == starts[int(number)]
        lines[name] += json.loads(content)
        assert len(lines[name]) == starts[int(number) + 1]
    for name, starts in header["starts"].items():
        assert len(lines[name]) == starts[-1], name
    return ReportData(header, lines)


def shape_of(shape: Any) -> BaseGeometry | list[BaseGeometry] | None:
    """Return the geometry of a shape in the data; a list if there are several."""
    if shape is None:
        return None
    if isinstance(shape, dict):
        return [_single(one) for one in shape["shapes"]]
    return _single(shape)


def _single(shape: list[Any]) -> BaseGeometry:
    if len(shape) == 2:
        return Point(shape)
    x, y, step, parts = shape
    polygons = [Polygon(rings[0], rings[1:]) for rings in ([_ring(r, x, y, step) for r in part] for part in parts)]
    return polygons[0] if len(polygons) == 1 else MultiPolygon(polygons)


def _ring(steps: list[int], x: float, y: float, step: float) -> list[tuple[float, float]]:
    across = up = 0
    ring = []
    for dx, dy in zip(steps[::2], steps[1::2], strict=True):
        across, up = across + dx, up + dy
        ring.append((x + across * step, y + up * step))
    return ring
