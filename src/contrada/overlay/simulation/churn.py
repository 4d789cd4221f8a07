"""Trouble for a simulated overlay: peers come and go while messages flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from contrada.overlay.boxes import Box
from contrada.overlay.simulation.simulator import MessageSpread, Simulator


@dataclass(frozen=True, slots=True)
class Churn:
    """How often things happen, each on average so many times a second, independently of each other."""

    joins: float = 0.0
    leaves: float = 0.0
    crashes: float = 0.0
    corruptions: float = 0.0
    messages: float = 0.0


@dataclass(slots=True)
class Losses:
    """How messages fared that were published during churn: of those who wanted one and still live, who missed it."""

    messages: int = 0
    wanted: int = 0
    missed: int = 0

    @property
    def ratio(self) -> float:
        """The share of wanted deliveries that never happened: false negatives."""
        return self.missed / self.wanted if self.wanted else 0.0


def run_churn(
    simulator: Simulator, churn: Churn, seconds: float, draw_box: Callable[[], Box], draw_where: Callable[[], Box]
) -> Losses:
    """Let peers come, go, crash and be corrupted for a while; then wait for messages under way, and count the missed.

    The peers that stay are never fewer than two.
    """
    rng = simulator.rng
    rates = [churn.joins, churn.leaves, churn.crashes, churn.corruptions, churn.messages]
    spreads: list[MessageSpread] = []
    end = simulator.now + seconds
    while sum(rates) > 0:
        pause = rng.expovariate(sum(rates))
        if simulator.now + pause > end:
            break
        simulator.run(pause)
        (what,) = rng.choices(range(len(rates)), rates)
        if what == 0:
            simulator.add([draw_box()])
        elif what == 4:
            spreads.append(simulator.publish(draw_where()))
        elif len(simulator.peers) > 2:
            (simulator.remove, simulator.crash, simulator.corrupt)[what - 1](simulator.random_id())
    simulator.run(max(0.0, end - simulator.now) + simulator.rules.period)
    return count_losses(simulator, spreads)


def count_losses(simulator: Simulator, spreads: list[MessageSpread]) -> Losses:
    """How messages fared, by those who live now."""
    losses = Losses(len(spreads))
    for spread in spreads:
        alive = spread.wanted & simulator.peers.keys()
        losses.wanted += len(alive)
        losses.missed += len(alive & spread.missed)
    return losses
