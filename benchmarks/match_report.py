"""The report of benchmarks/match.py: rows, and every answer on which we and a peer differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from match_sets import Difference, Settled
from report import Report, Row


@dataclass
class MatchReport(Report):
    """A report that lists the differences."""

    differences: list[Difference] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The report with the differences, as settled by rational arithmetic."""
        return super().as_json() | {"differences": [item._asdict() for item in self.differences]}

    def compare(
        self, section: str, work: str, against: str, ours: float, theirs: float, found: Settled, bar: float | None
    ) -> Row:
        """The row of a comparison whose answers were settled; its differences are kept."""
        self.differences += found.differences
        counts = found.compared, found.different, found.wrong
        return Row(section, work, against, ours, theirs, theirs / ours, "times faster", bar, None, *counts)
