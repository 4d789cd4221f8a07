"""CRTree: answers equal those of a plain scan and of a PackedTree, whatever was inserted and deleted before."""

import pickle

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)  # fmt: skip

import contrada as ct
from contrada.geometry.relate import BOX_RELATIONS, relate_boxes
from contrada.index.packed import PackedTree
from contrada.papers.spatial.crtree import CRTree
from contrada.papers.spatial.operator_tree import OperatorTree
from contrada.papers.spatial.sampled import relate_sampled
from effort import examples
from generators.coastlines import coastline
from generators.strategies import points, regions, relation_sets
from oracles.boxes import area, around

pytestmark = pytest.mark.jitless

every_split = pytest.mark.parametrize("split", ["quadratic", "linear", "rstar"])
ANYWHERE = st.builds(
    lambda x, y, w, h: ct.Region.box(x, y, x + w, y + h),
    *(st.integers(0, 40) for _ in range(2)),
    *(st.integers(1, 6) for _ in range(2)),
)
anything = regions() | ANYWHERE
HOLED = ct.Region([(1, 1), (30, 1), (30, 30), (1, 30)], [[(4, 4), (4, 20), (20, 20), (20, 4)]])
PROBES = [HOLED, ct.Region.box(2, 2, 5, 5), ct.Point(3, 3)]


def scan(model, message):
    return sorted(row for row, (relations, region) in model.items() if ct.relate(message, region) in relations)


def columns(model):
    """The regions, masks and rows of a model."""
    column = ct.RegionArray.from_regions([region for _, region in model.values()])
    masks = [relations.mask for relations, _ in model.values()]
    return column, np.array(masks, np.uint8), np.array(list(model), np.int32)


class TreeMachine(RuleBasedStateMachine):
    """Random updates and questions; a dictionary, scanned, and a packed tree of it must give the same."""

    split = "quadratic"
    rows = Bundle("rows")

    @initialize(sizes=st.sampled_from([(2, 3), (2, 4), (3, 6), (4, 10)]))
    def start(self, sizes):
        self.tree = CRTree(self.split, *sizes)
        self.model = {}
        self.next_row = 0

    def insert_as(self, row, relations, region):
        self.tree.insert(row, relations, region)
        self.model[row] = relations, region

    def delete_live(self, row):
        self.tree.delete(row)
        del self.model[row]

    @rule(target=rows, relations=relation_sets(), region=anything)
    def insert(self, relations, region):
        self.next_row += 1
        self.insert_as(self.next_row, relations, region)
        return self.next_row

    @rule(seed=st.integers(0, 99), count=st.integers(1, 40))
    def insert_boxes(self, seed, count):
        rng = np.random.default_rng(seed)
        for x, y, w, h, mask in rng.integers([0, 0, 1, 1, 0], [40, 40, 7, 7, 256], (count, 5)).tolist():
            self.next_row += 1
            self.insert_as(self.next_row, ct.RelationSet.from_mask(mask), ct.Region.box(x, y, x + w, y + h))

    @rule(row=consumes(rows))
    def delete(self, row):
        if row in self.model:
            self.delete_live(row)
        with pytest.raises(ct.UnknownKeyError, match="not in the tree"):
            self.tree.delete(row)

    @rule(seed=st.integers(0, 99), share=st.floats(0, 1))
    def delete_some(self, seed, share):
        rows = np.random.default_rng(seed).permutation(list(self.model))
        for row in rows[: int(len(rows) * share)].tolist():
            self.delete_live(row)

    @rule(row=rows, relations=relation_sets(), region=anything)
    def replace(self, row, relations, region):
        """A row that was in the tree may come again with another constraint."""
        if row in self.model:
            self.delete_live(row)
        self.insert_as(row, relations, region)

    @rule(messages=st.lists(anything | points(), min_size=1, max_size=4))
    def match(self, messages):
        other = PackedTree(*columns(self.model))
        for message in messages:
            right = scan(self.model, message)
            assert self.tree.match(message).tolist() == right
            assert sorted(other.match(message).tolist()) == right

    @invariant()
    def holds(self):
        self.tree.check()
        assert len(self.tree) == len(self.model)
        column, masks, rows = columns(self.model)
        for probe in PROBES:
            matched = (masks >> ct.relate(probe, column, threads=1) & 1).astype(bool)
            assert self.tree.match(probe).tolist() == sorted(rows[matched].tolist())


