"""`contrada match --plan scan` writes what `--plan table` writes: matches, rejections, summary and exit code."""

import json
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from commands import start
from hypothesis import given, settings
from hypothesis import strategies as st

from console import contrada, read_lines, without_compiling, write_lines
from contrada.cli.scanning import MIN_ROWS
from effort import examples

INTERSECTS = "S_INTERSECTS(area, $geometry)"
TEMPLATES = [
    INTERSECTS,
    f"{INTERSECTS} AND size >= $least",
    "S_DISJOINT(area, $geometry) OR size > $least",
    "size >= $least",
    "S_WITHIN(area, $least)",
    "S_INTERSECTS(area, $nothing)",
]
SHAPES = [shapely.box(0, 0, 2, 2), shapely.box(2, 0, 3, 1), shapely.box(7, 7, 9, 9), shapely.Point(1, 1)]
BOW = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])


def wkb(shape, srid=0):
    return shapely.to_wkb(shapely.set_srid(shape, srid), include_srid=bool(srid))


REGIONS = [*map(wkb, SHAPES[:3])] * 4
ODD = [None, b"odd", wkb(BOW), wkb(SHAPES[3]), wkb(SHAPES[0], 25832), wkb(SHAPES[0], 4326)]


@st.composite
def subscription_rows(draw):
    count = draw(st.integers(1, 12))
    some = REGIONS + (ODD if draw(st.booleans()) else ODD[:3])
    columns = {
        "geometry": pa.array([draw(st.sampled_from(some)) for _ in range(count)], pa.binary()),
        "least": pa.array([draw(st.sampled_from([0, 1, 2, None])) for _ in range(count)], pa.int64()),
    }
    keys = draw(st.sampled_from(["none", "distinct", "repeated", "text"]))
    if keys == "text":
        columns["key"] = [f'k"{k}' for k in range(count)]
    elif keys != "none":
        columns["key"] = [k if keys == "distinct" else draw(st.integers(0, 20)) for k in range(count)]
    if draw(st.booleans()):
        columns["subscriber"] = pa.array([draw(st.sampled_from(["x", "y", "ü", None])) for _ in range(count)])
    return pa.table(columns)


@st.composite
def message_rows(draw):
    own = {
        "id": st.sampled_from(["a", 7, None]),
        "area": st.sampled_from([*SHAPES, None, "text"]).map(lambda one: getattr(one, "__geo_interface__", one)),
        "size": st.sampled_from([0, 1.5, 3, "3", None]),
    }
    return draw(st.lists(st.fixed_dictionaries({}, optional=own), max_size=6))


def outcome(folder, *arguments, plan, input=None):
    reject = folder / "bad.ndjson"
    reject.unlink(missing_ok=True)
    result = contrada("match", *arguments, "--plan", plan, "--reject", reject, input=input)
    assert isinstance(result.exception, SystemExit | None)
    kept = [line for line in without_compiling(result.stderr).splitlines() if not line.startswith("time:")]
    bad = reject.read_bytes() if reject.exists() else None
    return result.exit_code, result.stdout_bytes, kept, bad


def check_alike(folder, *arguments, input=None):
    found = outcome(folder, *arguments, plan="scan", input=input)
    assert found == outcome(folder, *arguments, plan="table", input=input)
    return found


@settings(max_examples=examples(120), deadline=None)
@given(
    rows=subscription_rows(),
    messages=message_rows(),
    template=st.sampled_from(TEMPLATES),
    source=st.sampled_from(["lines", "folder", "stdin", "parquet", "each"]),
    by=st.sampled_from(["subscription", "subscriber"]),
    format=st.sampled_from(["ndjson", "csv"]),
    crs=st.sampled_from([None, "EPSG:25832"]),
    strict=st.booleans(),
)
def test_both_plans_write_the_same(rows, messages, template, source, by, format, crs, strict):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        pq.write_table(rows, folder / "s.parquet", row_group_size=5)
        lines = "".join(json.dumps(message) + "\n" for message in messages) + "{bad\n"
        options = ["--template", template, "--by", by, "--format", format, *(["--strict"] if strict else [])]
        asked, input = folder / "m.ndjson", None
        if source == "folder":
            asked = folder / "messages"
            for name in ("one", "two"):
                write_lines(asked / f"{name}.ndjson", messages)
        elif source == "stdin":
            asked, input = "-", lines
        elif source == "parquet":
            asked = folder / "m.parquet"
            areas = [shapely.to_wkb(shapely.geometry.shape(one)) if isinstance(one, dict) else None
                     for one in (message.get("area") for message in messages)]  # fmt: skip
            pq.write_table(pa.table({"area": pa.array(areas, pa.binary())}), asked)
        else:
            asked.write_text(lines)
            options += ["--crs", crs] if source == "each" and crs else []
        check_alike(folder, asked, folder / "s.parquet", *options, input=input)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_both_plans_write_the_same_tables(tmp_path, suffix):
    keys = pa.array([*range(11), 2**63], pa.uint64())
    rows = pa.table({"geometry": REGIONS, "key": keys, "subscriber": ["x", "y"] * 6})
    pq.write_table(rows, tmp_path / "s.parquet")
    write_lines(tmp_path / "m.ndjson", [{"area": SHAPES[0].__geo_interface__}])
    written = []
    for plan in ("scan", "table"):
        output = tmp_path / f"{plan}.{suffix}"
        contrada("match", tmp_path / "m.ndjson", tmp_path / "s.parquet", "--template", INTERSECTS, "--plan", plan,
                 "--output", output, code=0)  # fmt: skip
        written.append(output.read_bytes())
    assert written[0] == written[1]


