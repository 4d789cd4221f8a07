"""Render the content of a report as HTML. All text from data goes through `escape`; the map takes its data as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from string import Template
from typing import NamedTuple

from contrada.amounts import counted
from contrada.report.charts import count, histogram, timeline
from contrada.report.numbers import Numbers, Reasons
from contrada.report.text import without_coordinates

MAX_SHOWN_FILTER_LENGTH = 240  # characters of a filter in the table
BODY = """<header class="report-head">
<h1>%%title</h1>
<p class="lead">%%lead</p>
</header>
<main>
<section aria-label="Headline numbers">
<dl class="cards">
%%cards
</dl>
%%outcome
</section>
<section aria-labelledby="h-map">
<h2 id="h-map">Messages and matches</h2>
%%map
</section>
<section aria-labelledby="h-spread">
<h2 id="h-spread">How matches are spread</h2>
<div class="charts">
%%charts
</div>
</section>
<section aria-labelledby="h-busy">
<h2 id="h-busy">%%busy_title</h2>
%%busy
</section>
<section aria-labelledby="h-bad">
<h2 id="h-bad">Rejected, quarantined and set aside</h2>
%%aside
</section>
<section aria-labelledby="h-made">
<h2 id="h-made">How it was made</h2>
%%made
</section>
</main>
"""


class Body(Template):
    """The text BODY: `%%name` is replaced once; inserted text is not searched again."""

    delimiter = "%%"


class Making(NamedTuple):
    """Facts about the run, given by the caller."""

    title: str
    versions: Mapping[str, str]
    finished: str
    plan: str | None
    seconds: Mapping[str, float]
    attribution: Sequence[str]


def body(numbers: Numbers, making: Making, drawn: int) -> str:
    """Return the content of the page; `drawn` is the number of regions on the map without a chosen message."""
    return Body(BODY).substitute(
        title=escape(making.title),
        lead=_lead(numbers),
        cards=_cards(numbers, making),
        outcome=_outcome(numbers),
        map=_map(numbers, drawn),
        charts=_charts(numbers),
        busy_title="The busiest subscriptions" if numbers.by_key else "The busiest subscribers",
        busy=_busy(numbers),
        aside=_aside(numbers),
        made=_made(making),
    )


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


def _map(numbers: Numbers, drawn: int) -> str:
    """Return the place of the map and the list, which the script of the page fills."""
    if not numbers.messages and not drawn:
        return '<p class="nothing">Nothing to draw: no messages, and no subscription has a region.</p>'
    regions = f"{count(drawn)} of {counted(numbers.subscriptions, 'subscription')}"
    return (
        '<div id="explore"><noscript><p class="nothing">The map and the list need JavaScript.</p></noscript></div>\n'
        f'<p class="note">While no message is chosen, the map shows {regions} (a sample by a hash of their keys if '
        "there are more), shaded by how often they matched. A chosen message shows all its matches. Outlines are "
        "rounded for the screen; relations were computed from the exact regions.</p>"
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
    return _table("The busiest", names, rows)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_FILTER_LENGTH else text[: MAX_SHOWN_FILTER_LENGTH - 1] + "…"


def _table(label: str, names: Sequence[str], rows: Iterable[str]) -> str:
    """Return a table that scrolls sideways by itself, also by keys."""
    kinds = dict.fromkeys(("Matches", "Rows"), ' class="number"')
    heads = "".join(f'<th scope="col"{kinds.get(name, "")}>{name}</th>' for name in names)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    scroll = f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
    return f"{scroll}<table><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"


def _aside(numbers: Numbers) -> str:
    kinds = [
        ("Messages that were rejected", numbers.rejected, "message"),
        ("Rows that were quarantined when data was read", numbers.quarantined, ""),
        ("Subscriptions that were set aside when compiled", numbers.set_aside, ""),
    ]
    parts = [
        f"<h3>{title}: {count(reasons.rows)}</h3>\n{_reasons(title, reasons, noun)}"
        for title, reasons, noun in kinds
        if reasons is not None
    ]
    return '<div class="aside">' + "\n".join(parts) + "</div>"


def _reasons(label: str, reasons: Reasons, noun: str) -> str:
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
    return _table(label, ["Rows", "Reason", "Examples"], rows) + more


def _made(making: Making) -> str:
    facts = [("Made", making.finished), *making.versions.items()]
    for stage, value in making.seconds.items():
        digits = 2 if value < 10 else 1
        facts.append((f"Seconds, {stage}" if stage else "Seconds", f"{value:,.{digits}f} s"))
    facts += [("Data", words) for words in making.attribution]
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    plan = f"<details><summary>The plan</summary><pre>{escape(making.plan)}</pre></details>" if making.plan else ""
    return f'<dl class="made">{listed}</dl>{plan}'
