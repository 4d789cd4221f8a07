"""Show events of tracked objects in notebooks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from contrada.amounts import counted
from contrada.drawing.cards import card, element, table
from contrada.matching.pictures import rejected_markup
from contrada.shown import short

if TYPE_CHECKING:
    from contrada.geometry import Relation
    from contrada.tracking.tracker import TrackEvent, TrackEvents

MAX_EVENTS = 24
START = datetime(1970, 1, 1, tzinfo=UTC)


def events_html(events: TrackEvents) -> str:
    """Return the first events, how many there are, and why messages were not tracked."""
    parts = [element("p", counted(len(events), "event"))]
    if len(events):
        heads = "event", "subscription", "object", "before", "after", "time", "reason"
        parts.append(table(heads, (_row(event) for event in islice(events, MAX_EVENTS))))
    if len(events) > MAX_EVENTS:
        parts.append(element("p", f"shown: the first {MAX_EVENTS} of {len(events):,} events"))
    return card(*parts, rejected_markup(events.rejected))


def _row(event: TrackEvent) -> tuple[object, ...]:
    names = (element("code", short(name)) for name in (event.key, event.object))
    return event.kind, *names, _word(event.before), _word(event.after), _shown_time(event.time), event.reason


def _word(relation: Relation | None) -> str:
    return "" if relation is None else str(relation)


def _shown_time(milliseconds: int) -> str:
    """Return a time in UTC; as a number if it is outside of the years that Python writes.

    >>> _shown_time(1_700_000_000_000), _shown_time(10**17)
    ('2023-11-14 22:13:20.000', '100000000000000000 ms')
    """
    try:
        at = START + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return at.isoformat(" ", "milliseconds").removesuffix("+00:00")
