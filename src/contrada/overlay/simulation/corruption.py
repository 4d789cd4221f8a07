"""Corrupt the neighbour tables of a peer on purpose, to test that the overlay heals."""

from __future__ import annotations

import random

from contrada.overlay.protocol import ChildEntry, PeerId
from contrada.overlay.state import PeerState


def corrupt(state: PeerState, others: list[PeerId], rng: random.Random) -> None:
    """Corrupt what a peer believes about its neighbours, in a random way; its subscriptions stay."""
    ways = [_lose_parent, _mistake_parent, _gain_level, _lose_levels]
    if state.top:
        ways += [_lose_child, _gain_child, _mistake_box, _lose_itself]
    rng.choice(ways)(state, others, rng)


def _lose_parent(state: PeerState, others: list[PeerId], rng: random.Random) -> None:
    state.follow(None)


def _mistake_parent(state: PeerState, others: list[PeerId], rng: random.Random) -> None:
    state.follow(rng.choice(others))


def _gain_level(state: PeerState, others: list[PeerId], rng: random.Random) -> None:
    state.push({other: ChildEntry(state.own, state.own) for other in rng.sample(others, min(len(others), 3))})


def _lose_levels(state: PeerState, others: list[PeerId], rng: random.Random) -> None:
    state.truncate(rng.randrange(1, state.top + 2))


def _lose_child(state: PeerState, others: list[PeerId], rng: random.Random) -> None:
    table = rng.choice(state.nodes[1:])
    table.pop(rng.choice(list(table)), None)


def _gain_child(state: PeerState, others: list[PeerId], rng: random.Random) -> None:
    rng.choice(state.nodes[1:])[rng.choice(others)] = ChildEntry(state.own, state.own)


def _mistake_box(state: PeerState, others: list[PeerId], rng: random.Random) -> None:
    table = rng.choice(state.nodes[1:])
    table[rng.choice(list(table))] = ChildEntry(state.own, state.own)
    level = rng.randrange(1, state.top + 1)
    state.entries[level] = state.entries[level]._replace(box=state.own)


def _lose_itself(state: PeerState, others: list[PeerId], rng: random.Random) -> None:
    rng.choice(state.nodes[1:]).pop(state.id, None)
