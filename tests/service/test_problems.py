import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contrada as ct
from contrada import errors
from contrada.service import problems
from contrada.service.problems import BAD_BODY, CATALOGUE, Problem, problem_of, problems_table

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.builds(np.int64, st.integers(-(1 << 63), (1 << 63) - 1))
    | st.builds(np.float64, st.floats())
    | st.just(Path("/somewhere"))
    | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def caught(query):
    with pytest.raises(ct.ContradaError) as caught:
        ct.parse(query)
    return problem_of(caught.value)


def test_types_of_the_catalogue_differ_and_have_titles_of_their_own():
    assert len({kind.uri for kind in CATALOGUE}) == len({kind.title for kind in CATALOGUE}) == len(CATALOGUE) > 20
    for kind in CATALOGUE:
        assert kind.uri == f"/problems/{kind.name}"
        assert 400 <= kind.status < 600
        assert kind.meaning.endswith(".")
        assert getattr(problems, kind.name.replace("-", "_").upper()) is kind


def test_the_table_lists_every_type():
    table = problems_table()
    assert table.count("\n") == len(CATALOGUE) + 1
    for kind in CATALOGUE:
        assert f"| `{kind.uri}` | {kind.status} | {kind.title} |" in table


def test_a_fault_in_the_text_of_a_filter_has_line_and_column():
    problem = caught("a = 1 AND\nb = ")
    assert (problem.type, problem.status) == ("/problems/bad-filter", 400)
    assert (problem.members["line"], problem.members["column"]) == (2, 5)
    assert "a number" in problem.as_dict()["expected"]


def test_a_fault_in_the_json_of_a_filter_has_a_pointer():
    problem = caught({"op": "and", "args": [{"op": "=", "args": [{"property": "a"}, {"nothing": 1}]}, True]})
    assert problem.status == 400
    assert problem.members["path"].startswith("/args/0")


def test_a_bad_region_has_row_part_ring_and_vertex():
    with pytest.raises(ct.RegionError) as caught:
        ct.RegionArray.from_wkt(["POLYGON((0 0, 1 0, 0 1, 0 0))", "POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))"])
    problem = problem_of(caught.value)
    assert (problem.type, problem.members["row"]) == ("/problems/bad-region", 1)
    assert problem.as_dict()["place"] == [1.0, 1.0]
    assert problem.members["ring"] == 0


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (errors.FilterError("x"), 400, "bad-filter"),
        (errors.LanguageError("x"), 400, "bad-filter"),
        (errors.RegionError("x"), 400, "bad-region"),
        (errors.FormatError("x"), 400, "bad-body"),
        (errors.CrsError("x"), 400, "bad-crs"),
        (errors.LimitError("x"), 413, "too-large"),
        (errors.UnknownKeyError("x"), 404, "unknown-key"),
        (errors.KeyInUseError("x"), 409, "key-in-use"),
        (errors.ArgumentError("x"), 400, "bad-request"),
        (errors.BrokerError("x"), 400, "bad-request"),
        (errors.ContradaError("x"), 400, "bad-request"),
    ],
)
def test_errors_become_problems(error, status, name):
    problem = problem_of(error)
    assert (problem.status, problem.type, problem.detail) == (status, f"/problems/{name}", "x")
    assert json.loads(problem.body()) == problem.as_dict()


def test_every_error_of_ours_becomes_a_problem():
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, ct.ContradaError):
            assert 400 <= problem_of(kind("x")).status <= 500


def test_directories_of_the_server_are_not_shown():
    problem = problem_of(errors.TableError("/var/lib/contrada/tables: version 3 is too old"))
    assert problem.status == 500
    assert b"/var" not in problem.body()


def test_the_places_of_a_cause_are_named_too():
    error = errors.LanguageError("no region", line=3, column=1)
    error.__cause__ = errors.RegionError("crossing", ring=2, place=(1.0, 2.0))
    assert problem_of(error).members == {"line": 3, "column": 1, "ring": 2, "place": (1.0, 2.0)}
    error.__cause__ = ValueError("row")
    assert problem_of(error).members == {"line": 3, "column": 1}


def test_a_bad_region_in_a_filter_has_its_place_in_the_text_and_its_vertex():
    members = caught("S_INTERSECTS(a, POLYGON((0 0, 1 1, 1 0, 0 1, 0 0)))").members
    assert members == {"line": 1, "column": 17, "part": 0, "ring": 0, "place": (0.5, 0.5)}


def test_given_members_replace_those_of_the_error():
    problem = problem_of(errors.RegionError("x", row=0), row=17, attribute="area")
    assert problem.members == {"row": 17, "attribute": "area"}
    again = problem_of(problem, row=18)
    assert (again.type, again.members) == (problem.type, {"row": 18, "attribute": "area"})


def test_zero_is_a_place():
    assert problem_of(errors.RegionError("x", row=0, part=0, ring=0)).members == {"row": 0, "part": 0, "ring": 0}


def test_members_that_are_none_and_an_absent_instance_are_left_out():
    assert set(BAD_BODY("x", row=None, path=None).as_dict()) == {"type", "title", "status", "detail"}
    assert BAD_BODY("x", instance="/messages/7").as_dict()["instance"] == "/messages/7"


def test_a_title_outside_the_catalogue_has_no_type_of_its_own():
    assert Problem(418, "I'm a teapot", "short and stout").type == "about:blank"


def test_long_details_are_cut():
    assert len(BAD_BODY("x" * 100_000).detail) == problems.DETAIL_CHARACTERS
    assert BAD_BODY("x" * problems.DETAIL_CHARACTERS).detail == "x" * problems.DETAIL_CHARACTERS


def test_headers():
    assert BAD_BODY("x").headers() == {"Content-Type": "application/problem+json"}
    assert problems.UNAUTHORIZED("x").headers()["WWW-Authenticate"].startswith("Bearer")
    assert [problems.UNAVAILABLE("x", retry_after=s).headers()["Retry-After"] for s in (0, 0.1, 1, 1.5)] == list("1112")


@given(detail=st.text(st.characters(exclude_categories=())), value=VALUES)
def test_every_problem_has_a_body(detail, value):
    body = json.loads(BAD_BODY(detail, row=value, instance="\ud800").body(), parse_constant=pytest.fail)
    assert body["status"] == 400
    assert ("row" in body) == (value is not None)


def test_numbers_keep_their_value():
    body = BAD_BODY("x", row=np.int64(7), place=(np.float64(0.1), math.pi), line=True).as_dict()
    assert (body["row"], body["place"], body["line"]) == (7, [0.1, math.pi], True)
