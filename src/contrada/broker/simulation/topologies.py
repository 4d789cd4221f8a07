"""Shapes of acyclic networks as lists of links between brokers b0, b1, ..."""

from __future__ import annotations

import random
from collections.abc import Callable

Links = list[tuple[str, str]]


def chain(count: int) -> Links:
    """Return the links of `count` brokers in a row.

    >>> chain(3)
    [('b0', 'b1'), ('b1', 'b2')]
    """
    return _tree(count, lambda number: number - 1)


def star(count: int) -> Links:
    """Return the links of `count` brokers, all linked to b0.

    >>> star(3)
    [('b0', 'b1'), ('b0', 'b2')]
    """
    return _tree(count, lambda _: 0)


def balanced_tree(count: int, fanout: int = 2) -> Links:
    """Return the links of `count` brokers in a tree in which each has up to `fanout` children.

    >>> balanced_tree(5)
    [('b0', 'b1'), ('b0', 'b2'), ('b1', 'b3'), ('b1', 'b4')]
    """
    return _tree(count, lambda number: (number - 1) // fanout)


def random_tree(count: int, seed: int) -> Links:
    """Return the links of `count` brokers, each linked to a random earlier one."""
    rng = random.Random(seed)
    return _tree(count, rng.randrange)


def _tree(count: int, parent_of: Callable[[int], int]) -> Links:
    return [(f"b{parent_of(number)}", f"b{number}") for number in range(1, count)]
