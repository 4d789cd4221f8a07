"""The work of these benchmarks: subscriptions to squares, severities and kinds, and messages about points."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import contrada as ct

SPATIAL = "S_INTERSECTS(area, $geometry)"
MIXED = f"{SPATIAL} AND severity >= $sev AND kind = $kind"
SUBSCRIPTIONS, EXTENT, SIDE = 20_000, 1000.0, 5.0
SEVERITIES, KINDS = 5, 10


def _scalars(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    return rng.integers(0, SEVERITIES, count), [f"a{kind}" for kind in rng.integers(0, KINDS, count)]


def subscription_rows(seed: int, count: int = SUBSCRIPTIONS) -> pa.Table:
    """Return squares with a least severity and a kind; keys are their numbers."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, EXTENT, (count, 2))
    squares = ct.RegionArray.from_regions([ct.Region.box(x, y, x + SIDE, y + SIDE) for x, y in corners.tolist()])
    severities, kinds = _scalars(rng, count)
    return pa.table({"key": np.arange(count), "geometry": squares.to_wkb(), "sev": severities, "kind": kinds})


def messages(seed: int, count: int) -> pa.Table:
    """Return points with a severity and a kind."""
    rng = np.random.default_rng(seed + 1)
    points = ct.PointArray(rng.uniform(0, EXTENT, (count, 2)).round(4))
    severities, kinds = _scalars(rng, count)
    return pa.table({"area": points.to_wkb(), "severity": severities, "kind": kinds})


@cache
def table_for(template: str, seed: int) -> ct.ForwardingTable:
    """Return the packed table of the subscriptions."""
    table = ct.ForwardingTable()
    table.subscribe_many(subscription_rows(seed), template)
    table.pack()
    return table
