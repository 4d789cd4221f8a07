"""The DR-tree overlay on the same rectangles, messages and publishers as a network of brokers.

Either every subscription is a peer, as in the overlay paper, or every broker is one and has the subscriptions of its
clients. A peer cannot change its subscriptions: in the second way all of them are there when it joins.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from contrada.errors import FormatError
from contrada.overlay.protocol import Publication
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.simulator import MessageSpread, Simulator
from contrada.papers.network.plan import NetworkSetting, Plan
from contrada.papers.overlay.exhibits import METHODS
from contrada.papers.overlay.workload import holding

SUBSCRIBERS, BROKERS = "peers: subscribers", "peers: brokers"
PEER_MODES = (SUBSCRIBERS, BROKERS)
Row = dict[str, Any]


def measure_peers(setting: NetworkSetting, plan: Plan) -> Row:
    """Return one row: peers join, messages are sent from the publishers' peers, a part of the subscribers leaves."""
    start = time.process_time()
    boxes = plan.work.boxes
    if boxes is None:
        raise FormatError(f"{setting.workload}: the overlay is measured on rectangles")
    simulator = Simulator(Rules(**METHODS["R* with sketches"]), setting.seed)
    peers = _joined(simulator, setting, plan)
    joining = simulator.notes
    state = [len(peer.state.interest.boxes) + sum(map(len, peer.state.nodes)) for peer in simulator.peers.values()]
    spreads = list(_sent(simulator, plan, peers))
    sending = simulator.notes - joining
    for row in plan.leaving.tolist() if setting.mode == SUBSCRIBERS else ():
        simulator.remove(peers[row])
    receipts = sum(len(spread.reached) for spread in spreads)
    false = sum(spread.bothered for spread in spreads)
    hops = [spread.reached[peer] for spread in spreads for peer in spread.wanted & spread.reached.keys()] or [0]
    return {
        **asdict(setting),
        "control_subscribing": joining,
        "control_unsubscribing": simulator.notes - joining - sending,
        "control": simulator.notes - sending,
        "nodes": len(state),
        "entries": sum(state),
        "entries_largest": max(state),
        "matched_per_message": receipts / setting.messages,
        "passing_share": false / receipts,
        "false_negatives": sum(len(spread.missed) for spread in spreads),
        "hops": {"mean": float(np.mean(hops)), "max": max(hops)},
        "cpu_seconds": round(time.process_time() - start, 2),
    }


def _joined(simulator: Simulator, setting: NetworkSetting, plan: Plan) -> list[int]:
    """Let peers join; return the peer of each subscription."""
    assert plan.work.boxes is not None
    if setting.mode == SUBSCRIBERS:
        return [int(simulator.add([box])) for box in plan.work.boxes.tolist()]
    found = np.full(setting.subscriptions, -1)
    for number in range(setting.brokers):
        rows = np.flatnonzero(np.array(plan.homes) == f"b{number}")
        if len(rows):
            found[rows] = int(simulator.add(plan.work.boxes[rows].tolist()))
    return [int(peer) for peer in found]


def _sent(simulator: Simulator, plan: Plan, peers: Sequence[int]) -> Iterable[MessageSpread]:
    """Send all messages, each from a peer of its publisher's broker."""
    assert plan.work.boxes is not None
    homes, owners = np.array(plan.homes), np.array(peers)
    for at, publisher in plan.publishers:
        of_broker = owners[homes == at]
        source = int(of_broker[0]) if len(of_broker) else int(owners[0])
        for row in publisher.rows.tolist():
            place = plan.work.places[row]
            held = holding(plan.work.boxes, place[None, : len(place) // 2])[0]
            wanted = frozenset(owners[held].tolist())
            yield simulator.send_out(Publication(row, tuple(place.tolist())), source, wanted)
