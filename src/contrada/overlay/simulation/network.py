"""A simulated network: notes are delayed, lost and doubled, and with unequal delays reordered."""

from __future__ import annotations

import random
from dataclasses import dataclass

from contrada.errors import OverlayError


@dataclass(frozen=True, slots=True)
class Network:
    """Every note takes `latency` seconds and up to `jitter` more; a share `loss` is lost, `doubling` comes twice.

    With `resend` > 0 a lost note is sent again after `resend` seconds, as TCP does, and only arrives late.

    >>> Network(latency=0.1).delays(random.Random(1))
    [0.1]
    """

    latency: float = 0.05
    jitter: float = 0.0
    loss: float = 0.0
    doubling: float = 0.0
    resend: float = 0.0

    def __post_init__(self) -> None:
        if min(self.latency, self.jitter, self.resend) < 0:
            raise OverlayError(
                f"latency {self.latency}, jitter {self.jitter}, resend {self.resend}: need numbers of at least 0"
            )
        if not 0 <= self.loss < 1 or not 0 <= self.doubling <= 1:
            raise OverlayError(f"loss {self.loss}, doubling {self.doubling}; need 0 <= loss < 1 and 0 <= doubling <= 1")

    def delays(self, rng: random.Random) -> list[float]:
        """Return the delay in seconds of each copy of a note; empty if the note is lost."""
        late = 0.0
        while self.loss and rng.random() < self.loss:
            if not self.resend:
                return []
            late += self.resend
        count = 2 if self.doubling and rng.random() < self.doubling else 1
        return [late + self.latency + (rng.random() * self.jitter if self.jitter else 0.0) for _ in range(count)]
