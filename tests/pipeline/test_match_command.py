"""`contrada match --spark` gives what `contrada match` gives: for every format, with bad rows, by subscriber."""

import gzip
import json
import sys

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import shapely
from typer.testing import CliRunner

import contrada as ct
from contrada.cli import spark_running
from contrada.cli.main import app

SUBSCRIPTIONS = [
    {"key": "k1", "subscriber": "ops", "filter": "overlaps(area, POLYGON((0 0, 4 0, 4 4, 0 4, 0 0)))"},
    {"key": "k2", "subscriber": "ops", "filter": "level >= 3 OR name LIKE 'b%'"},
    {"key": "k3", "subscriber": "night", "filter": "level < 2"},
    {"key": "bad", "subscriber": "night", "filter": "level <"},
]


@pytest.fixture
def run(spark, monkeypatch):
    """Runs the command on the session of the tests, which it must not stop."""
    monkeypatch.setattr(spark_running, "session", lambda *asked: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)

    def command(*arguments):
        return CliRunner().invoke(app, ["match", *map(str, arguments)])

    return command


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def files(tmp_path):
    square = {"type": "Polygon", "coordinates": [[[2, 2], [6, 2], [6, 6], [2, 6], [2, 2]]]}
    bowtie = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}
    rows = [
        {"id": "a", "level": 4, "name": "blue", "area": square},
        {"id": "b", "level": 1, "area": bowtie},
        {"id": "c", "level": 1},
        {"level": 2, "name": "red"},
    ]
    directory = tmp_path / "messages"
    directory.mkdir()
    write(directory / "one.ndjson", rows)
    (directory / "two.ndjson").write_text('{"id": "d", "level": 3}\n{"id": \n')
    region = ct.Region.box(2, 2, 6, 6).to_wkb()
    crossed = shapely.to_wkb(shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]))
    table = pa.table({
        "id": ["a", "b", None, "d"],
        "level": [4, 1, 2, None],
        "name": ["blue", None, "red", "black"],
        "area": pa.array([region, crossed, None, region], pa.binary()),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "messages.parquet", row_group_size=2)
    write(tmp_path / "subscriptions.ndjson", SUBSCRIPTIONS)
    return tmp_path


PARTITIONED = ("--plan", "partitioned", "--partitions", "3")


@pytest.mark.parametrize("messages", ["messages", "messages.parquet"])
@pytest.mark.parametrize("by", ["subscription", "subscriber"])
@pytest.mark.parametrize("plan", [(), PARTITIONED])
def test_same_rows_and_rejections(run, files, messages, by, plan):
    asked = [files / messages, files / "subscriptions.ndjson", "--by", by]
    plain = run(*asked, "--reject", files / "plain.ndjson")
    output, bad = files / "out", files / "bad.ndjson"
    found = run(*asked, "--spark", *plan, "--output", output, "--reject", bad)
    assert f"plan:          {'partitioned' if plan else 'broadcast'}" in found.stderr
    assert plain.exit_code == found.exit_code == 0, found.output
    columns = ["message", "subscriber", "key"][: 3 if by == "subscription" else 2]
    rows = pq.read_table(output).select(columns).to_pylist()
    expected = [json.loads(line) for line in plain.stdout.splitlines() if line.startswith("{")]
    named = [sorted(tuple(str(row[name]) for name in columns) for row in some) for some in (rows, expected)]
    assert named[0] == named[1]
    reasons = [
        sorted((row["what"], row["reason"]) for row in map(json.loads, path.read_text().splitlines()))
        for path in (bad, files / "plain.ndjson")
    ]
    assert reasons[0] == reasons[1]
    assert reasons[0]
    counted = [line for line in plain.stderr.splitlines() if line.startswith(("messages:", "matches:"))]
    assert all(line in found.stderr for line in counted), found.stderr


@pytest.mark.parametrize("plan", [(), PARTITIONED])
def test_lines_and_templates(run, files, plan):
    features = [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [3, 3]}, "properties": {"id": 7, "least": 3}},
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [9, 9]}, "properties": {"id": 8, "least": 3}},
    ]
    places = files / "places.geojson"
    places.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    template = "S_INTERSECTS(area, $geometry) AND level >= $least"
    options = ["--template", template, "--key", "id", "--crs", "OGC:CRS84"]
    plain = run(files / "messages.parquet", places, *options)
    found = run(
        files / "messages.parquet", places, *options, "--spark", *plan, "--output", files / "out", "--format", "ndjson"
    )
    assert found.exit_code == 0, found.output
    lines = "".join(path.read_text() for path in (files / "out").glob("part-*"))
    assert [row["key"] for row in map(json.loads, lines.splitlines())] == ["7"]
    assert [json.loads(line)["key"] for line in plain.stdout.splitlines()] == [7]


