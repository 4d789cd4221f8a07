"""`contrada sync`: the server ends with what the file says, within its scope, and loses nothing to a bad row."""

import json

import pytest
import shapely

from console import collection, contrada, feature, write_lines
from contrada.client import Client


@pytest.fixture
def client(server, monkeypatch):
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    with Client() as found:
        yield found


@pytest.fixture
def mark(request):
    """The beginning of all keys of a test."""
    return f"{request.node.name}-"


def kept(client, mark):
    return {one.key.removeprefix(mark): one.filter for one in client.list(prefix=mark)}


def lines(mark, rows):
    return [{"key": mark + key, "filter": filter} for key, filter in rows.items()]


def test_added_changed_and_removed(client, mark, tmp_path):
    file = write_lines(tmp_path / "rows.ndjson", lines(mark, {"a": "n > 1", "b": "n > 2", "c": "n > 3"}))
    result = contrada("sync", file, "--prefix", mark, code=0)
    assert result.stdout.splitlines() == [f"+ {mark}{key}" for key in "abc"]
    before = client.get(f"{mark}a").applies_from
    client.publish({})
    client.pause(f"{mark}b")
    client.subscribe(f"other {mark}", "ann", "n > 1")
    write_lines(file, lines(mark, {"a": "n  >  1", "b": "n > 5", "d": "n > 4"}))
    for flags in (["--dry-run"], []):
        result = contrada("sync", file, "--prefix", mark, *flags, code=0)
        assert result.stdout.splitlines() == [f"+ {mark}d", f"~ {mark}b", f"- {mark}c"]
        assert "1 added, 1 changed, 1 removed, 1 unchanged" in result.stderr
        assert kept(client, mark) == (
            {"a": "n > 1", "b": "n > 2", "c": "n > 3"} if flags else {"a": "n > 1", "b": "n > 5", "d": "n > 4"}
        )
    assert client.get(f"{mark}a").applies_from == before  # what is the same is not touched
    assert client.get(f"{mark}b").paused
    assert client.get(f"other {mark}").filter == "n > 1"
    assert contrada("sync", file, "--prefix", mark, code=0).stdout == ""


def test_bad_rows_remove_nothing_by_mistake(client, mark, tmp_path):
    rows = lines(mark, {"a": "n > 1", "b": "n > 2", "c": "n > 3"})
    file = write_lines(tmp_path / "rows.ndjson", rows)
    contrada("sync", file, "--prefix", mark, code=0)
    write_lines(file, [rows[0], {**rows[1], "filter": "n >"}])
    result = contrada("sync", file, "--prefix", mark, code=1)
    assert result.stdout.splitlines() == [f"- {mark}c"]  # a bad row names b, no row names c
    assert "rejected" in result.stderr
    assert set(kept(client, mark)) == {"a", "b"}
    file.write_text(json.dumps(rows[0]) + '\n{"key": "' + mark + 'b", "fil\n')
    result = contrada("sync", file, "--prefix", mark, code=1)
    assert "nothing is removed" in result.stderr
    assert set(kept(client, mark)) == {"a", "b"}
    write_lines(file, [rows[0], rows[0], {"key": "elsewhere", "filter": "n > 1"}])
    assert contrada("sync", file, "--prefix", mark, code=1).stderr.count("rejected:") == 2
    assert set(kept(client, mark)) == {"a"}


def test_an_empty_file_removes_only_if_told(client, mark, tmp_path):
    file = write_lines(tmp_path / "rows.ndjson", lines(mark, {"a": "n > 1"}))
    contrada("sync", file, "--prefix", mark, code=0)
    file.write_text("")
    assert contrada("sync", file, "--prefix", mark).exit_code != 0
    assert kept(client, mark)
    contrada("sync", file, "--prefix", mark, "--allow-empty", code=0)
    assert not kept(client, mark)


def test_a_subscriber_is_a_scope(client, mark, tmp_path):
    client.subscribe(f"{mark}old", mark, "n > 1")
    client.subscribe(f"{mark}foreign", "someone", "n > 1")
    rows = [*lines(mark, {"a": "n > 1"}), {"key": f"{mark}b", "subscriber": "eve", "filter": "n > 1"}]
    file = write_lines(tmp_path / "rows.ndjson", rows)
    result = contrada("sync", file, "--subscriber", mark, code=1)
    assert result.stdout.splitlines() == [f"+ {mark}a", f"- {mark}old"]
    assert [(one.key, one.subscriber) for one in client.list(prefix=mark)] == [
        (f"{mark}a", mark),
        (f"{mark}foreign", "someone"),
    ]
    assert contrada("sync", file).exit_code == 2  # no scope
    write_lines(file, lines(mark, {"a": "n > 1", "foreign": "n > 7"}))
    assert "is that of a subscription of 'someone'" in contrada("sync", file, "--subscriber", mark, code=1).stderr
    assert client.get(f"{mark}foreign").filter == "n > 1"


