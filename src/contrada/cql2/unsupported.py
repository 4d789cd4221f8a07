"""CQL2 features that Contrada does not have: why, and what to write instead."""

from __future__ import annotations

from difflib import get_close_matches

RELATIONS = ("disjoint", "meets", "overlaps", "equals", "inside", "contains", "covers", "covered_by")
DISTANCES = ("within_distance", "beyond_distance")
OGC = ("s_intersects", "s_disjoint", "s_equals", "s_touches", "s_overlaps", "s_within", "s_contains")
OGC_OF_LINES = ("s_crosses",)  # between regions and points alone nothing crosses
FUNCTIONS = (
    *OGC, *OGC_OF_LINES, *RELATIONS, "relation", "line_relation", *DISTANCES, "casei", "accenti", "date", "timestamp",
    "decimal", "bbox", "circle",
)  # fmt: skip
ARITHMETIC = ("+", "-", "*", "/", "%", "^", "div")

_INSTEAD = {
    "s_covers": "write S_CONTAINS, or S_INTERSECTS and the relations that you mean",
    "s_coveredby": "write S_WITHIN",
    "crosses": "write S_CROSSES",
    "t_after": "write `time > TIMESTAMP('...')`",
    "t_before": "write `time < TIMESTAMP('...')`",
    "t_equals": "write `time = TIMESTAMP('...')`",
    "t_during": "write `time > TIMESTAMP('...') AND time < TIMESTAMP('...')`",
    "t_intersects": "write `time BETWEEN TIMESTAMP('...') AND TIMESTAMP('...')`",
    "t_disjoint": "write `time NOT BETWEEN TIMESTAMP('...') AND TIMESTAMP('...')`",
    "interval": "write `time BETWEEN TIMESTAMP('...') AND TIMESTAMP('...')`",
    "array": "arrays are not supported as values; for one of several values write `attribute IN ('a', 'b')`",
    "dwithin": "write within_distance(area, POINT(1 2), 500)",
    "s_dwithin": "write within_distance(area, POINT(1 2), 500)",
    "buffer": "write within_distance(area, geometry, distance)",
    "intersects": "write S_INTERSECTS",
    "within": "write S_WITHIN, or `inside` to exclude regions that touch the boundary",
    "touches": "write meets or S_TOUCHES",
    "upper": "compare CASEI(attribute) with CASEI('...')",
    "lower": "compare CASEI(attribute) with CASEI('...')",
}


def refusal(name: str) -> str:
    """Return why an operation is not supported, and what to write instead.

    >>> print(refusal("s_coveredby"))
    S_COVEREDBY is not supported: write S_WITHIN
    """
    if name in ARITHMETIC:
        return f"arithmetic (`{name}`) is not supported: compare the attribute with a computed number"
    if name == "array":
        return _INSTEAD[name]
    if name in _INSTEAD:
        return f"{name.upper()} is not supported: {_INSTEAD[name]}"
    if name.startswith("t_"):
        return f"{name.upper()} is not supported: values are instants; compare them with <, =, > and BETWEEN"
    if name.startswith("a_"):
        return f"{name.upper()} is not supported: {_INSTEAD['array']}"
    close = get_close_matches(name, FUNCTIONS, 3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"functions: {', '.join(FUNCTIONS)}"
    return f"unknown function {name!r:.60}; {hint}"
