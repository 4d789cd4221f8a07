"""Saved, pickled and copied tables: same answers, shared pages, further updates; damage is an error."""

import json
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from filelock import FileLock

import contrada as ct
from contrada.errors import TableError
from contrada.geometry.saved import directories
from contrada.geometry.saved.directories import checksum, header_checksum
from contrada.matching.store.storage import open_table, saved_names, store_of
from effort import slow
from oracles.subscriptions import matching_keys

QUESTION = {"area": ct.Region.box(3, 3, 12, 12)}
CORNERS = np.random.default_rng(3).integers(0, 20, (60, 2)).tolist()
BOXES = [ct.Region.box(x, y, x + 3, y + 2) for x, y in CORNERS]
BOTH = [
    ct.Constraint("area", ct.Relation.CONTAINS, ct.Point(5, 5)),
    ct.Constraint("area", ~ct.Relation.MEETS, BOXES[0]),
]
POINTS = ct.Predicate([ct.Filter(BOTH), ct.Filter(BOTH[:1])])


@pytest.fixture
def table():
    made = ct.ForwardingTable()
    rows = pa.table({"geometry": ct.RegionArray.from_regions(BOXES).to_wkb(), "key": [f"k{k}" for k in range(60)]})
    made.subscribe_many(rows, "S_INTERSECTS(area, $geometry)")
    made.subscribe("points", POINTS, key=7)
    for k in range(0, 60, 4):
        made.unsubscribe(f"k{k}")
    return made


@pytest.fixture
def saved(table, tmp_path):
    table.save(tmp_path / "saved")
    return tmp_path / "saved"


def model():
    """What the table holds."""
    asked = [ct.Constraint("area", ct.RelationSet.S_INTERSECTS, box) for box in BOXES]
    rows = {f"k{k}": (f"k{k}", ct.Predicate([ct.Filter([asked[k]])])) for k in range(60) if k % 4}
    return {**rows, 7: ("points", POINTS)}


def test_owners_are_as_many_as_subscriptions(tmp_path):
    """Arrays of a table have room for more; what is saved has none, or readers take the room for subscriptions."""
    table = ct.ForwardingTable()
    for key, subscriber in (("k1", "a"), ("k2", "a"), ("k3", "b"), ("k4", "a")):
        table.subscribe(subscriber, "size > 1 OR name = 'x'", key)
    table.unsubscribe("k1")
    table.save(tmp_path / "saved")
    names = saved_names(tmp_path / "saved")
    assert [len(names.keys), len(names.subscribers), len(names.owners)] == [3, 2, 3]
    assert [names.subscribers[int(k)].as_py() for k in names.owners] == ["a", "b", "a"]
    shapes = json.loads((tmp_path / "saved" / "header.json").read_text())["arrays"]
    assert shapes["subscription_subscriber"]["shape"] == [3]
    assert shapes["filter_subscription"]["shape"] == [6]


@pytest.mark.parametrize(
    "read", ["ct.ForwardingTable.open(path)", slow("pickle.loads((path / 'pickle').read_bytes())")]
)
def test_another_process_reads_it(table, saved, read):
    (saved / "pickle").write_bytes(pickle.dumps(table))
    code = (
        f"import pathlib, pickle, sys, contrada as ct; path = pathlib.Path(sys.argv[1]); table = {read}; "
        "print(sorted(map(str, table.match_keys({'area': ct.Region.box(3, 3, 12, 12)}))))"
    )
    ran = subprocess.run([sys.executable, "-c", code, saved], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(sorted(map(str, matching_keys(model(), QUESTION))))


def test_arrays_are_mapped_and_not_read(table, tmp_path):
    table.save(tmp_path / "saved")
    tree = store_of(open_table(tmp_path / "saved")).snapshot.levels[0].trees["area", "region"]
    assert isinstance(tree.column.arrays.xy.base, np.memmap)
    assert not tree.rows.flags.writeable


def test_every_damage_is_an_error(table, saved, tmp_path):
    with pytest.raises(TableError, match="not a saved table"):
        ct.ForwardingTable.open(tmp_path)
    with pytest.raises(TableError, match="already exists; pass replace=True to replace it"):
        table.save(saved)
    for file in sorted(saved.glob("*.npy")):
        whole = file.read_bytes()
        flipped = bytes([whole[0] ^ 1]) + whole[1:]
        for data, reason in ((whole[:-1], f"has {len(whole) - 1} bytes"), (flipped, "is not an array of ")):
            file.write_bytes(data)
            with pytest.raises(TableError, match=f"{file.name} {reason}"):
                ct.ForwardingTable.open(saved)
        file.unlink()
        with pytest.raises(TableError, match=f"{file.name} cannot be read"):
            ct.ForwardingTable.open(saved)
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        fault = "(is damaged: the checksum does not match|is not an array of )"
        with pytest.raises(TableError, match=f"{file.name} {fault}"):
            ct.ForwardingTable.verify(saved)
        file.write_bytes(whole)
    ct.ForwardingTable.verify(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "has version 99; this release reads version 11"),
        ({"format": "other"}, "names a different format"),
        ({"trees": [["area", "region"]] * 9}, "header.json is damaged: the checksum does not match"),
        ({"rows": 10**9}, "header.json is damaged: the checksum does not match"),
    ],
)
def test_foreign_headers_are_errors(saved, change, message):
    path = saved / "header.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    for read in (ct.ForwardingTable.open, partial(ct.ForwardingTable.open, verify=False), ct.ForwardingTable.verify):
        with pytest.raises(TableError, match=message):
            read(saved)
    path.write_text("{")
    with pytest.raises(TableError, match="not a saved table"):
        ct.ForwardingTable.open(saved)


