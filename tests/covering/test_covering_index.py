"""CoveringIndex: forwarded subscriptions together match what all match, whatever comes and goes."""

import gc
import tracemalloc
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import contrada as ct
from contrada import Constraint, CoveringIndex, Filter, Predicate, Region, Relation, RelationSet
from contrada.covering.filter_index import FilterIndex
from contrada.covering.slots import Profile
from contrada.model.implication import covers
from contrada.simplification.simplifying import conflict_in, simplify
from effort import examples
from generators import scalars
from generators.strategies import regions, relation_sets, relations
from oracles.plain import predicate_holds

ATTRIBUTES = ("x", "name", "area")
ONE_LEAF = 100_000  # rows of a leaf that never fills: a scan


def filter_covers(first, second):
    """Each constraint of `first` covers one of `second`."""
    return all(any(covers(one, other) for other in second) for one in first)


def predicate_covers(first, second):
    """Each filter of `second` is covered by one of `first`."""
    return all(any(filter_covers(one, other) for one in first) for other in second)


def asked(attribute, operators, values, **options):
    return st.builds(Constraint, st.just(attribute), st.sampled_from(operators), values, **options)


# Few values, so that much is covered: ranges, values, prefixes and patterns, presence, regions and points.
few = st.integers(0, 4)
few_texts = st.sampled_from(["a", "ab", "abc", "b", "Ab", "bab"])
few_patterns = st.sampled_from(["a%b", "ab%c", "%b", "a_%", "abc", "%"])
sides = st.sampled_from([(0, 1), (0, 2), (1, 2), (0, 4), (1, 3), (6, 8)])
few_systems = st.sampled_from([None, None, None, "EPSG:25832", "EPSG:3035"])
few_boxes = st.builds(lambda x, y, crs: Region.box(x[0], y[0], x[1], y[1], crs=crs), sides, sides, few_systems)
few_regions = st.one_of(few_boxes, few_boxes, regions())  # with holes and several parts, on the same grid
few_points = st.sampled_from([ct.Point(1, 1), ct.Point(2, 2)])
is_folded = st.integers(0, 3).map(lambda roll: roll == 0)
coarse_constraints = st.one_of(
    asked("x", ["=", "!=", "<", "<=", ">", ">="], few),
    asked("x", ["in", "between"], st.tuples(few, few).map(sorted)),
    asked("name", ["=", "prefix", "suffix", "contains", "not prefix", "<="], few_texts, casei=is_folded),
    asked("name", ["in"], st.lists(few_texts, min_size=1, max_size=3), casei=is_folded),
    asked("name", ["like"], few_patterns, casei=is_folded),
    st.builds(Constraint, st.just("area"), relations() | relation_sets(), few_regions | few_points),
    asked("flag", ["=", "!="], st.booleans()),
    st.builds(Constraint, st.sampled_from(ATTRIBUTES), st.sampled_from(["is null", "is not null"])),
    scalars.constraints(ATTRIBUTES),
)

# What never holds is covered by anything, and found to be so only if a constraint of it is.
FILTERS = st.lists(coarse_constraints, min_size=1, max_size=3).map(Filter).filter(lambda f: not conflict_in(f))
PREDICATES = st.lists(FILTERS, min_size=1, max_size=2).map(Predicate)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "x": st.integers(-1, 5) | st.just(1.5),
        "name": st.sampled_from(["a", "ab", "abc", "b", "AB", "bab", "axb"]),
        "area": few_boxes.filter(lambda box: box.crs is None)
        | st.sampled_from([ct.Point(1, 1), ct.Point(0, 0), ct.Point(0.5, 0.5)]),
        "flag": st.booleans(),
    },
)


@settings(max_examples=examples(150))
@given(
    st.lists(FILTERS, min_size=1, max_size=25), FILTERS, st.sets(st.integers(0, 39)), st.sampled_from([2, 32, ONE_LEAF])
)
def test_filters_are_found_as_by_a_scan(filters, asked, gone, leaf_rows):
    index = FilterIndex(leaf_rows)
    live = dict(enumerate(filters))
    for number, part in live.items():
        index.add(number, Profile(part))
    for number in gone & live.keys():
        index.remove(number)
        del live[number]
    for part in (asked, *filters[:3]):
        assert sorted(index.covering(Profile(part))) == [n for n, other in live.items() if filter_covers(other, part)]
        assert sorted(index.covered(Profile(part))) == [n for n, other in live.items() if filter_covers(part, other)]


