"""Random subscriptions to rectangles, and unsubscriptions, drawn as in [COVER]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def rectangle_commands(
    count: int, attributes: int, p: float, seed: int, top: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return commands and the points of their rows, for `contrada.papers.cover.replay`.

    With probability `p` a command unsubscribes a rectangle chosen uniformly among the live ones. Otherwise it
    subscribes to a new rectangle, each side of which lies between two uniform end points: in [0, 1), or integers below
    `top`, which makes many ties. If no rectangle is live, the command subscribes.

    >>> commands, points = rectangle_commands(1000, 5, 0.4, seed=1)
    >>> points.shape[1], int((commands >= 0).sum()) == len(points), bool((points[:, 1::2] >= -points[:, ::2]).all())
    (10, True, True)
    """
    rng = np.random.default_rng(seed)
    leaves, picks = (rng.random(count) < p).tolist(), rng.random(count).tolist()
    commands: list[int] = []
    live: list[int] = []
    rows = 0
    for is_leaving, pick in zip(leaves, picks, strict=True):
        if is_leaving and live:
            at = int(pick * len(live))
            live[at], live[-1] = live[-1], live[at]
            commands.append(-1 - live.pop())
        else:
            commands.append(rows)
            live.append(rows)
            rows += 1
    shape = (rows, attributes, 2)
    drawn = rng.random(shape) if top is None else rng.integers(0, top, shape).astype(np.float64)
    ends = np.sort(drawn, axis=2)
    ends[:, :, 0] *= -1
    return np.array(commands, np.int64), ends.reshape(rows, 2 * attributes)