@pytest.mark.parametrize("messages", ["messages", "messages.parquet"])
def test_a_subscription_in_several_partitions_is_one_row(run, files, messages):
    wide = "S_INTERSECTS(area, POLYGON(({0} 0, {1} 0, {1} 8, {0} 8, {0} 0)))"
    rows = [
        {"key": k, "subscriber": "ops", "filter": " OR ".join(wide.format(x, x + 1) for x in (2, 5))} for k in (1, 2)
    ]
    rows += [{"key": k, "filter": wide.format(k, k + 0.5)} for k in range(3, 60)]
    rows.append({"subscriber": "ops", "filter": "level >= 3"})  # without a key
    write(files / "subscriptions.ndjson", rows)
    for by in ("subscription", "subscriber"):
        asked = [files / messages, files / "subscriptions.ndjson", "--by", by]
        plain = run(*asked)
        found = run(*asked, "--spark", "--plan", "partitioned", "--partitions", "5", "--output", files / by)
        assert found.exit_code == 0, found.output
        expected = [json.loads(line) for line in plain.stdout.splitlines() if line.startswith("{")]
        written = pq.read_table(files / by).to_pylist()
        names = ("message", "subscriber")
        assert sorted([row[name] for name in names] for row in written) == sorted(
            [str(row[name]) for name in names] for row in expected
        )
        assert len(expected) > 3


def test_auto_goes_by_the_size_of_the_table(run, files, spark):
    asked = [files / "messages.parquet", files / "subscriptions.ndjson", "--spark"]
    small = run(*asked, "--output", files / "small", "--reject", files / "small.ndjson")
    assert "plan:          broadcast; the table takes" in small.stderr
    spark.conf.set("spark.contrada.broadcast.bytes", "1k")
    try:
        large = run(*asked, "--output", files / "large", "--reject", files / "large.ndjson")
        again = run(*asked, "--plan", "broadcast", "--output", files / "again")
    finally:
        spark.conf.unset("spark.contrada.broadcast.bytes")
    assert "partitioned, " in large.stderr
    assert "a worker no more than 1 KiB" in large.stderr
    assert "plan:          broadcast; it was asked for" in again.stderr
    rows = [sorted(map(str, pq.read_table(files / name).to_pylist())) for name in ("small", "large", "again")]
    assert rows[0] == rows[1] == rows[2]
    assert (files / "small.ndjson").read_text() == (files / "large.ndjson").read_text()


def test_what_cannot_be(run, files):
    asked = [files / "messages.parquet", files / "subscriptions.ndjson", "--spark"]
    assert "--output" in run(*asked).stderr
    assert "--explain" in run(*asked, "--explain", "k1", "--output", files / "x").stderr
    assert "parquet, csv or ndjson" in run(*asked, "--output", files / "x", "--format", "arrow").stderr
    assert run(*asked[:2], "--master", "local[1]").exit_code == 2
    assert run(*asked[:2], "--plan", "partitioned").exit_code == 2
    assert run(*asked, "--plan", "broadcast", "--partitions", "2", "--output", files / "x").exit_code == 2
    (files / "bad.ndjson").write_text('{"key": 1, "filter": "level <"}\n')
    none = run(asked[0], files / "bad.ndjson", "--spark", *PARTITIONED, "--output", files / "x")
    assert "no subscription is good" in none.stderr
    mixed = [{"key": 1, "filter": "level > 1"}, {"key": "1", "filter": "level > 2"}]
    alike = run(asked[0], write(files / "mixed.ndjson", mixed), "--spark", *PARTITIONED, "--output", files / "x")
    assert "written alike" in alike.stderr
    assert "files, not standard input" in run("-", asked[1], "--spark", "--output", files / "x").stderr
    named = run(*asked, "--id", "nothing", "--output", files / "x")
    assert "no column 'nothing'" in named.stderr


def test_gis_and_packed_files_sound_and_damaged(run, files):
    """One run over a directory: sound files are matched, of damaged ones the rejections are those without Spark."""
    pyogrio = pytest.importorskip("pyogrio")
    place = files / "mixed"
    place.mkdir()
    areas = pa.array([ct.Region.box(k, k, k + 4, k + 4).to_wkb() for k in range(3)])
    rows = pa.table({"id": ["x", "y", "z"], "level": [1, 2, 3], "area": areas})
    for name in ("sound.gpkg", "sound.shp", "sound.fgb"):
        pyogrio.write_arrow(rows, place / name, geometry_name="area", geometry_type="Polygon", crs="EPSG:4326")
    sound = (place / "sound.gpkg").read_bytes()
    (place / "cut.gpkg").write_bytes(sound[: len(sound) // 2])
    (place / "zeros.gpkg").write_bytes(sound[:4096] + bytes(len(sound) - 4096))
    (place / "rubbish.shp").write_bytes(b"\x00\x00\x27\x0a" + bytes(96))
    lines = gzip.compress(b'{"id": "d", "level": 3}\n' * 3)
    (place / "sound.ndjson.gz").write_bytes(lines)
    (place / "cut.ndjson.gz").write_bytes(lines[:-9])
    (place / "plain.ndjson.gz").write_bytes(b'{"id": "d", "level": 3}\n')
    asked = [place, files / "subscriptions.ndjson"]
    plain = run(*asked, "--reject", files / "plain.ndjson", "--output", files / "plain.csv")
    found = run(*asked, "--spark", "--reject", files / "bad.ndjson", "--output", files / "out")
    assert plain.exit_code == found.exit_code == 0, found.output
    expected = pacsv.read_csv(files / "plain.csv").to_pylist()
    got = pq.read_table(files / "out").to_pylist()
    assert len(expected) >= 9  # of sound files alone
    assert sorted(map(str, got)) == sorted(map(str, expected))
    reasons = [
        sorted((item["what"], item["reason"]) for item in map(json.loads, path.read_text().splitlines()))
        for path in (files / "bad.ndjson", files / "plain.ndjson")
    ]
    assert reasons[0] == reasons[1]
    assert len(reasons[0]) >= 5
