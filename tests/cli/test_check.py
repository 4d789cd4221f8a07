"""`contrada check`: what a filter becomes, and what is wrong."""

import json
from functools import partial

import pytest

import contrada as ct
from console import contrada, write_lines

ASKED = "NOT (kind = 'storm' OR severity < 3) AND (overlaps(area, BBOX(0, 0, 4, 4)) OR is_open)"


run = partial(contrada, "check")


def test_each_filter_on_a_line():
    count, *filters = run(ASKED, code=0).stdout.splitlines()
    assert count == "2 filters, 6 constraints"
    assert ct.parse(" OR ".join(f"({line})" for line in filters)) == ct.parse(ASKED)


def test_json_can_be_read_again(tmp_path):
    result = run(ASKED, "--json")
    assert ct.parse(json.loads(result.stdout)) == ct.parse(ASKED)
    assert run(result.stdout).stdout == run(ASKED).stdout, "JSON is a filter too"
    (tmp_path / "filter.cql2").write_text(ASKED + "\n")
    assert run(f"@{tmp_path / 'filter.cql2'}").stdout == run(ASKED).stdout
    assert run("-", input=ASKED).stdout == run(ASKED).stdout


def test_a_fault_is_shown_at_its_place():
    result = run("severity >= 3 AND (kind = 'storm' OR)", code=1)
    assert result.stdout == ""
    fault, text, mark = result.stderr.splitlines()
    assert "line 1, column 37" in fault
    assert mark.index("^") == text.index("OR)") + 2


@pytest.mark.parametrize(
    ("word", "union"),
    [("contains", "S_CONTAINS"), ("covers", "S_CONTAINS"), ("inside", "S_WITHIN"), ("covered_by", "S_WITHIN")],
)
def test_bare_words_are_strict(word, union):
    for text in (f"{word}(area, BBOX(0, 0, 1, 1))", f"NOT {word}(area, BBOX(0, 0, 1, 1)) AND x = 1"):
        (note,) = [line for line in run(text).stdout.splitlines() if line.startswith("note:")]
        assert f"{word} is strict" in note
        assert union in note
    as_json = run(f"{word}(area, BBOX(0, 0, 1, 1))", "--json")
    assert "strict" not in as_json.stdout
    assert "strict" in as_json.stderr


def test_others_need_no_note():
    for text in ("S_CONTAINS(a, POINT(1 2))", "S_WITHIN(a, POINT(1 2))", "meets(a, POINT(1 2))", "x = 1"):
        assert "note" not in run(text).output


def test_a_template_names_its_columns():
    assert "geometry, least" in run("overlaps(area, $geometry) AND severity >= $least").stdout


def test_a_file_of_subscriptions(tmp_path):
    path = tmp_path / "s.ndjson"
    path.write_text("""{"key": 1, "filter": "x >= 1"}
{"key": 2, "filter": "x >="}
{"key": 1, "filter": "inside(a, POINT(1 2))"}
{"key": 3, "filter": "inside(a, POINT(1 2))"}
rubbish
""")
    result = run("--file", path, code=1)
    told = [line.partition(" ")[0] for line in result.stdout.splitlines() if line.startswith(str(path))]
    assert told == [f"{path}:{line}:" for line in (2, 3, 5)]
    assert "2 good subscriptions, 3 bad" in result.stderr
    assert "inside is strict" in result.stderr
    path.write_text('{"key": 1, "filter": "x >= 1"}')
    run("--file", path, code=0)


