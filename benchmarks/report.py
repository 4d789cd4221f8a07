"""Rows of a benchmark: where they were measured, how they are printed, kept as JSON and shown in the docs."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import shapely
from rich.console import Console
from rich.table import Table

import contrada as ct
from benchmarks.timing import Timed, say
from contrada.papers import provenance

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("numpy", "numba", "llvmlite", "shapely", "pyarrow")
Time = float | Timed  # seconds


@dataclass(frozen=True)
class Row:
    """One comparison. `value` is what the bar speaks of: a ratio of times, or seconds."""

    section: str
    work: str
    against: str
    ours: float | None  # seconds
    theirs: float | None  # seconds
    value: float
    unit: str = "times faster"
    at_least: float | None = None
    at_most: float | None = None
    compared: int | None = None  # answers compared with the peer's
    different: int | None = None
    wrong: int | None = None  # of the different ones, those where rational arithmetic finds ours wrong
    commit: str = ""  # of a row kept from an earlier run

    @classmethod
    def versus(
        cls, section: str, work: str, against: str, ours: Time, theirs: Time, bar: float | None = None, **counts: Any
    ) -> Row:
        """Return the row of a comparison in seconds: how many times faster ours is, which is to be at least `bar`."""
        mine, other = (time.seconds if isinstance(time, Timed) else time for time in (ours, theirs))
        return cls(section, work, against, mine, other, other / mine, at_least=bar, **counts)

    @classmethod
    def alone(
        cls, section: str, work: str, value: float, unit: str, seconds: float | None = None, **bar: float | None
    ) -> Row:
        """Return the row of a number of ours that no peer has."""
        return cls(section, work, "", seconds, None, value, unit, **bar)

    @classmethod
    def lasting(cls, section: str, work: str, seconds: float, at_most: float | None = None) -> Row:
        """Return the row of a duration of ours."""
        return cls.alone(section, work, seconds, "s", seconds, at_most=at_most)

    @classmethod
    def growing(cls, section: str, sizes: Sequence[int], times: Sequence[float]) -> Row:
        """Return the row of a time per message at the smallest and the largest number of subscriptions."""
        work = f"from N = {sizes[0]:,} to {sizes[-1]:,}"
        return cls(section, work, "ourselves", times[-1], times[0], times[-1] / times[0], "times the time", at_most=4)

    @property
    def verdict(self) -> tuple[str, str]:
        """Return the bar and whether it is met, in words; nothing without a bar."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}", "yes" if self.value >= self.at_least else "NO"
        if self.at_most is None:
            return "", ""
        unit = "" if self.unit.startswith("times") else f" {self.unit}"
        return f"at most {self.at_most:g}{unit}", "yes" if self.value <= self.at_most else "NO"


class Shown(NamedTuple):
    """A table as texts."""

    title: str
    headings: Sequence[str]
    lines: list[list[str]]

    def filled(self) -> Shown:
        """Return the table without the columns that are empty in all lines.

        >>> Shown("a", ("x", "y"), [["1", ""], ["2", ""]]).filled()
        Shown(title='a', headings=['x'], lines=[['1'], ['2']])
        """
        kept = [k for k in range(len(self.headings)) if any(line[k] for line in self.lines)]
        return Shown(self.title, [self.headings[k] for k in kept], [[line[k] for k in kept] for line in self.lines])


class Page(NamedTuple):
    """The tables of a benchmark as its page shows them, and what they hold for."""

    machine: str = ""
    commit: str = ""
    seed: int = 0
    versions: Sequence[str] = ()  # each a name and a version
    sections: Mapping[str, str] = MappingProxyType({})  # Markdown below each heading
    skipped: Sequence[str] = ()


class SkippedError(Exception):
    """A section ends here: what it says is not there."""


class Difference(NamedTuple):
    """An answer on which we and a peer disagree, and what rational arithmetic says."""

    work: str
    against: str
    message: str
    row: int
    relation: str
    is_ours_right: bool


# How many answers (message, subscription) were compared, and the differences.
Settled = tuple[int, list[Difference]]
Settle = Callable[[tuple[str, str], Any, Any], Settled]  # of a work and its peer, our answers and theirs


