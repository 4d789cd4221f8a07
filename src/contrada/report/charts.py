"""Charts of a report as inline SVG: bars over numbers of matches and over time. All text is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

from contrada.amounts import counted, noun
from contrada.report.numbers import DAY, HOUR, MINUTE, Bin, Moment

WIDTH, HEIGHT = 560, 220  # of a chart, in its own units
LEFT, RIGHT, TOP, BOTTOM = 48, 8, 14, 40
TICKS = 4
MAX_RANGE_LABELS = 8  # with more bars, labels are too wide for ranges


class Bar(NamedTuple):
    """One bar: its label on the axis, its value, and its tooltip."""

    label: str
    value: int
    title: str


def count(value: float) -> str:
    """Format a number for users.

    >>> count(1234567), count(0.1234), count(17.2)
    ('1,234,567', '0.12', '17')
    """
    return f"{value:,.2g}" if 0 < abs(value) < 10 and value != int(value) else f"{round(value):,}"


def short(value: int) -> str:
    """Format a number for an axis.

    >>> short(950), short(12_000), short(2_500_000)
    ('950', '12k', '2.5M')
    """
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            part = value / size
            return f"{part:.0f}{letter}" if part >= 10 else f"{part:.2g}{letter}"
    return str(value)


def label(low: int, high: int) -> str:
    """Return the label of a bin.

    >>> label(1, 1), label(4, 7), label(1024, 2047)
    ('1', '4-7', '1k-2k')
    """
    return short(low) if low == high else f"{short(low)}-{short(high)}"


def histogram(bins: Sequence[Bin], what: str, name: str) -> str:
    """Draw the number of messages (or subscriptions) by matches: bins double, bar heights are logarithmic."""
    bars = []
    for found in bins:
        low, high = found.low, found.high
        below = label(low, high) if len(bins) <= MAX_RANGE_LABELS else short(low) + "+" * (high > 1)
        matches = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        title = f"{counted(found.count, what)} with {matches} {noun(high, 'match', 'matches')}"
        bars.append(Bar(below, found.count, title))
    return _chart(bars, name, "matches", is_log=True)


def timeline(moments: Sequence[Moment], width: int, of: str) -> str:
    """Draw the number of messages (or matches) in each step of time."""
    form = "%H:%M:%S" if width < MINUTE else "%H:%M" if width < 2 * HOUR else "%d %b" if width < 30 * DAY else "%b %Y"
    bars = []
    for moment in moments:
        value = moment.messages if of == "messages" else moment.matches
        start = datetime.fromtimestamp(moment.start, UTC)
        bars.append(Bar(start.strftime(form), value, f"{start:%Y-%m-%d %H:%M:%S}: {count(value)} {of}"))
    return _chart(bars, f"{of} over time", f"time (UTC), in steps of {span(width)}", is_log=False)


def span(seconds: int) -> str:
    """Return a duration in words.

    >>> span(1), span(900), span(7200), span(604800)
    ('1 second', '15 minutes', '2 hours', '7 days')
    """
    units = (DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1, "second")
    return next(counted(seconds // unit, word) for unit, word in units if seconds % unit == 0)


def _chart(bars: Sequence[Bar], name: str, axis: str, *, is_log: bool) -> str:
    """Draw bars over a common axis; on a logarithmic scale a bar of one has a small height, a bar of zero none."""
    if not any(bar.value for bar in bars):
        return '<p class="nothing">Nothing to show.</p>'
    most = max(bar.value for bar in bars)
    is_log = is_log and most >= 20
    top = math.log10(most) + 0.3 if is_log else _nice(most)

    def height(value: float) -> float:
        part = (math.log10(value) + 0.3) / (top + 0.3) if is_log and value else 0.0 if is_log else value / top
        return part * (HEIGHT - TOP - BOTTOM)

    linear = {round(top * number / TICKS) for number in range(TICKS + 1)}
    marks = [10**power for power in range(int(math.log10(most)) + 1)] if is_log else sorted(linear)
    floor = HEIGHT - BOTTOM
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(name)}">',
        f"<title>{escape(name)}</title>",
    ]
    for mark in marks:
        y = floor - height(mark)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 6, y + 4, short(mark), "end"))
    step = (WIDTH - LEFT - RIGHT) / len(bars)
    every = math.ceil(46 * len(bars) / (WIDTH - LEFT - RIGHT)) if len(bars) > 8 else 1
    for number, bar in enumerate(bars):
        tall, x = height(bar.value), LEFT + number * step
        parts.append(
            f'<rect class="bar" x="{x + step * 0.08:.1f}" y="{floor - tall:.1f}" width="{step * 0.84:.1f}" '
            f'height="{tall:.1f}" rx="1.5"><title>{escape(bar.title)}</title></rect>'
        )
        if number % every == 0:
            parts.append(_text(x + step / 2, floor + 15, bar.label))
    parts.append(f'<path class="axis" d="M{LEFT} {floor}H{WIDTH - RIGHT}"/>')
    parts.append(_text((LEFT + WIDTH) / 2, HEIGHT - 5, f"{axis}; heights are logarithms" if is_log else axis))
    return "".join(parts) + "</svg>"


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _nice(most: int) -> int:
    """Return the smallest of 1, 2, 4, 6 or 8 times a power of ten that is at least `most`."""
    power = 10 ** int(math.log10(most))
    return next(int(step * power) for step in (1, 2, 4, 6, 8, 10) if step * power >= most)
