"""Boxes of filters and messages: a message that matches meets the box, whatever it asks."""

import math
from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada.errors import OverlayError
from contrada.overlay.boxes import meets
from contrada.overlay.protocol import Publication
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.simulator import Simulator
from contrada.overlay.space import PeerQueries, Space
from effort import examples
from generators.scalars import messages, predicates
from oracles.plain import predicate_holds

SPACE = Space.parse("price,size, area:region")
ATTRIBUTES = ("price", "size", "at", "area")  # mostly numbers, text, timestamps, regions
INF = math.inf


def box(text, space=SPACE):
    (part,) = ct.parse(text)
    return space.box_of(part)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("price < 10", -INF, 10), ("price >= 3", 3, INF), ("price = 4", 4, 4), ("price BETWEEN 1 AND 2", 1, 2),
        ("price IN (5, 1, 3)", 1, 5), ("price > 1 AND price <= 9 AND price < 7", 1, 7),
        ("price <> 3", -INF, INF), ("price NOT IN (1, 2)", -INF, INF), ("price IS NULL", -INF, INF),
        ("price = 'cheap'", -INF, INF), ("size = 1", -INF, INF), ("name = 'x'", -INF, INF),
        ("price = TRUE", -INF, INF), ("price > DECIMAL('0.1')", 0.1, INF), (f"price < 1{'0' * 400}", -INF, INF),
        ("price LIKE 'a%'", -INF, INF), ("NOT price < 3", 3, INF),
    ],
)  # fmt: skip
def test_bounds_of_numbers(text, low, high):
    found = box(text)
    assert (found[0], found[4]) == (low, high)


def test_bounds_of_regions():
    assert box("overlaps(area, BBOX(1, 2, 3, 4))")[2:4] + box("overlaps(area, BBOX(1, 2, 3, 4))")[6:] == (1, 2, 3, 4)
    assert box("inside(area, POINT(1 2))")[2:4] == (1, 2)
    for text in ("disjoint(area, BBOX(1, 2, 3, 4))", "NOT inside(area, BBOX(1, 2, 3, 4))", "area IS NULL"):
        assert box(text)[2:4] == (-INF, -INF)
    apart = box("S_INTERSECTS(area, BBOX(0, 0, 1, 1)) AND S_INTERSECTS(area, BBOX(5, 0, 6, 1))")
    assert (apart[2], apart[6]) == (0, 6), "a region may meet both"
    common = box("S_INTERSECTS(area, BBOX(0, 0, 4, 1)) AND S_INTERSECTS(area, BBOX(3, 0, 6, 1))")
    assert (common[2], common[6]) == (3, 4), "and then meets what they have in common"


def test_what_cannot_match_has_no_box():
    assert box("price < 1 AND price > 2") is None
    assert box("price BETWEEN 2 AND 1") is None
    assert len(SPACE.boxes_of(ct.parse("price < 1 AND price > 2 OR price = 3"))) == 1
    with pytest.raises(OverlayError, match="no message can match"):
        PeerQueries([ct.parse("price < 1 AND price > 2")], SPACE)
    with pytest.raises(OverlayError, match="no subscriptions"):
        PeerQueries([], SPACE)


def test_where_a_message_lies():
    assert SPACE.where({"price": 5, "area": ct.Point(1, 2)}) == (5, -INF, 1, 2, 5, INF, 1, 2)
    for value in (None, "text", True, math.nan, ct.Point(0, 0)):
        assert SPACE.where({"price": value})[0] == -INF
    assert SPACE.where({"price": 10**400})[0] == INF
    assert SPACE.where({"price": Decimal("0.1")})[0] == 0.1
    assert SPACE.where({"area": 5})[2] == -INF


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.lists(predicates(ATTRIBUTES), min_size=1, max_size=2), max_size=15),
    st.lists(messages(ATTRIBUTES), min_size=1, max_size=10),
)
def test_subscriptions_route_without_false_negatives(asked, sent):
    simulator, peers = Simulator(Rules(2, 4)), {}
    for own in [[ct.parse("price >= 0")], *asked]:
        with suppress(OverlayError):  # no message can match it
            peers[simulator.add(PeerQueries(own, SPACE))] = own
    for message in sent:
        where = SPACE.where(message)
        spread = simulator.publish(where, body=message)
        wanted = {id for id, own in peers.items() if any(predicate_holds(each, message) for each in own)}
        assert spread.wanted == wanted, "delivery is exact"
        assert not spread.missed
        assert all(meets(simulator.peers[id].state.own, where) for id in wanted)


def test_a_body_may_be_json():
    asked = PeerQueries([ct.parse("price < 3")], SPACE)
    assert asked.matches(Publication(1, SPACE.where({}), '{"price": 2}'))
    assert not asked.matches(Publication(1, SPACE.where({}), {"price": 4}))


@pytest.mark.parametrize("text", ["", "price,", "price,price", "price:text", ":region"])
def test_wrong_dimensions_are_refused(text):
    with pytest.raises(OverlayError):
        Space.parse(text)


def test_a_space_prints_as_what_it_is():
    assert str(Space.parse(str(SPACE))) == str(SPACE) == "price:number,size:number,area:region"
    assert SPACE.dimensions == 4
