"""`contrada ingest`: what it writes, what it says, how it ends."""

from functools import partial

from console import contrada, feature, write_lines
from contrada import Point, Region
from contrada.cli import java
from contrada.pipeline import read_dataset

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
BOW_TIE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}


run = partial(contrada, "ingest")


def write(path, *geometries):
    return write_lines(path, [feature(shape, id=k) for k, shape in enumerate(geometries)])


def test_rows_quarantine_and_summary(spark, tmp_path):
    one = write(tmp_path / "one.geojsonl", SQUARE, BOW_TIE, None, BOW_TIE)
    two = write(tmp_path / "two.geojsonl", SQUARE)
    result = run(one, two, tmp_path / "out", code=0)
    assert result.stdout == ""
    told = result.stderr.splitlines()
    assert told[0] == "read:          5 from 2 files"
    assert told[1] == "kept:          2"
    assert told[4:] == [
        "quarantined:   3",
        "  2 x self-intersection",
        "  1 x no geometry (null)",
        f"  all of them: {tmp_path / 'out' / 'quarantine'}",
    ]
    assert read_dataset(spark, tmp_path / "out").counts() == (5, 2, 3, 0)
    assert "not empty" in run(one, tmp_path / "out", code=2).stderr


def test_exit_codes(spark, tmp_path):
    bad = write(tmp_path / "bad.geojsonl", BOW_TIE)
    both = write(tmp_path / "both.geojsonl", SQUARE, BOW_TIE)
    run(bad, tmp_path / "a", "--quiet", code=1)
    assert run(both, tmp_path / "b", "--strict", "--quiet", code=1).stderr == ""
    mended = run(bad, tmp_path / "c", "--repair", "--strict", code=0)
    assert "kept:          1, 1 of them repaired" in mended.stderr


def test_what_cannot_be_done_is_told_in_a_line(spark, tmp_path, monkeypatch):
    to_out = (write(tmp_path / "a.geojsonl", SQUARE), tmp_path / "out")
    for arguments in (["--to-crs", "EPSG:999999"], ["--buffer", "5"], ["--buffer", "-1"], ["--densify", "-1"]):
        assert run(*to_out, *arguments, code=2).stderr.startswith("error: ")
    monkeypatch.setattr(java, "find_java", lambda: java.Java(None, None, None))
    told = run(*to_out, code=2).stderr
    assert "needs Java 17 or newer for Spark and no Java was found; to install it:" in told
    assert not (tmp_path / "out").exists()


def test_the_date_line_and_great_circles(spark, tmp_path):
    across = {"type": "Polygon", "coordinates": [[[170, 40], [-170, 40], [-170, 50], [170, 50], [170, 40]]]}
    east = {"type": "Polygon", "coordinates": [[[170, 40], [190, 40], [190, 50], [170, 50], [170, 40]]]}
    rows = write(tmp_path / "rows.geojsonl", across, east, {"type": "Point", "coordinates": [-190, 5]})
    run(rows, tmp_path / "out", "--wrap", "shorter", "--densify", "1000", "--quiet", "--strict", code=0)
    found = read_dataset(spark, tmp_path / "out").rows.orderBy("id").collect()
    first, second = (Region.from_wkb(bytes(row["geometry"])) for row in found[:2])
    assert first == second == Region.box(170, 40, 190, 50).wrapped(crs="EPSG:4326").densified(1000)
    assert Point.from_wkb(bytes(found[2]["geometry"])) == Point(170, 5)


def test_help_has_examples_and_starts_nothing():
    assert "contrada ingest downloads/ places" in run("--help", code=0).stdout
