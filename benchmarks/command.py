"""The command line that all benchmarks share: which sections to run, and where the results go."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.report import ROOT, Page, Report, Row, Shown, markdown, put_between, read_page, show
from benchmarks.timing import say

Sections = Mapping[str, Callable[[Any], Iterable[Row | Shown]]]


def run_sections(
    name: str,
    description: str,
    sections: Sections,
    kind: Callable[[int, bool], Report] = Report,
    opened: Callable[[Any], AbstractContextManager[Any]] = nullcontext,
    root: Path = ROOT,
) -> bool:
    """Measure the sections that were chosen, print, save; return whether the tables were written to the docs.

    A section gets the report, or what `opened` makes of it, such as a session of Spark. The page keeps the tables of
    sections that were not chosen.
    """
    options = _options(name, description, sections)
    target = page_of(name, root)
    page = read_page(target, name) if options.write else Page()  # a page without markers fails before the work
    report = kind(options.seed, options.quick)
    chosen = [section for section in sections if section in options.only.split(",")]
    is_whole = len(chosen) == len(sections) and not options.quick
    saved, others = result_of(f"{name}-part", root), list[Row]()
    try:
        with opened(report) as subject:
            for section in chosen:
                say(section)
                report.add(sections[section](subject))
        if is_whole or options.write:
            saved = result_of(name, root)
            others = [] if is_whole else report.rows_elsewhere(saved)
    finally:  # show and save what was measured before a failure, too: that may have taken a quarter of an hour
        show(report)
        report.save(saved, others)
        say(f"wrote {saved.relative_to(root)}")
    if options.write:
        if not is_whole:
            report.keep(page)
        put_between(target, name, markdown(report, " ".join([command(), *sys.argv[1:]])))
        say(f"wrote {target.relative_to(root)}")
    return bool(options.write)


def command() -> str:
    """Return the command that runs this benchmark."""
    spec = sys.modules["__main__"].__spec__
    return f"python -m {spec.name.removesuffix('.__main__')}" if spec else sys.argv[0]


def _options(name: str, description: str, sections: Sections) -> argparse.Namespace:
    """Return the options given; unknown sections and what cannot be written are errors."""
    parser = argparse.ArgumentParser(prog=command(), description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="run a small version, to see that everything works")
    parser.add_argument("--only", default=",".join(sections), help="run some of %(default)s")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--write", action="store_true", help=f"put the tables into {page_of(name).relative_to(ROOT)}")
    options = parser.parse_args()
    if unknown := set(options.only.split(",")) - set(sections):
        parser.error(f"unknown sections {', '.join(sorted(unknown))}; there are {', '.join(sections)}")
    if options.write and options.quick:
        parser.error("a quick run is too small to quote: --write needs a whole one")
    return options


def result_of(name: str, root: Path = ROOT) -> Path:
    """Return where the results of a benchmark are kept."""
    return root / "build" / "bench" / f"{name}.json"


def page_of(name: str, root: Path = ROOT) -> Path:
    """Return the page that shows the tables of a benchmark."""
    return root / ("docs/scale.md" if name == "scale" else f"benchmarks/results/{name}.md")
