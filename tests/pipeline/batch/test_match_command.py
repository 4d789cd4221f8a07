"""`contrada match --spark` gives what `contrada match` gives: for every format, with bad rows, by subscriber."""

import gzip
from functools import partial

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import shapely

import contrada as ct
from console import collection, feature, read_lines, write_lines
from effort import slow

SUBSCRIPTIONS = [
    {"key": "k1", "subscriber": "ops", "filter": "overlaps(area, POLYGON((0 0, 4 0, 4 4, 0 4, 0 0)))"},
    {"key": "k2", "subscriber": "ops", "filter": "level >= 3 OR name LIKE 'b%'"},
    {"key": "k3", "subscriber": "night", "filter": "level < 2"},
    {"key": "bad", "subscriber": "night", "filter": "level <"},
]


@pytest.fixture
def run(command):
    return partial(command, "match")


def reasons(path):
    return sorted((row["what"], row["reason"]) for row in read_lines(path))


@pytest.fixture
def files(tmp_path):
    square, bow_tie = shapely.box(2, 2, 6, 6), shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    rows = [
        {"id": "a", "level": 4, "name": "blue", "area": square.__geo_interface__},
        {"id": "b", "level": 1, "area": bow_tie.__geo_interface__},
        {"id": "c", "level": 1},
        {"level": 2, "name": "red"},
    ]
    write_lines(tmp_path / "messages" / "one.ndjson", rows)
    (tmp_path / "messages" / "two.ndjson").write_text('{"id": "d", "level": 3}\n{"id": \n')
    table = pa.table({
        "id": ["a", "b", None, "d"],
        "level": [4, 1, 2, None],
        "name": ["blue", None, "red", "black"],
        "area": pa.array([square.wkb, bow_tie.wkb, None, square.wkb], pa.binary()),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "messages.parquet", row_group_size=2)
    write_lines(tmp_path / "subscriptions.ndjson", SUBSCRIPTIONS)
    return tmp_path


BY = ("subscription", "subscriber")
PARTITIONED = ("--plan", "partitioned", "--partitions", "3")


@pytest.mark.parametrize(
    ("messages", "by", "plan"),
    [
        ("messages", "subscription", ()), ("messages.parquet", "subscriber", PARTITIONED),
        *(slow("messages.parquet", by, ()) for by in BY), slow("messages", "subscriber", ()),
        *(slow("messages", by, PARTITIONED) for by in BY), slow("messages.parquet", "subscription", PARTITIONED),
    ],
)  # fmt: skip
def test_same_rows_and_rejections(run, files, messages, by, plan):
    asked = [files / messages, files / "subscriptions.ndjson", "--by", by]
    plain = run(*asked, "--reject", files / "plain.ndjson", code=0)
    output, bad = files / "out", files / "bad.ndjson"
    found = run(*asked, "--spark", *plan, "--output", output, "--reject", bad, code=0)
    assert f"plan:          {'partitioned' if plan else 'broadcast'}" in found.stderr
    columns = ["message", "subscriber", "key"][: 3 if by == "subscription" else 2]
    rows = pq.read_table(output).select(columns).to_pylist()
    expected = read_lines(plain.stdout)
    named = [sorted(tuple(str(row[name]) for name in columns) for row in some) for some in (rows, expected)]
    assert named[0] == named[1]
    assert reasons(bad) == reasons(files / "plain.ndjson") != []
    counted = [line for line in plain.stderr.splitlines() if line.startswith(("messages:", "matches:"))]
    assert all(line in found.stderr for line in counted), found.stderr


@pytest.mark.parametrize(
    ("messages", "plan"), [("messages", ()), slow("messages", PARTITIONED), slow("messages.parquet", ())]
)
def test_kept_attributes_are_columns_of_matches(run, files, messages, plan):
    asked = [files / messages, files / "subscriptions.ndjson", "--spark", *plan]
    run(*asked, "--output", files / "out", "--keep", "name, level", code=0)
    table = pq.read_table(files / "out")
    assert table.column_names == ["message", "name", "level", "subscriber", "key"]
    by_message = {row["message"]: (row["name"], row["level"]) for row in table.to_pylist()}
    level = str if messages == "messages" else int
    assert by_message["a"] == ("blue", level(4))
    assert len(by_message) > 1
    refused = run(*asked, "--output", files / "other", "--keep", "key", code=2)
    assert "'key' is a column of matches" in refused.stderr
    assert "--spark" in run(*asked[:2], "--keep", "name", code=2).stderr


@pytest.mark.parametrize("plan", [(), slow(PARTITIONED)])
def test_lines_and_templates(run, files, plan):
    places = files / "places.geojson"
    places.write_text(collection(feature(shapely.Point(x, x), id=id, least=3) for id, x in ((7, 3), (8, 9))))
    template = "S_INTERSECTS(area, $geometry) AND level >= $least"
    asked = [files / "messages.parquet", places, "--template", template, "--key", "id", "--crs", "OGC:CRS84"]
    run(*asked, "--spark", *plan, "--output", files / "out", "--format", "ndjson", code=0)
    assert [row["key"] for path in (files / "out").glob("part-*") for row in read_lines(path)] == ["7"]
    assert [row["key"] for row in read_lines(run(*asked).stdout)] == [7]


TEMPLATE = ("--template", "S_INTERSECTS(area, $geometry) AND level >= $least")


def parcels(path, count=400, **columns):
    """Boxes along a diagonal, in small row groups; every 37th row is bad, by turns null and a region that crosses."""
    shapes = shapely.box(*(range(count) for _ in range(2)), *(range(2, count + 2) for _ in range(2)))
    wkb = shapely.to_wkb(shapes).tolist()
    for row in range(5, count, 37):
        wkb[row] = None if row % 2 else shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]).wkb
    least = pa.array([row % 5 for row in range(count)])
    table = pa.table({"geometry": pa.array(wkb, pa.binary()), "least": least, **columns})
    pq.write_table(table, path, row_group_size=64)
    return path


