"""`contrada simplify`: rows in and out, exactly, bad ones set aside; the report."""

import json
from functools import partial, reduce

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import contrada as ct
from console import collection, contrada, feature, read_lines, write_lines
from contrada.formats.subscriptions import read_subscriptions
from contrada.simplification.simplifying import RULES, Simplification, simplified_groups, simplify
from generators.scalars import predicates

ROWS = [
    {"key": "a", "subscriber": "ops", "filter": "severity >= 3 AND severity >= 5"},
    {"key": 2, "subscriber": "harbour", "filter": "kind = 'flood' OR kind = 'storm'"},
    {"key": "never", "subscriber": "ops", "filter": "x < 1 AND x > 1 AND y = 2"},
    {"key": "c", "subscriber": "ops", "filter": "severity >= 4 AND kind = 'flood'"},
]
SHORTER = [
    {"key": "a", "subscriber": "ops", "filter": "severity >= 5"},
    {"key": 2, "subscriber": "harbour", "filter": "kind IN ('flood', 'storm')"},
    {"key": "never", "subscriber": "ops", "filter": "x < 1 AND x > 1"},
    {"key": "c", "subscriber": "ops", "filter": "severity >= 4 AND kind = 'flood'"},
]
BAD = '{"key": "typo", "filter": "severity >="}\n{"key": "a", "filter": "x = 1"}\nrubbish\n{"filter": "x = 1"}\n'


run = partial(contrada, "simplify")


def read_again(path):
    return [(item.key, item.subscriber, ct.parse(item.filter)) for item in read_subscriptions(str(path))]


@pytest.fixture
def file(tmp_path):
    return write_lines(tmp_path / "s.ndjson", ROWS)


def parsed(rows):
    """Rows with their filters as predicates, since the order of constraints says nothing."""
    return [{**row, "filter": ct.parse(row["filter"])} for row in rows]


def shorter(result):
    """True if the rows of SHORTER are what was printed."""
    return parsed(read_lines(result.stdout)) == parsed(SHORTER)


def test_each_by_itself(file):
    result = run(file, code=0)
    assert shorter(result)
    assert "subscriptions: 4\n" in result.stderr
    assert "-> 4" in result.stderr
    for what in RULES.values():
        assert what in result.stderr
    assert shorter(run("-", input=file.read_text()))
    assert run(file, "--quiet").stderr.replace("contrada: compiling", "") == ""


def test_across_makes_one_of_each_subscriber(file):
    result = run(file, "--across", code=0)
    found = read_lines(result.stdout)
    assert [sorted(row) for row in found] == [["filter", "subscriber"]] * 2
    expected = {"ops": "severity >= 5 OR severity >= 4 AND kind = 'flood'", "harbour": SHORTER[1]["filter"]}
    assert parsed(found) == parsed({"subscriber": name, "filter": text} for name, text in expected.items())
    assert "subscribers:   2" in result.stderr


def test_across_does_not_depend_on_the_order_of_rows(tmp_path):
    names = [3, 1, 2, "b", "a", 7]
    asked = [f"x >= {k % 3} AND y = {k % 2} AND at{k} IS NOT NULL" for k in range(len(names))]
    rows = [{"key": k, "subscriber": "ops", "filter": text} for k, text in zip(names, asked, strict=True)]
    orders = (rows, rows[::-1], sorted(rows, key=str))
    assert len({run(write_lines(tmp_path / "s.ndjson", chosen), "--across").stdout for chosen in orders}) == 1


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("suffix", [".ndjson", ".jsonl", ".csv", ".parquet", ".arrow"])
def test_what_is_written_can_be_read_again(file, tmp_path, suffix, across):
    out = tmp_path / f"out{suffix}"
    options = ["--across"] if across else []
    assert run(file, "--output", out, *options, code=0).stdout == ""
    named = str if suffix in (".parquet", ".arrow") else lambda name: name
    assert read_again(out) == [
        (None if across else named(row["key"]), named(row["subscriber"]), ct.parse(row["filter"]))
        for row in read_lines(run(file, *options).stdout)
    ]


def test_integers_stay_integers_in_tables(tmp_path):
    (tmp_path / "s.ndjson").write_text('{"key": 1, "filter": "x = 1"}\n{"subscriber": 7, "filter": "x = 2"}\n')
    run(tmp_path / "s.ndjson", "-o", tmp_path / "o.parquet", code=0)
    table = pq.read_table(tmp_path / "o.parquet")
    assert table.column("key").to_pylist() == [1, None]
    assert table.column("subscriber").to_pylist() == [1, 7]