class Forwarding(RuleBasedStateMachine):
    """Subscriptions come and go; the model knows all pairs."""

    @initialize(k=st.integers(1, 3), withdraw=st.booleans())
    def begin(self, k, withdraw):
        self.index, self.withdraws = CoveringIndex(k=k, withdraw=withdraw), withdraw
        self.live, self.filed, self.known = {}, {}, {}
        self.forwarded = set()
        self.count = 0

    def covers(self, first, second):
        if (first, second) not in self.known:
            self.known[first, second] = predicate_covers(self.filed[first], self.filed[second])
        return self.known[first, second]

    @rule(predicate=PREDICATES)
    def subscribe(self, predicate):
        key, self.count = self.count, self.count + 1
        self.live[key], self.filed[key] = predicate, simplify(predicate)
        covers = {other for other in self.live if other != key and self.covers(other, key)}
        answer = self.index.subscribe(key, predicate)
        assert answer.forward == (not covers)
        assert set(answer.covered_by) <= covers
        assert len(answer.covered_by) == min(len(covers), self.index.k)
        assert all(other in self.forwarded and self.covers(key, other) for other in answer.withdraw)
        if self.withdraws and answer.forward:
            assert set(answer.withdraw) == {other for other in self.forwarded if self.covers(key, other)}
        else:
            assert not answer.withdraw
        self.forwarded = (self.forwarded | ({key} if answer.forward else set())) - set(answer.withdraw)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def subscribe_again(self, data):
        """An equal one: of equals at most one is forwarded."""
        self.subscribe(self.live[data.draw(st.sampled_from(sorted(self.live)))])

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def unsubscribe(self, data):
        key = data.draw(st.sampled_from(sorted(self.live)))
        answer = self.index.unsubscribe(key)
        assert answer.withdraw == (key in self.forwarded)
        assert not set(answer.forward) & self.forwarded
        del self.live[key]
        before = self.forwarded - {key}
        self.forwarded = before | set(answer.forward)
        for new in answer.forward:  # none newly when another one covers it strictly
            strictly = {o for o in self.live if o != new and self.covers(o, new) and not self.covers(new, o)}
            assert not strictly & before

    @invariant()
    def what_is_not_forwarded_is_covered_by_what_is(self):
        if not hasattr(self, "index"):
            return
        assert self.index.forwarded == self.forwarded
        assert list(self.index) == list(self.live)
        for key in self.live:
            assert self.index.is_forwarded(key) == (key in self.forwarded)
            assert self.index.predicate(key) == self.filed[key]
            assert key in self.forwarded or self.forwarded & self.above(key), key
        if self.withdraws:
            assert not [(a, b) for a in self.forwarded for b in self.forwarded if a != b and self.covers(a, b)]
        for first in self.forwarded:
            equals = [o for o in self.forwarded if o != first and self.covers(o, first) and self.covers(first, o)]
            assert not equals

    def above(self, key):
        """All that cover a subscription, by chains of covers."""
        found, todo = set(), [key]
        while todo:
            below = todo.pop()
            new = {other for other in self.live if other not in found and self.covers(other, below)}
            found |= new
            todo += new
        return found

    @precondition(lambda self: self.live)
    @rule(message=VALUES)
    def match(self, message):
        everyone = any(predicate_holds(predicate, message) for predicate in self.live.values())
        assert any(predicate_holds(self.live[key], message) for key in self.forwarded) == everyone


Forwarding.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestForwarding = Forwarding.TestCase


def test_equal_subscriptions_whose_cover_leaves():
    """The erratum: a and b are equal, u covers both and leaves; a is forwarded, and b is not."""
    index = CoveringIndex()
    index.subscribe("u", "x > 0")
    assert not index.subscribe("a", "x > 5").forward
    assert not index.subscribe("b", "x > 5").forward
    assert index.unsubscribe("u") == (("a",), True)
    assert index.unsubscribe("a") == (("b",), True)


