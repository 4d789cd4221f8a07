"""Table 3 of [SPATIAL], both scenarios: times on real polygons."""

from __future__ import annotations

import math

from contrada.papers.exhibit import Chart, Exhibit, PaperClaim, Row, SweepParameter, TableColumn, TableLayout
from contrada.papers.showing import is_printed, mean_of, values_of
from contrada.papers.spatial import measuring
from contrada.papers.spatial.exhibits import MATCHING, PAPER, SIMPLIFICATION, contenders, faster, tell_gains, workload
from contrada.papers.spatial.measuring import (
    COUNTING,
    COUNTING_SAMPLED,
    PACKED,
    PAPER_EXACT,
    PAPER_TREE,
    SAMPLED,
    TABLE,
)
from contrada.papers.spatial.polygon_sets import KINDS, SETS, check_boxes

# Scenario 1: milliseconds without and with the CR-tree.
SCANS = {
    ("SoCal", "A"): (1841.0, 73.0),
    ("SoCal", "B"): (4000.0, 89.0),
    ("SoCal", "C"): (1512.0, 7.0),
    ("Rhône-Alpes", "A"): (951.0, 108.0),
    ("Rhône-Alpes", "B"): (1323.0, 93.0),
    ("Rhône-Alpes", "C"): (851.0, 7.0),
    ("London", "A"): (59.0, 1.4),
    ("London", "B"): (169.0, 6.4),
    ("London", "C"): (72.0, 0.53),
}
# Scenario 2: milliseconds without and with simplification. Of Rhône-Alpes it repeats London's cells of scenario 1.
SIMPLIFIED = {
    ("SoCal", "A"): (67.0, 0.18),
    ("SoCal", "B"): (78.0, 0.54),
    ("SoCal", "C"): (4.4, 0.12),
    ("London", "A"): (0.95, 0.75),
    ("London", "B"): (5.0, 1.24),
    ("London", "C"): (0.32, 0.05),
}


def printed_scans(row: Row) -> dict[str, float]:
    """Return the time of scenario 1 for a row."""
    times = SCANS.get((row["set"], row["kind"]))
    at = {SAMPLED: 0, PAPER_TREE: 1}.get(row["contender"])
    return {} if times is None or at is None else {"ms": times[at]}


def printed_simplified(row: Row) -> dict[str, float]:
    """Return the time of scenario 2 for a row; the paper's matcher counts what Algorithm 1 finds."""
    times = SIMPLIFIED.get((row["set"], row["kind"]))
    if times is None or row["matcher"] == TABLE:
        return {}
    return {"ms": times[1 if row["simplified"] == "yes" else 0]}


def tell_scans(rows: list[Row]) -> str:
    """Return the gain of the CR-tree beside the share of constraints that it evaluates, by set, kind and boxes."""
    lines = ["| set | kind | boxes | gain | evaluated | 1 / evaluated |", "|---|---|---|---|---|---|"]
    for of, kind, boxes in dict.fromkeys((row["set"], row["kind"], row["boxes"]) for row in rows):
        own = [row for row in rows if (row["set"], row["kind"], row["boxes"]) == (of, kind, boxes)]
        gain = mean_of(own, "ms", contender=SAMPLED) / mean_of(own, "ms", contender=PAPER_TREE)
        share = mean_of(own, "evaluated", contender=PAPER_TREE)
        if not math.isnan(gain):
            scan, tree = SCANS.get((of, kind), (math.nan, math.nan)) if is_printed(SCENARIO_1, own) else (math.nan,) * 2
            beside = "" if math.isnan(scan) else f" ({scan / tree:.0f})"
            inverse = f"{1 / share:.1f}" if share else "-"  # boxes may decide every constraint for a few messages
            lines.append(f"| {of} | {kind} | {boxes} | {gain:.1f}{beside} | {share:.2%} | {inverse} |")
    return "\n".join([*(lines if len(lines) > 2 else []), "", tell_gains(rows)]).strip()


