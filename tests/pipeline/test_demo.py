"""`contrada demo`: the whole way from files to a report, on the made-up district and on data of one's own."""

import json
import os
import re
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from report_cards import cards

import contrada as ct
from console import collection, feature, python, write_lines
from contrada.demo.run import MATCHING_KERNELS, READING_KERNELS, REPORTING_KERNELS, TEMPLATE, THRESHOLD
from generators.filters_of_every_kind import expected
from report_pages import read_report

KINDS = ("hail", "storm", "storm")


@pytest.fixture
def demo(command):
    return partial(command, "demo")


def matches_in(out):
    return sorted((row["message_id"], row["key"]) for row in pq.read_table(out / "matches").to_pylist())


@pytest.mark.slow
def test_the_district(demo, tmp_path):
    found = demo("--scale", 0.03, "--output", tmp_path / "out", code=0)
    lines = found.stdout.splitlines()
    assert len(lines) == 11
    assert re.search(r"^rate +[\d,.]+ messages/s, [\d,.]+ matches/s without start", found.stdout, re.MULTILINE)
    assert re.search(r"^start +Spark [\d.]+ s, workers [\d.]+ s, .*compiled [\d.]+ s$", found.stdout, re.MULTILINE)
    made = (tmp_path / "out" / "report.html").read_text()
    for stage in ("start Spark", "compile kernels", "start workers", "match"):
        assert f"<dt>Seconds, {stage}</dt>" in made
    listed = read_report(tmp_path / "out" / "report.html")
    assert len(listed.lines["items"]) == pq.read_metadata(tmp_path / "out" / "data" / "messages.parquet").num_rows
    assert sum(max(0, count) for count in listed.lines["counts"]) == len(matches_in(tmp_path / "out"))
    assert listed.header["plain"] is False
    out = tmp_path / "out"
    assert str(out / "report.html") in lines[-1]
    check_same_numbers(found.stdout, out / "report.html")
    assert "<html" in (out / "report.html").read_text()[:200]
    rows = pq.read_table(out / "regions" / "rows").to_pylist()
    counts = json.loads((out / "regions" / "dataset.json").read_text())["counts"]
    assert counts["read"] == counts["kept"] + counts["quarantined"]
    assert counts["kept"] == len(rows)
    assert counts["quarantined"] == pq.read_table(out / "regions" / "quarantine").num_rows > 0

    table = ct.ForwardingTable()
    template = f"{TEMPLATE} AND {THRESHOLD}"
    assert template == "S_INTERSECTS(area, $geometry) AND severity >= $min_severity"
    for row in rows:
        least = 3 if row["min_severity"] is None else row["min_severity"]
        value = ct.Region.from_wkb(row["geometry"])
        asked = [ct.Constraint("area", ct.RelationSet.S_INTERSECTS, value), ct.Constraint("severity", ">=", least)]
        table.subscribe(row["subscriber"] or row["parcel"], ct.Filter(asked), row["key"] or row["id"])
    for row in pq.read_table(out / "data" / "subscriptions.parquet").to_pylist():
        if row["filter"] != "severity >= ":
            table.subscribe(row["subscriber"], row["filter"], row["key"])
    messages = pq.read_table(out / "data" / "messages.parquet")
    right, bad = expected(table, messages)
    assert matches_in(out) == sorted((id, key) for id, _, key in right)
    rejected = pq.read_table(out / "rejected").to_pylist()
    assert sorted(row["message_id"] for row in rejected) == sorted(id for id, _ in bad)


@pytest.mark.slow
def test_a_cold_run_compiles_what_it_needs_while_spark_starts(tmp_path):
    """Workers and driver find all kernels compiled, and none is compiled that the run does not use."""
    env = os.environ | {"CONTRADA_CACHE_DIR": str(tmp_path / "cache")}
    run = python("-m", "contrada.cli.main", "demo", "--scale", "0.02", "--output", tmp_path / "out", env=env)
    assert "contrada: compiling" not in run.stderr
    compiled = {path.name.partition("-")[0].rpartition(".")[2] for path in (tmp_path / "cache").rglob("*.nbc")}
    assert compiled == {*READING_KERNELS, *MATCHING_KERNELS, *REPORTING_KERNELS}


def numbers_in(text):
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\b", text)]