def test_rows_of_a_template(client, mark, tmp_path):
    boxes = {name: shapely.box(x, 0, x + 1, 1) for x, name in enumerate("ab")}
    file = tmp_path / "rows.geojson"
    file.write_text(collection(feature(shape, key=mark + name) for name, shape in boxes.items()))
    template = ("--template", "S_INTERSECTS(geometry, $geometry)")
    assert contrada("sync", file, "--prefix", mark, *template, code=0).stdout.count("+ ") == 2
    assert contrada("sync", file, "--prefix", mark, *template, code=0).stdout == ""
    client.publish(feature(shapely.Point(1.5, 0.5)))
    assert next(client.matches(f"{mark}b")).key == f"{mark}b"
    flat = shapely.Polygon([(0, 0), (1, 1), (2, 2), (0, 0)])
    file.write_text(collection([feature(flat, key=f"{mark}a"), feature(boxes["b"], key=f"{mark}b")]))
    contrada("sync", file, "--prefix", mark, *template, code=1)
    assert set(kept(client, mark)) == {"a", "b"}
    file.write_text(collection([feature(boxes["b"])]))
    assert "--key" in contrada("sync", file, "--prefix", mark, *template, code=2).stderr


def test_rows_of_csv(client, mark, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(f"key,subscriber,filter\n{mark}a,ann,n > 1\n{mark}b,ann,\"name = 'x, y'\"\n")
    contrada("sync", file, "--prefix", mark, code=0)
    assert kept(client, mark) == {"a": "n > 1", "b": "name = 'x, y'"}


FENCE = "S_WITHIN(geometry, BBOX(0, 0, 1, 1))"


def test_tracked_subscriptions_are_compared_and_sent(client, mark, tmp_path):
    tracked = {"filter": FENCE, "subscriber": "ann", "track": "bus"}
    rows = [
        {"key": f"{mark}a", **tracked, "on": ["exit", {"dwell": "5m"}], "exit_buffer": 0.5, "exit_after": "90s"},
        {"key": f"{mark}b", **tracked, "time": "at", "first": "silent", "late": "arrival"},
        {"key": f"{mark}c", "filter": "n > 1", "time": "of no meaning here", "on": "match"},
    ]
    file = write_lines(tmp_path / "rows.ndjson", rows)
    assert contrada("sync", file, "--prefix", mark, code=0).stdout.count("+ ") == 3
    a, b, c = client.list(prefix=mark)
    assert (a.track, a.on, a.exit_buffer) == ("bus", ["exit", {"dwell": "5m"}], 0.5)
    assert (b.on, b.time, b.first, b.late) == (["enter", "exit"], "at", "silent", "arrival")
    assert (c.track, c.on) == (None, "match")
    rows[0] |= {"on": [{"dwell": 300}, "exit"], "exit_after": "1m30s"}  # the same in other words
    rows[1] |= {"on": ["exit", "enter"], "exit_buffer": 0}
    write_lines(file, rows)
    assert contrada("sync", file, "--prefix", mark, code=0).stdout == ""
    client.pause(f"{mark}a")
    rows[0] |= {"exit_after": "2m"}
    rows[1] = {"key": f"{mark}b", "subscriber": "ann", "filter": FENCE}  # every message from now on
    write_lines(file, rows)
    for flags in (["--dry-run"], []):
        assert contrada("sync", file, "--prefix", mark, *flags, code=0).stdout == f"~ {mark}a\n~ {mark}b\n"
    a, b, c = client.list(prefix=mark)
    assert (a.exit_after, a.paused, a.exit_buffer) == ("2m", True, 0.5)
    assert (b.track, b.on) == (None, "match")


def test_a_tracked_row_that_does_not_fit_is_rejected_and_what_it_names_stays(client, mark, tmp_path):
    good = {"filter": FENCE, "track": "bus"}
    client.subscribe(f"{mark}0", f"{mark}0", FENCE, track="bus", on=["exit"])
    bad = [
        {**good, "on": ["nowhere"]}, {**good, "on": "match"}, {**good, "exit_after": "soon"}, {**good, "track": 7},
        {**good, "filter": "n > 1"}, {"filter": FENCE, "on": ["enter"]}, {"filter": FENCE, "exit_buffer": 1},
    ]  # fmt: skip
    rows = [{"key": f"{mark}{number}", **row} for number, row in enumerate(bad)]
    file = write_lines(tmp_path / "rows.ndjson", [*rows, {"key": f"{mark}good", **good}])
    result = contrada("sync", file, "--prefix", mark, code=1)
    assert (result.stdout, result.stderr.count("rejected:")) == (f"+ {mark}good\n", len(bad))
    assert "needs track" in result.stderr
    assert client.get(f"{mark}0").on == ["exit"]


def test_tracked_rows_of_csv_and_of_a_template(client, mark, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(f'key,filter,track,on,exit_buffer\n{mark}a,"{FENCE}",bus,"enter,dwell(5m)",0.5\n{mark}b,n > 1,,,\n')
    contrada("sync", file, "--prefix", mark, code=0)
    a, b = client.list(prefix=mark)
    assert (a.track, a.on, a.exit_buffer, b.track) == ("bus", ["enter", {"dwell": "5m"}], 0.5, None)
    assert contrada("sync", file, "--prefix", mark, code=0).stdout == ""
    shapes = tmp_path / "rows.geojson"
    shapes.write_text(collection([feature(shapely.box(0, 0, 2, 2), key=f"{mark}a")]))
    template = ("--template", "S_WITHIN(geometry, $geometry)")
    assert contrada("sync", shapes, "--prefix", mark, *template, code=0).stdout == f"~ {mark}a\n- {mark}b\n"
    (a,) = client.list(prefix=mark)
    assert (a.track, a.on, a.exit_buffer) == ("bus", ["enter", {"dwell": "5m"}], 0.5)
