"""The exhibits on covering: small runs keep the paper's trends, and readings are compared with the paper's tables."""

import numpy as np
import pytest

from contrada.errors import CoveringError
from contrada.papers.cover import exhibits as cover
from contrada.papers.cover.commands import Draw, rectangle_commands
from contrada.papers.cover.measuring import measure_counts
from contrada.papers.exhibit import ExperimentError, parse_changes
from contrada.papers.registry import EXHIBITS

SETTING = {
    "commands": 6000, "attributes": 5, "p": 0.4, "k": 1, "draw": "ends", "index": "k-d tree", "buckets": 16,
    "underflow": 0.3125,
}  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    """Small runs of both tables with two limits of buckets and two draws."""
    settings = [
        SETTING | {"p": p, "k": k, "buckets": buckets, "draw": draw}
        for p in (0.05, 0.4)
        for k in (1, 2, 6)
        for buckets, draw in ((16, "ends"), (64, "length:24"))
    ]
    return [{**setting, "seed": 1, **measure_counts(setting, 1)} for setting in settings]


def test_the_trends_hold_in_a_small_run(rows):
    for draw in ("ends", "length:24"):
        for p in (0.05, 0.4):
            chosen = [row for row in rows if row["draw"] == draw and row["p"] == p]
            assert cover.rises(chosen, "nv")
            assert cover.rises(chosen, "pc")
    for row in rows:
        assert row["nv"] == row["nv_s"] + row["nv_u"]
        assert row["pc"] == row["pc_s"] + row["pc_u"]
    ends = [row for row in rows if row["draw"] == "ends" and row["p"] == 0.4]
    # The theorem: no more queries due to unsubscribing than unsubscriptions, about, and fewer for larger k.
    assert all(row["queries_u"] <= 1.05 * (6000 - row["queries_s"]) for row in ends)
    assert ends[-1]["queries_u"] < ends[0]["queries_u"]


def test_trends_that_do_not_hold_are_told(rows):
    turned = [row | {"nv": -row["nv"]} for row in rows]
    assert cover.rises_everywhere(turned, "nv", "p", "draw") is False
    assert cover.rises([rows[0]], "nv") is None


def test_the_papers_tables_add_up():
    # Table I and II as printed: the totals are those of their parts.
    for table in cover.TABLES.values():
        for nv, nv_s, nv_u, pc, pc_s, pc_u in table.values():
            assert (nv, pc) == (nv_s + nv_u, pc_s + pc_u)


@pytest.mark.parametrize("law", ["ends", "length", "start"])
def test_segments_lie_in_the_range_and_have_every_length(law):
    rng = np.random.default_rng(1)
    lows, highs = Draw.parse(f"{law}:6").segments(rng, (4000, 2))
    assert (lows >= 0).all()
    assert (lows <= highs).all()
    assert (highs <= 5).all()
    assert (lows == lows.round()).all()
    assert set((highs - lows).ravel()) == set(range(6))
    lows, highs = Draw.parse(law).segments(rng, (4000, 2))
    assert ((lows >= 0) & (lows <= highs) & (highs < 1)).all()


def test_draws_differ_in_the_law_of_lengths():
    rng = np.random.default_rng(1)
    shares = {}
    for law in ("ends", "length", "start"):
        lows, highs = Draw.parse(law).segments(rng, (20_000, 1))
        shares[law] = float((highs - lows).mean())
    assert shares["ends"] == pytest.approx(1 / 3, abs=0.01)
    assert shares["length"] == pytest.approx(1 / 2, abs=0.01)
    assert shares["start"] == pytest.approx(1 / 4, abs=0.01)


def test_buckets_are_merged_below_the_underflow_limit():
    never, early = (measure_counts(SETTING | {"underflow": share}, 1) for share in (0.0, 0.5))
    assert never["nv"] > early["nv"], "buckets that shrink are never merged"
    assert never["forwarded"] == early["forwarded"]
    with pytest.raises(ExperimentError, match="from 0 to 1"):
        parse_changes(EXHIBITS["cover-table-1"], ["underflow=1.5"])


@pytest.mark.parametrize("text", ["", "ends:", "ends:0", "ends:x", "middle", "length:1.5", f"ends:{'9' * 400}"])
def test_other_draws_are_refused(text):
    with pytest.raises(CoveringError, match="unknown draw"):
        rectangle_commands(10, 2, 0.1, 1, text)


def test_the_misfit_is_the_mean_factor_to_the_papers_counts():
    exact = [{"p": p, "k": k, **cover.printed({"p": p, "k": k})} for p in cover.LOADS for k in cover.MODES]
    assert cover.misfit(exact) == 1
    assert cover.misfit([row | {"nv": 2 * row["nv"], "pc": row["pc"] / 2} for row in exact]) == 2


def test_readings_are_told_with_the_best_first():
    exhibit = EXHIBITS["cover-readings"]
    settings = [
        setting for setting in exhibit.settings(exhibit.grid())
        if setting["draw"] in ("ends", "length:32") and setting["buckets"] == 64
    ]  # fmt: skip
    factor = {"ends": 1.6, "length:32": 1.5}
    rows = [{**s, "seed": 1, **{n: v * factor[s["draw"]] for n, v in cover.printed(s).items()}} for s in settings]
    assert cover.tell_readings(rows).splitlines()[2:] == [
        "| draw | 64 |", "|---|---|", "| length:32 | 1.50 |", "| ends | 1.60 |",
    ]  # fmt: skip
    assert cover.is_chosen_good(rows)
    assert not cover.is_chosen_good([row | {"nv": row["nv"] * (1 + (row["draw"] != "ends"))} for row in rows])
    assert cover.tell_readings([row | {"commands": 100} for row in rows]) == "", "other runs are not compared"


def test_gains_say_where_the_z_curve_is_no_faster_than_the_scan():
    seconds = {"scan": {1000: 2.0, 2000: 8.0}, "Z-curve": {1000: 2.5, 2000: 4.0}, "k-d tree": {1000: 1.0, 2000: 1.0}}
    rows = [{"index": i, "commands": n, "seconds": s, "seed": 1} for i, of in seconds.items() for n, s in of.items()]
    text = cover.tell_gains(rows)
    assert "8.0 times as long as the k-d tree and 2.0 times as long as the Z-curve" in text
    assert text.endswith("no faster than the compiled scan at 1,000 commands.")