@every_split
def test_random_updates(split):
    machine = type("Machine", (TreeMachine,), {"split": split})
    run_state_machine_as_test(machine, settings=settings(max_examples=examples(60), stateful_step_count=20))


def random_boxes(rng, count, universe=100.0, side=6.0):
    low = rng.uniform(0, universe, (count, 2))
    boxes = np.concatenate([low, low + rng.uniform(0.1, side, (count, 2))], axis=1)
    return [ct.Region.box(*box) for box in boxes.tolist()]


def filled(split, count, seed=1):
    rng = np.random.default_rng(seed)
    tree, model = CRTree(split), {}
    for row, region in enumerate(random_boxes(rng, count)):
        model[row] = ct.RelationSet(ct.Relation(int(rng.integers(8)))), region
        tree.insert(row, *model[row])
    return tree, model


@every_split
def test_nodes_apart_are_taken_wholesale(split):
    """Only constraints whose boxes come near the message are evaluated."""
    tree, model = filled(split, 2000)
    message = ct.Region.box(50, 50, 53, 53)
    decided, candidates = tree.search(message)
    near = relate_boxes(np.array([message.bounds]), np.array([region.bounds for _, region in model.values()])) > 0
    apart = sum(ct.Relation.DISJOINT in relations for relations, _ in model.values()) - len(decided)
    assert len(candidates) <= near.sum() < 40
    assert 0 <= apart <= near.sum()
    assert tree.match(message).tolist() == scan(model, message)


def chosen_leaf(arrays, box):
    """Guttman's ChooseLeaf: down by least enlargement, then by smallest area, then by order."""
    node = int(arrays.state[0])
    while arrays.levels[node] > 0:
        below = arrays.children[node, : arrays.counts[node]]
        keys = [(area(around(one, box)) - area(one), area(one)) for one in arrays.boxes[below]]
        node = int(below[keys.index(min(keys))])
    return node


@every_split
def test_constraints_go_to_the_leaf_of_least_enlargement(split):
    tree, _ = filled(split, 500)
    unsplit = 0
    for row, region in enumerate(random_boxes(np.random.default_rng(3), 200), start=500):
        box = np.array(region.bounds)
        leaf = chosen_leaf(tree.arrays, box)
        full = tree.arrays.counts[leaf] == tree.maximum
        tree.insert(row, ct.Relation.MEETS, region)
        unsplit += not full
        is_used = tree.arrays.slot_parents >= 0  # others may hold whatever memory held before
        (slot,) = np.flatnonzero((tree.arrays.slot_boxes == box).all(axis=1) & is_used)
        assert full or tree.arrays.slot_parents[slot] == leaf
    assert unsplit > 100


@every_split
@pytest.mark.parametrize("relation", [ct.Relation.COVERED_BY, ct.Relation.COVERS])
def test_what_table_2_as_printed_misses_is_found(split, relation):
    a = ct.Region.from_wkt("POLYGON ((2 1, 8 1, 8 2, 5 4, 2 2, 2 1))")
    b = ct.Region.from_wkt("POLYGON ((0 0, 10 0, 10 10, 6 10, 6 4, 4 4, 4 10, 0 10, 0 0))")
    message, region = (a, b) if relation == ct.Relation.COVERED_BY else (b, a)
    (boxes,) = relate_boxes(np.array([message.bounds]), np.array([region.bounds]))
    printed = {ct.Relation.COVERED_BY: 0b10001000, ct.Relation.COVERS: 0b01001000}[relation]
    assert not printed >> boxes & 1
    assert BOX_RELATIONS[relation] >> boxes & 1
    tree, _ = filled(split, 60)
    tree.insert(1000, relation, region)
    tree.check()
    assert 1000 in tree.match(message).tolist()


@every_split
def test_large_regions_few_and_many_at_a_time(split):
    """Regions with edge indexes among small ones, while the store of regions is compacted; any kind of message."""
    rng = np.random.default_rng(7)
    islands = [coastline(rng, 80, centre=tuple(rng.uniform(0, 100, 2)), radius=8.0) for _ in range(60)]
    tree, model = filled(split, 120)
    for row, region in enumerate(islands, start=200):
        model[row] = ct.RelationSet.from_mask(int(rng.integers(1, 256))), region
        tree.insert(row, *model[row])
    messages = [islands[3], HOLED, ct.Region.box(0, 0, 100, 100), coastline(rng, 30, centre=(50, 50), radius=40.0)]
    messages.append(coastline(rng, 8, centre=(30, 60), radius=9))
    while model:
        for message in messages:
            assert tree.match(message).tolist() == scan(model, message)
        for row in rng.permutation(list(model))[:45].tolist():
            tree.delete(row)
            del model[row]
        tree.check()