@dataclass
class Report:
    """Everything one run found."""

    seed: int
    quick: bool
    rows: list[Row] = field(default_factory=list)
    tables: list[Shown] = field(default_factory=list)  # below the rows
    skipped: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    peer_versions: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)  # Markdown by heading, from the page
    kept_versions: list[str] = field(default_factory=list)

    def compare(
        self, section: str, work: str, peer: str, ours: Timed, theirs: Timed, settle: Settle, bar: float | None = None
    ) -> Row:
        """Return the row of a comparison whose answers `settle` compares; keep the differences."""
        compared, found = settle((work, peer), ours.answer, theirs.answer)
        self.differences += found
        counts = {"different": len(found), "wrong": sum(not item.is_ours_right for item in found)}
        return Row.versus(section, work, peer, ours, theirs, bar, compared=compared, **counts)

    def add(self, found: Iterable[Row | Shown]) -> None:
        """Take what a section found, one after the other, so that a failure loses nothing; say each."""
        with self.skipping():
            for one in found:
                if isinstance(one, Row):
                    self.rows.append(one)
                    say(f"{one.work}: {amount(one)}")
                else:
                    self.tables.append(one)

    @contextmanager
    def skipping(self) -> Iterator[None]:
        """Note what is not there, in place of an error."""
        try:
            yield
        except SkippedError as reason:
            self.skipped.append(str(reason))

    def as_json(self) -> dict[str, Any]:
        """Return the report with the commit, versions and machine it holds for."""
        return {
            **self._conditions(),
            "commit": commit(),
            "versions": versions() | self.peer_versions,
            "rows": [asdict(row) for row in self.rows],
            "tables": self.tables,
            "skipped": self.skipped,
            "differences": [item._asdict() for item in self.differences],
        }

    def keep(self, page: Page) -> None:
        """Show the sections of a page that this run does not replace, each with the commit it was measured at.

        A section of another machine or seed than this run's says so. Versions that only the page names stay too.
        """
        is_elsewhere = (page.machine, page.seed) != (place(machine()), self.seed)
        where = f" on {page.machine}, seed {page.seed}" if is_elsewhere else ""
        self.kept = {title: _with_commit(text, page.commit, where) for title, text in page.sections.items()}
        ours = tuple(f"{name} " for name in versions() | self.peer_versions)
        self.kept_versions = [text for text in page.versions if not text.startswith(ours)]
        self.skipped = [*dict.fromkeys([*page.skipped, *self.skipped])]

    def shown(self) -> Iterator[Shown]:
        """Yield the tables that are printed and stand in the docs, without empty columns."""
        for section in dict.fromkeys(row.section for row in self.rows):
            yield Shown(section, HEADINGS, [cells(row) for row in self.rows if row.section == section]).filled()
        yield from self.tables

    def save(self, path: Path, others: Iterable[Row] = ()) -> None:
        """Write the JSON file, with rows of other runs in front."""
        found = self.as_json()
        found["rows"][:0] = [asdict(row) for row in others]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1, default=lambda number: number.item()) + "\n")

    def rows_elsewhere(self, path: Path) -> list[Row]:
        """Return the rows of a saved run whose sections this run lacks; none of another machine, seed or size."""
        saved = json.loads(path.read_text()) if path.exists() else {}
        if any(saved.get(name) != value for name, value in self._conditions().items()):
            return []
        measured = {row.section for row in self.rows}
        others = [row for row in saved["rows"] if row["section"] not in measured]
        return [Row(**row | {"commit": row["commit"] or saved["commit"]}) for row in others]

    def _conditions(self) -> dict[str, Any]:
        return {"seed": self.seed, "quick": self.quick, "machine": machine()}


def commit() -> str:
    """Return the commit that was measured, marked if the work tree differs from it."""
    head, status = provenance.commit(), ["git", "-C", str(ROOT), "status", "--porcelain", "--", "src"]
    is_changed = head != "unknown" and subprocess.run(status, capture_output=True, text=True).stdout.strip()
    return f"{head} with changes" if is_changed else head


def versions() -> dict[str, str]:
    """Return versions of Python and of the libraries that shape the numbers."""
    found = {"python": platform.python_version(), "contrada": ct.__version__}
    return found | {name: version(name) for name in LIBRARIES} | {"GEOS": shapely.geos_version_string}


def machine() -> dict[str, Any]:
    """Return CPU model, cores, memory and system."""
    memory = None
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    system = f"{platform.system()} {platform.machine()}"
    return {"cpu": provenance.cpu(), "cores": os.cpu_count(), "memory_GiB": memory, "system": system}


