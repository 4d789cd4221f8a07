"""Figures 4a, 4b and 5 and Tables 1 to 3 of [SPATIAL]."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from contrada.papers.exhibit import (
    Chart,
    Exhibit,
    Grid,
    Measurement,
    PaperClaim,
    Row,
    Setting,
    SweepParameter,
    TableColumn,
    TableLayout,
)
from contrada.papers.network.region_sets import check_set
from contrada.papers.showing import mean_of, shown, values_of
from contrada.papers.spatial import measuring
from contrada.papers.spatial.measuring import CGAL, EXACT, GEOS, PACKED, PAPER_EXACT, PAPER_TREE, SAMPLED
from contrada.papers.spatial.polygon_sets import KINDS, SETS, SYNTHETIC, TWENTY_POINTS, check_kind, file_of_set

PAPER = "spatial"
MATCHING = Measurement("spatial-matching", measuring.measure_matching, is_timed=True, file_of=file_of_set)
SIMPLIFICATION = Measurement(
    "spatial-simplification", measuring.measure_simplification, is_timed=True, file_of=file_of_set
)
GAIN = Measurement("spatial-gain", measuring.measure_gain, file_of=file_of_set)
PAIRS = Measurement("spatial-pairs", measuring.measure_pairs)
SIZES = (1_000, 2_500, 5_000, 7_500, 10_000)
HIGH_DENSITY = 12_000  # at which section 5.1 repeats figure 4a
DENSE = (SAMPLED, PAPER_TREE)  # contenders that have a density
DENSITIES = (0, 10_000, 20_000, 30_000, 40_000)


def workload(
    sets: tuple[str, ...], constraints: tuple[int, ...], kinds: tuple[str, ...], messages: int
) -> dict[str, Any]:
    """Return the parameters that say what is matched."""
    quick_sets = (SYNTHETIC,) if sets == (SYNTHETIC,) else sets[:1]
    return {
        "set": SweepParameter(
            "set of polygons: synthetic, London, Rhône-Alpes, SoCal, or a file in --data",
            sets,
            quick_sets,
            check=check_set,
        ),
        "constraints": SweepParameter(
            "number of constraints; 0: all polygons of the set",
            constraints,
            (100, 200) if len(constraints) > 1 else (300,),
        ),
        "kind": SweepParameter("messages: 20 points, A, B or C", kinds, kinds[:1], check=check_kind),
        "messages": SweepParameter("number of messages", (messages,), (2,), is_printed=False),
    }


def contenders(*names: str) -> dict[str, SweepParameter]:
    """Return the parameter that chooses what is timed."""
    return {"contender": SweepParameter("what is timed", names, is_printed=False, check=measuring.check_contender)}


def faster(slow: str, fast: str, least: float = 1.0) -> Callable[[list[Row]], bool | None]:
    """Return the claim that a contender takes more than so many times as long as another, for every workload."""

    def holds(rows: list[Row]) -> bool | None:
        gains = gains_of(rows, slow, fast)
        return all(gain > least for gain in gains) if gains else None

    return holds


def at_density(rows: list[Row], density: float) -> list[Row]:
    """Return the rows of one density of Algorithm 1, and those of contenders that have none."""
    return [row for row in rows if row["density"] == density or row["contender"] not in DENSE]


def gains_of(rows: list[Row], slow: str, fast: str) -> list[float]:
    """Return how many times as long one contender takes as another, for every workload that has both.

    Of several densities of Algorithm 1 the lowest counts.
    """
    rows = at_density(rows, min((row["density"] for row in rows if row["contender"] in DENSE), default=0))
    names = [name for name in ("set", "constraints", "kind", "boxes") if name in rows[0]]
    works = (
        dict(zip(names, values, strict=True)) for values in {tuple(row[name] for name in names): 0 for row in rows}
    )
    times = ([mean_of(rows, "ms", contender=name, **work) for name in (slow, fast)] for work in works)
    found = [before / after for before, after in times]
    return [gain for gain in found if not math.isnan(gain)]


def tell_gains(rows: list[Row]) -> str:
    """Say how contenders compare, and how often Algorithm 1 and CGAL err."""
    pairs = (
        (CGAL, SAMPLED),
        (CGAL, EXACT),
        (SAMPLED, GEOS),
        (SAMPLED, PAPER_TREE),
        (PAPER_TREE, PAPER_EXACT),
        (PAPER_TREE, PACKED),
        (SAMPLED, EXACT),
    )
    lines = []
    for slow, fast in pairs:
        gains = gains_of(rows, slow, fast)
        if gains:
            lines.append(f"- {slow} takes {min(gains):.1f} to {max(gains):.1f} times as long as {fast}")
    for density in values_of(rows, "density"):
        own = at_density(rows, density)
        wrong = [row["wrong"] for row in own if row["contender"] == SAMPLED]
        if wrong:
            share = f"{min(wrong):.3%} to {max(wrong):.3%}"
            lines.append(f"- at D = {shown(density)} Algorithm 1 answers {share} of the constraints wrongly")
        if wrong and len(values_of(rows, "density")) > 1 and gains_of(own, CGAL, SAMPLED):
            gains = gains_of(own, CGAL, SAMPLED)
            lines.append(f"- at D = {shown(density)} CGAL takes {min(gains):.1f} to {max(gains):.1f} times as long")
    lines += [f"- {name} answers as our exact relation does" for name in (CGAL, GEOS) if agrees(rows, name)]
    return "\n".join(lines)


def agrees(rows: list[Row], name: str) -> bool:
    """Return whether a contender was measured and no answer of it was wrong."""
    wrong = [row["wrong"] for row in rows if row["contender"] == name]
    return bool(wrong) and not any(wrong)


def settings_of_4a(grid: Grid) -> list[Setting]:
    """Return all combinations; contenders that have no density once, with the first one."""
    combined = (dict(zip(grid, values, strict=True)) for values in product(*grid.values()))
    return [one for one in combined if one["contender"] in DENSE or one["density"] == grid["density"][0]]


def with_density(row: Row) -> Iterator[Row]:
    """Yield a row with its density in the name of the contender, where that has one."""
    name = f"{row['contender']}, D = {shown(row['density'])}" if row["contender"] in DENSE else row["contender"]
    yield {**row, "contender": name, "density": None}


def is_faster_at_high_density(rows: list[Row]) -> bool | None:
    """Return whether Algorithm 1 is faster than CGAL at the paper's higher density; None without its rows."""
    own = [row for row in at_density(rows, HIGH_DENSITY) if HIGH_DENSITY in values_of(rows, "density")]
    return faster(CGAL, SAMPLED)(own) if own else None


