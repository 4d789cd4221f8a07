"""Measure an overlay under churn: missed deliveries meanwhile, and the time until the tree is sound again."""

from __future__ import annotations

import random
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np

from contrada.errors import OverlayError
from contrada.overlay.boxes import Box
from contrada.overlay.protocol import AnyNote, Down, PeerId, Up
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.churn import Churn, count_losses, run_churn
from contrada.overlay.simulation.network import Network
from contrada.overlay.simulation.simulator import Simulator
from contrada.papers.overlay.workload import Boxes, draw_messages, draw_subscriptions

QUIET = Network(latency=0.05, jitter=0.05)
MAX_HEALING_SECONDS = 600.0  # until the tree must be sound again
MESSAGES_AFTER_HEALING = 100  # published after healing; none may be missed


class Traffic:
    """Notes that arrive: how many, of these how many carry messages, and their bytes on the wire."""

    def __init__(self) -> None:
        self.notes = self.carrying = self.bytes = 0

    def watch(self, now: float, sender: PeerId, to: PeerId, note: AnyNote) -> None:
        """Count a note."""
        self.notes += 1
        self.carrying += type(note) is Up or type(note) is Down
        self.bytes += len(msgspec.msgpack.encode(note))


def measure_churn(
    peers: int, seconds: float, churn: Churn, network: Network, rules: Rules, distribution: str, seed: int
) -> dict[str, Any]:
    """Grow a tree, apply churn for `seconds`, then quieten the network; measure healing time and missed deliveries.

    Notes and kept messages are those during the churn and one period after it.

    >>> row = measure_churn(20, 5, Churn(crashes=0.5, messages=2), Network(), Rules(2, 5), "uniform", 1)
    >>> row["false_negatives_after"], row["repeated"], row["healed_after"] is not None
    (0, 0, True)
    """
    if peers < 1 or seconds < 0:
        raise OverlayError(f"need at least 1 peer and at least 0 seconds, got {peers} peers and {seconds} seconds")
    rng = np.random.default_rng(seed)
    boxes = draw_subscriptions(peers + int(4 * churn.joins * seconds) + 100, 2, distribution, rng)
    points = np.tile(draw_messages(1000, 2, rng), 2)  # as boxes without extent
    simulator = grow(boxes[:peers], rules, seed)
    drawn = random.Random(seed)
    traffic = Traffic()
    simulator.network, simulator.watch = network, traffic.watch
    spreads = run_churn(simulator, churn, seconds, lambda: _some(boxes, drawn), lambda: _some(points, drawn))
    simulator.network, simulator.watch = QUIET, None
    kept = [len(peer.state.kept) for peer in simulator.peers.values()]
    kept_bytes = [peer.state.kept.bytes for peer in simulator.peers.values()]
    healed = simulator.run_until_sound(MAX_HEALING_SECONDS)
    simulator.run(5 * rules.period)
    losses = count_losses(simulator, spreads)
    later = [simulator.publish(_some(points, drawn)) for _ in range(MESSAGES_AFTER_HEALING)]
    simulator.run(5 * rules.period)
    return {
        "peers": peers, "seconds": seconds, "churn": asdict(churn), "network": asdict(network), "kept": rules.kept,
        "retention": rules.retention, "seed": seed, "peers_after": len(simulator.peers), "messages": losses.messages,
        "wanted": losses.wanted, "false_negatives": losses.missed, "false_negative_ratio": losses.ratio,
        "extinct": losses.extinct, "repeated": losses.repeated, "healed_after": healed,
        "false_negatives_after": count_losses(simulator, later).missed,
        "notes_per_second": traffic.notes / (seconds + rules.period),
        "carrying_per_second": traffic.carrying / (seconds + rules.period),
        "bytes_per_second": traffic.bytes / (seconds + rules.period),
        "kept_messages": float(np.mean(kept)), "kept_messages_max": max(kept),
        "kept_bytes": float(np.mean(kept_bytes)), "kept_bytes_max": max(kept_bytes),
    }  # fmt: skip


def grow(boxes: Boxes, rules: Rules, seed: int) -> Simulator:
    """Return a sound tree of peers with one subscription each, in a quiet network."""
    simulator = Simulator(rules, seed, QUIET)
    for box in boxes.tolist():
        simulator.add([box])
        simulator.run(0.1)
    if simulator.run_until_sound(MAX_HEALING_SECONDS) is None:
        raise OverlayError("the tree is not stable before the churn")
    return simulator


def _some(boxes: Boxes, rng: random.Random) -> Box:
    return tuple(boxes[rng.randrange(len(boxes))].tolist())