def compare_scan(run, files, asked, *plan):
    """Compare rows, rejections and counts with one process that has a table; return what Spark's command says."""
    plain = run(*asked, "--plan", "table", "--reject", files / "plain.ndjson", code=0)
    found = run(*asked, "--spark", *plan, "--output", files / "out", "--reject", files / "bad.ndjson", code=0)
    expected = read_lines(plain.stdout)
    rows = pq.read_table(files / "out").to_pylist()
    assert sorted(map(str, rows)) == sorted(str({name: str(row[name]) for name in rows[0]}) for row in expected)
    assert len(expected) > 2
    bad = [
        [row for row in read_lines(files / name) if row["what"] == "subscription"]
        for name in ("bad.ndjson", "plain.ndjson")
    ]
    assert bad[0] == bad[1] != []
    assert reasons(files / "bad.ndjson") == reasons(files / "plain.ndjson")
    counted = [
        line for line in plain.stderr.splitlines() if line.startswith(("messages:", "matches:", "subscriptions:"))
    ]
    assert all(line in found.stderr for line in counted), found.stderr
    return found.stderr


@pytest.fixture
def alerts(files):
    """Messages with ids, one of them with a region that crosses itself, in two files."""
    squares = [shapely.box(x, x, x + 9, x + 9).wkb for x in (0, 30, 200, 900)]
    crossing = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]).wkb
    for number, areas in enumerate((squares, [crossing, squares[0], None])):
        rows = {"id": [f"m{number}.{row}" for row in range(len(areas))], "level": [3] * len(areas), "area": areas}
        (files / "alerts").mkdir(exist_ok=True)
        pq.write_table(pa.table(rows), files / "alerts" / f"{number}.parquet")
    return files / "alerts"


@pytest.mark.parametrize("by", [slow("subscription"), "subscriber"])
def test_scan_gives_what_a_table_gives(run, files, alerts, by, spark):
    names = {"id": pa.array(range(1000, 1400)), "owner": [f"s{row % 30}" for row in range(400)]}
    rows = parcels(files / "parcels.parquet", **names, key=["not a key"] * 400)
    asked = [alerts, rows, *TEMPLATE, "--key", "id", "--subscriber", "owner", "--by", by]
    sizes = {"spark.sql.files.maxPartitionBytes": "4000", "spark.sql.files.openCostInBytes": "100"}
    for name, value in sizes.items():
        spark.conf.set(name, value)  # the file is cut into several splits
    try:
        assert "plan:          scan; as requested" in compare_scan(run, files, asked, "--plan", "scan")
    finally:
        for name in sizes:
            spark.conf.unset(name)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({}, "rows without a key are numbered"),
        slow({"key": [row % 390 for row in range(400)]}, "keys are repeated"),
        slow({"key": pa.array(range(400), pa.uint64())}, "columns of the subscriptions are read by"),
        slow({"key": range(400), "Key": range(400)}, "columns of the subscriptions are read by"),
    ],
)
def test_rows_that_need_a_table_get_one(run, files, alerts, columns, why):
    rows = parcels(files / "parcels.parquet", **columns)
    told = compare_scan(run, files, [alerts, rows, *TEMPLATE], "--plan", "scan")
    assert f"plan:          broadcast; {why}" in told


@pytest.mark.parametrize(("plan", "name"), [("auto", "scan; 7 messages for 50,000 rows"), slow("table", "broadcast; ")])
def test_auto_scans_many_rows_for_few_messages(run, files, alerts, plan, name):
    rows = parcels(files / "parcels.parquet", 50_000, key=range(50_000))
    assert f"plan:          {name}" in compare_scan(run, files, [alerts, rows, *TEMPLATE], "--plan", plan)


