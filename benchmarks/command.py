"""The command line that all benchmarks share: which sections to run, and where the results go."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.report import ROOT, Report, Row, Shown, markdown, put_between, show
from benchmarks.timing import say

Sections = Mapping[str, Callable[[Any], Iterable[Row | Shown]]]


def run_sections(
    name: str,
    description: str,
    sections: Sections,
    kind: Callable[[int, bool], Report] = Report,
    opened: Callable[[Any], AbstractContextManager[Any]] = nullcontext,
) -> bool:
    """Measure the sections that were chosen, print, save; return whether the tables were written to the docs.

    A section gets the report, or what `opened` makes of it, such as a session of Spark.
    """
    options = _options(name, description, sections)
    report = kind(options.seed, options.quick)
    chosen = [section for section in sections if section in options.only.split(",")]
    try:
        with opened(report) as subject:
            for section in chosen:
                say(section)
                report.add(sections[section](subject))
    finally:
        show(report)  # what was measured before something failed, too: that may have taken a quarter of an hour
    if options.write and len(chosen) < len(sections):
        report.merge(result_of(name))
    is_whole = options.write or (len(chosen) == len(sections) and not options.quick)
    saved = result_of(name if is_whole else f"{name}-part")  # later runs with --write take sections from whole results
    report.save(saved)
    say(f"wrote {saved.relative_to(ROOT)}")
    if options.write:
        put_between(page_of(name), name, markdown(report, " ".join([command(), *sys.argv[1:]])))
        say(f"wrote {page_of(name).relative_to(ROOT)}")
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
    if options.write and options.only != parser.get_default("only") and not result_of(name).exists():
        parser.error(f"there is no {result_of(name).relative_to(ROOT)} to take the other sections from")
    return options


def result_of(name: str) -> Path:
    """Return where the results of a benchmark are kept."""
    return ROOT / "build" / "bench" / f"{name}.json"


def page_of(name: str) -> Path:
    """Return the page that shows the tables of a benchmark."""
    return ROOT / ("docs/scale.md" if name == "scale" else f"benchmarks/results/{name}.md")