@every_split
def test_algorithm_1_at_the_leaves(split):
    tree, model = filled(split, 300)
    column, _, _ = columns(model)
    for message in random_boxes(np.random.default_rng(5), 5, side=40.0):
        sampled = relate_sampled(message, column, 2.0).tolist()
        boxes = relate_boxes(np.array([message.bounds]), column.bounds).tolist()
        expected = [
            row
            for row, (relations, _) in model.items()
            if any(BOX_RELATIONS[relation] >> boxes[row] & 1 for relation in relations)
            and ct.Relation(sampled[row] if boxes[row] else 0) in relations
        ]
        assert tree.match(message, density=2.0).tolist() == expected


def test_masks_as_numbers_and_copies():
    tree = CRTree("rstar", 2, 4)
    for row, mask in enumerate([1, 0b110, 255, 0]):
        tree.insert(10 * row - 10, mask, ct.Region.box(0, 0, 4, 4))
    copy = pickle.loads(pickle.dumps(tree))
    copy.check()
    copy.delete(0)
    assert tree.match(ct.Region.box(2, 2, 6, 6)).tolist() == [0, 10]
    assert copy.match(ct.Region.box(2, 2, 6, 6)).tolist() == [10]
    assert tree.match(ct.Region.box(7, 7, 8, 8)).tolist() == [-10, 10]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda _: CRTree("cubic"), ValueError, "quadratic, linear, rstar, got 'cubic'"),
        (lambda _: CRTree(minimum=1), ValueError, "got 1 and 10"),
        (lambda _: CRTree(minimum=6), ValueError, "got 6 and 10"),
        (lambda t: t.insert(1, 256, ct.Region.box(0, 0, 1, 1)), ValueError, "from 0 to 255"),
        (lambda t: t.insert(1.5, 1, ct.Region.box(0, 0, 1, 1)), TypeError, "float"),
        (lambda t: t.insert(0, 1, ct.Region.box(0, 0, 1, 1)), ct.KeyInUseError, "row 0 is already in the tree"),
        (lambda t: t.insert(1, 1, ct.Point(0, 0)), TypeError, "got Point"),
        (lambda t: t.match("POINT (0 0)"), TypeError, "got str"),
        (lambda t: t.match(ct.Point(0, 0), density=1.0), TypeError, "density: Algorithm 1 needs a Region"),
        (lambda t: t.match(ct.Region.box(0, 0, 1, 1, crs="EPSG:4326")), ct.CrsError, "EPSG:25832"),
        (lambda t: t.insert(1, 1, ct.Region.box(0, 0, 1, 1, crs="EPSG:4326")), ct.CrsError, "EPSG:25832"),
    ],
)
def test_errors_name_what_is_wrong_and_nothing_is_added(call, error, message):
    tree = CRTree()
    tree.insert(0, 1, ct.Region.box(0, 0, 1, 1, crs="EPSG:25832"))
    with pytest.raises(error, match=message):
        call(tree)
    assert len(tree) == 1
    tree.check()


@every_split
def test_a_split_by_operators_keeps_answers_and_evaluates_as_much(split):
    rng = np.random.default_rng(5)
    plain, apart = CRTree(split), OperatorTree(split)
    for row in range(200):
        x, y, w, h = rng.integers(0, 40, 2).tolist() + rng.integers(1, 9, 2).tolist()
        mask = int(rng.integers(1, 256)) if row % 4 == 0 else 1 << row % 8
        for tree in (plain, apart):
            tree.insert(row, mask, ct.Region.box(x, y, x + w, y + h))
    assert len(apart) == len(plain) == 200
    for probe in [*PROBES, ct.Region.box(10, 10, 12, 12), ct.Region.box(-9, -9, 99, 99)]:
        assert apart.match(probe).tolist() == plain.match(probe).tolist()
        assert apart.count_evaluated(probe) == plain.count_evaluated(probe)
    for tree in apart.trees.values():
        tree.check()
    assert (apart.work > 0).all()
