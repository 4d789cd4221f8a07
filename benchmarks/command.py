"""The command line that all benchmarks share: which sections to run, and where the results go."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from report import ROOT, Report, Row, show, write_docs
from timing import say

R = TypeVar("R", bound=Report)


def parser_of(description: str, sections: Collection[str]) -> argparse.ArgumentParser:
    """The options that every benchmark has; one may add its own."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small run, to see that everything works")
    parser.add_argument("--only", default=",".join(sections), help="some of %(default)s")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/results")
    return parser


def parsed(
    parser: argparse.ArgumentParser, sections: Collection[str], name: str
) -> tuple[argparse.Namespace, set[str]]:
    """The options given, and the sections chosen; those that are not there are an error, as is what cannot be saved."""
    arguments = parser.parse_args()
    chosen = set(arguments.only.split(","))
    if unknown := chosen - set(sections):
        parser.error(f"unknown sections {', '.join(sorted(unknown))}; there are {', '.join(sections)}")
    if arguments.write and chosen != set(sections) and not result_of(name).exists():
        parser.error(
            f"the docs have all sections, and there is no {result_of(name).relative_to(ROOT)} to take the others from"
        )
    return arguments, chosen


def run_sections(
    name: str, description: str, sections: Mapping[str, Callable[[R], Iterable[Row]]], kind: Callable[[int, bool], R]
) -> None:
    """Measure the sections that were chosen, print, save."""
    arguments, chosen = parsed(parser_of(description, sections), sections, name)
    report = kind(arguments.seed, arguments.quick)
    with shown_at_least(report):
        for section, run in sections.items():
            if section in chosen:
                report.rows.extend(run(report))
    finish(report, name, arguments.write, chosen == set(sections))


def result_of(name: str) -> Path:
    """Where the results of a benchmark are kept."""
    return ROOT / "build" / "bench" / f"{name}.json"


@contextmanager
def shown_at_least(report: Report) -> Iterator[None]:
    """Print what was measured before something failed: a run may have taken a quarter of an hour until then."""
    try:
        yield
    except BaseException:
        show(report)
        raise


def finish(report: Report, name: str, to_docs: bool, is_whole: bool) -> None:
    """Print, save, and write to the docs if asked for; a run of some sections replaces those of the run before."""
    result = result_of(name)
    show(report)
    if to_docs and not is_whole:
        report.merge(result)
    report.save(result)
    say(f"wrote {result.relative_to(ROOT)}")
    if to_docs:
        write_docs(report, ROOT / "benchmarks" / "results" / f"{name}.md", name)
        say(f"wrote benchmarks/results/{name}.md")