def test_regions_cover_by_their_relation_and_their_masks():
    """`S_INTERSECTS R1` covers `contains R2` wherever the two intersect; `disjoint R1` covers `inside R2` if apart."""
    index = CoveringIndex()
    one, two, far = Region.box(0, 0, 4, 4), Region.box(3, 3, 8, 8), Region.box(20, 20, 21, 21)
    index.subscribe("intersects", Constraint("area", RelationSet.S_INTERSECTS, one))
    assert index.subscribe("contains", Constraint("area", Relation.CONTAINS, two)).covered_by == ("intersects",)
    assert index.subscribe("away", Constraint("area", Relation.CONTAINS, far)).forward
    index.subscribe("disjoint", Constraint("area", Relation.DISJOINT, one))
    assert index.subscribe("inside", Constraint("area", Relation.INSIDE, far)).covered_by == ("disjoint",)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("CASEI(name) LIKE CASEI('%b')", "CASEI(name) = CASEI('ab')"),
        ("CASEI(name) <= CASEI('c')", "CASEI(name) <= CASEI('d') AND name = 'ab'"),
        ("CASEI(name) IN (CASEI('ab'))", "CASEI(name) IN (CASEI('aa'), CASEI('ab')) AND name = 'AB'"),
        ("name LIKE 'ab%'", "name >= 'a' AND name LIKE 'ab%c'"),
    ],
)
def test_text_is_found_by_all_that_is_said_of_it(wide, narrow):
    """In another folding, backwards, and in patterns: what covers one of several constraints is found."""
    index = FilterIndex()
    wide, narrow = ct.parse(wide).filters[0], ct.parse(narrow).filters[0]
    index.add(0, Profile(wide))
    index.add(1, Profile(narrow))
    assert filter_covers(wide, narrow)
    assert set(index.covering(Profile(narrow))) == {0, 1}
    assert set(index.covered(Profile(wide))) == {0, 1}


@pytest.mark.parametrize("step", [1, -1])
def test_a_long_number_hides_nothing_else_that_is_said_of_its_attribute(step):
    """Numbers of more bits than tests keep are covered by equal ones alone; the constraint beside them is covered."""
    tenth = Constraint("x", ">", Decimal("0.1"))
    index = CoveringIndex()
    index.subscribe("wide", "x < 4")
    both = Filter([Constraint("x", "<", 3), tenth][::step])
    assert index.subscribe("both", both).covered_by == ("wide",)
    assert index.subscribe("tenth", tenth).forward
    assert index.subscribe("again", tenth).covered_by == ("tenth",)
    index.unsubscribe("wide")
    assert set(index.subscribe("more", Filter([*both, Constraint("y", "=", 1)])).covered_by) <= {"both", "tenth"}


@pytest.mark.parametrize("joined", [" AND ", " OR "])
def test_very_many_parts_are_covered_by_equal_ones(joined):
    """Comparing each with each would take minutes; what differs in one part is forwarded too."""
    parts = [f"name LIKE '%{k}%'" for k in range(2_000)]
    index = CoveringIndex(withdraw=True)
    assert index.subscribe("first", joined.join(parts)).forward
    assert index.subscribe("equal", joined.join(parts)).covered_by == ("first",)
    assert index.subscribe("other", joined.join([*parts[1:], "name LIKE '%x%'"])).forward
    assert index.subscribe("wide", "name IS NOT NULL").withdraw == ("first", "other")
    assert index.unsubscribe("wide").forward == ("first", "other")


@pytest.mark.parametrize("outermost_first", [True, False])
def test_a_long_chain_of_orphans(outermost_first):
    """Each covers the next, and all lose their cover at once."""
    index, count = CoveringIndex(), 1_500
    index.subscribe("all", "x >= 0")
    numbers = range(1, count)
    for number in numbers if outermost_first else reversed(numbers):
        assert not index.subscribe(number, f"x >= {number}").forward
    assert index.unsubscribe("all").forward == (1,)
    assert index.forwarded == {1}
    assert index.unsubscribe(1).forward == (2,)


def test_what_covers_many_leaves_and_comes_back():
    """A thousand get another cover where there is one, and are forwarded where there is none."""
    index = CoveringIndex(withdraw=True)
    squares = [Region.box(x, y, x + 2, y + 2) for x in range(0, 96, 3) for y in range(0, 96, 3)]
    whole = Constraint("area", RelationSet.S_INTERSECTS, Region.box(-1, -1, 99, 99))
    index.subscribe("first", whole)
    index.subscribe("second", whole)
    for number, square in enumerate(squares):
        assert not index.subscribe(number, Constraint("area", RelationSet.S_INTERSECTS, square)).forward
    assert index.unsubscribe("first") == (("second",), True)
    assert index.forwarded == {"second"}
    everyone = tuple(range(len(squares)))
    assert index.unsubscribe("second") == (everyone, True)
    assert set(index.subscribe("third", whole).withdraw) == set(everyone)
    assert index.forwarded == {"third"}


