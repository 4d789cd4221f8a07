"""Boxes with unbounded sides: what is a box, what meets, what covers; and the children of a node, held as arrays.

The children whom a box meets are those that a scan finds, also after any change of the table.
"""

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import OverlayError
from contrada.overlay.boxes import bounds, box_of, check_box, largest, meets, nearest, point_box
from contrada.overlay.children import Children
from contrada.overlay.interest import Rectangles
from contrada.overlay.peer import Peer
from contrada.overlay.protocol import ChildEntry, Down, Publication
from contrada.overlay.rules import Rules
from effort import examples

pytestmark = pytest.mark.jitless

INF = math.inf


SIDES = st.sampled_from([-INF, 0.0, 1.0, 2.0, 3.0, INF])


@st.composite
def boxes(draw, axes=2):
    pairs = [sorted((draw(SIDES), draw(SIDES))) for _ in range(axes)]
    return (*(low for low, _ in pairs), *(high for _, high in pairs))


def holds(box, point):
    d = len(point)
    return all(box[k] <= point[k] <= box[k + d] for k in range(d))


@settings(max_examples=examples(300), deadline=None)
@given(boxes(), boxes())
def test_boxes_meet_where_they_share_a_point(a, b):
    points = list(itertools.product([-INF, *np.arange(0, 4, 0.5), INF], repeat=2))
    assert meets(a, b) == meets(b, a) == any(holds(a, p) and holds(b, p) for p in points)
    around = bounds([a, b])
    assert all(holds(around, p) for p in points if holds(a, p) or holds(b, p))
    assert all(side in (a[k], b[k]) for k, side in enumerate(around)), "and no larger than it must be"


@pytest.mark.parametrize(
    "wrong", [(), (1.0,), (2.0, 1.0), (math.nan, 1.0), (0.0, math.nan), (0.0, 0.0, 1.0), (0.0, 3.0, 1.0, 2.0)]
)
def test_what_is_no_box_is_refused(wrong):
    with pytest.raises(OverlayError):
        check_box(wrong)


def test_dimensions_are_checked():
    with pytest.raises(OverlayError, match="need 2 dimensions, got 1"):
        check_box((0.0, 1.0), 2)
    with pytest.raises(OverlayError, match=r"dimension 1: need low <= high, got 3\.0 and 2\.0"):
        box_of([(0, 1), (3, 2)])
    assert check_box([0, 1, 2, 3]) == (0.0, 1.0, 2.0, 3.0)
    assert point_box([1, 2]) == (1.0, 2.0, 1.0, 2.0)


def test_the_largest_and_the_nearest():
    boxes = [(0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 0.0, 9.0), (4.0, 4.0, 6.0, 6.0)]
    assert largest(boxes) == 2
    assert largest([(0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 9.0)]) == 1, "no area: by margin"
    assert largest([*boxes, (0.0, 0.0, INF, INF)]) == 3
    assert nearest(boxes, (5.0, 5.0, 5.0, 5.0), by_overlap=False) == 2
    assert nearest(boxes, (5.0, 5.0, 5.0, 5.0), by_overlap=True) == 2


ENTRIES = st.builds(ChildEntry, boxes(), boxes(), st.lists(boxes(), max_size=3).map(tuple))
TABLES = st.dictionaries(st.sampled_from("abcdefgh"), ENTRIES)


def scan(table, where):
    return [child for child, (box, _, parts) in table.items() if any(meets(part, where) for part in parts or (box,))]


@settings(max_examples=examples(300), deadline=None)
@given(TABLES, boxes())
def test_who_is_met_is_what_a_scan_finds(table, where):
    assert Children(table).met_by(np.array(where)) == scan(table, where)


@settings(max_examples=examples(200), deadline=None)
@given(TABLES, TABLES)
def test_a_table_is_known_by_its_names_and_entries(before, after):
    assert Children(before).is_of(dict(before))
    assert Children(before).is_of(after) == (list(before.items()) == list(after.items()))


def test_a_change_of_a_table_is_in_force_for_the_next_message():
    rng = random.Random(5)
    peer = Peer(0, Rectangles([(0.0, 9.0)]), Rules())
    state = peer.state

    def entry():
        low = float(rng.randrange(9))
        box = (low, low + 1)
        return ChildEntry(box, box, () if rng.random() < 0.5 else ((low, low), (low + 1, low + 1)))

    state.push({child: entry() for child in range(1, 6)})
    for key in range(300):
        table = state.nodes[1]
        others = [child for child in table if child != 0]
        match rng.randrange(4):
            case 0:
                table[rng.choice(others)] = entry()
            case 1 if len(others) > 2:
                del table[rng.choice(others)]
            case 2:
                table[max(table) + 1] = entry()
            case 3:  # the same entry below another name
                table[max(table) + 1] = table.pop(rng.choice(others))
        where = (at := float(rng.randrange(11)) / 1.1, at)
        sent = peer.handle(99, Down(Publication(key, where), 1))
        assert [to for to, _ in sent] == [child for child in scan(table, where) if child != 0]
