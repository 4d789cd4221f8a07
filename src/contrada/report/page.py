"""Render a report as one HTML page. All text from data goes through `escape`, or into JSON for the script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import accumulate
from string import Template
from typing import NamedTuple

from contrada.amounts import counted
from contrada.report.charts import count, histogram, timeline
from contrada.report.map import legend, map_drawing
from contrada.report.numbers import Numbers, Reasons
from contrada.report.sample import MAX_MATCHES_PER_MESSAGE, DrawnSample

MAX_SHOWN_FILTER_LENGTH = 240  # characters of a filter in the table
GEOMETRY = re.compile(r"\b(MULTI)?(POLYGON|POINT|LINESTRING)\s*Z?\s*(?=\()|\b(BBOX|ENVELOPE)\s*(?=\()", re.IGNORECASE)


class Page(Template):
    """The template report.html: `%%name` is replaced once; inserted text is not searched again."""

    delimiter = "%%"


class Making(NamedTuple):
    """Facts about the run, given by the caller."""

    title: str
    versions: Mapping[str, str]
    finished: str
    plan: str | None
    seconds: Mapping[str, float]
    attribution: Sequence[str]


def render(numbers: Numbers, sample: DrawnSample, making: Making) -> str:
    """Return the page."""
    most = max((region.matches for region in sample.regions), default=0)
    drawing, facts = map_drawing(sample, most)
    folder = files("contrada.report")
    parts = {
        "title": escape(making.title),
        "style": (folder / "report.css").read_text(encoding="utf-8"),
        "script": (folder / "report.js").read_text(encoding="utf-8"),
        "lead": _lead(numbers),
        "cards": _cards(numbers, making),
        "outcome": _outcome(numbers),
        "map": _map(drawing, numbers, sample, most),
        "charts": _charts(numbers),
        "busy_title": "The busiest subscriptions" if numbers.by_key else "The busiest subscribers",
        "busy": _busy(numbers),
        "aside": _aside(numbers),
        "made": _made(making),
        "facts": facts,
    }
    return Page((folder / "report.html").read_text(encoding="utf-8")).substitute(parts)


def percent(part: int, whole: int) -> str:
    """Format a share for users; only 0 and 1 are shown as 0 % and 100 %.

    >>> percent(1, 8), percent(1, 100_000), percent(99_999, 100_000), percent(0, 0)
    ('12.5 %', 'below 0.1 %', 'over 99.9 %', '0 %')
    """
    if part == 0 or whole == 0:
        return "0 %"
    share = 100 * part / whole
    if share < 0.1:
        return "below 0.1 %"
    if 99.9 < share < 100:
        return "over 99.9 %"
    return f"{share:.1f} %".replace(".0 %", " %")


def _lead(numbers: Numbers) -> str:
    if not numbers.messages:
        return f"No messages against {counted(numbers.subscriptions, 'subscription')}."
    met = counted(numbers.messages, "message") + " met " + counted(numbers.subscriptions, "subscription")
    per = numbers.matches / numbers.messages
    return f"{met} and matched {counted(numbers.matches, 'time')}: {count(per)} per message on average."


def _cards(numbers: Numbers, making: Making) -> str:
    lonely = numbers.without_match
    # Rates are per second of the stage `match` if there is one, else of all stages.
    seconds = max(0.0, making.seconds.get("match", sum(making.seconds.values())))
    unit = "per second of matching" if "match" in making.seconds else "per second"
    cards = [
        ("Messages", count(numbers.messages), seconds and f"{count(numbers.messages / seconds)} {unit}"),
        ("Subscriptions", count(numbers.subscriptions), ""),
        ("Matches", count(numbers.matches), seconds and f"{count(numbers.matches / seconds)} {unit}"),
        ("Without a match", percent(lonely, numbers.messages), f"{count(lonely)} of {count(numbers.messages)}"),
        ("Rejected", count(numbers.rejected.rows), percent(numbers.rejected.rows, numbers.messages)),
    ]
    if numbers.quarantined is not None:
        cards.append(("Quarantined", count(numbers.quarantined.rows), "rows of files"))
    if numbers.set_aside is not None:
        cards.append(("Set aside", count(numbers.set_aside.rows), "subscriptions"))
    return "\n".join(
        f'<div class="card"><dt>{name}</dt><dd>{value}</dd>' + (f"<dd>{note}</dd>" if note else "") + "</div>"
        for name, value, note in cards
    )


def _outcome(numbers: Numbers) -> str:
    kinds = [
        ("with", "with matches", numbers.with_match),
        ("without", "without a match", numbers.without_match),
        ("refused", "rejected", numbers.unread),
    ]
    if not numbers.messages:
        return ""
    bars = "".join(f'<i class="{kind}" style="flex:{value}"></i>' for kind, _, value in kinds if value)
    said = ", ".join(f"{count(value)} {words}" for _, words, value in kinds)
    names = "".join(
        f'<li><i class="{kind}"></i>{count(value)} {words} ({percent(value, numbers.messages)})</li>'
        for kind, words, value in kinds
    )
    return f'<div class="outcome" role="img" aria-label="Messages: {said}">{bars}</div>\n<ul class="key">{names}</ul>'


CONTROLS = """<aside class="panel" aria-label="Chosen message">
<label for="which">Messages in the order of time</label>
<input id="which" type="range" min="0" max="{last}" value="0">
<div class="row"><button id="previous" type="button">Back</button><button id="next" type="button">Next</button>
<button id="play" type="button">Play</button><button id="clear" type="button">All</button></div>
<div id="panel" aria-live="polite"></div>
</aside>"""
TOOLS = """<div class="tools"><button id="in" type="button" aria-label="Zoom in">+</button>
<button id="out" type="button" aria-label="Zoom out">&minus;</button>
<button id="all" type="button" aria-label="Show everything">Fit</button></div>"""


def _map(drawing: str, numbers: Numbers, sample: DrawnSample, most: int) -> str:
    if not drawing:
        return '<p class="nothing">Nothing to draw: neither messages nor subscriptions came with geometry.</p>'
    swatches = "".join(f'<li><i class="q{step}"></i>{words}</li>' for step, words in legend(most))
    controls = CONTROLS.format(last=len(sample.messages) - 1) if sample.messages else ""
    return (
        f'<div class="stage"><div class="frame">{drawing}{TOOLS}</div>{controls}</div>\n'
        f'<ul class="key"><li>Matches of a subscription:</li>{swatches}<li><i class="line"></i>message</li></ul>\n'
        f'<p class="note">{_what_is_drawn(numbers, sample)}</p>'
    )


def _what_is_drawn(numbers: Numbers, sample: DrawnSample) -> str:
    regions = f"{count(len(sample.regions))} of {counted(numbers.subscriptions, 'subscription')}"
    messages = f"{count(len(sample.messages))} of {counted(numbers.messages, 'message')}"
    return (
        f"Drawn: {regions} and {messages}, chosen by a hash of their ids, as many messages with many matches as with "
        f"few. Subscriptions that the drawn messages matched come first, at most {MAX_MATCHES_PER_MESSAGE} for each "
        "message; those that name no region are not drawn. Outlines are simplified for the screen, matching used the "
        "exact regions. Drag to move; zoom by wheel or two fingers."
    )


def _charts(numbers: Numbers) -> str:
    owner = "subscription" if numbers.by_key else "subscriber"
    charts = [
        (f"Matches per {what}", histogram(bins, what, f"{what.capitalize()}s by number of matches"))
        for what, bins in (("message", numbers.per_message), (owner, numbers.per_subscription))
    ]
    if numbers.over_time:
        column = f"by {escape(numbers.time_column or '')}"
        for of in ("messages", "matches"):
            charts.append((f"{of.capitalize()} over time, {column}", timeline(numbers.over_time, numbers.bucket, of)))
    return "\n".join(f'<figure class="chart-box"><h3>{name}</h3>{chart}</figure>' for name, chart in charts)


def without_coordinates(text: str) -> str:
    """Replace the coordinates in a filter by an ellipsis.

    >>> without_coordinates("S_INTERSECTS(area, POLYGON ((0 0, 4 0, 4 4, 0 0))) AND severity >= 3")
    'S_INTERSECTS(area, POLYGON (…)) AND severity >= 3'
    >>> without_coordinates("inside(area, BBOX(0, 0, 4, 4)) AND x = 1 AND overlaps(area, POLYGON((0 0, 4")
    'inside(area, BBOX (…)) AND x = 1 AND overlaps(area, POLYGON (…'
    """
    kept, start = [], 0
    while found := GEOMETRY.search(text, start):
        end = _closing(text, found.end())
        kept.append(text[start : found.end()].rstrip() + " (…")
        start = end
    return "".join(kept) + text[start:]


def _closing(text: str, start: int) -> int:
    """Return the position of the bracket that closes the one at `start`; the length of the text if there is none."""
    depths = accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in text[start:])
    return next((start + place for place, depth in enumerate(depths) if depth == 0), len(text))


def _busy(numbers: Numbers) -> str:
    if not numbers.busiest:
        return '<p class="nothing">Nothing matched.</p>'
    most = numbers.busiest[0].matches
    names = ["Key", "Subscriber", "Matches", "Filter"] if numbers.by_key else ["Subscriber", "Matches"]
    rows = []
    for busy in numbers.busiest:
        bar = f'<i class="meter" style="width:{100 * busy.matches / most:.0f}%"></i>'
        cells = [f'<td class="name">{escape(busy.key)}</td>', f'<td class="number">{count(busy.matches)}{bar}</td>']
        if numbers.by_key:
            cells.insert(1, f"<td>{escape(busy.subscriber)}</td>")
            cells.append(f"<td><code>{escape(_cut(without_coordinates(busy.filter)))}</code></td>")
        rows.append("".join(cells))
    return _table(names, rows)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_FILTER_LENGTH else text[: MAX_SHOWN_FILTER_LENGTH - 1] + "…"


def _table(names: Sequence[str], rows: Iterable[str]) -> str:
    kinds = dict.fromkeys(("Matches", "Rows"), ' class="number"')
    heads = "".join(f'<th scope="col"{kinds.get(name, "")}>{name}</th>' for name in names)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'


def _aside(numbers: Numbers) -> str:
    kinds = [
        ("Messages that were rejected", numbers.rejected, "message"),
        ("Rows that were quarantined when data was read", numbers.quarantined, ""),
        ("Subscriptions that were set aside when compiled", numbers.set_aside, ""),
    ]
    parts = [
        f"<h3>{title}: {count(reasons.rows)}</h3>\n{_reasons(reasons, noun)}"
        for title, reasons, noun in kinds
        if reasons is not None
    ]
    return '<div class="aside">' + "\n".join(parts) + "</div>"


def _reasons(reasons: Reasons, noun: str) -> str:
    if not reasons.rows:
        return '<p class="nothing">None.</p>'
    rows = []
    for reason in reasons.listed:
        examples = "".join(
            f"<li>{escape(f'{noun} {place}'.strip())}: {escape(_cut(said))}</li>" for place, said in reason.examples
        )
        rows.append(
            f'<td class="number">{count(reason.count)}</td><td>{escape(_cut(reason.text))}</td>'
            f"<td><ul>{examples}</ul></td>"
        )
    rest = reasons.kinds - len(reasons.listed)
    more = f'<p class="note">{counted(rest, "other kind")} of reasons not listed.</p>' if rest > 0 else ""
    return _table(["Rows", "Reason", "Examples"], rows) + more


def _made(making: Making) -> str:
    facts = [("Made", making.finished), *making.versions.items()]
    for stage, value in making.seconds.items():
        digits = 2 if value < 10 else 1
        facts.append((f"Seconds, {stage}" if stage else "Seconds", f"{value:,.{digits}f} s"))
    facts += [("Data", words) for words in making.attribution]
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    plan = f"<details><summary>The plan</summary><pre>{escape(making.plan)}</pre></details>" if making.plan else ""
    return f'<dl class="made">{listed}</dl>{plan}'