@pytest.mark.parametrize(
    ("name", "text", "template", "told"),
    [
        ("s.csv", "key,least\na,1\nb,\n", ["--template", "severity >= $least"], "s.csv:3: column 'least': no value"),
        ("s.ndjson", '{"key": 1, "filter": "x >= $least"}', [], "$least is a column of a template"),
    ],
)
def test_a_file_and_a_template_that_do_not_fit(tmp_path, name, text, template, told):
    (tmp_path / name).write_text(text)
    assert told in run("--file", tmp_path / name, *template, code=1).stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x > 3 AND y = 1 AND x < 3", ["this filter can never match: x > 3 and x < 3 exclude each other"]),
        ("x BETWEEN 5 AND 3", ["this filter can never match: no value satisfies x BETWEEN 5 AND 3"]),
        ("relation(a, POINT(1 2))", ["this filter can never match: no value satisfies relation(a, POINT (1 2))"]),
        ("x = 1 OR x = 1 AND x = 2", ["filter 2 of 2 can never match: x = 1 and x = 2 exclude each other"]),
        (
            "disjoint(a, POINT(1 2)) AND equals(a, POINT(1 2))",
            ["S_DISJOINT(a, POINT (1 2)) and S_EQUALS(a, POINT (1 2))"],
        ),
        ("x >= 3 AND x <= 5 AND x IN (1, 9)", ["x IN (1, 9) and x BETWEEN 3 AND 5 exclude each other"]),
        ("x IS NULL AND x > 1", ["x IS NULL and x > 1 exclude each other"]),
        ("x > 3 AND x < 5 AND y <> 'x2'", []),
        ("x < 1 AND x > 2 AND overlaps(a, $g)", ["x < 1 and x > 2 exclude each other"]),
        ("x < $low AND x > $high", []),
    ],
)
def test_filters_that_can_never_match_are_worth_a_warning(text, told):
    found = [line for line in run(text, code=0).stdout.splitlines() if line.startswith("warning:")]
    for line, part in zip(found, told, strict=True):
        assert part in line
    assert "warning" not in run(text, "--json").stdout


def test_warnings_of_a_file_say_where_and_whose(tmp_path):
    fine = " OR ".join(f"x > {k} AND x < {k + 2}" for k in range(500))
    rows = [
        {"key": 7, "filter": "x > 3 AND x < 3"},
        {"key": "fine", "filter": "x > 3 AND x < 5 AND S_INTERSECTS(a, BBOX(0, 0, 1, 1))"},
        {"subscriber": "ops", "filter": "y = 1 OR inside(a, BBOX(0, 0, 1, 1)) AND disjoint(a, BBOX(0, 0, 2, 2))"},
        *[{"subscriber": "ops", "filter": fine}] * 21,  # more filters than are decided together
        {"key": "k", "filter": "x BETWEEN 5 AND 3 OR x BETWEEN 3 AND 5 OR flag = TRUE AND flag <> TRUE"},
    ]
    path = write_lines(tmp_path / "s.ndjson", rows)
    result = run("--file", path, code=0)
    assert [line.partition(" can never match: ")[0] for line in result.stdout.splitlines()] == [
        f"{path}:1: warning: the subscription 7",
        f"{path}:3: warning: filter 2 of 2 of this subscription",
        f"{path}:25: warning: filter 1 of 3 of the subscription 'k'",
        f"{path}:25: warning: filter 3 of 3 of the subscription 'k'",
    ]
    assert "25 good subscriptions, 0 bad, 4 filters that can never match" in result.stderr


def test_rows_that_make_a_template_impossible(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("key,low,high\na,1,2\nb,3,2\nc,,1\nd,5,1\n")
    asked = "x BETWEEN $low AND $high AND y = 1 OR z < 3 AND z > 4 AND x = $low"
    result = run("--file", path, "--template", asked, code=1)
    told = [line.partition(": no value satisfies ")[2] for line in result.stdout.splitlines()[1:]]
    assert told == ["x BETWEEN 3 AND 2", "x BETWEEN 5 AND 1"]
    assert f"{path}:3: warning: filter 1 of 2 of the subscription 'b'" in result.stdout
    assert result.stderr.count("warning: filter 2 of 2 can never match") == 1
    path.write_text("key,low,high\n")
    run("--file", path, "--template", asked, code=0)


def test_usage(tmp_path):
    none = tmp_path / "none"
    for arguments in ([], ["x = 1", "--file", tmp_path], ["--file", none], [f"@{none}"]):
        run(*arguments, code=2)
    (tmp_path / "latin").write_bytes(b"name = 'Citt\xe0'")
    assert "is not UTF-8" in run(f"@{tmp_path / 'latin'}").stderr
    assert "is not UTF-8" in run("-", input=b"name = 'Citt\xe0'").stderr
