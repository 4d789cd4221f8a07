"""Assign filters to partitions by a sample of them: cells for narrow filters, wide partitions for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.index.cells import Cells, cut_cells, middles_of
from contrada.pipeline.partitioned.scanning import CORNERS

WIDE_SHARE = 0.9  # share of sampled box centers that a wide filter's box contains
SAMPLE_CENTERS = 256  # sampled box centers
Expected = Callable[[list[str]], dict[str, NDArray[np.float64]]]


def layout_of(table: Any, count: int, expected: Expected = lambda named: {}) -> Layout:
    """Assign filters to about `count` partitions, given the output of `sample_batches`.

    `expected` returns the boxes of some messages for a list of attributes.
    """
    attributes = np.array(table.column("attribute").to_pylist(), object)
    weights = np.asarray(table.column("weight"))
    boxes = np.stack([np.asarray(table.column(name)) for name in CORNERS], axis=1)
    named = sorted({name for name in attributes if name is not None})
    sampled = {name: Sampled(boxes[attributes == name], weights[attributes == name]) for name in named}
    anywhere = float(weights[np.array([name is None for name in attributes], np.bool_)].sum())
    return laid_out(sampled, anywhere, count, expected(named))


class Layout(NamedTuple):
    """Assigns filters to partitions: cells for each attribute, and wide partitions, which receive every message."""

    cells: dict[str, tuple[int, Cells]]  # the first partition of an attribute, and its cells
    wide: tuple[int, int]  # the first wide partition, and their number
    samples: dict[str, NDArray[np.float64]]  # centers of an attribute's heads

    @property
    def total(self) -> int:
        """Return the number of partitions."""
        return self.wide[0] + self.wide[1]

    def find(
        self, names: tuple[str, ...], attributes: NDArray[np.int32], boxes: NDArray[np.float64], turns: NDArray[Any]
    ) -> NDArray[np.int32]:
        """Return the partition of each head; `turns` spreads filters that have the same box or none."""
        found = (self.wide[0] + turns % max(1, self.wide[1])).astype(np.int32)
        for k, name in enumerate(names):
            rows = np.flatnonzero(attributes == k)
            rows = rows[~self._nearly_all(name, boxes[rows])]
            first, cells = self.cells[name]
            found[rows] = first + cells.find(boxes[rows], turns[rows])
        return found

    def _nearly_all(self, name: str, boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return True for boxes that nearly any message meets; always False without wide partitions."""
        return _is_nearly_all(boxes, self.samples[name]) if self.wide[1] else np.zeros(len(boxes), np.bool_)


class Sampled(NamedTuple):
    """A sample of an attribute's heads; a weight is the number of filters of a head, 0 for the largest ones."""

    boxes: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def usual(self) -> Sampled:
        """Return the heads of positive weight."""
        chosen = self.weights > 0
        return Sampled(self.boxes[chosen], self.weights[chosen])


def laid_out(
    sampled: dict[str, Sampled], anywhere: float, partitions: int, messages: dict[str, NDArray[np.float64]]
) -> Layout:
    """Spread filters over about `partitions` partitions; cells balance filters and expected messages.

    `messages` are boxes of some messages, by attribute; without them filters alone are balanced.
    """
    cells: dict[str, tuple[int, Cells]] = {}
    samples = {name: _middles(one.usual.boxes) for name, one in sampled.items()}
    narrow: dict[str, Sampled] = {}
    has_wide = anywhere > 0
    for name, one in sampled.items():
        is_wide = _is_nearly_all(one.boxes, samples[name])
        has_wide = has_wide or bool(is_wide.any())
        anywhere += float(one.weights[is_wide].sum())
        narrow[name] = Sampled(one.boxes[~is_wide], one.weights[~is_wide]).usual
    total = anywhere + sum(float(one.weights.sum()) for one in narrow.values())
    first = 0
    for name, one in sorted(narrow.items()):
        share = float(one.weights.sum()) / max(1.0, total)
        count = max(1, round(partitions * share))
        cells[name] = first, _cells(one, count, messages.get(name))
        first += count
    wide = max(1, round(partitions * anywhere / max(1.0, total))) if has_wide else 0
    return Layout(cells, (first, wide if first else max(1, wide)), samples)


def _cells(filters: Sampled, count: int, messages: NDArray[np.float64] | None) -> Cells:
    if messages is None or not len(messages) or not len(filters.boxes):
        return cut_cells(filters.boxes, count, filters.weights)
    low, high = filters.boxes[:, :2].min(axis=0), filters.boxes[:, 2:].max(axis=0)
    near = messages[((messages[:, 2:] >= low) & (messages[:, :2] <= high)).all(axis=1)]
    each = float(filters.weights.sum()) / max(1, len(near))  # all messages together weigh as much as all filters
    return cut_cells(
        np.concatenate([filters.boxes, near]), count, np.concatenate([filters.weights, np.full(len(near), each)])
    )


def _middles(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    step = max(1, len(boxes) // SAMPLE_CENTERS)
    return middles_of(boxes[::step])


def _is_nearly_all(boxes: NDArray[np.float64], middles: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return True for boxes that contain `WIDE_SHARE` of the points; always False with too few points."""
    found = np.zeros(len(boxes), np.bool_)
    if len(middles) < SAMPLE_CENTERS // 8:
        return found
    low, high = np.quantile(middles, 0.25, axis=0), np.quantile(middles, 0.75, axis=0)
    for row in np.flatnonzero(((boxes[:, :2] <= low) & (boxes[:, 2:] >= high)).all(axis=1)):
        inside = ((middles >= boxes[row, :2]) & (middles <= boxes[row, 2:])).all(axis=1)
        found[row] = inside.mean() >= WIDE_SHARE
    return found
