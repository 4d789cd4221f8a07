"""Constraints of user-defined types (model/types.py), stored like spatial constraints (matching/residual.py)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.model.types import Asked, ValueType, type_named


class CustomConstraints(NamedTuple):
    """Constraints of one type: `asked[k]` belongs to filter `filters[k]`. Further entries of `asked` are ignored."""

    filters: NDArray[np.int32]
    asked: Sequence[Asked]
    kind: str

    def chosen(self, kept: NDArray[np.bool_]) -> CustomConstraints:
        """Return the constraints where `kept` is True."""
        rows = np.flatnonzero(kept)
        return self._replace(filters=self.filters[rows], asked=[self.asked[row] for row in rows.tolist()])

    def joined(self, others: Sequence[CustomConstraints]) -> CustomConstraints:
        """Return these constraints followed by `others`."""
        parts = [self, *others]
        asked = [one for part in parts for one in part.asked[: len(part.filters)]]
        return self._replace(filters=np.concatenate([part.filters for part in parts]), asked=asked)

    def indexed(self) -> CustomIndex:
        """Return an index over the constraints."""
        return CustomIndex(self)

    def checks(self) -> CustomResidual:
        """Return the constraints in a form that tests given filters."""
        return CustomResidual(self)

    def share(self, size: tuple[float, float] | None) -> NDArray[np.float64]:
        """Return the estimated share of messages that satisfies each constraint."""
        own = type_named(self.kind)
        share = np.array([own.share(*one) for one in self.asked[: len(self.filters)]], np.float64)
        # Without clipping, a value outside 0..1 from a user's type would make a filter unreachable.
        return np.clip(np.nan_to_num(share, nan=1.0), 0.0, 1.0)

    def dumped(self) -> dict[str, Any]:
        """Return the constraints as JSON values."""
        own = type_named(self.kind)
        asked = [[operator, own.dump(operand)] for operator, operand in self.asked[: len(self.filters)]]
        return {"filters": self.filters.tolist(), "asked": asked, "kind": self.kind}

    @classmethod
    def loaded(cls, dumped: dict[str, Any]) -> CustomConstraints:
        """Return the constraints that `dumped` wrote."""
        own = type_named(dumped["kind"])
        asked = [(str(operator), own.load(operand)) for operator, operand in dumped["asked"]]
        return cls(np.array(dumped["filters"], np.int32), asked, dumped["kind"])


class CustomIndex:
    """Index of one type: finds the filters that a value satisfies. Built by the type; in the buffer it is a scan."""

    nbytes = 0  # the size of a user's index is unknown

    def __init__(self, part: CustomConstraints, is_scan: bool = False) -> None:
        self.part = part
        self.rows = part.filters
        own = type_named(part.kind)
        asked = part.asked[: len(part.filters)]
        self._find = ValueType.matcher(own, asked) if is_scan else own.matcher(asked)

    def __len__(self) -> int:
        return len(self.rows)

    def match(self, value: Any) -> NDArray[np.int64]:
        """Return the filters that `value` satisfies, sorted."""
        found = np.fromiter(self._find(value), np.int64)
        return np.sort(self.rows[found].astype(np.int64))

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        assert len(self.part.asked) >= len(self.rows), "constraints are missing"


class CustomResidual:
    """Constraints of one type by filter, to test given filters."""

    def __init__(self, part: CustomConstraints) -> None:
        self.part = part
        self._type = type_named(part.kind)
        self._asked: dict[int, list[Asked]] = defaultdict(list)
        for number, one in zip(part.filters.tolist(), part.asked, strict=False):
            self._asked[number].append(one)

    def passing(self, filters: NDArray[np.int64], value: Any) -> NDArray[np.int64]:
        """Return the filters whose constraints `value` satisfies; filters without constraints here always pass."""
        return np.asarray(filters[self.are_satisfied(filters, [value] * len(filters))])

    def are_satisfied(self, filters: NDArray[np.int64], values: Sequence[Any]) -> NDArray[np.bool_]:
        """Return whether `values[k]` satisfies the constraints of `filters[k]` here; None satisfies none."""
        holds = self._type.holds

        def passes(number: int, value: Any) -> bool:
            asked = self._asked.get(number)
            return not asked or (value is not None and all(holds(*one, value) for one in asked))

        return np.array([passes(*pair) for pair in zip(filters.tolist(), values, strict=True)], bool)