FIGURE_4A = Exhibit(
    "spatial-figure-4a",
    PAPER,
    "figure 4a",
    "On large synthetic regions Algorithm 1 beats exact polygon intersection, and the CR-tree beats a scan.",
    MATCHING,
    workload((SYNTHETIC,), SIZES, (TWENTY_POINTS,), 6)
    | contenders(CGAL, GEOS, SAMPLED, PAPER_TREE, PAPER_EXACT, EXACT, PACKED)
    | {"density": SweepParameter("points per half-length of the universe", (2_000, HIGH_DENSITY), (2_000,))},
    (TableLayout(("constraints",), (TableColumn("ms", "CPU ms per message", ".2f"),), "contender"),),
    (
        Chart(
            "constraints",
            "ms",
            "constraints",
            "CPU ms per message",
            ("contender",),
            is_log=True,
            points=with_density,
        ),
    ),
    (
        PaperClaim("the CR-tree is faster than a scan with Algorithm 1", faster(SAMPLED, PAPER_TREE)),
        PaperClaim("Algorithm 1 is faster than exact polygon intersection by CGAL", faster(CGAL, SAMPLED)),
        PaperClaim("Algorithm 1 is six times as fast as CGAL", faster(CGAL, SAMPLED, 6), True),
        PaperClaim(
            f"Algorithm 1 is faster than CGAL at D = {shown(HIGH_DENSITY)} too", is_faster_at_high_density, True
        ),
        PaperClaim("Algorithm 1 is faster than exact polygon intersection by GEOS", faster(GEOS, SAMPLED)),
        PaperClaim("our exact scan is faster than Algorithm 1", faster(SAMPLED, EXACT)),
    ),
    tell=tell_gains,
    plan=settings_of_4a,
)


def is_flatter(rows: list[Row]) -> bool | None:
    """Return whether simplification makes matching faster at the largest number of constraints, for every count."""
    most = max(values_of(rows, "constraints"))
    found = [
        (
            mean_of(rows, "ms", constraints=most, predicates=count, matcher=way, simplified="yes"),
            mean_of(rows, "ms", constraints=most, predicates=count, matcher=way, simplified="no"),
        )
        for count in values_of(rows, "predicates")
        for way in values_of(rows, "matcher")
    ]
    known = [(after, before) for after, before in found if not math.isnan(after + before)]
    return all(after < before for after, before in known) if known else None


def tell_filters(rows: list[Row]) -> str:
    """Say how many filters simplification leaves at the largest number of constraints."""
    most = max(values_of(rows, "constraints"))
    lines = []
    for count in values_of(rows, "predicates"):
        before, after = (
            mean_of(rows, "filters", constraints=most, predicates=count, simplified=s) for s in ("no", "yes")
        )
        if not math.isnan(before + after):
            lines.append(
                f"- {count} predicates, {shown(most)} constraints: {after:,.0f} of {before:,.0f} filters are left"
            )
    return "\n".join(lines)


