"""What Sedona plans for each relation: spellings of the eight in its SQL, and the join operator of a plan's text."""

import re
from typing import NamedTuple

# `a` is the message, `b` the subscription. What ST_Relate is given says the same as our relation, of regions.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "disjoint": ("ST_Disjoint(a, b)", "NOT ST_Intersects(a, b)", "ST_Relate(a, b, 'FF*FF****')"),
    "meets": ("ST_Touches(a, b)", "ST_Relate(a, b, 'F***T****')"),
    "overlaps": ("ST_Overlaps(a, b)", "ST_Relate(a, b, 'T*T***T**')"),
    "equals": ("ST_Equals(a, b)", "ST_Relate(a, b, 'T*F***F**')"),
    "inside": ("ST_Relate(a, b, 'T*F*F****')", "ST_Within(a, b) AND ST_Relate(a, b, 'T*F*F****')"),
    "contains": (
        "ST_Relate(a, b, 'T***F*F**')",
        "ST_Contains(a, b) AND NOT ST_Intersects(ST_Boundary(a), ST_Boundary(b))",
    ),
    "covers": ("ST_Relate(a, b, 'T*T*T*F**')", "ST_Covers(a, b) AND ST_Relate(a, b, 'T*T*T*F**')"),
    "covered-by": ("ST_Relate(a, b, 'T*F*T*T**')", "ST_CoveredBy(a, b) AND ST_Relate(a, b, 'T*F*T*T**')"),
}
OPERATOR = re.compile(r"^[\s:+\-*()\d]*(\w*(?:Join|CartesianProduct))\b", re.MULTILINE)
NESTED = {"BroadcastNestedLoopJoin", "CartesianProduct"}


def operator_of(plan: str) -> str:
    """Return the topmost join of a plan as Spark prints it.

    >>> operator_of("Project [key#14L]\\n+- *(2) BroadcastNestedLoopJoin BuildLeft, Inner\\n   :- Scan")
    'BroadcastNestedLoopJoin'
    """
    found = OPERATOR.search(plan)
    if found is None:
        raise ValueError(f"no join in the plan {plan[:200]!r}")
    return found[1]


class Spelled(NamedTuple):
    """A relation in Sedona's SQL: what is planned without and with a hint, and the times and pairs of a small job."""

    relation: str
    condition: str
    plain: str
    hinted: str
    ours: float
    theirs: float
    pairs: int
    different: int
    wrong: int  # of the different ones, ours

    @property
    def is_nested(self) -> bool:
        """Return whether every pair of rows is looked at, with the hint and without."""
        return {self.plain, self.hinted} <= NESTED
