"""What tasks do, without Spark: ranges of lines, names of columns, files of a directory."""

import io

import pytest

from contrada.formats.records import json_records
from contrada.pipeline.ingestion.lines import LineRange
from contrada.pipeline.ingestion.planning import output_names
from contrada.pipeline.ingestion.sources import files_of

TEXT = b"\xef\xbb\xbfone\n\n  \ntwo two two\r\nthree\n" + b"four" * 10 + b"\n\nlast"


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 11, 100])
def test_ranges_give_each_line_once_with_its_number(step):
    found, before = [], 0
    for start in range(0, len(TEXT), step):
        part = LineRange(io.BytesIO(TEXT), start, min(start + step, len(TEXT)))
        found += [(before + record.number, record.data) for record in json_records(part, "ndjson")]
        before += part.count
    whole = [(record.number, record.data) for record in json_records(io.BytesIO(TEXT), "ndjson")]
    assert found == whole
    assert [number for number, _ in whole] == [1, 4, 5, 6, 8]
    assert before == 8


def test_names_are_unique_whatever_their_case():
    spelled = {}
    assert output_names(["A", "a", "a_2"], spelled) == {"A": "A", "a": "a_2", "a_2": "a_2_2"}
    assert output_names(["a"], spelled) == {"a": "A"}


def test_a_directory_has_data_and_what_lies_beside_it(tmp_path):
    (tmp_path / "deeper").mkdir()
    shapefile = [f"a.{suffix}" for suffix in ("shp", "shx", "dbf", "prj")]
    for name in (*shapefile, "b.geojson", "LICENSE", "README.md", ".hidden", "_SUCCESS", "c.zip"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "deeper" / "d.bin").write_bytes(b"PAR1")
    found = files_of([tmp_path, tmp_path / "a.shp"])
    names = [(file.path.removeprefix(f"{tmp_path}/"), file.format) for file in found]
    assert names == [("a.shp", "gis"), ("b.geojson", "ndjson"), ("c.zip", "gis"), ("deeper/d.bin", "parquet")]
