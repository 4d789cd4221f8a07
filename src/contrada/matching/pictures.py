"""Show answers and explanations in notebooks: names, verdicts, and how regions of message and subscription relate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from contrada.amounts import counted, noun
from contrada.drawing.cards import Markup, badge, card, element, figures, joined, swatch, table
from contrada.drawing.outlines import Box, Outline, frame_of, longer_side, union_box
from contrada.drawing.svg import Layer, svg
from contrada.geometry import Circle, Line, Point, Region, Rejection
from contrada.geometry.pictures import outline_of
from contrada.shown import short

if TYPE_CHECKING:
    from contrada.matching.answer import ManyMatches, Matches
    from contrada.matching.explain import ConstraintExplained, Explanation
    from contrada.matching.names import Name

MAX_NAMES = 24  # of one answer
MAX_MESSAGES = 12  # of an answer to many
MAX_NAMES_PER_MESSAGE = 6
MAX_REASONS = 5  # of rejected messages
MAX_REASON_CHARS = 200
MAX_FILTERS, MAX_CONSTRAINTS, MAX_PICTURES = 12, 40, 12  # of one explanation
SIZE = 260, 200  # pixels of one picture, at most
ZOOM_BELOW = 1 / 8  # a region smaller than this share of the picture gets a second picture
ZOOM_OUT = 3.0  # the second picture shows so many times the smaller region


def matches_html(answer: Matches) -> str:
    """Return the names of an answer, or the first of them."""
    if not len(answer):
        return card(element("p", badge("no match", "missed")))
    head = joined(badge(counted(len(answer), "match", "matches"), "hit"), " ", _names(answer, len(answer), MAX_NAMES))
    return card(element("p", head))


def many_html(answer: ManyMatches) -> str:
    """Return the first messages of an answer with their matches, the totals, and why messages were rejected."""
    matched = int((answer.offsets[1:] > answer.offsets[:-1]).sum())
    total = f"{matched:,} of {counted(len(answer), 'message')} {noun(matched, 'matches', 'match')}; "
    total += f"{counted(len(answer.rows), 'match', 'matches')} by {answer.by}"
    parts = [element("p", total)]
    if len(answer):
        whose = "keys" if answer.by == "subscription" else "subscribers"
        parts.append(table(("message", "matches", whose), (_message_row(answer, k) for k in _first(len(answer)))))
    if len(answer) > MAX_MESSAGES:
        parts.append(element("p", f"shown: the first {MAX_MESSAGES} of {len(answer):,} messages"))
    return card(*parts, rejected_markup(answer.rejected))


def rejected_markup(rejected: Sequence[Rejection]) -> Markup:
    """Return why messages were rejected: the first of them, and how many there are."""
    if not rejected:
        return Markup()
    from contrada.matching.explain import shortened

    shown = [(bad.row, shortened(bad.reason, MAX_REASON_CHARS)) for bad in rejected[:MAX_REASONS]]
    more = f" of them the first {MAX_REASONS}:" if len(rejected) > MAX_REASONS else ""
    return joined(
        element("p", badge(f"{len(rejected):,} rejected", "missed"), more), table(("message", "reason"), shown)
    )


def explanation_html(why: Explanation) -> str:
    """Return the verdict, every filter with its constraints, values and verdicts, and pictures of the relations."""
    from contrada.matching.explain import WRITTEN_WIDTH, shortened

    kind, word = ("hit", "match") if why.truth else ("missed", "no match")
    parts = [element("p", badge(word, kind), " ", element("span", shortened(why.verdict, WRITTEN_WIDTH)))]
    if why.written is not None:
        parts.append(element("p", "written: ", element("code", shortened(why.written, WRITTEN_WIDTH))))
    room = [MAX_PICTURES]
    for number in _ordered(why)[:MAX_FILTERS]:
        parts += _filter_parts(why, number, room)
    if len(why.filters) > MAX_FILTERS:
        parts.append(element("p", f"shown: {MAX_FILTERS} of {len(why.filters):,} filters"))
    return card(*parts)


def _ordered(why: Explanation) -> list[int]:
    """Return the numbers of filters in order; if not all are shown, the nearest one comes first."""
    nearest, numbers = why.nearest, list(range(len(why.filters)))
    if len(numbers) > MAX_FILTERS:
        numbers.sort(key=lambda number: number != nearest)
    return numbers


def _filter_parts(why: Explanation, number: int, room: list[int]) -> list[Markup]:
    """Return one filter: its name, its constraints and the pictures; `room` counts pictures that may still be drawn."""
    from contrada.matching.explain import TRUTH_WORDS, shown_constraint

    part = why.filters[number]
    nearest = number == why.nearest and len(why.filters) > 1
    note = ", matches" if part.truth else ", nearest" if nearest else ""
    rows, pictures = [], []
    for one in part.constraints[:MAX_CONSTRAINTS]:
        kind = {True: "hit", False: "missed", None: "near"}[one.truth]
        asked = element("code", shown_constraint(one.constraint))
        rows.append((badge(TRUTH_WORDS[one.truth], kind), asked, one.reason))
        if one.relation is not None and not _has_line(one) and room[0] > 0:
            room[0] -= 1
            pictures += _relation_pictures(one)
    made = [element("p", element("b", f"filter {number + 1}{note}")), table(("", "constraint", "message"), rows)]
    if len(part.constraints) > MAX_CONSTRAINTS:
        made.append(element("p", f"shown: {MAX_CONSTRAINTS} of {len(part.constraints):,} constraints"))
    if pictures:
        made += [
            figures(pictures),
            element("p", swatch("message", "message"), "\N{EM SPACE}", swatch("subscription", "subscription")),
        ]
    return made


def _has_line(one: ConstraintExplained) -> bool:
    return isinstance(one.value, Line) or isinstance(one.constraint.value, Line)


def _relation_pictures(one: ConstraintExplained) -> list[tuple[str, Markup]]:
    """Return pictures of a message's value and the value of a constraint, each with a caption that names the relation.

    If one of them is too small to be seen beside the other, a second picture shows its surroundings.
    """
    from contrada.matching.explain import VALUE_WIDTH, shortened

    assert isinstance(one.value, Region | Point | Circle)
    message, asked = outline_of(one.value), outline_of(one.constraint.value)
    name = shortened(one.constraint.attribute, VALUE_WIDTH)
    asked_kind = "point" if isinstance(one.constraint.value, Point) else "region"
    caption = joined(element("b", str(one.relation)), f": {name} and the {asked_kind} of the subscription")
    whole = union_box([message.box, asked.box])
    made = [(_picture(message, asked, whole, one.reason), caption)]
    smaller = min((message.box, asked.box), key=longer_side)
    if 0 < longer_side(smaller) < ZOOM_BELOW * longer_side(whole):
        made.append((_picture(message, asked, _around(smaller), one.reason), Markup("around the smaller one")))
    return made


def _picture(message: Outline, asked: Outline, box: Box, label: str) -> str:
    layers = [Layer("message", [message]), Layer("subscription", [asked])]
    if longer_side(message.box) < longer_side(asked.box):
        layers.reverse()  # the smaller one on top
    return svg(frame_of(box, SIZE), layers, label)


def _around(box: Box) -> Box:
    """Return the surroundings of a box: a square, several times as wide."""
    x, y, reach = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2, longer_side(box) * ZOOM_OUT / 2
    return x - reach, y - reach, x + reach, y + reach


def _first(size: int) -> range:
    return range(min(size, MAX_MESSAGES))


def _message_row(answer: ManyMatches, index: int) -> tuple[object, ...]:
    found = answer[index]
    return index, f"{len(found):,}", _names(found, len(found), MAX_NAMES_PER_MESSAGE)


def _names(names: Iterable[Name], size: int, most: int) -> Markup:
    """Return the first names, and how many more there are."""
    shown = [element("code", short(name)) for name in islice(names, most)]
    more = f" and {size - most:,} more" if size > most else ""
    return joined(Markup(", ".join(shown)), more)
