"""Watch: what one subscription asks of tracked objects."""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from contrada.codes import CHANGE_BIT, CROSS_BIT, DISJOINT_BIT, DWELL_BIT, ENTER_BIT, EXIT_BIT
from contrada.cql2.queries import Asked, bound_predicate
from contrada.doors import door
from contrada.errors import ArgumentError, FilterError
from contrada.geometry import Point, RelationSet
from contrada.geometry.line_relation import LineRelationSet
from contrada.model import Constraint, Filter, Predicate
from contrada.model.reach import DistanceOperator
from contrada.shown import short
from contrada.tracking.durations import Duration, duration_ms

First = Literal["enter", "silent"]
On = str | Iterable[Any]
KINDS = ("enter", "exit", "change", "cross", "dwell")  # by the codes ENTER to DWELL
_BITS = {"enter": ENTER_BIT, "exit": EXIT_BIT, "change": CHANGE_BIT, "cross": CROSS_BIT}


class Watch(NamedTuple):
    """What one subscription asks of tracked objects, as plain values; `watch_of` makes it from a query.

    `shape` is the WKB of the region or point of the one spatial constraint, `relations` the mask of its relations.
    `rest` is the query without that constraint, in CQL2 text; empty if nothing is left. Times are in milliseconds.
    """

    attribute: str
    shape: bytes
    relations: int
    rest: str
    kinds: int
    dwell: int = 0
    exit_buffer: float = 0.0
    exit_after: int = 0
    is_silent: bool = False

    def to_json(self) -> list[Any]:
        """Return the values for JSON."""
        return [self.attribute, b64encode(self.shape).decode(), *self[2:]]

    @classmethod
    def from_json(cls, values: list[Any]) -> Watch:
        """Return the watch that `to_json` made values of."""
        return cls(values[0], b64decode(values[1]), *values[2:])


def check_no_cross(watch: Watch, wrap: Mapping[str, str]) -> None:
    """Raise FilterError for `cross` on a wrapped attribute: the way between two fixes may lead over the date line."""
    if watch.kinds & CROSS_BIT and watch.attribute in wrap:
        raise FilterError(f"cross: not for {watch.attribute!r}, which is wrapped at the date line; use enter and exit")


@door(FilterError)
def watch_of(
    query: Asked,
    on: On,
    *,
    exit_buffer: float = 0.0,
    exit_after: Duration | None = None,
    first: First = "enter",
) -> Watch:
    """Return what a query asks of tracked objects; raise FilterError unless it has exactly one spatial constraint.

    >>> watch = watch_of("S_WITHIN(at, BBOX(0, 0, 4, 4)) AND speed > 50", ["enter", {"dwell": "5m"}])
    >>> watch.attribute, watch.rest, watch.dwell
    ('at', 'speed > 50', 300000)
    """
    predicate = bound_predicate(query)
    kinds, dwell = kinds_of(on)
    spatial = _spatial_constraint(predicate)
    mask = spatial.relations.mask
    _check_options(exit_buffer, first)
    if exit_buffer and mask & DISJOINT_BIT:
        raise FilterError(
            f"exit_buffer: `{spatial.attribute}` may be disjoint from the region, so no distance leaves it"
        )
    if kinds & CROSS_BIT and (mask & DISJOINT_BIT or isinstance(spatial.value, Point)):
        raise FilterError("cross: need a region to cross, and a relation other than disjoint")
    after = 0 if exit_after is None else duration_ms(exit_after, "exit_after")
    shape: bytes = spatial.value.to_wkb()
    rest = _without(predicate, spatial)
    return Watch(
        spatial.attribute, shape, mask, rest, kinds, dwell, float(exit_buffer), after, first == "silent"
    )  # fmt: skip


def _check_options(exit_buffer: Any, first: Any) -> None:
    is_number = isinstance(exit_buffer, int | float) and not isinstance(exit_buffer, bool)
    if not is_number or not 0 <= exit_buffer < math.inf:
        raise ArgumentError(f"exit_buffer: need a distance in units of the coordinates, got {short(exit_buffer)}")
    if not isinstance(first, str) or first not in ("enter", "silent"):
        raise ArgumentError(f'first: need "enter" or "silent", got {short(first)}')


def kinds_of(on: On) -> tuple[int, int]:
    """Return the bits of the kinds of events asked for, and the milliseconds of a dwell, 0 for none.

    >>> kinds_of("enter, dwell(90s)")
    (17, 90000)
    """
    asked = _split(on) if isinstance(on, str) else on
    if isinstance(asked, Mapping) or not isinstance(asked, Iterable):
        raise ArgumentError(f"on: need a list of kinds of events, got {type(on).__name__}")
    bits, dwell = 0, 0
    for kind in asked:
        if isinstance(kind, str) and kind.strip() in _BITS:
            bits |= _BITS[kind.strip()]
            continue
        length = _dwell_of(kind)
        if bits & DWELL_BIT and length != dwell:
            raise ArgumentError("on: a subscription has at most one dwell; add another subscription for another length")
        bits, dwell = bits | DWELL_BIT, length
    if not bits:
        raise ArgumentError(f"on: need at least one of {', '.join(KINDS[:-1])} and dwell(5m)")
    return bits, dwell


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _dwell_of(kind: Any) -> int:
    if isinstance(kind, Mapping) and list(kind) == ["dwell"]:
        return duration_ms(kind["dwell"], "dwell")
    if isinstance(kind, str) and kind.strip().startswith("dwell(") and kind.strip().endswith(")"):
        return duration_ms(kind.strip()[6:-1], "dwell")
    raise ArgumentError(f"on: need {', '.join(KINDS[:-1])} or dwell(5m), got {short(kind)}")


def _spatial_constraint(predicate: Predicate) -> Constraint:
    """Return the one spatial constraint, which every filter of the predicate has."""
    found: dict[Constraint, None] = {}
    for part in predicate.filters:
        own = [constraint for constraint in part if isinstance(constraint.operator, RelationSet)]
        found.update(dict.fromkeys(own))
        if not own and any(isinstance(constraint.operator, DistanceOperator | LineRelationSet) for constraint in part):
            shown = f"`{part!s:.60}`"
            raise FilterError(
                f"on: objects are tracked by one of the eight relations, not by a distance or to a line; got {shown}"
            )
        if not own:
            raise FilterError(f"on: need exactly one spatial constraint to track objects by; `{part}` has none")
    if len(found) > 1:
        shown = ", ".join(f"`{constraint!s:.40}`" for constraint in list(found)[:3])
        raise FilterError(f"on: need exactly one spatial constraint to track objects by, got {len(found)}: {shown}")
    return next(iter(found))


def _without(predicate: Predicate, spatial: Constraint) -> str:
    """Return a predicate without its spatial constraint, in CQL2 text; empty if a filter has no other constraint."""
    parts = [[constraint for constraint in part if constraint != spatial] for part in predicate.filters]
    return str(Predicate([Filter(part) for part in parts])) if all(parts) else ""
