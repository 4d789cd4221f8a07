"""The extent of the subscriptions and messages of a tenant, and whether their coordinates can be degrees."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from contrada.geometry import Circle
from contrada.geometry.circle import TYPE as CIRCLE
from contrada.service.kept_state import KeptState
from contrada.service.map.filter_shapes import FilterShapeReader
from contrada.service.map.message_views import parts_of
from contrada.service.map.schemas import Box, Plane
from contrada.service.map.subscription_views import shapes_within

LOOKED_AT = 2_000  # subscriptions
LATEST = 200  # messages of all tenants
WORLD: Box = (-180.0, -90.0, 180.0, 90.0)
MIDDLE = Plane(0.0, 0.0, 1024.0)


class Extent(NamedTuple):
    """The box of subscriptions and messages, None without any; `plane` is None if coordinates are degrees."""

    bounds: Box | None
    plane: Plane | None


def extent_of(tenant: str, kept: KeptState, reader: FilterShapeReader, coordinates: str) -> Extent:
    """Return the extent of subscriptions and the latest messages of a tenant; of many subscriptions a sample counts.

    `coordinates` is degrees, plain, or auto: plain if some of them lie beyond the degrees of the world.
    """
    bounds = _joined([*_boxes_of_subscriptions(tenant, kept, reader), *_boxes_of_messages(tenant, kept)])
    is_plain = coordinates == "plain"
    if coordinates == "auto" and bounds is not None:
        is_plain = bounds[0] < WORLD[0] or bounds[1] < WORLD[1] or bounds[2] > WORLD[2] or bounds[3] > WORLD[3]
    return Extent(bounds, plane_of(bounds) if is_plain else None)


def plane_of(bounds: Box | None) -> Plane:
    """Return a plane around a box: its middle, and a power of two that is at least twice as long as the box.

    >>> plane_of((0, 0, 100, 30))
    Plane(x=50.0, y=15.0, span=256.0)
    """
    if bounds is None:
        return MIDDLE
    xmin, ymin, xmax, ymax = bounds
    length = max(xmax - xmin, ymax - ymin, abs(xmin) * 1e-12, abs(ymin) * 1e-12, 1e-6)
    span = 2.0 ** math.ceil(math.log2(2 * length))
    return Plane((xmin + xmax) / 2, (ymin + ymax) / 2, span)


def _boxes_of_subscriptions(tenant: str, kept: KeptState, reader: FilterShapeReader) -> Iterator[Box]:
    for view in kept.some_subscriptions(tenant, LOOKED_AT):
        if (box := shapes_within(view, reader).bounds) is not None:
            yield box


def _boxes_of_messages(tenant: str, kept: KeptState) -> Iterator[Box]:
    span = kept.span()
    for message in kept.messages(max(span.oldest, span.newest - LATEST + 1), LATEST):
        if message.tenant != tenant:
            continue
        for shape in parts_of(message.body, message.format).shapes.values():
            if shape["type"] == CIRCLE:
                yield Circle.from_geojson(shape).bounds
                continue
            numbers = np.array(list(_positions(shape.get("coordinates"))), float)
            if len(numbers):
                (xmin, ymin), (xmax, ymax) = numbers.min(axis=0).tolist(), numbers.max(axis=0).tolist()
                yield xmin, ymin, xmax, ymax


def _positions(value: object) -> Iterator[tuple[float, float]]:
    """Yield the positions in the coordinates of a geometry."""
    if not isinstance(value, list) or not value:
        return
    if isinstance(value[0], int | float):
        if len(value) >= 2 and isinstance(value[1], int | float):
            yield float(value[0]), float(value[1])
        return
    for item in value:
        yield from _positions(item)


def _joined(boxes: list[Box]) -> Box | None:
    found = [box for box in boxes if all(map(math.isfinite, box))]
    if not found:
        return None
    array = np.array(found)
    (xmin, ymin), (xmax, ymax) = array[:, :2].min(axis=0).tolist(), array[:, 2:].max(axis=0).tolist()
    return xmin, ymin, xmax, ymax
