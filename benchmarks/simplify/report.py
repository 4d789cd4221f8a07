"""The tables of benchmarks.simplify: one line for each workload, with what [SPATIAL] prints beside it."""

from collections.abc import Iterator

from benchmarks.report import Report, Row, Shown, duration

FIGURE = "Figure 4b: filters of two constraints over 5, 15 and 25 predicates (time per message)"
FIGURE_REMOVED = "Figure 4b: what simplification removed"
SETS = "Table 3, scenario 2: 25 predicates, filters of two constraints (time per message)"
SETS_REMOVED = "Table 3, scenario 2: what simplification removed"
PRINTED = "Table 3 as printed: milliseconds per message"
TABLE, COUNTING = "table", "counting"
TIME_TO_SIMPLIFY, PRINTED_EXAMPLE = "time to simplify", "printed example"

# Table 3: scenario 1 without and with the CR-tree, scenario 2 without and with simplification; milliseconds.
TABLE_3 = {
    ("SoCal", "A"): (1841.0, 73.0, 67.0, 0.18),
    ("SoCal", "B"): (4000.0, 89.0, 78.0, 0.54),
    ("SoCal", "C"): (1512.0, 7.0, 4.4, 0.12),
    ("Rhône-Alpes", "A"): (951.0, 108.0, 59.0, 1.4),
    ("Rhône-Alpes", "B"): (1323.0, 93.0, 169.0, 6.4),
    ("Rhône-Alpes", "C"): (851.0, 7.0, 72.0, 0.53),
    ("London", "A"): (59.0, 1.4, 0.95, 0.75),
    ("London", "B"): (169.0, 6.4, 5.0, 1.24),
    ("London", "C"): (72.0, 0.53, 0.32, 0.05),
}
MISPRINTED = "Rhône-Alpes"  # its cells of scenario 2 repeat London's of scenario 1

TIMES = (
    "work", "table before", "after", "gain", "counting before", "after", "gain", "answers that differ",
)  # fmt: skip
PAPER = ("paper before", "after", "gain")
REMOVED = (
    "work", "filters", "constraints", "false filters (rule 1)", "implied constraints (rule 2)",
    "covered filters (rule 3)", "intersected", "united", PRINTED_EXAMPLE, TIME_TO_SIMPLIFY, "bar", "met",
)  # fmt: skip
PRINTED_HEADINGS = (
    "set", "kind", "scenario 1: scan", "scenario 1: CR-tree", "scenario 2: not simplified", "scenario 2: simplified"
)  # fmt: skip


class SimplifyReport(Report):
    """A report whose rows are laid side by side: `ours` is the time after simplification, `theirs` that before."""

    def shown(self) -> Iterator[Shown]:
        """Yield times and what was removed, one line for each workload; Table 3 of the paper beside ours."""
        for section in dict.fromkeys(row.section for row in self.rows):
            works: dict[str, dict[str, Row]] = {}
            for row in self.rows:
                if row.section == section:
                    works.setdefault(row.work, {})[row.against] = row
            if section in (FIGURE_REMOVED, SETS_REMOVED):
                yield Shown(section, REMOVED, [removed_cells(work, found) for work, found in works.items()])
            elif section == FIGURE:
                yield Shown(section, TIMES, [time_cells(work, found) for work, found in works.items()])
            else:
                lines = [[*time_cells(work, found), *paper_cells(work)] for work, found in works.items()]
                yield Shown(section, TIMES + PAPER, lines)
                yield Shown(PRINTED, PRINTED_HEADINGS, [*printed_cells()])


def time_cells(work: str, found: dict[str, Row]) -> list[str]:
    """Return before, after and how many times faster, for the table and for counting."""
    both = [found[TABLE], found[COUNTING]]
    times = [text for row in both for text in (duration(row.theirs), duration(row.ours), f"{row.value:.2f}")]
    different, compared = (sum(getattr(row, name) for row in both) for name in ("different", "compared"))
    return [work, *times, f"{different:,} of {compared:,}"]


def removed_cells(work: str, found: dict[str, Row]) -> list[str]:
    """Return sizes before and after, then what each rule removed."""
    sizes = [
        f"{found[f'{what} before'].value:,.0f} -> {found[f'{what} after'].value:,.0f}"
        for what in ("filters", "constraints")
    ]
    rules = ("false", "covering", "covered", "intersected", "united", PRINTED_EXAMPLE)
    last = found[TIME_TO_SIMPLIFY]
    counts = [f"{found[rule].value:,.0f}" for rule in rules]
    return [work, *sizes, *counts, duration(last.ours), *last.verdict]


def paper_cells(work: str) -> list[str]:
    """Return what Table 3 says of a set and kind in scenario 2."""
    name, kind = work.split(", ")[0], work.split("kind ")[1][0]
    if name == MISPRINTED:
        return ["misprinted", "misprinted", ""]
    _, _, before, after = TABLE_3[name, kind]
    return [f"{before:g} ms", f"{after:g} ms", f"{before / after:.3g}"]


def printed_cells() -> Iterator[list[str]]:
    """Yield all of Table 3."""
    for (name, kind), (scan, tree, before, after) in TABLE_3.items():
        mark = " (misprint)" if name == MISPRINTED else ""
        yield [name, kind, f"{scan:g}", f"{tree:g}", f"{before:g}{mark}", f"{after:g}{mark}"]
