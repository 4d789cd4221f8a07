"""Rules: the parameters on which all peers of an overlay must agree."""

from __future__ import annotations

from dataclasses import dataclass

from contrada.errors import OverlayError

KNOWN_VALUES = {"choose": ("r", "rstar"), "split": ("quadratic", "linear", "rstar"), "cover": ("mbr", "own")}
MAX_SKETCH_BOXES = 64
MAX_KEPT = 8192  # a heartbeat to a new parent lists all of them, in one frame
SKETCHED_LEVELS = 2  # higher nodes receive nearly every message anyway, and would change with every join


@dataclass(frozen=True, slots=True)
class Rules:
    """Parameters of the tree; defaults as in the paper.

    `choose` is how a new node descends the tree, `split` how a node with too many children is divided; with `rstar` a
    node first gives away 30 % of its children to be inserted again, once per level. `cover` says which child holds a
    node: the one whose node has the largest box, or the one whose own subscriptions have. With a `sketch` a parent
    keeps up to that many boxes for each low node, instead of one. A peer keeps up to `kept` messages for `retention`
    seconds, to send them again to neighbours that lack them; with 0, as in the paper, none. Times are in seconds.

    >>> Rules(least=6, most=10)
    Traceback (most recent call last):
    contrada.errors.OverlayError: least 6, most 10: a node of 11 children cannot be split into two nodes of at least 6
    """

    least: int = 5
    most: int = 10
    choose: str = "r"
    split: str = "quadratic"
    cover: str = "mbr"
    sketch: int = 0
    reinserted_share: float = 0.3
    period: float = 1.0  # between two heartbeats
    patience: float = 3.5  # without a heartbeat before a neighbour counts as dead
    kept: int = 4096  # messages
    retention: float = 20.0  # time for which a message is kept: enough to notice a crash and to find a new parent
    remembered: int = 256  # messages, to drop duplicates if none are kept

    def __post_init__(self) -> None:
        if self.least < 1 or 2 * self.least > self.most + 1 or self.most < 2:
            raise OverlayError(
                f"least {self.least}, most {self.most}: a node of {self.most + 1} children cannot be split into two"
                f" nodes of at least {self.least}"
            )
        for name, known in KNOWN_VALUES.items():
            if getattr(self, name) not in known:
                raise OverlayError(f"{name}: unknown value {getattr(self, name)!r:.60}; values: {', '.join(known)}")
        if not 0 <= self.sketch <= MAX_SKETCH_BOXES:
            raise OverlayError(f"sketch: need 0 to {MAX_SKETCH_BOXES} boxes, got {self.sketch}")
        if not 0 <= self.kept <= MAX_KEPT:
            raise OverlayError(f"kept: need 0 to {MAX_KEPT:,} messages, got {self.kept}")
        if not self.retention >= 0:
            raise OverlayError(f"retention: need at least 0 seconds, got {self.retention}")
        if not 0 < self.period < self.patience:
            raise OverlayError(f"need 0 < period < patience, got period {self.period} and patience {self.patience}")

    @property
    def reinserts(self) -> bool:
        """True if a full node first reinserts children before it is split."""
        return self.split == "rstar" and self.reinserted_count > 0

    @property
    def reinserted_count(self) -> int:
        """The number of children to reinsert: 30 % of M, but leaving at least `least` children."""
        return min(max(1, round(self.reinserted_share * self.most)), self.most + 1 - self.least)