@pytest.mark.parametrize("part", ["rows", "nodes", "xy", "masks", "bounds"])
def test_arrays_of_another_kind_are_errors(saved, part):
    """A file and a header that agree with each other, but not with what a table is made of."""
    rewrite(saved, f"tree0-{part}", lambda array: array.astype(np.int16))
    with pytest.raises(TableError, match=f"is damaged: {part} (is|has type) int16"):
        ct.ForwardingTable.open(saved)


def rewrite(folder, name, change):
    """Change an array of a saved table so that checksums and sizes fit, as a faulty writer would."""
    path, file = folder / "header.json", folder / f"{name}.npy"
    array = change(np.load(file))
    np.save(file, array)
    header = json.loads(path.read_text())
    header["arrays"][name] |= {"dtype": array.dtype.str, "bytes": file.stat().st_size, "crc32": checksum(array)}
    path.write_text(json.dumps(header | {"checksum": header_checksum(header)}))


@pytest.mark.parametrize("value", [-1, 2**31 - 1])
@pytest.mark.parametrize("name", ["rows", "offsets", "ring_offsets", "region_offsets", "disjoint_before"])
def test_numbers_beyond_their_arrays_are_errors(saved, name, value):
    def change(array):
        array[len(array) // 2] = value
        return array

    rewrite(saved, f"tree0-{name}", change)
    for verify in (True, False):
        with pytest.raises(TableError, match="is damaged"):
            ct.ForwardingTable.open(saved, verify=verify)


def test_a_table_is_replaced_in_one_step_and_leftovers_go(table, saved, tmp_path):
    old = ct.ForwardingTable.open(saved)
    before = set(old.match_keys(QUESTION))
    left = tmp_path / ".saved-killed"  # what a killed save leaves: a directory with a lock that nobody holds
    (left / "made").mkdir(parents=True)
    (left / "lock").touch()
    table.subscribe("new", "S_INTERSECTS(area, POLYGON((0 0, 30 0, 30 30, 0 30, 0 0)))", key="new")
    table.save(saved, replace=True)
    assert "new" in ct.ForwardingTable.open(saved).match_keys(QUESTION)
    assert set(old.match_keys(QUESTION)) == before, "who has opened the old table keeps it"
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(TableError, match="not a saved table"):
        table.save(tmp_path / "photos", replace=True)
    assert (tmp_path / "photos" / "cat.jpg").exists()


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("at", [0, 1, 5])
def test_a_reader_sees_the_old_or_the_new_table(table, saved, monkeypatch, verify, at):
    """Another process replaces the table when a reader has mapped `at` of its files; both have files of equal sizes."""
    table.unsubscribe("k1")
    table.subscribe("other", "S_INTERSECTS(area, POLYGON((0 0, 30 0, 30 30, 0 30, 0 0)))", key="k2000")
    expected = set(table.match_keys(QUESTION))
    mapped, map_one = [], directories.map_array

    def swapping(*arguments):
        mapped.append(arguments)
        if len(mapped) == at + 1:
            table.save(saved, replace=True)
        return map_one(*arguments)

    monkeypatch.setattr(directories, "map_array", swapping)
    opened = ct.ForwardingTable.open(saved, verify=verify)
    assert set(opened.match_keys(QUESTION)) == expected
    assert "k2000" in expected


def test_a_table_that_is_replaced_all_the_time_is_an_error(table, saved, monkeypatch):
    map_arrays = directories.map_arrays

    def swapping(*arguments):
        table.save(saved, replace=True)
        return map_arrays(*arguments)

    monkeypatch.setattr(directories, "map_arrays", swapping)
    with pytest.raises(TableError, match="was replaced 10 times while it was read"):
        ct.ForwardingTable.open(saved)


SAVER = """
import sys, contrada as ct
tables = []
for number in (1, 2):
    table = ct.ForwardingTable()
    for k in range(50):
        table.subscribe(f"s{k}", f"size >= {number}", key=f"{number}-{k:02}")
    tables.append(table)
print("ready", flush=True)
for k in range(12):
    tables[k % 2].save(sys.argv[1], replace=True)
"""


@pytest.mark.slow
def test_readers_beside_a_process_that_saves(tmp_path):
    place = tmp_path / "saved"
    first = ct.ForwardingTable()
    first.subscribe("s", "size >= 1", key="1-00")
    first.save(place)
    saver = subprocess.Popen([sys.executable, "-c", SAVER, str(place)], stdout=subprocess.PIPE, text=True)
    assert saver.stdout.readline() == "ready\n"
    while saver.poll() is None:
        keys = ct.ForwardingTable.open(place, verify=False).match_keys({"size": 5})
        assert len({key[0] for key in keys}) == 1, "keys of two saves"
        assert len(keys) in (1, 50)
    saver.stdout.close()
    assert saver.returncode == 0


def test_a_save_that_is_under_way_is_not_removed_by_another(table, tmp_path):
    going_on = tmp_path / ".saved-going"
    going_on.mkdir()
    with FileLock(going_on / "lock"):
        table.save(tmp_path / "saved")
        assert going_on.exists()


def test_a_table_by_subscriber_is_copied_with_its_report():
    table = ct.ForwardingTable()
    table.subscribe("ann", "size > 1")
    table.subscribe("ann", "size > 3")
    shorter = table.simplified()
    other = pickle.loads(pickle.dumps(shorter))
    assert isinstance(other, ct.SubscriberTable)
    assert other.match({"size": 2}) == {"ann"}
    assert other.report == shorter.report