def test_what_cannot_be_scanned(run, files, alerts):
    rows, end = parcels(files / "parcels.parquet"), ["--spark", "--plan", "scan", "--output", files / "x"]
    for asked in (
        [files / "messages", rows, *TEMPLATE],
        [alerts, files / "subscriptions.ndjson"],
        [alerts, rows, *TEMPLATE, "--buffer", "1"],
        [alerts, rows, "--template", "S_DISJOINT(area, $geometry)"],
    ):
        assert "--plan scan with --spark needs Parquet files" in run(*asked, *end).stderr
    run(alerts, rows, *TEMPLATE, *end, "--partitions", "2", code=2)
    pq.write_table(pq.read_table(rows).slice(5, 1).append_column("key", pa.array([1])), files / "bad.parquet")
    assert "no valid subscription" in run(alerts, files / "bad.parquet", *TEMPLATE, *end).stderr


@pytest.mark.parametrize("messages", [slow("messages"), slow("messages.parquet")])
def test_a_subscription_in_several_partitions_is_one_row(run, files, messages):
    wide = "S_INTERSECTS(area, POLYGON(({0} 0, {1} 0, {1} 8, {0} 8, {0} 0)))"
    rows = [
        {"key": k, "subscriber": "ops", "filter": " OR ".join(wide.format(x, x + 1) for x in (2, 5))} for k in (1, 2)
    ]
    rows += [{"key": k, "filter": wide.format(k, k + 0.5)} for k in range(3, 60)]
    rows.append({"subscriber": "ops", "filter": "level >= 3"})  # without a key
    write_lines(files / "subscriptions.ndjson", rows)
    for by in BY:
        asked = [files / messages, files / "subscriptions.ndjson", "--by", by]
        expected = read_lines(run(*asked).stdout)
        run(*asked, "--spark", "--plan", "partitioned", "--partitions", "5", "--output", files / by, code=0)
        named = [
            sorted((str(row["message"]), str(row["subscriber"])) for row in rows)
            for rows in (pq.read_table(files / by).to_pylist(), expected)
        ]
        assert named[0] == named[1]
        assert len(expected) > 3


@pytest.mark.slow
def test_auto_goes_by_the_size_of_the_table(run, files, spark):
    asked = [files / "messages.parquet", files / "subscriptions.ndjson", "--spark"]
    small = run(*asked, "--output", files / "small", "--reject", files / "small.ndjson")
    assert "plan:          broadcast; the table has" in small.stderr
    spark.conf.set("spark.contrada.broadcast.bytes", "1k")
    try:
        large = run(*asked, "--output", files / "large", "--reject", files / "large.ndjson")
        again = run(*asked, "--plan", "broadcast", "--output", files / "again")
    finally:
        spark.conf.unset("spark.contrada.broadcast.bytes")
    assert "partitioned, " in large.stderr
    assert "a worker holds no more than 1 KiB" in large.stderr
    assert "plan:          broadcast; as requested" in again.stderr
    rows = [sorted(map(str, pq.read_table(files / name).to_pylist())) for name in ("small", "large", "again")]
    assert rows[0] == rows[1] == rows[2]
    assert (files / "small.ndjson").read_text() == (files / "large.ndjson").read_text()


def test_what_cannot_be(run, files):
    asked = [files / "messages.parquet", files / "subscriptions.ndjson", "--spark"]
    assert "--output" in run(*asked).stderr
    assert "--explain" in run(*asked, "--explain", "k1", "--output", files / "x").stderr
    assert "parquet, csv or ndjson" in run(*asked, "--output", files / "x", "--format", "arrow").stderr
    run(*asked[:2], "--master", "local[1]", code=2)
    run(*asked[:2], "--plan", "partitioned", code=2)
    run(*asked, "--plan", "broadcast", "--partitions", "2", "--output", files / "x", code=2)
    (files / "bad.ndjson").write_text('{"key": 1, "filter": "level <"}\n')
    none = run(asked[0], files / "bad.ndjson", "--spark", *PARTITIONED, "--output", files / "x")
    assert "no valid subscription" in none.stderr
    mixed = [{"key": 1, "filter": "level > 1"}, {"key": "1", "filter": "level > 2"}]
    alike = run(asked[0], write_lines(files / "mixed.ndjson", mixed), "--spark", *PARTITIONED, "--output", files / "x")
    assert "both as text and as a number" in alike.stderr
    assert "cannot read standard input" in run("-", asked[1], "--spark", "--output", files / "x").stderr
    assert "need column 'nothing'" in run(*asked, "--id", "nothing", "--output", files / "x").stderr


@pytest.mark.slow
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
    run(*asked, "--reject", files / "plain.ndjson", "--output", files / "plain.csv", code=0)
    run(*asked, "--spark", "--reject", files / "bad.ndjson", "--output", files / "out", code=0)
    expected = pacsv.read_csv(files / "plain.csv").to_pylist()
    got = pq.read_table(files / "out").to_pylist()
    assert len(expected) >= 9  # of sound files alone
    assert sorted(map(str, got)) == sorted(map(str, expected))
    told = reasons(files / "bad.ndjson")
    assert told == reasons(files / "plain.ndjson")
    assert len(told) >= 5
