"""Rows of a benchmark: where they were measured, how they are printed, kept as JSON and shown in the docs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import shapely
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("contrada", "numpy", "numba", "llvmlite", "shapely", "pyarrow")


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
    commit: str = ""  # that it was measured at, if not that of the report

    @property
    def passed(self) -> bool | None:
        """Whether the bar is met; None without one."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return self.value <= self.at_most if self.at_most is not None else None

    @property
    def bar(self) -> str:
        """The bar in words."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        unit = "" if self.unit.startswith("times") else f" {self.unit}"
        return f"at most {self.at_most:g}{unit}" if self.at_most is not None else ""


@dataclass(frozen=True)
class Accuracy:
    """How often the sampled relation differs from the exact one."""

    messages: str
    pairs: int
    per_half_length: int  # the density times (UX + UY)
    halo: bool
    wrong_intersection: float  # share of pairs
    wrong_relation: float
    paper: float | None  # the share that [SPATIAL] reports


class Shown(NamedTuple):
    """A table as texts."""

    title: str
    headings: Sequence[str]
    lines: list[list[str]]

    def filled(self) -> Shown:
        """The table without the columns that are empty in all lines.

        >>> Shown("a", ("x", "y"), [["1", ""], ["2", ""]]).filled()
        Shown(title='a', headings=['x'], lines=[['1'], ['2']])
        """
        kept = [k for k in range(len(self.headings)) if any(line[k] for line in self.lines)]
        return Shown(self.title, [self.headings[k] for k in kept], [[line[k] for k in kept] for line in self.lines])


@dataclass
class Report:
    """Everything one run found."""

    seed: int
    quick: bool
    rows: list[Row] = field(default_factory=list)
    accuracy: list[Accuracy] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The report with the commit, versions and machine it holds for."""
        return {
            "seed": self.seed,
            "quick": self.quick,
            "commit": commit(),
            "versions": versions(),
            "machine": machine(),
            "rows": [asdict(row) | {"bar": row.bar, "passed": row.passed} for row in self.rows],
            "accuracy": [asdict(row) for row in self.accuracy],
            "skipped": self.skipped,
        }

    def merge(self, path: Path) -> None:
        """Put the rows of a saved run of the same machine in front whose sections this one does not have."""
        saved = json.loads(path.read_text())
        if saved["quick"] or self.quick or saved["machine"] != machine() or saved["seed"] != self.seed:
            raise SystemExit(f"{path} is of another machine or seed, or of a quick run: run all sections")
        measured = {row.section for row in self.rows}
        for row in reversed(saved["rows"]):
            if row["section"] not in measured:
                fields = {name: value for name, value in row.items() if name not in ("bar", "passed")}
                self.rows.insert(0, Row(**fields | {"commit": row.get("commit") or saved["commit"]}))
        self.skipped = [*dict.fromkeys([*saved["skipped"], *self.skipped])]

    def tables(self) -> Iterator[Shown]:
        """What is printed and stands in the docs."""
        for section in dict.fromkeys(row.section for row in self.rows):
            yield Shown(section, HEADINGS, [cells(row) for row in self.rows if row.section == section])
        if self.accuracy:
            lines = [accuracy_cells(row) for row in self.accuracy]
            yield Shown("Error rate of the sampled relation", ACCURACY_HEADINGS, lines)

    def save(self, path: Path) -> None:
        """Write the JSON file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.as_json(), indent=1, default=lambda number: number.item()) + "\n")


def commit() -> str:
    """The commit that was measured, marked if the work tree differs from it."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    if head.returncode != 0:
        return "unknown"
    changed = subprocess.run([*git, "status", "--porcelain", "--", "src"], capture_output=True, text=True)
    return head.stdout.strip() + (" with changes" if changed.stdout.strip() else "")


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that shape the numbers."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "from source"
    return found | {"GEOS": shapely.geos_version_string}


