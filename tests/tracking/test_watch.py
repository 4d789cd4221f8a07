"""What a subscription may ask of tracked objects, and what is refused, with reasons."""

from datetime import timedelta

import pytest

import contrada as ct
from contrada.errors import ArgumentError, FilterError
from contrada.tracking import Watch, duration_ms, kinds_of, watch_of

BOX = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
IN, OTHER = f"S_WITHIN(at, {BOX})", "S_WITHIN(at, POLYGON ((0 0, 9 0, 9 9, 0 0)))"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("speed > 3", "`speed > 3` has none"),
        (f"{IN} AND {OTHER}", "got 2"),
        (f"{IN} OR {OTHER}", "got 2"),
        (f"{IN} OR speed > 3", "`speed > 3` has none"),
        (f"NOT ({IN}) AND {IN}", "got 2"),
    ],
)
def test_a_query_has_exactly_one_spatial_constraint(query, reason):
    with pytest.raises(FilterError, match="need exactly one spatial constraint") as error:
        watch_of(query, "enter")
    assert reason in str(error.value)


def test_the_other_constraints_are_the_rest():
    assert watch_of(IN, "enter").rest == ""
    assert watch_of(f"{IN} AND speed > 3", "enter").rest == "speed > 3"
    assert watch_of(f"{IN} AND (speed > 3 OR kind = 'bus')", "enter").rest == "speed > 3 OR kind = 'bus'"
    assert watch_of(f"{IN} OR ({IN} AND speed > 3)", "enter").rest == "", "the first holds without it"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"on": []}, "at least one of enter, exit, change, cross and dwell"),
        ({"on": "match"}, "need enter, exit, change, cross or dwell"),
        ({"on": ["enter", 3]}, "got 3"),
        ({"on": {"dwell": "5m"}}, "need a list of kinds"),
        ({"on": [{"dwell": "5m", "more": 1}]}, "need enter"),
        ({"on": ["dwell(0s)"]}, "dwell: need a duration"),
        ({"on": ["dwell(1m)", {"dwell": "2m"}]}, "at most one dwell"),
        ({"on": "exit", "exit_buffer": -1}, "exit_buffer: need a distance"),
        ({"on": "exit", "exit_buffer": float("nan")}, "exit_buffer: need a distance"),
        ({"on": "exit", "exit_after": "soon"}, "exit_after: need a duration"),
        ({"on": "enter", "first": "loud"}, 'first: need "enter" or "silent"'),
    ],
)
def test_wrong_options_are_refused(options, reason):
    with pytest.raises(ArgumentError) as error:
        watch_of(IN, options.pop("on"), **options)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (f"S_DISJOINT(at, {BOX})", {"on": "exit", "exit_buffer": 2}),
        (f"NOT S_WITHIN(at, {BOX})", {"on": "cross"}),
        ("S_INTERSECTS(at, POINT (1 1))", {"on": "cross"}),
    ],
)
def test_distance_and_crossing_need_a_region_to_be_in(query, options):
    with pytest.raises(FilterError):
        watch_of(query, options.pop("on"), **options)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("1.5s", 1500),
        (" 2 h ", 7_200_000),
        (0.001, 1),
        (timedelta(1), 86_400_000),
    ],
)
def test_durations(value, expected):
    assert duration_ms(value) == expected


@pytest.mark.parametrize(
    "value", ["", "5", "m", "5m!", "-5m", True, None, float("inf"), 0, "9" * 50 + "d", 10**400, []]
)
def test_what_is_no_duration(value):
    with pytest.raises(ArgumentError, match="need a duration"):
        duration_ms(value)


def test_kinds_in_every_form():
    assert kinds_of("enter,exit , change") == (7, 0)
    assert kinds_of(("cross", {"dwell": 5})) == kinds_of("dwell(5s), cross") == (24, 5000)


def test_a_watch_survives_json():
    watch = watch_of(f"{IN} AND name = 'Città'", "exit, dwell(5m)", exit_buffer=2.5, exit_after=9, first="silent")
    assert Watch.from_json(watch.to_json()) == watch
    assert watch.shape == ct.Region.from_wkt(BOX).to_wkb()