@pytest.mark.slow
def test_a_subscription_takes_little_memory():
    """Beside the coordinates; objects that a caller drops are not kept."""

    def subscribed(index, begin, end):
        vertices = 0
        for number in range(begin, end):
            angles = np.arange(10 + number % 40) * 2 * np.pi / (10 + number % 40)
            region = Region(np.column_stack([np.cos(angles), np.sin(angles)]) + number)
            vertices += len(region.parts[0][0])
            shape = Constraint("area", RelationSet.S_INTERSECTS, region)
            scalars = Constraint("severity", ">=", number % 9), Constraint("kind", "=", f"a{number % 100}")
            index.subscribe(number, Predicate([Filter([shape, *scalars])]))
        return 16 * vertices

    index, count = CoveringIndex(withdraw=True), 4_000
    subscribed(index, 0, 1_000)  # kernels are loaded, caches filled
    gc.collect()
    tracemalloc.start()
    try:
        coordinates = subscribed(index, 1_000, 1_000 + count)
        gc.collect()
        assert (tracemalloc.get_traced_memory()[0] - coordinates) / count < 1_000
    finally:
        tracemalloc.stop()


def test_errors_name_the_key():
    index = CoveringIndex()
    index.subscribe("k", "x > 5")
    for ask in (index.is_forwarded, index.predicate):
        with pytest.raises(ct.UnknownKeyError, match="'other'"):
            ask("other")
    with pytest.raises(ct.KeyInUseError, match="'k'"):
        index.subscribe("k", "x > 6")
    with pytest.raises(ct.UnknownKeyError, match="'other'"):
        index.unsubscribe("other")
    with pytest.raises(ct.FilterError, match="key: need a str or int"):
        index.subscribe(True, "x > 1")
    for template in (ct.parse("size > $least"), ct.parse("size > $least").filters[0]):
        with pytest.raises(ct.FilterError, match="least is a column of a template"):
            index.subscribe("other", template)
    with pytest.raises(ct.LanguageError):
        index.subscribe("bad", "x >")
    assert len(index) == 1
    assert "k" in index
    assert "bad" not in index


@pytest.mark.effort
@pytest.mark.parametrize("leaf_rows", [3, 32, ONE_LEAF])
def test_many_of_each_kind_against_a_scan(leaf_rows):
    """Trees that have split, on every dimension, with many equal points, and after many were removed; or never split.

    Those that never split are the compiled scan that benchmarks compare with.
    """
    rng = np.random.default_rng(7)

    def some():
        low, high = np.sort(rng.integers(0, 40, 2)).tolist()
        constraints = [Constraint("x", "between", (low, high)), Constraint("kind", "=", str(rng.integers(0, 5)))]
        if rng.random() < 0.5:
            x, y = rng.integers(0, 50, 2).tolist()
            box = Region.box(x, y, x + int(rng.integers(1, 12)), y + int(rng.integers(1, 12)))
            constraints.append(Constraint("area", RelationSet.from_mask(int(rng.integers(1, 256))), box))
        if rng.random() < 0.2:
            return Filter([Constraint("x", "between", (3, 30)), Constraint("kind", "=", "1")])
        return Filter([constraints[k] for k in rng.permutation(len(constraints))[: int(rng.integers(1, 4))]])

    index, live = FilterIndex(leaf_rows), {}
    for number in range(examples(3000)):
        live[number] = some()
        index.add(number, Profile(live[number]))
        if number % 3 == 2:
            gone = int(rng.choice(list(live)))
            index.remove(gone)
            del live[gone]
    for _ in range(60):
        asked = some()
        assert sorted(index.covering(Profile(asked))) == [n for n, other in live.items() if filter_covers(other, asked)]
        assert sorted(index.covered(Profile(asked))) == [n for n, other in live.items() if filter_covers(asked, other)]
    visited, compared = index.work
    assert (compared > 32 * visited) == (leaf_rows == ONE_LEAF)  # only a tree that never splits has larger leaves
    for number in list(live):
        index.remove(number)
    assert len(index) == 0
