"""The results of a soak: rows with the trend of the second half, a table over time, and the figure."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from benchmarks.command import command, result_of
from benchmarks.pictures.speed import FIRST, GREY, SECOND, clean, finished
from benchmarks.report import ROOT, Report, Row, Shown, markdown, put_between, show
from benchmarks.timing import say

SECTION = "Soak"
IMAGE = ROOT / "docs" / "images" / "soak.png"
LINES = 12  # of the table over time
# A line fitted to the second half of the run may rise by so many percent of its mean, from the half's begin to its end.
MOST_RISE = {"memory": 5.0, "p50": 25.0, "p99": 25.0}


class Sample(NamedTuple):
    """The server at one moment: latencies are those of the events since the last sample, in ms; memory, disk in MB."""

    seconds: float
    memory: float
    p50: float
    p99: float
    waiting: float
    kept: float
    disk: float

    def line(self) -> str:
        """Return the sample as one line of progress."""
        return (
            f"{self.seconds / 60:.1f} min: {self.memory:,.0f} MB, p50 {self.p50:.1f} ms, p99 {self.p99:.1f} ms, "
            f"{self.waiting:.0f} waiting, {self.kept:,.0f} messages kept, {self.disk:,.0f} MB on disk"
        )


def soak_report(
    samples: Sequence[Sample], counts: Mapping[str, int], work: str, rate: float, least: float
) -> Iterator[Row | Shown]:
    """Yield the rows and the table of a run that published `rate` messages a second and had to publish `least`."""
    yield Row.alone(SECTION, f"{work}: published", rate, "messages/s", at_least=least)
    wrong = {name: counts[name] for name in ("missing", "wrong or twice", "out of order")}
    yield Row(
        SECTION, f"{work}: events that are {', '.join(wrong)}", "", None, None, sum(wrong.values()), "events",
        at_most=0, compared=counts["events"], different=sum(wrong.values()),
    )  # fmt: skip
    for name, value in counts.items():
        if name not in wrong:
            yield Row.alone(SECTION, name, value, "")
    later = samples[len(samples) // 2 :]
    for name, most in MOST_RISE.items():
        values = [getattr(sample, name) for sample in later]
        unit = "MB" if name == "memory" else "ms"
        yield Row.alone(SECTION, f"{name}, median of the second half", float(np.median(values)), unit)
        rise = rise_percent([sample.seconds for sample in later], values)
        yield Row.alone(SECTION, f"{name}, rise over the second half", rise, "%", at_most=most)
    yield over_time(samples)


def rise_percent(times: Sequence[float], values: Sequence[float]) -> float:
    """Return by how many percent of the mean a fitted line rises from the first to the last time.

    >>> round(rise_percent([0, 1, 2], [9, 10, 11]), 6)
    20.0
    """
    slope = float(np.polyfit(times, values, 1)[0])
    return 100 * slope * (times[-1] - times[0]) / float(np.mean(values))


def over_time(samples: Sequence[Sample]) -> Shown:
    """Return the medians of the run's twelfths."""
    headings = ("minutes", "memory, MB", "p50, ms", "p99, ms", "waiting", "messages kept", "disk, MB")
    lines = []
    for part in np.array_split(np.array(samples), min(LINES, len(samples))):
        middle = np.median(part, axis=0)
        lines.append(
            [f"{part[-1, 0] / 60:.1f}", f"{middle[1]:,.0f}", f"{middle[2]:.1f}", f"{middle[3]:.1f}",
             f"{middle[4]:.0f}", f"{middle[5]:,.0f}", f"{middle[6]:,.0f}"]
        )  # fmt: skip
    return Shown(f"{SECTION}: medians until that minute", headings, lines)


def draw(samples: Sequence[Sample], result: dict[str, Any]) -> Figure:
    """Draw memory, latency, what waits and disk over the minutes of the run."""
    figure, panels = plt.subplots(2, 2, figsize=(11, 6.2), sharex=True, facecolor="white")
    minutes = [sample.seconds / 60 for sample in samples]
    drawn: dict[str, list[tuple[str, str, Callable[[Sample], float]]]] = {
        "Resident memory, MB": [("", FIRST, lambda one: one.memory)],
        "Publish to receive, ms (logarithmic)": [
            ("p50", FIRST, lambda one: one.p50),
            ("p99", SECOND, lambda one: one.p99),
        ],
        "Requests that wait": [("", GREY, lambda one: one.waiting)],
        "Size of the state on disk, MB": [("", FIRST, lambda one: one.disk)],
    }
    for axes, (title, series) in zip(panels.flat, drawn.items(), strict=True):
        for label, colour, value in series:
            axes.plot(minutes, [value(one) for one in samples], color=colour, linewidth=1.4, label=label or None)
        clean(axes, title)
        if "logarithmic" in title:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.legend(frameon=False, ncols=2)
        else:
            axes.set_ylim(0, None)
    for axes in panels[1]:
        axes.set_xlabel("minutes")
    where = f", {result['machine']['cores']} cores shared with the clients, commit {result['commit']}"
    return finished(figure, result, where, left=0.06, top=0.94, bottom=0.11, hspace=0.2, wspace=0.13)


def write_results(report: Report, samples: Sequence[Sample], page: Path | None) -> None:
    """Print, and write build/bench/soak.json and soak.png; with a page also that one, and the figure of the docs."""
    show(report)
    saved = result_of("soak")
    report.save(saved)
    result = json.loads(saved.read_text())
    saved.write_text(json.dumps({**result, "samples": [sample._asdict() for sample in samples]}, indent=1) + "\n")
    pictures = [saved.with_suffix(".png"), *([IMAGE] if page is not None else [])]
    figure = draw(samples, result)
    for picture in pictures:
        figure.savefig(picture, dpi=170)
    if page is not None:
        put_between(page, "soak", markdown(report, " ".join([command(), *sys.argv[1:]])))
        pictures.append(page)
    for path in (saved, *pictures):
        say(f"wrote {path.relative_to(ROOT)}")