def many(count=40_000):
    """Rows of several blocks, a few of them near the messages."""
    boxes = [wkb(shapely.box(k, 0, k + 1, 1)) for k in range(1000)]
    return {"geometry": boxes * (count // 1000), "key": list(range(count))}


CHANGES = {
    "nothing": {},
    "a repeated key": {"key": 5},
    "a bad region": {"geometry": wkb(BOW)},
    "no key": {"key": None},
    "a point": {"geometry": wkb(SHAPES[3])},
    "another system": {"geometry": wkb(SHAPES[0], 25832)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_several_blocks_are_rejected_together(tmp_path, change):
    columns = many()
    for name, value in CHANGES[change].items():
        columns[name][39_000] = value
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    area = shapely.box(5, 0, 7, 1).__geo_interface__
    write_lines(tmp_path / "m.ndjson", [{"id": "a", "area": area}, {"id": "b"}, {"area": 3}])
    code, matches, summary, bad = check_alike(
        tmp_path, tmp_path / "m.ndjson", tmp_path / "s.parquet", "--template", INTERSECTS
    )
    if change != "another system":
        assert code == 0
        assert len(matches.splitlines()) == 160
        assert b"duplicate key 5" in bad or change != "a repeated key"
        assert summary[0] == (
            "subscriptions: 40,000" if not CHANGES[change] else "subscriptions: 39,999, and 1 rejected"
        )


def test_few_messages_are_scanned_by_numbers_and_a_live_stream_is_answered(tmp_path):
    columns = many(MIN_ROWS)
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    message = json.dumps({"id": "a", "area": shapely.box(5.2, 0.2, 5.4, 0.4).__geo_interface__}) + "\n"
    arguments = ["match", "-", tmp_path / "s.parquet", "--template", INTERSECTS, "--by", "subscriber", "--quiet"]
    with start("-m", "contrada.cli.main", *arguments, stdin=subprocess.PIPE) as process:
        for _ in range(2):
            process.stdin.write(message)
            process.stdin.flush()
            first = [json.loads(process.stdout.readline()) for _ in range(MIN_ROWS // 1000)]
            assert [row["subscriber"] for row in first] == list(range(5, MIN_ROWS, 1000))
        assert process.communicate(timeout=300)[1] == ""
    found = contrada(*arguments, input=message, code=0)
    assert read_lines(found.stdout) == first


def test_a_scan_that_is_not_possible_is_an_error(tmp_path):
    pq.write_table(pa.table(many(1000)), tmp_path / "s.parquet")
    lines = write_lines(tmp_path / "s.ndjson", [{"key": 1, "filter": "size > 1"}])
    messages = write_lines(tmp_path / "m.ndjson", [{"size": 2}])
    scan = ["--plan", "scan"]
    assert "one Parquet file" in contrada("match", messages, lines, *scan, code=2).stderr
    buffered = [tmp_path / "s.parquet", "--template", INTERSECTS, "--buffer", 1]
    assert "one Parquet file" in contrada("match", messages, *buffered, *scan, code=2).stderr
    on_spark = [*scan, "--spark", "--output", tmp_path / "out"]
    assert "one Parquet file" in contrada("match", messages, lines, *on_spark, code=2).stderr
    for plan in ("broadcast", "partitioned"):
        assert "--spark" in contrada("match", messages, lines, "--plan", plan, code=2).stderr
