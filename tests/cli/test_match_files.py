"""`contrada match` on compressed and GIS files, identifiers, suffixes of the output, CSV for spreadsheets."""

import gzip
from functools import partial

import pyarrow as pa
import pytest
import shapely

from console import contrada, read_lines
from effort import slow

SUBSCRIPTIONS = '{"key": 1, "subscriber": "=ops", "filter": "severity >= 4"}\n'
LINES = b'{"message_id": "=m", "severity": 5}\n{"message_id": "n", "severity": 1}\n'


zstd = partial(pa.compress, codec="zstd", asbytes=True)


@pytest.fixture
def run(tmp_path):
    (tmp_path / "s.ndjson").write_text(SUBSCRIPTIONS)

    def call(name, data, *options, code=None):
        (tmp_path / name).write_bytes(data)
        return contrada("match", tmp_path / name, tmp_path / "s.ndjson", *options, code=code)

    return call


def found(result):
    assert result.exit_code == 0, result.output
    return [row["message"] for row in read_lines(result.stdout)]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstd)])
def test_compressed_files_are_read(run, suffix, pack):
    assert found(run("m.ndjson" + suffix, pack(LINES))) == ["=m"]
    assert found(run("m" + suffix, pack(LINES))) == ["=m"], "told by the first bytes"
    assert found(run("m.csv" + suffix, pack(b"message_id,severity\nx,4\ny,3\n"))) == ["x"]
    assert found(run("m.json" + suffix, pack(b'[{"id": 7, "severity": 9}]'))) == [7]
    assert found(run("m.bin", pack(LINES))) == ["=m"]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), slow(".zst", zstd)])
def test_what_cannot_be_decompressed_is_one_rejection(run, suffix, pack):
    bomb = run("m.ndjson" + suffix, pack(LINES + b" " * 70_000_000))
    assert "CONTRADA_MAX_EXPANSION" in bomb.stderr
    assert found(bomb) == ["=m"]
    cut = run("m.ndjson" + suffix, pack(LINES * 50_000)[:-20])
    assert "cannot be read from here on" in cut.stderr
    assert cut.exit_code in (0, 1)


def test_an_unknown_suffix_of_the_output_is_an_error(run, tmp_path):
    assert ".parquet" in run("m.ndjson", LINES, "--output", tmp_path / "out.xlsx", code=2).stderr
    assert not (tmp_path / "out.xlsx").exists()
    run("m.ndjson", LINES, "--output", tmp_path / "out.txt", "--format", "csv", code=0)


def test_csv_is_safe_for_spreadsheets_on_request(run):
    assert run("m.ndjson", LINES, "--format", "csv").stdout.splitlines()[1] == "=m,=ops,1"
    assert run("m.ndjson", LINES, "--format", "csv", "--csv-safe").stdout.splitlines()[1] == "'=m,'=ops,1"


@pytest.mark.parametrize(("suffix", "driver"), [(".gpkg", "GPKG"), (".shp", "ESRI Shapefile")])
def test_gis_files_are_read(tmp_path, suffix, driver):
    pyogrio = pytest.importorskip("pyogrio")
    areas = [shapely.to_wkb(shapely.box(k, 0, k + 1, 1)) for k in range(3)]
    about = {"geometry_name": "geometry", "geometry_type": "Polygon", "crs": "EPSG:25832", "driver": driver}
    pyogrio.write_arrow(pa.table({"severity": [1, 4, 5], "geometry": areas}), tmp_path / f"m{suffix}", **about)
    asked = '{"key": 1, "filter": "severity >= 4 AND S_INTERSECTS(geometry, POLYGON((1 0, 2 0, 2 1, 1 0)))"}'
    (tmp_path / "s.ndjson").write_text(asked)
    assert found(contrada("match", tmp_path / f"m{suffix}", tmp_path / "s.ndjson")) == [1, 2]


def test_check_prints_lines_of_the_file(tmp_path):
    rows = '[\n  {"key": 1, "filter": "a = 1"},\n\n  {"key": 2,\n   "filter": "a ="}\n]\n'
    (tmp_path / "s.json").write_text(rows)
    assert contrada("check", "--file", tmp_path / "s.json", code=1).stdout.startswith(f"{tmp_path / 's.json'}:4: ")