SCENARIO_1 = Exhibit(
    "spatial-table-3",
    PAPER,
    "Table 3, scenario 1",
    "On real polygons the CR-tree gains an order of magnitude or two over a scan, most for narrow messages (C).",
    MATCHING,
    workload(SETS, (0,), KINDS, 100)
    | contenders(SAMPLED, PAPER_TREE, PAPER_EXACT, PACKED)
    | {
        "density": SweepParameter("points per half-length of the universe", (10_000,)),
        "boxes": SweepParameter(
            "boxes of messages: area (1 to 25 % of the universe), narrow (also ten times as long as wide), sides (the "
            "longer side is 1 to 25 % of the universe's)",
            ("area",),
            check=check_boxes,
        ),
    },
    (TableLayout(("set", "kind"), (TableColumn("ms", "CPU ms per message", ".2f"),), "contender"),),
    (Chart("kind", "ms", "kind of messages", "CPU ms per message", ("contender",), "set", is_log=True),),
    (
        PaperClaim("the CR-tree is faster than a scan with Algorithm 1", faster(SAMPLED, PAPER_TREE)),
        PaperClaim("the CR-tree gains at least 8.8 times", faster(SAMPLED, PAPER_TREE, 8.8), True),
    ),
    printed=printed_scans,
    tell=tell_scans,
)


def simplifies(rows: list[Row]) -> bool | None:
    """Return whether simplification makes matching faster for every set, kind and matcher; None if nothing is known."""
    found = [gain for *_, gain, _, _ in gains(rows)]
    return all(gain > 1 for gain in found) if found else None


def gains(rows: list[Row]) -> list[tuple[str, str, str, float, float, float]]:
    """Return set, kind, matcher, the gain of simplification, and the filters before and after."""
    found = []
    for of, kind, matcher in dict.fromkeys((row["set"], row["kind"], row["matcher"]) for row in rows):
        own = {"set": of, "kind": kind, "matcher": matcher}
        times = [mean_of(rows, "ms", simplified=word, **own) for word in ("no", "yes")]
        filters = [mean_of(rows, "filters", simplified=word, **own) for word in ("no", "yes")]
        if not math.isnan(sum(times)):
            found.append((of, kind, matcher, times[0] / times[1], *filters))
    return found


def tell_simplified(rows: list[Row]) -> str:
    """Say how much simplification gains, and how many filters it leaves of each set."""
    lines = [f"- {of}, {kind}, {matcher}: {gain:.1f} times as fast" for of, kind, matcher, gain, _, _ in gains(rows)]
    for of in values_of(rows, "set"):
        known = [(before, after) for name, _, _, _, before, after in gains(rows) if name == of]
        if known:
            before, after = known[0]
            lines.append(f"- {of}: {after:,.0f} of {before:,.0f} filters are left ({after / before:.0%})")
    return "\n".join(lines)


SCENARIO_2 = Exhibit(
    "spatial-table-3b",
    PAPER,
    "Table 3, scenario 2",
    "With 25 predicates of filters of two constraints, simplification makes matching faster.",
    SIMPLIFICATION,
    {
        "set": workload(SETS, (0,), KINDS, 100)["set"],
        "constraints": SweepParameter("number of constraints; 0: all polygons of the set", (0,), (300,)),
        "predicates": SweepParameter("number of predicates", (25,), (5,)),
        "simplified": SweepParameter("simplify predicates first", ("no", "yes"), check=measuring.check_yes),
        "matcher": SweepParameter(
            "counting Algorithm 1 (the paper's, in the CR-tree), counting with exact relations, or our table",
            (COUNTING, COUNTING_SAMPLED, TABLE),
            is_printed=False,
            check=measuring.check_matcher,
        ),
        "density": SweepParameter("points per half-length of the universe, for Algorithm 1", (10_000,)),
        "messages": SweepParameter("number of messages", (100,), (2,), is_printed=False),
        "kind": workload(SETS, (0,), KINDS, 100)["kind"],  # last: a matcher serves all kinds
    },
    (
        TableLayout(
            ("set", "kind", "matcher"),
            (TableColumn("ms", "CPU ms per message", ".3f"), TableColumn("filters", "filters")),
            "simplified",
        ),
    ),
    (Chart("kind", "ms", "kind of messages", "CPU ms per message", ("matcher", "simplified"), "set", is_log=True),),
    (PaperClaim("simplification makes matching faster for every set, kind and matcher", simplifies),),
    printed=printed_simplified,
    tell=tell_simplified,
)
EXHIBITS = (SCENARIO_1, SCENARIO_2)
