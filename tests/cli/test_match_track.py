"""`contrada match --track`: events of objects in every format, bad messages, options that do not go together."""

import json
from functools import partial

import pyarrow.parquet as pq
import pytest

from console import contrada, read_lines, write_lines

DEPOTS = [
    {"key": "depot", "subscriber": "fleet", "filter": "S_WITHIN(at, POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0)))"},
    {"key": "yard", "subscriber": "rail", "filter": "S_WITHIN(at, POLYGON ((9 0, 12 0, 12 4, 9 4, 9 0)))"},
]
run = partial(contrada, "match")


def position(id, car, x, minute):
    where = {"type": "Point", "coordinates": [x, 2]}
    return {"id": id, "car": car, "at": where, "when": f"2024-05-01T12:{minute:02}:00Z"}


PATH = [
    position("m1", 7, 2, 0), position("m2", 7, 6, 1), position("m3", 8, 10, 2), {"id": "m4", "when": "2024-05-01"},
    position("m5", 7, 2, 9), position("m6", 7, 20, 30),
]  # fmt: skip


@pytest.fixture
def files(tmp_path):
    return write_lines(tmp_path / "m.ndjson", PATH), write_lines(tmp_path / "s.ndjson", DEPOTS)


def told(result, *names):
    assert result.exit_code == 0, result.output
    return [tuple(row[name] for name in names) for row in read_lines(result.stdout)]


def test_events_are_written_instead_of_matches(files):
    result = run(*files, "--track", "car", "--time", "when", "--on", "enter,exit")
    assert told(result, "message", "event", "key", "object", "before", "after") == [
        ("m1", "enter", "depot", 7, None, "inside"),
        ("m2", "exit", "depot", 7, "inside", "disjoint"),
        ("m3", "enter", "yard", 8, None, "inside"),
        ("m5", "enter", "depot", 7, "disjoint", "inside"),
        ("m6", "exit", "depot", 7, "inside", "disjoint"),
    ]
    assert json.loads(result.stdout.splitlines()[0])["time"] == "2024-05-01T12:00:00.000Z"
    assert "events:        5, of 2 objects" in result.stderr
    assert "attribute 'car': need text or a whole number to track by" in result.stderr


def test_time_passes_up_to_the_newest_message(files):
    """The car in the yard sends nothing more; the dwell of the first is found by its next message."""
    options = (
        "--track",
        "car",
        "--time",
        "when",
        "--on",
        "cross, dwell(10m)",
        "--exit-after",
        "1h",
        "--first",
        "silent",
    )
    assert told(run(*files, *options), "message", "event", "object") == [
        ("m6", "dwell", 7),
        ("m6", "cross", 7),
        (None, "dwell", 8),
    ]


def test_an_object_expires_and_late_messages_are_left_out(tmp_path, files):
    options = ("--track", "car", "--time", "when", "--on", "enter,exit", "--expire-after", "5m", "--exit-buffer", "1.5")
    assert told(run(*files, *options), "message", "event", "object", "reason") == [
        ("m1", "enter", 7, "fix"),
        ("m2", "exit", 7, "fix"),
        ("m3", "enter", 8, "fix"),
        ("m5", "enter", 7, "fix"),
        ("m6", "exit", 7, "expired"),
        (None, "exit", 8, "expired"),
    ]
    late = write_lines(tmp_path / "late.ndjson", [position("a", 1, 20, 5), position("b", 1, 2, 3)])
    options = ("--track", "car", "--time", "when", "--on", "enter", "--late")
    assert told(run(late, files[1], *options, "ignore"), "message") == [("b",)], "in one batch they are put in order"


@pytest.mark.parametrize("suffix", ["csv", "parquet", "ndjson"])
def test_events_go_to_files_of_every_format(tmp_path, files, suffix):
    output = tmp_path / f"events.{suffix}"
    result = run(*files, "--track", "car", "--time", "when", "--on", "enter", "--output", str(output))
    assert result.exit_code == 0, result.output
    if suffix == "parquet":
        assert pq.read_table(output).column("object").to_pylist() == ["7", "8", "7"]
    else:
        assert len(output.read_text().splitlines()) == 3 + (suffix == "csv")


def test_a_template_makes_a_subscription_of_every_row(tmp_path, files):
    rows = {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "properties": {"name": "A"}, "geometry": {
                "type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}},
        ],
    }  # fmt: skip
    (tmp_path / "rows.geojson").write_text(json.dumps(rows))
    template = ("--template", "S_WITHIN(at, $geometry)", "--key", "name", "--crs", "OGC:CRS84")
    result = run(
        files[0], str(tmp_path / "rows.geojson"), *template, "--track", "car", "--on", "enter", "--time", "when"
    )
    assert told(result, "key", "object") == [("A", 7), ("A", 7)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--on", "enter"], "need --track"),
        (["--track", "car"], "needs --on"),
        (["--track", "car", "--on", "enter", "--explain", "depot"], "does not go with"),
        (["--track", "car", "--on", "arrive"], "need enter, exit, change, cross or dwell(5m)"),
        (["--track", "car", "--on", "dwell(soon)"], "need a duration such as 90s"),
    ],
)
def test_options_that_do_not_go_together_are_refused(files, options, reason):
    result = run(*files, *options)
    assert result.exit_code == 2
    assert reason in " ".join(result.output.replace("│", " ").split())


def test_subscriptions_without_one_spatial_constraint_are_rejected(tmp_path, files):
    filters = [*DEPOTS, {"key": "k", "subscriber": "s", "filter": "speed > 3"}]
    result = run(files[0], write_lines(tmp_path / "s.ndjson", filters), "--track", "car", "--on", "enter")
    assert result.exit_code == 0
    assert "need exactly one spatial constraint to track objects by" in result.stderr