FIGURE_4B = Exhibit(
    "spatial-figure-4b",
    PAPER,
    "figure 4b",
    "With few large predicates matching times flatten as constraints are added, and sooner with simplification.",
    SIMPLIFICATION,
    workload((SYNTHETIC,), SIZES, (TWENTY_POINTS,), 30)
    | {
        "predicates": SweepParameter("number of predicates", (5, 15, 25), (5,)),
        "simplified": SweepParameter("simplify predicates first", ("no", "yes"), check=measuring.check_yes),
        "matcher": SweepParameter(
            "counting Algorithm 1 (the paper's, in the CR-tree), counting with exact relations, or our table",
            (measuring.COUNTING,),
            is_printed=False,
            check=measuring.check_matcher,
        ),
        "density": SweepParameter("points per half-length of the universe, for Algorithm 1", (2_000,)),
    },
    (TableLayout(("predicates", "constraints"), (TableColumn("ms", "CPU ms per message", ".3f"),), "simplified"),),
    (Chart("constraints", "ms", "constraints", "CPU ms per message", ("predicates", "simplified")),),
    (PaperClaim("simplification makes matching faster at the largest number of constraints", is_flatter),),
    tell=tell_filters,
)


def converges(rows: list[Row]) -> bool | None:
    """Return whether the gain at the highest density is at most that at the lowest, for every set and kind."""
    low, high = min(values_of(rows, "density")), max(values_of(rows, "density"))
    if low == high:
        return None
    return all(
        mean_of(rows, "gain", set=of, kind=kind, density=high) <= mean_of(rows, "gain", set=of, kind=kind, density=low)
        for of, kind in {(row["set"], row["kind"]) for row in rows}
    )


FIGURE_5 = Exhibit(
    "spatial-figure-5",
    PAPER,
    "figure 5",
    "Answers hardly change when the point density D of Algorithm 1 grows by 10,000, and less the higher D is.",
    GAIN,
    workload(SETS, (0,), KINDS, 100)
    | {
        "messages": SweepParameter("number of messages", (100,), (2,)),  # section 5.2 says 100
        "density": SweepParameter("points per half-length of the universe, besides vertices", DENSITIES, (0, 10_000)),
    },
    (TableLayout(("set", "density"), (TableColumn("gain", "% of predicates", ".4f", 100),), "kind"),),
    (
        Chart(
            "density",
            "gain",
            "point density D",
            "answers that change to D + 10,000, %",
            ("kind",),
            "set",
            100,
            limit=(0.02, "the text's example"),
        ),
    ),
    (
        PaperClaim("the gain converges towards none", converges),
        PaperClaim(
            "at D = 10,000 at most 0.02 % change",
            lambda rows: all(row["gain"] <= 0.0002 for row in rows if row["density"] == 10_000),
            True,
        ),
    ),
)


def pair_parameters() -> dict[str, SweepParameter]:
    """Return the parameters of the checks of Tables 1 and 2."""
    return {
        "relation": SweepParameter("relation of the pairs", measuring.RELATION_NAMES, check=measuring.check_relation),
        "corners": SweepParameter(
            "corners of the polygons", (3, 4, 6), (4,), is_printed=False, check=measuring.check_corners
        ),
        "pairs": SweepParameter("random pairs of polygons", (100_000,), (2_000,), is_printed=False),
    }


def total(rows: list[Row], value: str, **chosen: Any) -> int:
    """Return the sum of a count over rows."""
    return sum(row[value] for row in rows if all(row[name] == wanted for name, wanted in chosen.items()))


TABLE_1 = Exhibit(
    "spatial-table-1",
    PAPER,
    "Table 1",
    "Four intersections of boundaries, interiors and exteriors tell all eight relations of simple polygons.",
    PAIRS,
    pair_parameters(),
    (TableLayout(("relation", "corners"), (TableColumn("found", "pairs"), TableColumn("follow", "as Table 1 says"))),),
    claims=(
        PaperClaim(
            "every pair has the intersections of its relation",
            lambda rows: total(rows, "found") == total(rows, "follow"),
        ),
    ),
)
TABLE_2 = Exhibit(
    "spatial-table-2",
    PAPER,
    "Table 2",
    "A constraint need be evaluated only for certain relations of the boxes.",
    PAIRS,
    pair_parameters(),
    (
        TableLayout(
            ("relation", "corners"),
            (
                TableColumn("found", "pairs"),
                TableColumn("missed", "missed as printed"),
                TableColumn("missed_share", "missed as printed, %", ".1f", 100),
                TableColumn("missed_corrected", "missed when corrected"),
            ),
        ),
    ),
    claims=(
        PaperClaim("no match is missed by the table as printed", lambda rows: not total(rows, "missed")),
        PaperClaim("no match is missed by the corrected table", lambda rows: not total(rows, "missed_corrected")),
        PaperClaim(
            "only covers and covered-by are missed",
            lambda rows: not sum(row["missed"] for row in rows if row["relation"] not in ("covers", "covered-by")),
        ),
    ),
)
EXHIBITS = (FIGURE_4A, FIGURE_4B, FIGURE_5, TABLE_1, TABLE_2)
