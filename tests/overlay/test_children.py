"""The children of a node as arrays: who is met is what a scan finds, also after any change of the table."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.overlay.boxes import meets
from contrada.overlay.children import Children
from contrada.overlay.interest import Rectangles
from contrada.overlay.peer import Peer
from contrada.overlay.protocol import ChildEntry, Down, Publication
from contrada.overlay.rules import Rules
from effort import examples

pytestmark = pytest.mark.jitless

SIDES = st.sampled_from([-np.inf, 0.0, 1.0, 2.0, 3.0, np.inf])


@st.composite
def boxes(draw, axes=2):
    pairs = [sorted((draw(SIDES), draw(SIDES))) for _ in range(axes)]
    return (*(low for low, _ in pairs), *(high for _, high in pairs))


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
