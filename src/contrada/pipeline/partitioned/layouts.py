"""Assign filters to partitions by a sample of them: cells for narrow filters, wide partitions for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.index.cells import Cells, cut_cells, middles_of
from contrada.pipeline.partitioned.scanning import boxes_in

WIDE_SHARE = 0.9  # share of sampled box centers that a wide filter's box contains
SAMPLE_CENTERS = 256  # sampled box centers
Expected = Callable[[list[str]], dict[str, NDArray[np.float64]]]


def layout_of(table: Any, count: int, expected: Expected = lambda named: {}) -> Layout:
    """Spread filters over about `count` partitions, given the output of `sample_batches`.

    `expected` returns the boxes of some messages for a list of attributes; cells balance filters and these messages.
    """
    attributes = np.array(table.column("attribute").to_pylist(), object)
    weights, boxes = np.asarray(table.column("weight")), boxes_in(table)
    named = sorted({name for name in attributes if name is not None})
    anywhere = float(weights[np.asarray(table.column("attribute").is_null())].sum())
    has_wide = anywhere > 0
    samples: dict[str, NDArray[np.float64]] = {}
    narrow: dict[str, Sampled] = {}
    for name in named:
        one = Sampled(boxes[attributes == name], weights[attributes == name])
        usual = one.usual.boxes
        samples[name] = middles_of(usual[:: max(1, len(usual) // SAMPLE_CENTERS)])
        is_wide = _is_nearly_all(one.boxes, samples[name])
        has_wide = has_wide or bool(is_wide.any())
        anywhere += float(one.weights[is_wide].sum())
        narrow[name] = Sampled(one.boxes[~is_wide], one.weights[~is_wide]).usual
    total = max(1.0, anywhere + sum(float(one.weights.sum()) for one in narrow.values()))
    cells: dict[str, tuple[int, Cells]] = {}
    first, messages = 0, expected(named)
    for name, one in narrow.items():
        share = max(1, round(count * (float(one.weights.sum()) / total)))
        cells[name] = first, _cells(one, share, messages.get(name))
        first += share
    wide = max(1, round(count * anywhere / total)) if has_wide else 0
    return Layout(cells, (first, wide if first else max(1, wide)), samples)


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
            if self.wide[1]:
                rows = rows[~_is_nearly_all(boxes[rows], self.samples[name])]
            first, cells = self.cells[name]
            found[rows] = first + cells.find(boxes[rows], turns[rows])
        return found


class Sampled(NamedTuple):
    """A sample of an attribute's heads; a weight is the number of filters of a head, 0 for the largest ones."""

    boxes: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def usual(self) -> Sampled:
        """Return the heads of positive weight."""
        chosen = self.weights > 0
        return Sampled(self.boxes[chosen], self.weights[chosen])


def _cells(filters: Sampled, count: int, messages: NDArray[np.float64] | None) -> Cells:
    if messages is None or not len(messages) or not len(filters.boxes):
        return cut_cells(filters.boxes, count, filters.weights)
    low, high = filters.boxes[:, :2].min(axis=0), filters.boxes[:, 2:].max(axis=0)
    near = messages[((messages[:, 2:] >= low) & (messages[:, :2] <= high)).all(axis=1)]
    each = float(filters.weights.sum()) / max(1, len(near))  # all messages together weigh as much as all filters
    return cut_cells(
        np.concatenate([filters.boxes, near]), count, np.concatenate([filters.weights, np.full(len(near), each)])
    )


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
