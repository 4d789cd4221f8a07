"""Random subscriptions to rectangles, and unsubscriptions, drawn as in [COVER]."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import CoveringError

Floats = NDArray[np.float64]
ATTRIBUTES = 5  # of a subscription in figures 8 and 9 and both tables
LAWS = ("ends", "length", "start")
MAX_WHOLE_NUMBERS = 2**52


class Draw(NamedTuple):
    """How a "randomly chosen segment" is drawn; the paper does not say.

    By `ends`: both ends uniform. By `length`: the length uniform, then the position uniform among those that fit. By
    `start`: the start uniform, then the end uniform above it. Ends are reals in [0, 1), or whole numbers below
    `numbers`, as the paper's range [0, 2^d - 1] suggests.
    """

    law: str
    numbers: int | None = None

    @classmethod
    def parse(cls, text: str) -> Draw:
        """Return a draw from its name: ends, or length:24 for whole numbers in 0..23.

        >>> Draw.parse("length:24"), Draw.parse("ends").numbers
        (Draw(law='length', numbers=24), None)
        """
        law, sign, numbers = text.partition(":")
        is_whole = numbers.isdecimal() and len(numbers) <= len(str(MAX_WHOLE_NUMBERS))
        if law not in LAWS or (sign and not (is_whole and 1 <= int(numbers) <= MAX_WHOLE_NUMBERS)):
            raise CoveringError(f"unknown draw {text!r:.60}: need {', '.join(LAWS)}, or one of them such as length:24")
        return cls(law, int(numbers) if sign else None)

    def segments(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Return the lower and the upper ends of segments."""
        whole = 1 if self.numbers is None else self.numbers
        if self.law == "ends":
            both = np.sort(self._below(rng, np.full((*shape, 2), float(whole))), axis=-1)
            return both[..., 0], both[..., 1]
        first = self._below(rng, np.full(shape, float(whole)))
        second = self._below(rng, whole - first)
        return (first, first + second) if self.law == "start" else (second, second + first)

    def _below(self, rng: np.random.Generator, limits: Floats) -> Floats:
        """Return uniform numbers below limits."""
        drawn = rng.random(limits.shape) * limits
        return drawn if self.numbers is None else np.minimum(np.floor(drawn), limits - 1)


def rectangle_commands(
    count: int, attributes: int, p: float, seed: int, draw: str = "ends"
) -> tuple[NDArray[np.int64], Floats]:
    """Return commands and the points of their rows, for `contrada.papers.cover.replay`.

    With probability `p` a command unsubscribes a rectangle chosen uniformly among the live ones. Otherwise it
    subscribes to a new rectangle, each side of which is drawn as `Draw` says. If no rectangle is live, the command
    subscribes.

    >>> commands, points = rectangle_commands(1000, 5, 0.4, seed=1)
    >>> points.shape[1], int((commands >= 0).sum()) == len(points), bool((points[:, 1::2] >= -points[:, ::2]).all())
    (10, True, True)
    """
    segments = Draw.parse(draw)
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
    lows, highs = segments.segments(rng, (rows, attributes))
    points = np.stack([-lows, highs], axis=2).reshape(rows, 2 * attributes)
    return np.array(commands, np.int64), points