def place(machine: Mapping[str, Any]) -> str:
    """Return a machine as pages name it."""
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_GiB']} GiB, {machine['system']}"


def duration(seconds: float | None) -> str:
    """Return seconds with three digits in a unit that suits them.

    >>> duration(0.00325)
    '3.25 ms'
    """
    if seconds is None:
        return ""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            value = seconds * factor
            return f"{value:.{max(0, 2 - len(str(int(value))) + 1)}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def amount(row: Row) -> str:
    """Return the value with its unit; a ratio below one reads the other way round."""
    value, unit = row.value, row.unit
    if unit == "times faster" and value < 1:
        value, unit = 1 / value, "times slower"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def cells(row: Row) -> list[str]:
    """Return a row as texts, in the order of HEADINGS."""
    answers = f"{row.different:,} of {row.compared:,}" if row.compared is not None else ""
    if row.different and row.wrong is not None:
        answers += f" (ours wrong: {row.wrong})"
    times = [duration(row.ours), duration(row.theirs)]
    return [row.work, row.against, *times, amount(row), *row.verdict, answers]


HEADINGS = ("work", "against", "ours", "peer", "ours is", "bar", "met", "answers that differ")


def show(report: Report) -> None:
    """Print the tables."""
    console = Console(width=max(Console().width, 150))
    for title, headings, lines in report.shown():
        table = Table(*headings, title=title)
        for line in lines:
            table.add_row(*line)
        console.print(table)
    for reason in report.skipped:
        print(f"skipped: {reason}", file=sys.stderr)


def markdown(report: Report, command: str) -> str:
    """Return the tables and what they hold for, as they stand in the docs."""
    found = report.as_json()
    named = [f"{name} {number}" for name, number in found["versions"].items()]
    lines = [
        f"Measured on {place(found['machine'])}; commit {found['commit']}, seed {report.seed}; `{command}`.",
        "Versions: " + ", ".join([*named, *report.kept_versions]) + ".",
    ]
    sections = report.kept | {title: _table(headings, rows) for title, headings, rows in report.shown()}
    for title, text in sections.items():
        lines += ["", f"### {title}", "", text]
    lines += ["", *(f"Skipped: {reason}." for reason in report.skipped)] if report.skipped else []
    return "\n".join(lines) + "\n"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def read_page(path: Path, name: str) -> Page:
    """Return the tables that `markdown` wrote between the markers of a page; none if nothing was written yet."""
    head, *parts = between(path, name).split("\n### ")
    written = re.search(r"Measured on (.*?); commit (.*?), seed (\d+);?.*\nVersions: (.*)\.$", head.strip())
    if written is None:
        if head.strip() or parts:
            raise SystemExit(f"{path} does not say on what machine and at what commit its tables were measured")
        return Page()
    sections = {}
    for part in parts:
        title, text = part.split("\n", 1)
        sections[title] = "\n".join(line for line in text.splitlines() if not line.startswith("Skipped: ")).strip()
    skipped = re.findall(r"^Skipped: (.*)\.$", "\n".join([head, *parts]), re.MULTILINE)
    place, commit, seed, names = written.groups()
    return Page(place, commit, int(seed), names.split(", "), sections, skipped)


def _with_commit(text: str, commit: str, where: str) -> str:
    """Return a section that says at which commit it was measured and, if nothing else is said, `where`."""
    first, _, rest = text.partition("\n")
    earlier = re.fullmatch(r"Measured at commit (.*)\.", first)
    if earlier is None:
        return f"Measured at commit {commit}{where}.\n\n{text}"
    return f"Measured at commit {earlier[1]}{'' if ' on ' in earlier[1] else where}.\n{rest}"


def between(page: Path, name: str) -> str:
    """Return what stands between the markers `<!-- NAME:begin -->` and `<!-- NAME:end -->` of a page."""
    begin, end = _markers(name)
    text = page.read_text() if page.exists() else ""
    if begin not in text or end not in text:
        raise SystemExit(f"{page} has no markers {begin.strip()} and {end}")
    return text.split(begin)[1].split(end)[0]


def put_between(page: Path, name: str, told: str) -> None:
    """Replace what stands between the markers of a page."""
    begin, end = _markers(name)
    head, tail = page.read_text().split(f"{begin}{between(page, name)}{end}")
    page.write_text(f"{head}{begin}\n{told}\n{end}{tail}")


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