def check_same_numbers(output, page):
    """The console and the report say the same of everything that both tell; the numbers by the first words of lines."""
    told = {line.split()[0]: numbers_in(line) for line in output.splitlines()}
    shown = {name: numbers_in(value) for name, value in cards(page.read_text()).items()}
    assert told["subscriptions"] == shown["Subscriptions"] + shown["Set aside"]
    assert told["messages"] == shown["Messages"] + shown["Rejected"]
    assert told["quarantined"][:1] == shown["Quarantined"]
    assert told["matches"][:1] == shown["Matches"]
    return told


@pytest.mark.slow
def test_the_console_and_the_report_agree_on_messy_data(demo, tmp_path):
    """Rows that are bad when read, when compiled and when matched, and keys that come twice."""
    data = tmp_path / "data"
    data.mkdir()
    bow_tie = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    areas = [shapely.to_wkb(shape) for shape in (shapely.box(0, 0, 3, 3), bow_tie, shapely.box(8, 8, 9, 9))]
    columns = {"message_id": ["m1", "m2", "m3", "m4", "m4"], "area": [*areas, None, areas[0]],
               "kind": ["storm", "storm", None, "hail", "hail"]}  # fmt: skip
    pq.write_table(pa.table(columns), data / "messages.parquet")
    places = [
        feature(shapely.box(1, 1, 2, 2), id="a", subscriber="s1"),
        feature(shapely.box(1, 1, 2, 3), id="a", subscriber="s2"),  # a key that was there before
        feature(shapely.box(3, 3, 4, 4), id="b", subscriber="s1"),
        feature(bow_tie, id="c", subscriber="s1"),
        feature(None, id="d"),
        feature({"type": "Polygon", "coordinates": [[[0, 0], [1]]]}, id="e"),
        feature(shapely.box(20, 20, 21, 21), id="far", subscriber="s3"),
    ]
    (data / "places.geojson").write_text(collection(places))
    filters = [("hail", "kind = 'hail'"), ("bad", "kind ="), ("hail", "kind = 'storm'"), ("no", "kind IS NULL")]
    rows = [{"key": key, "subscriber": "farm", "filter": text} for key, text in filters]
    write_lines(data / "subscriptions.ndjson", rows)
    found = demo("--data", data, "--output", tmp_path / "out", code=0)
    told = check_same_numbers(found.stdout, tmp_path / "out" / "report.html")
    assert told["regions"] == [7, 4]
    assert told["quarantined"][0] == 3
    assert told["subscriptions"] == [5, 3]
    assert told["messages"] == [5, 1]
    right = [("m1", "a"), ("m1", "b"), ("m3", "no"), ("m4", "a"), ("m4", "b"), ("m4", "hail"), ("m4", "hail")]
    assert matches_in(tmp_path / "out") == right
    assert told["matches"][0] == len(right)


@pytest.mark.slow
def test_data_of_ones_own(demo, tmp_path):
    """Messages of files, of which the bad are quarantined on the console and in the report."""
    data = tmp_path / "data"
    storms = [feature(shapely.box(0, 0, 3, 3), kind="storm"), feature(shapely.box(8, 8, 9, 9), kind="hail"), feature(5)]
    places = [feature(shapely.box(1, 1, 2, 2), id="inner"), feature(shapely.box(3, 3, 4, 4), id="corner")]
    rows = [{"key": f"{kind} {k}", "subscriber": "farm", "filter": f"kind = '{kind}'"} for k, kind in enumerate(KINDS)]
    write_lines(data / "subscriptions.ndjson", rows)
    (data / "messages.geojson").write_text(collection(storms))
    (data / "places.geojson").write_text(collection(places))
    (data / "README.md").write_text("where this is from")
    found = demo("--data", data, "--output", tmp_path / "out", code=0)
    assert sorted(key for _, key in matches_in(tmp_path / "out")) == ["corner", "hail 0", "inner", "storm 1", "storm 2"]
    told = check_same_numbers(found.stdout, tmp_path / "out" / "report.html")
    assert (told["messages"], told["quarantined"][0], told["matches"][0]) == ([2, 0], 1, 5)  # then a path


def test_a_directory_of_something_else_is_left_alone_and_what_is_missing_is_said(demo, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "places.geojson").write_text("{}")
    assert "has other files" in demo("--output", tmp_path, code=2).stderr
    assert (data / "places.geojson").read_text() == "{}"
    assert "no file messages.*; files: places.geojson" in demo("--data", data, "-o", tmp_path / "o").stderr
    assert "is not a directory" in demo("--data", tmp_path / "nowhere", "-o", tmp_path / "o").stderr
