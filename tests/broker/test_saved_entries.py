"""A broker restored from a saved table and later records is the broker restored from all records."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.broker.broker import Broker
from contrada.broker.effects import Deliver, Persist
from contrada.broker.saved_entries import SavedEntries
from contrada.errors import TableError

KEYS = st.integers(0, 5)
STEPS = st.lists(
    st.tuples(st.just("put"), KEYS, st.sampled_from(["ann", "bob", "eve"]), st.integers(0, 4))
    | st.tuples(st.just("remove"), KEYS),
    max_size=12,
)


def play(broker: Broker, records: dict, owners: dict, steps: list) -> None:
    for kind, key, *rest in steps:
        effects = []
        if kind == "put":
            name, least = rest
            if owners.setdefault(key, name) == name:
                effects = broker.subscribe(name, key, f"severity >= {least} OR kind = 'k{key}'")
        elif owners.pop(key, None):
            effects = broker.unsubscribe(key)
        for effect in effects:
            assert isinstance(effect, Persist)
            for record, value in effect.records:
                if value is None:
                    del records[record]
                else:
                    records[record] = value


def delivered(broker: Broker) -> list:
    messages = pa.table({"severity": [0, 2, 4, None], "kind": ["k1", None, "k2", "k3"]})
    effects = broker.publish(messages, ["a", "b", "c", "d"])
    return sorted((one.client, one.ids, one.keys) for one in effects if isinstance(one, Deliver))


@given(STEPS, STEPS, STEPS)
def test_a_saved_table_and_later_records_restore_the_same_broker(tmp_path_factory, before, between, after):
    directory: Path = tmp_path_factory.mktemp("saved")
    broker, records, owners = Broker("b", incarnation=1), {}, {}
    play(broker, records, owners, [("put", 9, "sam", 0), *before])
    broker.save_table(directory)
    play(broker, records, owners, [("put", 8, "sam", 0), *between])  # commands go on while a table is saved
    broker.save_entries(directory)
    play(broker, records, owners, [("put", 7, "sam", 0), *after])
    live = [key[1] for key in records if key[0] == "subscription"]
    saved = SavedEntries.open(directory)
    later = {key: value for key, value in records.items() if key[0] != "subscription" or key[1] not in saved.numbers}
    quick = Broker.restore(later, saved=saved, live=live)
    plain = Broker.restore(records)
    assert len(quick) == len(plain) == len(broker)
    assert list(map(str, quick.predicates())) == list(map(str, plain.predicates()))
    assert delivered(quick) == delivered(plain) == delivered(broker)
    again = directory / "again"
    again.mkdir()
    quick.save_table(again)  # a table that was opened can be saved too
    quick.save_entries(again)
    assert SavedEntries.open(again).numbers == frozenset(live)


@pytest.mark.parametrize("damage", ["missing", "short", "foreign"])
def test_damage_is_an_error(tmp_path, damage):
    broker = Broker("b", incarnation=1)
    broker.subscribe("ann", 1, "severity >= 3")
    directory = tmp_path / "saved"
    directory.mkdir()
    broker.save_table(directory)
    broker.save_entries(directory)
    assert len(SavedEntries.open(directory).numbers) == 1
    file = directory / "entries.npz"
    if damage == "missing":
        file.unlink()
    elif damage == "short":
        file.write_bytes(file.read_bytes()[:-30])
    else:
        shutil.copy(directory / "table" / "header.json", file)
    with pytest.raises(TableError):
        SavedEntries.open(directory)
