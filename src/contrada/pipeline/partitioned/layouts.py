"""Compute a layout from a sample of filters, and the list of partitions from the built tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.partitioned.partitions import Layout, Partition, Sampled, laid_out
from contrada.pipeline.partitioned.scanning import CORNERS

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


def partitions_of(found: Iterable[dict[str, Any]]) -> tuple[list[Partition], list[tuple[int, str | None, str]]]:
    """Return the partitions in order from the output of `build_partition`, and the bad rows, each once."""
    told = sorted(found, key=lambda about: about["partition"])
    parts = [Partition(Artifact.of(about["artifact"]), about["first_shared"], about["boxes"]) for about in told]
    bad = {number: (number, key, reason) for about in told for number, key, reason in about["rejected"]}
    return parts, sorted(bad.values())
