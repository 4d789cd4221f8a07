"""Thousands of filters on scalars and regions against a scan: enough for blocks of entries and for grids."""

import numpy as np
import pytest
import shapely
from shapely.affinity import translate

import contrada as ct
from contrada.papers.spatial.counting import CountingMatcher
from generators.messy import messy_regions
from oracles.plain import filter_holds

FILTERS, MESSAGES = 3000, 60
OPERATORS = ("<", "<=", ">", ">=", "=", "!=")


class Scan:
    """Filters in columns, matched one by one: a region or point at `area`, and at most three scalars."""

    def __init__(self, rng):
        made = messy_regions(rng, 600)
        shapes = [ct.Region.from_shapely(shape) for shape in made[shapely.is_valid(made)]]
        moves = rng.integers(0, 40, (FILTERS, 2)).astype(float)
        self.regions = [moved(shapes[k], moves[n]) for n, k in enumerate(rng.integers(0, len(shapes), FILTERS))]
        self.column = ct.RegionArray.from_regions(self.regions)
        self.masks = rng.integers(1, 256, FILTERS).astype(np.uint8)
        self.masks[rng.random(FILTERS) < 0.8] &= 0b11111110  # disjoint is another matter
        self.masks[self.masks == 0] = 254
        self.asked = [self.scalars(rng) for _ in range(FILTERS)]
        self.further = rng.random(FILTERS) < 0.1

    def scalars(self, rng):
        found = []
        for name in rng.permutation(["name", "size", "rank"])[: rng.integers(0, 4)]:
            if name == "name":
                found.append(ct.Constraint("name", "=", f"n{rng.integers(0, 12)}"))
            else:
                found.append(ct.Constraint(str(name), OPERATORS[rng.integers(0, 6)], int(rng.integers(0, 8))))
        return found

    def filters(self):
        for region, mask, asked, further in zip(self.regions, self.masks, self.asked, self.further, strict=True):
            spatial = [ct.Constraint("area", ct.RelationSet.from_mask(int(mask)), region)]
            if further:
                spatial.append(ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.Region.box(0, 0, 30, 30)))
            yield ct.Filter([*spatial, *asked])

    def match(self, message):
        value = message.get("area")
        if value is None:
            return []
        codes = np.asarray(ct.relate(value, self.column))
        is_near = ct.relate(value, ct.Region.box(0, 0, 30, 30)) in ct.RelationSet.S_INTERSECTS
        wanted = (self.masks >> codes & 1).astype(bool) & (~self.further | is_near)
        return [int(k) for k in np.flatnonzero(wanted) if filter_holds(self.asked[k], message)]


def moved(region, by):
    return ct.Region.from_shapely(translate(region.to_shapely(), *by))


def message(rng, shapes, k):
    found = {"name": f"n{rng.integers(0, 14)}", "size": int(rng.integers(0, 8)), "rank": int(rng.integers(0, 8))}
    for name in ("name", "size", "rank"):
        if rng.random() < 0.1:
            del found[name]
    if k % 3 == 0:
        low = rng.integers(0, 40, 2)
        found["area"] = ct.Region.box(*low, *(low + rng.integers(1, 25, 2)))
    elif k % 3 == 1:
        found["area"] = moved(shapes[k % len(shapes)], rng.integers(0, 40, 2))
    elif k % 9 < 8:
        found["area"] = ct.Point(*rng.integers(0, 45, 2).astype(float))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_a_scan(seed):
    rng = np.random.default_rng(seed)
    scan = Scan(rng)
    table = ct.ForwardingTable()
    for key, one in enumerate(scan.filters()):
        table.subscribe("someone", one, key=key)
    messages = [message(rng, scan.regions, k) for k in range(MESSAGES)]
    wanted = [scan.match(one) for one in messages]
    assert sum(map(len, wanted)) > MESSAGES  # or nothing is tested
    assert [table.match_keys(one).rows.tolist() for one in messages] == wanted  # partly in the buffer
    table.pack()  # now with what was learnt from these messages
    assert [table.match_keys(one).rows.tolist() for one in messages] == wanted
    found = table.match_many(messages, by="subscription")
    assert [rows.tolist() for rows in np.split(found.rows, found.offsets[1:-1])] == wanted
    counting = CountingMatcher(table)
    assert [counting.match_keys(one).rows.tolist() for one in messages] == wanted
    table.check()


def test_filters_are_reached_in_another_way_when_messages_change():
    """Packed for messages of many names, a table of filters by name is packed anew when all ask for one."""
    table = ct.ForwardingTable()
    size = 4000
    for k in range(size):  # all ask for one name, and each for a size of its own
        table.subscribe("someone", ct.Filter([ct.Constraint("name", "=", "usual"), ct.Constraint("size", "<", k + 1)]))
    for k in range(300):
        table.match_keys({"name": f"rare{k}", "size": k})
    table.pack()
    index = table._store.snapshot.levels[0].scalars
    table._store._next_look = table._store.sample.turn + 4096
    for k in range(4096 + 1):
        assert len(table.match_keys({"name": "usual", "size": size - 1 - k % 3})) == k % 3 + 1
    table.wait_for_compaction()
    after = table._store.snapshot.levels[0].scalars
    messages = table._store.sample.seen(table._store.encoder).messages
    assert after.reach(messages) < index.reach(messages) / 10
    assert len(table.match_keys({"name": "usual", "size": size - 2})) == 2
