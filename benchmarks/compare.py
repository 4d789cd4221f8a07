"""Put the times of two commits side by side, ours and the peers', from the pages in benchmarks/results.

    python -m benchmarks.compare 852e65c [--pages match,relate] [--write]

Rows are those that both commits have. A ratio above 1 is slower than before; peers did not change, so their ratios show
how the machine differs. With --write the table replaces that of benchmarks/results/compared.md.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.command import command
from benchmarks.headlines import RESULTS, tables_of
from benchmarks.report import ROOT, put_between

SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def times_of(page: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a page that have a time of ours: section, work and peer; the cells by heading."""
    for section, rows in tables_of(page).items():
        for row in rows:
            if seconds_of(row.get("ours", "")):
                yield f"{section}: {row['work']} ({row.get('against', '')})", row


def seconds_of(text: str) -> float | None:
    """Return the seconds of a time such as `1.5 ms`, None for another text."""
    number, _, unit = text.partition(" ")
    return float(number.replace(",", "")) * SECONDS[unit] if unit in SECONDS else None


def at_commit(commit: str, name: str) -> str:
    """Return a page as it was at a commit."""
    show = ["git", "show", f"{commit}:benchmarks/results/{name}.md"]
    return subprocess.run(show, cwd=ROOT, capture_output=True, check=True, text=True).stdout


def compared(commit: str, names: list[str]) -> str:
    """Return the rows of pages at a commit and now, and the median of their ratios."""
    lines, ratios = list[str](), {"ours": list[float](), "peer": list[float]()}
    for name in names:
        before, after = dict(times_of(at_commit(commit, name))), dict(times_of((RESULTS / f"{name}.md").read_text()))
        for work in before.keys() & after.keys():
            cells = [work]
            for side, found in ratios.items():
                old, new = (page[work].get(side, "") for page in (before, after))
                first, second = seconds_of(old), seconds_of(new)
                if first and second:
                    found.append(second / first)
                cells += [old, new, f"{second / first:.2f}" if first and second else ""]
            lines.append(f"| {' | '.join(cells)} |")
    medians = [f"{statistics.median(found):.2f} ({side})" for side, found in ratios.items()]
    head = f"Pages {', '.join(names)} at commit {commit} and now: {len(lines)} rows, median ratios {', '.join(medians)}"
    headings = "work", "ours before", "now", "ratio", "peer before", "now", "ratio"
    table = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|", *sorted(lines)]
    return "\n".join([f"{head}; `{' '.join([command(), *sys.argv[1:]])}`.", "", *table, ""])


def main() -> None:
    """Compare, print, and with --write put the table on its page."""
    parser = argparse.ArgumentParser(prog=command(), description=str(__doc__).splitlines()[0])
    parser.add_argument("commit", help="whose pages to compare with")
    parser.add_argument("--pages", default="match", help="names of pages, with commas between (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/results/compared.md")
    options = parser.parse_args()
    told = compared(options.commit, options.pages.split(","))
    print(told)
    if options.write:
        put_between(RESULTS / "compared.md", "compared", told)


if __name__ == "__main__":
    main()
