"""ForwardingTable: whatever was subscribed, removed, packed, saved and opened before, answers equal a plain scan."""

from collections import UserDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

import contrada as ct
from contrada.matching.store.tuning import Tuning
from effort import examples
from generators.strategies import circles, points, regions, relation_sets
from oracles.plain import predicate_holds

# Levels so small that updates pass through all of them.
SMALL = Tuning(buffer_filters=3, small_filters=7, buffer_capacity=2, buffer_vertices_per_region=1, min_column_names=3)
# Tables are saved thousands of times, and each save waits for the disk.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

values = st.one_of(regions(), points())
constraints = st.builds(ct.Constraint, st.sampled_from("ab"), relation_sets(), values)
filters = st.builds(ct.Filter, st.lists(constraints, min_size=1, max_size=3))
predicates = st.builds(ct.Predicate, st.lists(filters, min_size=1, max_size=3))
carried = st.one_of(values, circles())
messages = st.dictionaries(st.sampled_from("abc"), st.one_of(carried, st.just(7), st.just(None)), max_size=3)
spatial = st.dictionaries(st.sampled_from("ab"), carried, max_size=2)
subscribers = st.integers(0, 3)
batches = st.one_of(st.lists(kind(), min_size=1, max_size=5) for kind in (regions, points))
KINDS = (pa.int64(), pa.int8(), pa.uint64(), pa.string(), pa.large_string())

PROBES = [
    {"a": ct.Region.box(1, 1, 4, 4), "b": ct.Point(3, 3)},
    {"a": ct.Point(2, 2)},
    {"b": ct.Region.box(0, 0, 6, 3)},
]
READERS = 3
MAX_PINNED = 8  # readers that wait


def as_arrow(batch):
    """Messages as an Arrow table: WKB, null where an attribute is absent."""
    rows = [{name: value.to_wkb() for name, value in message.items()} for message in batch]
    return pa.Table.from_pylist(rows, pa.schema([("a", pa.binary()), ("b", pa.binary())]))


class SlowMessage(UserDict):
    """A message whose reader has chosen its snapshot when `begun` is set, and waits for `go_on` before it matches."""

    def __init__(self, values):
        super().__init__(values)
        self.begun, self.go_on = Event(), Event()

    def items(self):
        self.begun.set()
        assert self.go_on.wait(60)
        return super().items()


