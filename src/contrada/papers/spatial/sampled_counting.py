"""SampledCounting: the matcher of the experiments of [SPATIAL], Algorithm 1 in the CR-tree and then counting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Region, RelationSet
from contrada.model import Filter
from contrada.papers.spatial.crtree import CRTree


class SampledCounting:
    """Find the constraints that a message satisfies with Algorithm 1, and count them for each filter.

    Regions with holes or several parts, which only simplification makes, are evaluated exactly: Algorithm 1 is not
    defined for them. `density` counts points per unit of length.

    >>> from contrada import Constraint, Relation
    >>> square = Region.box(0, 0, 4, 4)
    >>> both = Filter([Constraint("area", Relation.INSIDE, square), Constraint("area", Relation.OVERLAPS, square)])
    >>> one = Filter([Constraint("area", Relation.INSIDE, square)])
    >>> SampledCounting([[both], [one]], density=10.0).match(Region.box(1, 1, 2, 2)).tolist()
    [1]
    """

    def __init__(self, groups: list[list[Filter]], density: float) -> None:
        """Take the filters of each predicate; constraints are on one attribute."""
        self._density = density
        self._sampled, self._exact = CRTree("quadratic"), CRTree("quadratic")
        filters: list[int] = []  # by constraint
        needed: list[int] = []  # constraints, by filter
        predicates: list[int] = []  # by filter
        for predicate, parts in enumerate(groups):
            for part in parts:
                for constraint in part:
                    region, operator = constraint.value, constraint.operator
                    assert isinstance(operator, RelationSet), "constraints are on a region"
                    tree = self._sampled if region._column.is_simple[0] else self._exact
                    tree.insert(len(filters), operator, region)
                    filters.append(len(needed))
                needed.append(len(part))
                predicates.append(predicate)
        self._filters, self._needed, self._predicates = (np.array(each) for each in (filters, needed, predicates))

    def match(self, region: Region) -> NDArray[np.int64]:
        """Return the rows of the predicates that a message's region satisfies."""
        rows = np.concatenate([self._sampled.match(region, density=self._density), self._exact.match(region)])
        counts = np.bincount(self._filters[rows], minlength=len(self._needed))
        return np.unique(self._predicates[counts == self._needed])
