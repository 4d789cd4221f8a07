"""Churn in a simulated overlay: peers join, leave, crash and are corrupted while messages flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from contrada.overlay.boxes import Box
from contrada.overlay.simulation.simulator import MessageSpread, Simulator


@dataclass(frozen=True, slots=True)
class Churn:
    """Average number of events per second; events are independent of each other."""

    joins: float = 0.0
    leaves: float = 0.0
    crashes: float = 0.0
    corruptions: float = 0.0
    messages: float = 0.0


@dataclass(slots=True)
class Losses:
    """Deliveries of messages published during churn: wanted by peers that still live, and missed among them.

    Deliveries of messages whose every holder vanished while they were on their way are `extinct`; they are not among
    the `wanted` and `missed` ones. `repeated` deliveries came a second time.
    """

    messages: int = 0
    wanted: int = 0
    missed: int = 0
    extinct: int = 0
    repeated: int = 0

    @property
    def ratio(self) -> float:
        """The share of wanted deliveries that were missed: false negatives."""
        return self.missed / self.wanted if self.wanted else 0.0


def run_churn(
    simulator: Simulator, churn: Churn, seconds: float, draw_box: Callable[[], Box], draw_where: Callable[[], Box]
) -> list[MessageSpread]:
    """Let peers join, leave, crash and be corrupted for `seconds`, and one period more; return the messages.

    At least two peers always remain.
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
    return spreads


def count_losses(simulator: Simulator, spreads: list[MessageSpread]) -> Losses:
    """Count wanted and missed deliveries to peers that are alive now."""
    losses = Losses(len(spreads))
    for spread in spreads:
        alive = spread.wanted & simulator.peers.keys()
        missed = len(alive & spread.missed)
        if spread.is_extinct:
            losses.extinct += missed
        else:
            losses.missed += missed
        losses.wanted += len(alive) - missed * spread.is_extinct
        losses.repeated += spread.repeated
    return losses