def test_names_that_a_table_or_csv_cannot_hold_are_errors(tmp_path):
    (tmp_path / "s.ndjson").write_text('{"key": 1, "filter": "x = 1"}\n{"key": "1", "filter": "x = 2"}\n')
    equal = run(tmp_path / "s.ndjson", "-o", tmp_path / "o.parquet", code=2)
    assert "the keys 1 and '1' would be equal in a table" in equal.stderr
    (tmp_path / "s.ndjson").write_text(json.dumps({"key": 1, "filter": "x = 'a\nb'"}))
    assert "line break" in run(tmp_path / "s.ndjson", "-o", tmp_path / "o.csv").stderr
    (row,) = read_lines(run(tmp_path / "s.ndjson").stdout)
    assert ct.parse(row["filter"]) == ct.parse("x = 'a\nb'")


def test_bad_rows_are_set_aside(file, tmp_path):
    file.write_text(file.read_text() + BAD)
    result = run(file, "--reject", tmp_path / "bad.ndjson", code=0)
    assert shorter(result)
    assert "4, and 4 rejected" in result.stderr
    reasons = [row["reason"] for row in read_lines(tmp_path / "bad.ndjson")]
    for reason, part in zip(reasons, ("line 1, column", "duplicate key 'a'", "JSON", "needs a key"), strict=True):
        assert part in reason
    run(file, "--strict", code=1)
    file.write_text(BAD.splitlines()[0])
    assert "no valid subscription" in run(file, "-o", tmp_path / "none.ndjson", code=2).stderr
    assert not (tmp_path / "none.ndjson").exists()


@pytest.mark.parametrize("suffix", [".ndjson", ".csv", ".parquet"])
def test_an_empty_file(tmp_path, suffix):
    (tmp_path / "s.ndjson").write_text("")
    run(tmp_path / "s.ndjson", "-o", tmp_path / f"o{suffix}", code=0)
    assert read_again(tmp_path / f"o{suffix}") == []


def test_the_report_as_json(file, tmp_path):
    simplified = simplified_groups([ct.parse(row["filter"]).filters for row in ROWS])
    expected = reduce(Simplification.plus, (one.report for one in simplified), Simplification())
    report = json.loads(run(file, "--json", "-o", tmp_path / "o.ndjson").stdout)
    assert (report["filters_before"], report["filters_after"]) == (expected.filters_before, expected.filters_after)
    assert report["rules"] == expected.rules
    assert (report["subscriptions"], report["rejected"], report["written"]) == (4, 0, 4)
    straight = run(file, "--json")
    assert shorter(straight)
    assert json.loads(straight.stderr.splitlines()[-1])["rules"] == expected.rules


def test_rows_of_a_template(tmp_path):
    square = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
    features = [feature(square, id=f"f{k}", low=k, high=high) for k, high in enumerate([5, 0, None, 9])]
    path = tmp_path / "f.geojson"
    path.write_text(collection(features))
    template = "S_INTERSECTS(area, $geometry) AND x >= $low AND x <= $high AND x >= 0"
    result = run(path, "--template", template, "--key", "id")
    square = "S_INTERSECTS(area, POLYGON((0 0, 4 0, 4 4, 0 4, 0 0)))"
    assert parsed(read_lines(result.stdout)) == [
        {"key": name, "subscriber": name, "filter": simplify(f"{square} AND x >= {low} AND x <= {high} AND x >= 0")}
        for name, low, high in (("f0", 0, 5), ("f1", 1, 0), ("f3", 3, 9))
    ]
    assert "area is in OGC:CRS84" in result.stderr
    assert "1 rejected" in result.stderr
    numbered = read_lines(run(path, "--template", template).stdout)
    assert [row["key"] for row in numbered] == [0, 1, 2]
    (one,) = read_lines(run(path, "--template", "x >= $low", "--subscriber", "id", "--across").stdout)[:1]
    assert one == {"subscriber": "f0", "filter": "x >= 0"}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st.lists(predicates(), min_size=1, max_size=8))
def test_any_predicate_is_written_exactly(asked, tmp_path):
    asked = [one for one in asked if str(one).isprintable()] or [ct.parse("x = 1")]  # JSON has no lone surrogates
    rows = [{"key": k, "filter": str(one)} for k, one in enumerate(asked)]
    result = run(write_lines(tmp_path / "s.ndjson", rows), code=0)
    assert [ct.parse(row["filter"]) for row in read_lines(result.stdout)] == [simplify(one) for one in asked]


def test_usage(file, tmp_path):
    for arguments in ([], [tmp_path / "none"], [file, "--key", "id"], [file, "-o", file], [file, "-o", tmp_path]):
        run(*arguments, code=2)
