"""Random subscriptions to tracked objects, fixes and commands, on a coarse grid so that edges are shared."""

from __future__ import annotations

from typing import Any, NamedTuple

import shapely
from hypothesis import strategies as st

from contrada import RelationSet
from oracles.tracked import Asked

_HOLED = shapely.Polygon([(0, 0), (8, 0), (8, 8), (0, 8)], [[(2, 2), (6, 2), (6, 6), (2, 6)]])
REGIONS = (
    shapely.box(0, 0, 4, 4),
    shapely.box(4, 0, 8, 4),  # shares an edge with the first
    shapely.box(2, 2, 6, 6),
    _HOLED,
    shapely.box(2, 2, 6, 6).difference(shapely.box(3, 3, 4, 4)),
    shapely.MultiPolygon([shapely.box(0, 0, 2, 2), shapely.box(2, 2, 4, 4)]),  # parts that touch at a point
    shapely.MultiPolygon([shapely.box(0, 6, 2, 8), shapely.box(6, 0, 8, 2)]),
    shapely.Polygon([(0, 0), (6, 0), (6, 2), (2, 2), (2, 6), (0, 6)]),
    shapely.Polygon([(4, 0), (8, 4), (4, 8), (0, 4)]),
)
# Those that points satisfy come more often: most of the others never hold.
WORDS = (*("S_WITHIN", "S_INTERSECTS") * 3, "S_TOUCHES", "S_OVERLAPS", "S_EQUALS", "S_CONTAINS", "S_DISJOINT")
RESTS = (
    ("{0}", lambda attributes: True),
    ("{0} AND speed > 3", lambda attributes: (attributes.get("speed") or 0) > 3),
    (
        "{0} AND (speed > 3 OR kind = 'bus')",
        lambda attributes: (attributes.get("speed") or 0) > 3 or attributes.get("kind") == "bus",
    ),
)
IDS = ("a", "a", "a", "1", 1)

Fix = tuple[Any, int, Any, dict[str, Any]]


class Subscribe(NamedTuple):
    """Add or replace a subscription."""

    number: int
    text: str
    on: list[Any]
    options: dict[str, Any]
    asked: Asked


class Unsubscribe(NamedTuple):
    """Remove subscriptions that are there."""

    number: int


class Publish(NamedTuple):
    """A batch of fixes."""

    fixes: list[Fix]


class Advance(NamedTuple):
    """Let time pass."""

    by: int


class Restart(NamedTuple):
    """Restore the state from a snapshot and deltas; take a new snapshot or not."""

    is_fresh: bool


@st.composite
def subscriptions(draw: st.DrawFn) -> Subscribe:
    """A subscription with any options."""
    region, word = draw(st.sampled_from(REGIONS)), draw(st.sampled_from(WORDS))
    form, holds = draw(st.sampled_from(RESTS))
    kinds = draw(st.sets(st.sampled_from(["enter", "exit", "change", "cross"]), min_size=draw(st.integers(0, 3))))
    is_far = word == "S_DISJOINT"
    if is_far:
        kinds -= {"cross"}
    dwell = draw(st.none() | st.integers(1, 8)) if kinds else draw(st.integers(1, 8))
    after = draw(st.none() | st.integers(1, 8))
    buffer = 0.0 if is_far else draw(st.sampled_from([0.0, 0.0, 1.0, 2.5]))
    first = draw(st.sampled_from(["enter", "silent"]))
    on = [*sorted(kinds), *([{"dwell": f"{dwell}s"}] if dwell else [])]
    options = {"exit_after": None if after is None else f"{after}s", "exit_buffer": buffer, "first": first}
    staying, leaving = (None if one is None else one * 1000 for one in (dwell, after))
    relations = {int(relation) for relation in getattr(RelationSet, word)}
    told = kinds | ({"dwell"} if dwell else set())
    asked = Asked(region, relations, holds, told, staying, leaving, buffer, first == "silent")
    text = form.format(f"{word}(at, {shapely.to_wkt(region)})")
    return Subscribe(draw(st.integers(0, 4)), text, on, options, asked)


@st.composite
def fixes(draw: st.DrawFn, now: int, spread: int) -> Fix:
    """One fix, at most `spread` seconds older than `now`."""
    name = draw(st.sampled_from((*IDS, None)))
    coordinates = st.integers(-1, 9)
    point = st.builds(lambda x, y: shapely.Point(x, y), coordinates, coordinates)
    half = st.builds(lambda x, y: shapely.Point(x + 0.5, y), coordinates, coordinates)
    geometry = draw(st.one_of(point, point, half, st.sampled_from(REGIONS), st.none()))
    attributes: dict[str, Any] = {}
    if draw(st.booleans()):
        attributes["speed"] = draw(st.sampled_from([1, 5]))
    if draw(st.booleans()):
        attributes["kind"] = draw(st.sampled_from(["bus", "car"]))
    return name, (now - draw(st.integers(0, spread))) * 1000, geometry, attributes


@st.composite
def commands(draw: st.DrawFn, spread: int = 4) -> list[Any]:
    """A run of commands; the time of fixes grows, but for `spread` seconds of delay."""
    run: list[Any] = [draw(subscriptions()) for _ in range(draw(st.integers(2, 4)))]
    now = 100
    for _ in range(draw(st.integers(3, 12))):
        kind = draw(st.sampled_from("ppppasur"))
        if kind == "p":
            batch: list[Fix] = []
            for _ in range(draw(st.integers(2, 8))):
                now += draw(st.integers(0, 2))
                batch.append(draw(fixes(now, spread)))
            run.append(Publish(batch))
        elif kind == "a":
            run.append(Advance(draw(st.integers(0, 10))))
        elif kind == "s":
            run.append(draw(subscriptions()))
        elif kind == "u":
            run.append(Unsubscribe(draw(st.integers(0, 4))))
        else:
            run.append(Restart(draw(st.booleans())))
    return run