class TableMachine(RuleBasedStateMachine):
    """Random updates and questions against a dictionary of keys; the table may be saved and opened at any time."""

    keys = Bundle("keys")

    def __init__(self):
        super().__init__()
        self.table = ct.ForwardingTable(tuning=SMALL)
        self.model = {}
        self.directory = TemporaryDirectory(dir=MEMORY)
        self.saved = []
        self.pinned = []
        self.pool = ThreadPoolExecutor(READERS + MAX_PINNED)

    def teardown(self):
        for slow, _, _ in self.pinned:
            slow.go_on.set()
        for _, answer, rows in self.pinned:
            assert answer.result().rows.tolist() == rows
        self.pool.shutdown()
        self.table.wait_for_compaction()
        self.directory.cleanup()

    def scan(self, message):
        return {key: who for key, (who, predicate) in self.model.items() if predicate_holds(predicate, message)}

    # Updates

    @rule(target=keys, subscriber=subscribers, predicate=predicates)
    def subscribe(self, subscriber, predicate):
        key = self.table.subscribe(subscriber, predicate)
        assert key not in self.model
        self.model[key] = subscriber, predicate
        return key

    @rule(key=keys, subscriber=subscribers, predicate=predicates)
    def replace(self, key, subscriber, predicate):
        if key in self.model:
            with pytest.raises(ct.KeyInUseError, match="already exists"):
                self.table.subscribe(subscriber, predicate, key=key)
        self.table.subscribe(subscriber, predicate, key=key, replace=True)
        self.model[key] = subscriber, predicate

    @rule(target=keys, mask=relation_sets(), column=st.lists(points(), min_size=1, max_size=5))
    def subscribe_many_with_default_keys(self, mask, column):
        """Default keys are row numbers, or larger numbers: none that a subscription has."""
        rows = pa.table({"geometry": pa.array([point.to_wkb() for point in column], pa.binary())})
        named = self.table.subscribe_many(rows, ct.Constraint("b", mask, ct.Column("geometry")))
        assert named == list(range(named[0], named[0] + len(column)))
        assert self.model.keys().isdisjoint(named)
        self._add(named, mask, column, "b")
        return multiple(*named)

    @rule(target=keys, mask=relation_sets(), column=batches, first=st.integers(0, 40), kind=st.sampled_from(KINDS))
    def subscribe_many(self, mask, column, first, kind):
        """With numbers as keys, as Arrow keeps them, or with their digits: text, which no default key is."""
        keys = pa.array(range(first, first + len(column))).cast(kind)
        named = keys.to_pylist()
        rows = pa.table({"geometry": [value.to_wkb() for value in column], "key": keys})
        template = ct.Constraint("a", mask, ct.Column("geometry"))
        if not self.model.keys().isdisjoint(named):
            with pytest.raises(ct.KeyInUseError, match="already exists"):
                self.table.subscribe_many(rows, template)
            return multiple()
        self.table.subscribe_many(rows, template)
        self._add(named, mask, column)
        return multiple(*named)

    @rule(target=keys, key=st.integers(0, 60), subscriber=subscribers, predicate=predicates)
    def subscribe_by_name(self, key, subscriber, predicate):
        if key in self.model:
            return multiple()
        self.replace(key, subscriber, predicate)
        return key

    def _add(self, named, mask, column, attribute="a"):
        for key, value in zip(named, column, strict=True):
            self.model[key] = key, ct.Predicate([ct.Filter([ct.Constraint(attribute, mask, value)])])

    @rule(key=consumes(keys))
    def unsubscribe(self, key):
        if key in self.model:
            self.table.unsubscribe(key)
            del self.model[key]
        with pytest.raises(ct.UnknownKeyError, match="no subscription has the key"):
            self.table.unsubscribe(key)

    @rule()
    def wait_for_compaction(self):
        self.table.wait_for_compaction()
        assert self.table.stats().levels[1] == 0

    @rule()
    def pack(self):
        self.table.pack()
        assert self.table.stats().levels[1:] == (0,) * 5

    @precondition(lambda self: len(self.pinned) < MAX_PINNED)
    @rule(message=messages)
    def pin(self, message):
        """A reader that takes its time gets the answer of the moment it came, whatever is appended behind it."""
        slow, rows = SlowMessage(message), self.table.match_keys(message).rows.tolist()
        self.pinned.append((slow, self.pool.submit(self.table.match_keys, slow), rows))
        assert slow.begun.wait(60)

    # Saved tables

    @rule()
    def save(self):
        path = Path(self.directory.name) / str(len(self.saved))
        self.table.save(path)
        ct.ForwardingTable.verify(path)
        self.saved.append((path, dict(self.model)))

    @rule()
    def save_and_open(self):
        """The machine goes on with the opened table: keys are the same, in the same order, rows count from 0."""
        before = list(self.table)
        self.save()
        self.table.wait_for_compaction()
        self.table = ct.ForwardingTable.open(self.saved[-1][0], tuning=SMALL)
        assert list(self.table) == before
        everything = self.table.match_keys({"a": ct.Region.box(-9, -9, 9, 9), "b": ct.Region.box(-9, -9, 9, 9)})
        assert (everything.rows < len(before)).all()

    @rule(back=st.integers(0, 9))
    def open_an_older_one(self, back):
        """What was saved is as it was, whatever happened to the table since."""
        if self.saved:
            path, model = self.saved[-1 - back % len(self.saved)]
            ct.ForwardingTable.verify(path)
            self.table.wait_for_compaction()
            self.table, self.model = ct.ForwardingTable.open(path, tuning=SMALL), dict(model)

    # Questions

    @rule(message=messages)
    def match(self, message):
        right = self.scan(message)
        assert self.table.match_keys(message) == set(right)
        assert self.table.match(message) == set(right.values())

    @rule(batch=st.lists(messages, max_size=5), threads=st.integers(1, 2))
    def match_many(self, batch, threads):
        """A list; what is no mapping is rejected."""
        self._check_many([*batch, 7, *batch], {len(batch)}, [*batch, {}, *batch], threads)

    @rule(batch=st.lists(spatial, min_size=1, max_size=5), threads=st.integers(1, 2))
    def match_arrow(self, batch, threads):
        self._check_many(as_arrow(batch), set(), batch, threads)

    @rule(batch=st.lists(spatial, min_size=1, max_size=5), attribute=st.sampled_from("ab"))
    def match_arrow_with_rubbish(self, batch, attribute):
        """A message is rejected if an attribute that someone asks for cannot be read; the others go on."""
        rubbish = pa.table({name: pa.array([b"rubbish" if name == attribute else None], pa.binary()) for name in "ab"})
        asked = pa.concat_tables([as_arrow(batch), rubbish])
        wanted = {item.attribute for _, predicate in self.model.values() for part in predicate for item in part}
        rejected = {bad.row: bad.reason for bad in self.table.match_many(asked, by="subscription").rejected}
        reason = f"attribute '{attribute}': malformed or truncated geometry"
        assert rejected == ({len(batch): reason} if attribute in self.table.asked_kinds() else {})
        assert wanted <= self.table.asked_kinds().keys()
        self._check_many(asked, set(rejected), [*batch, {}], 1)

    def _check_many(self, asked, rejected, batch, threads):
        """Each message's rows are those that it has alone."""
        for by, alone in (("subscription", self.table.match_keys), ("subscriber", self.table.match)):
            found = self.table.match_many(asked, by=by, threads=threads)
            assert {bad.row for bad in found.rejected} == rejected
            assert len(found.offsets) == len(batch) + 1
            for row, message in enumerate(batch):
                answer, right = alone(message), self.scan(message)
                if row not in rejected:
                    assert answer == set(right if by == "subscription" else right.values())
                    assert found.rows[found.offsets[row] : found.offsets[row + 1]].tolist() == answer.rows.tolist()

    @rule(batch=st.lists(messages, min_size=2, max_size=6))
    def match_from_several_threads(self, batch):
        found = list(self.pool.map(self.table.match_keys, batch * READERS))
        for message, answer in zip(batch * READERS, found, strict=True):
            assert answer == set(self.scan(message))

    @rule(batch=st.lists(spatial, min_size=2, max_size=4), key=keys)
    def match_beside_updates(self, batch, key):
        """While a subscription is replaced by the same one again and again, no reader sees a difference."""
        if key in self.model:
            asked = [self.pool.submit(self.table.match_keys, message) for message in batch * READERS]
            for _ in range(4):
                self.table.subscribe(*self.model[key], key=key, replace=True)
            for message, answer in zip(batch * READERS, asked, strict=True):
                names = list(answer.result())
                assert len(names) == len(set(names))
                assert set(names) == set(self.scan(message))

    @invariant()
    def checks(self):
        self.table.check()
        assert len(self.table) == len(self.model)
        assert set(self.table) == set(self.model)
        for message in PROBES:
            assert self.table.match_keys(message) == set(self.scan(message))


TestTable = TableMachine.TestCase
TestTable.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)


class LongTableMachine(TableMachine):
    """The same for longer."""


TestLongTable = pytest.mark.slow(LongTableMachine.TestCase)
TestLongTable.settings = settings(max_examples=examples(200), stateful_step_count=60, deadline=None)
