"""The examples do what they say."""

import os
import runpy
from pathlib import Path

import pytest
import shapely

EXAMPLES = Path(__file__).parent.parent / "examples"
DATA = Path(os.environ.get("CONTRADA_DATA", "nowhere"))


@pytest.fixture(scope="module")
def figure_1():
    return runpy.run_path(str(EXAMPLES / "figure_1.py"))


def test_the_message_of_figure_1_goes_to_i2(figure_1):
    table, message = figure_1["table"], figure_1["message"]
    assert set(table.match(message)) == {"I2"}
    why = table.explain(message, "predicate of I2")
    assert [part.truth for part in why.filters] == [None, True], "by the second of its filters"
    table.pack()
    assert set(table.match(message)) == {"I2"}


@pytest.mark.parametrize(
    "changed", [{"warning": "leak"}, {"concentration": 100}, {"hazard": 3}, {"hazard": "4"}, {"area": None}]
)
def test_a_message_that_misses_one_constraint_goes_nowhere(figure_1, changed):
    assert not figure_1["table"].match(figure_1["message"] | changed)


def test_an_area_that_is_not_disjoint_goes_nowhere(figure_1):
    assert not figure_1["table"].match(figure_1["message"] | {"area": figure_1["RESERVE"]})


@pytest.fixture(scope="module")
def alerts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alerts")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("CONTRADA_DATA", "nowhere")
        return {"folder": folder, **runpy.run_path(str(EXAMPLES / "alerts_for_facilities.py"))}


def test_what_stands_of_the_alerts(alerts):
    # 05 is a test, 07 cancels 06, 09 updates 08.
    assert sorted(alerts["alerts"]) == [f"VALLEY-{k:02}" for k in (1, 2, 3, 4, 9, 10, 11, 12)]
    assert [item.is_part for item in alerts["rejected"]] == [True], "the zone of 12 is not known"


def test_facilities_hear_of_what_touches_them_at_their_level(alerts):
    rows = alerts["facilities"].table
    asked = list(zip(*(rows.column(name).to_pylist() for name in ("key", "geometry", "min_severity")), strict=True))
    expected = {
        identifier: {key for key, wkb, least in asked if reaches(message, wkb, least)}
        for identifier, message in alerts["alerts"].items()
    }
    assert alerts["matches"] == expected
    assert expected["VALLEY-12"] == set()
    assert all(expected[f"VALLEY-{k:02}"] for k in (1, 2, 3, 4, 9, 10, 11))


def reaches(message, wkb, least):
    """True if an alert reaches a facility, as Shapely sees it."""
    return (
        "area" in message
        and message["level"] >= least
        and bool(shapely.intersects(message["area"].to_shapely(), shapely.from_wkb(wkb)))
    )


def test_the_picture_is_drawn(alerts):
    assert (alerts["folder"] / alerts["target"]).read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not DATA.joinpath("events_nws.parquet").exists(), reason="no real warnings: CONTRADA_DATA")
def test_real_warnings(alerts):
    count, rejected, matches = alerts["match_warnings"](DATA / "events_nws.parquet")
    assert (count, rejected) == (10_960, 7)
    assert matches > 10_000
