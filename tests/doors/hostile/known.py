"""Inputs that are known to fail, with the reason. Each pattern must still match a failure, or be removed."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from hostile.worker import Input


class Known(NamedTuple):
    """Inputs of the corpus by patterns of door and name, and why they fail."""

    door: str
    name: str
    reason: str

    def matches(self, input: Input) -> bool:
        """True for an input that is meant."""
        return bool(input.name) and fnmatchcase(input.door, self.door) and fnmatchcase(input.name, self.name)


KNOWN: tuple[Known, ...] = ()


def is_known(input: Input) -> bool:
    """True for an input of the corpus that is expected to fail."""
    return any(known.matches(input) for known in KNOWN)


def stale(driven: Iterable[Input], failed: Iterable[Input]) -> list[Known]:
    """The patterns of inputs that were driven and did not fail."""
    all_inputs, bad = list(driven), list(failed)
    return [
        known
        for known in KNOWN
        if any(known.matches(input) for input in all_inputs) and not any(known.matches(input) for input in bad)
    ]