def machine() -> dict[str, Any]:
    """CPU model, cores, memory and system."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        fields = dict(line.split(":", 1) for line in cpuinfo.read_text().splitlines() if ":" in line)
        model = {name.strip(): value.strip() for name, value in fields.items()}.get("model name", model)
    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    system = f"{platform.system()} {platform.machine()}"
    return {"cpu": model, "cores": os.cpu_count(), "memory_GiB": memory, "system": system}


def duration(seconds: float | None) -> str:
    """Seconds with three digits in a unit that suits them.

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


def verdict(row: Row) -> str:
    """Whether the bar is met, in a word."""
    return {True: "yes", False: "NO", None: ""}[row.passed]


def amount(row: Row) -> str:
    """The value with its unit; a ratio below one reads the other way round."""
    value, unit = row.value, row.unit
    if unit == "times faster" and value < 1:
        value, unit = 1 / value, "times slower"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def cells(row: Row) -> list[str]:
    """A row as texts, in the order of HEADINGS."""
    answers = ""
    if row.compared is not None:
        answers = f"{row.different:,} of {row.compared:,}"
        if row.different:
            answers += f" (ours wrong: {row.wrong})" if row.wrong is not None else ""
    times = [duration(row.ours), duration(row.theirs)]
    return [row.work, row.against, *times, amount(row), row.bar, verdict(row), answers]


HEADINGS = ("work", "against", "ours", "peer", "ours is", "bar", "met", "answers that differ")
ACCURACY_HEADINGS = ("messages", "points per half-length", "halo", "pairs", "wrong yes/no", "wrong", "paper")


def accuracy_cells(row: Accuracy) -> list[str]:
    """An accuracy row as texts, in the order of ACCURACY_HEADINGS."""
    paper = f"{row.paper:.3%}" if row.paper is not None else ""
    halo = "on" if row.halo else "off"
    shares = [f"{row.wrong_intersection:.3%}", f"{row.wrong_relation:.3%}"]
    return [row.messages, f"{row.per_half_length:,}", halo, f"{row.pairs:,}", *shares, paper]


def show(report: Report) -> None:
    """Print the tables."""
    console = Console(width=max(Console().width, 150))
    for title, headings, lines in (table.filled() for table in report.tables()):
        table = Table(*headings, title=title)
        for line in lines:
            table.add_row(*line)
        console.print(table)
    for reason in report.skipped:
        print(f"skipped: {reason}", file=sys.stderr)


def markdown(report: Report) -> str:
    """The tables and what they hold for, as they stand in the docs."""
    found = report.as_json()
    where = found["machine"]
    lines = [
        f"Measured on {where['cpu']}, {where['cores']} cores, {where['memory_GiB']} GiB, {where['system']}; "
        f"commit {found['commit']}, seed {report.seed}"
        + (", **quick run: too small to quote**" if report.quick else "")
        + ".",
        "Versions: " + ", ".join(f"{name} {number}" for name, number in found["versions"].items()) + ".",
    ]
    for title, headings, rows in (table.filled() for table in report.tables()):
        lines += ["", f"### {title}", ""]
        if other := {row.commit for row in report.rows if row.section == title and row.commit}:
            lines += [f"Measured at commit {', '.join(sorted(other))}.", ""]
        lines += ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += ["", *(f"Skipped: {reason}." for reason in report.skipped)] if report.skipped else []
    return "\n".join(lines) + "\n"


def write_docs(report: Report, page: Path, name: str) -> None:
    """Put the tables between the markers of a page."""
    put_between(page, name, markdown(report))


def put_between(page: Path, name: str, told: str) -> None:
    """Replace what stands between the markers `<!-- NAME:begin -->` and `<!-- NAME:end -->` of a page."""
    begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
    text = page.read_text()
    if begin not in text or end not in text:
        raise SystemExit(f"{page} has no markers {begin.strip()} and {end}")
    head, tail = text.split(begin)[0], text.split(end)[1]
    page.write_text(f"{head}{begin}\n{told}\n{end}{tail}")
