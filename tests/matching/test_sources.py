"""What users wrote stays with a table: in explanations, under updates, in saved tables, at every door."""

import json
import pickle
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from console import contrada, read_lines, write_lines
from contrada.matching.building import TableBuilder

TEXT = "NOT (severity < 3)  AND S_INTERSECTS(area, POLYGON((0 0, 2 0, 2 2, 0 0)))"
TEMPLATE = "S_INTERSECTS(area, $geometry) AND severity >= $least"
MESSAGE = {"severity": 4, "area": ct.Point(1, 0.5)}


def rows(count):
    square = ct.Region.box(0, 0, 2, 2).to_wkb()
    return pa.table({"key": [f"t{k}" for k in range(count)], "geometry": [square] * count, "least": np.arange(count)})


@pytest.fixture
def table():
    """A table with a text, objects, a template, and a dead subscription between them."""
    made = ct.ForwardingTable()
    made.subscribe("dead", "severity > 100", key="dead")
    made.subscribe("ops", TEXT, key="text")
    made.subscribe("ops", ct.Constraint("severity", ">=", 3), key="object")
    made.subscribe_many(rows(20), TEMPLATE)
    made.subscribe("json", {"op": ">", "args": [{"property": "severity"}, 1]}, key="json")
    made.unsubscribe("dead")
    return made


WRITTEN = {"text": TEXT, "object": "severity >= 3", "t0": TEMPLATE, "t19": TEMPLATE, "json": "severity > 1"}


def check(table):
    assert {key: table.written(key) for key in WRITTEN} == WRITTEN
    assert table.explain(MESSAGE, "object").written is None
    told = table.explain(MESSAGE, "text")
    assert told.written == told.to_dict()["written"] == TEXT
    assert f"\nwritten: {TEXT}\n" in str(told)
    assert "S_INTERSECTS" in str(table.explain(MESSAGE, "t3"))
    with pytest.raises(ct.UnknownKeyError):
        table.written("dead")


@pytest.mark.parametrize("how", ["live", "packed", "simplified", "saved", "saved twice", "pickled"])
def test_what_was_written_is_shown(table, how, tmp_path):
    if how == "packed":
        table.pack()
    elif how == "simplified":
        table.simplify()
    elif how == "pickled":
        table = pickle.loads(pickle.dumps(table))
    elif how.startswith("saved"):
        table.save(tmp_path / "a")
        table = ct.ForwardingTable.open(tmp_path / "a")
        if how == "saved twice":
            table.subscribe("late", "severity = 9", key="late")
            table.unsubscribe("t1")
            table.save(tmp_path / "b")
            table = ct.ForwardingTable.open(tmp_path / "b")
            assert table.written("late") == "severity = 9"
    check(table)


def test_a_replaced_subscription_has_the_new_text(table):
    table.subscribe("ops", "severity > 7", key="text", replace=True)
    assert table.written("text") == "severity > 7"


def test_texts_read_by_shape_keep_their_own_text():
    texts = [f"severity >= {k} AND  kind = 'a{k}'" for k in range(100)]
    builder = TableBuilder()
    assert builder.add(pa.table({"key": np.arange(100), "filter": texts})) == []
    assert [builder.table.written(key) for key in range(100)] == texts


def test_the_command_explains_with_the_text(tmp_path):
    messages = write_lines(tmp_path / "m.ndjson", [{"id": 1, "severity": 2}])
    subscriptions = write_lines(tmp_path / "s.ndjson", [{"key": "k", "filter": "NOT (severity < 3)"}])
    shown = contrada("match", messages, subscriptions, "--explain", "k")
    assert "written: NOT (severity < 3)" in shown.stdout
    told = contrada("match", messages, subscriptions, "--explain", "k", "--format", "ndjson")
    assert read_lines(told.stdout)[0]["written"] == "NOT (severity < 3)"
    assert json.loads(told.stdout.splitlines()[0])["truth"] is False


def test_a_template_takes_few_bytes_per_subscription():
    many, sizes = rows(50_000), []
    for template in (ct.parse(TEMPLATE), TEMPLATE):  # a template of objects is not kept
        tracemalloc.start()
        made = ct.ForwardingTable()
        made.subscribe_many(many, template)
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert len(made) == 50_000
    assert (sizes[1] - sizes[0]) / 50_000 < 40
