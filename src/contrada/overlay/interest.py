"""The subscriptions of a peer: boxes for routing, and the exact test at delivery."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from contrada.errors import OverlayError
from contrada.overlay.boxes import Box, bounds, check_box, meets
from contrada.overlay.protocol import Publication


class Interest(Protocol):
    """The subscriptions of one peer."""

    box: Box  # contains everything that may match
    boxes: tuple[Box, ...]  # together contain everything that may match

    def matches(self, publication: Publication) -> bool:
        """Return whether a publication matches exactly."""


class Rectangles:
    """Subscriptions that are boxes; a message matches if its box meets one of them.

    >>> Rectangles([(0.0, 1.0), (3.0, 4.0)]).matches(Publication(1, (2.0, 2.0)))
    False
    """

    __slots__ = ("box", "boxes")

    def __init__(self, boxes: Iterable[Sequence[float]]) -> None:
        self.boxes = tuple(check_box(box) for box in boxes)
        if not self.boxes:
            raise OverlayError("a peer needs at least one subscription")
        if len({len(box) for box in self.boxes}) > 1:
            raise OverlayError("all subscriptions of an overlay must have the same dimensions")
        self.box = bounds(self.boxes)

    def matches(self, publication: Publication) -> bool:
        """Return whether one of the boxes meets the box of `publication`."""
        where = publication.where
        for box in self.boxes:  # noqa: SIM110 - the loop takes half the time of any() here
            if meets(box, where):
                return True
        return False
