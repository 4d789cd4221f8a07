"""The overlay paper's evaluation: workloads, the oracle of receipts, rows that are kept, and figures."""

import json
from dataclasses import replace

import numpy as np
import pytest

from contrada.errors import OverlayError
from contrada.papers.overlay import figures as overlay_figures
from contrada.papers.overlay import plots as overlay_plots
from contrada.papers.overlay import tables as overlay_tables
from contrada.papers.overlay import workload
from contrada.papers.overlay.run import Setting, build, measure, send
from contrada.papers.overlay.tree import degree_of, false_share, reach_of, received, shuffled_reach
from contrada.papers.overlay.workload import MAX_COORDINATE, count_uncontained, distribution_of, holding

SMALL = Setting(subscriptions=300, messages=60)


def quiet(what, done, total):
    pass


@pytest.mark.parametrize("name", ["uniform", "zipf", "uniform-25:75", "zipf-10:90", "scattered-25:75"])
def test_subscriptions_are_what_the_paper_says(name):
    boxes = workload.draw_subscriptions(2000, 3, name, np.random.default_rng(1))
    lows, highs = boxes[:, :3], boxes[:, 3:]
    assert (lows >= 0).all()
    assert (lows <= highs).all()
    assert (highs <= MAX_COORDINATE).all()
    assert (boxes == boxes.round()).all()
    assert (lows == highs).any(), "a range may be a single value"
    share = distribution_of(name).free
    assert count_uncontained(boxes) <= share * 2000
    if name == "zipf":
        assert (lows == 0).mean() == pytest.approx(1 / (1 / np.arange(1, MAX_COORDINATE + 2)).sum(), rel=0.1)
    if name == "uniform":
        assert lows.mean() == pytest.approx(MAX_COORDINATE / 2, rel=0.05)


def test_uncontained_against_all_pairs():
    boxes = workload.draw_subscriptions(150, 2, "uniform", np.random.default_rng(3)) // 100
    boxes = np.vstack([boxes, boxes[:20]])

    def contains(a, b):
        return (a[:2] <= b[:2]).all() and (a[2:] >= b[2:]).all()

    def is_contained(row):
        others = ((at, other) for at, other in enumerate(boxes) if at != row)
        return any(contains(other, boxes[row]) and ((other != boxes[row]).any() or at < row) for at, other in others)

    assert count_uncontained(boxes) == sum(not is_contained(row) for row in range(len(boxes)))


@pytest.mark.parametrize("name", ["gauss", "zipf-25:70", "zipf-", "uniform-100:0"])
def test_other_distributions_are_refused(name):
    with pytest.raises(OverlayError):
        distribution_of(name)


def test_wrong_settings_are_refused():
    for wrong in ({"subscriptions": 0}, {"dimensions": 0}, {"distribution": "x"}, {"least": 7}, {"seed": -1}):
        with pytest.raises(OverlayError):
            Setting(**wrong)


@pytest.mark.parametrize("method", overlay_figures.METHODS)
def test_the_simulation_agrees_with_the_boxes(method):
    setting = replace(SMALL, **overlay_figures.METHODS[method])
    boxes = workload.draw_subscriptions(setting.subscriptions, 4, setting.distribution, np.random.default_rng(1))
    points = workload.draw_messages(setting.messages, 4, np.random.default_rng(2))
    simulator = build(boxes, setting, quiet)
    found = send(simulator, boxes, points, quiet)
    got, wanted = received(simulator, points), holding(boxes, points)
    assert found["false_positive_ratio"] == pytest.approx((got & ~wanted).mean())
    assert found["receipts"] == got.sum()
    assert found["false_receipt_ratio"] == pytest.approx((got & ~wanted).sum() / got.sum())
    assert found["hits"] == wanted.sum() / len(points)
    assert found["false_negatives"] == (wanted & ~got).sum() == 0
    if method != "ours":
        root = list(simulator.peers).index(simulator.root)
        owns, reach = reach_of(simulator)
        outside = int((~holding(reach[[root]], points)).sum())  # the root has them all the same: they start there
        ratio = false_share(owns, reach, points) + outside / len(boxes) / len(points)
        assert found["false_positive_ratio"] == pytest.approx(ratio)


def test_sketches_halve_the_false_positives_of_the_same_tree():
    setting = Setting(subscriptions=1000, messages=100)
    plain, ours = (measure(replace(setting, **overlay_figures.METHODS[method])) for method in ("rstar", "ours"))
    assert ours["false_positive_ratio"] < plain["false_positive_ratio"] / 2
    assert (ours["degree"], ours["height"]) == (plain["degree"], plain["height"])


def test_the_control_has_the_same_shape_and_more_false_positives():
    setting = replace(SMALL, subscriptions=600)
    row = measure(setting)
    assert row["control_ratio"] > 3 * row["false_positive_ratio"]
    boxes = workload.draw_subscriptions(600, 4, setting.distribution, np.random.default_rng(1))
    simulator = build(boxes, setting, quiet)
    owns, reach = shuffled_reach(simulator, np.random.default_rng(1))
    inner = sum(peer.state.top > 0 for peer in simulator.peers.values())
    assert 0 < (owns != reach).any(axis=1).sum() <= inner
    degree = degree_of(simulator)
    assert 5 <= degree.average <= degree.max
    nodes = sum(sum(map(len, peer.state.nodes)) for peer in simulator.peers.values())
    assert degree.average * inner == pytest.approx(nodes)
    held = sum(peer.state.top for peer in simulator.peers.values())
    once = degree_of(simulator, is_once=True)
    assert once.average * inner == pytest.approx(nodes - held + inner)
    assert once.max < degree.max


def test_a_row_has_what_was_promised():
    row = measure(SMALL)
    assert row["hops"]["max"] <= row["height"]
    assert row["notes_per_join"] < 30
    assert sum(count for _, count, _ in row["by_hits"]) == SMALL.messages
    total = sum(count * share for _, count, share in row["by_hits"])
    assert total / SMALL.messages == pytest.approx(row["false_positive_ratio"])
    assert measure(SMALL) | {"seconds": 0, "seconds_joining": 0} == row | {"seconds": 0, "seconds_joining": 0}


def test_rows_are_kept_and_drawn(tmp_path):
    path = tmp_path / "rows.ndjson"
    settings = overlay_figures.settings_of([1], scale=0.004)[:8]
    told = []
    assert overlay_figures.run(settings[:5], path, 1, lambda done, total, row: told.append((done, total))) == 5
    assert told == [(k, 5) for k in range(1, 6)]
    with path.open("a") as target:
        target.write('{"subscriptions": 4, "mess')  # interrupted here
    assert overlay_figures.run(settings, path, 1) == len(set(settings)) - len(set(settings[:5]))
    assert overlay_figures.run(settings, path, 1) == 0
    rows = overlay_figures.read_rows(path)
    assert {overlay_figures.setting_of(row) for row in rows} == set(settings)
    assert all(row["version"] for row in rows)
    pictures = overlay_plots.plot(rows, tmp_path / "figures", "svg", scale=0.004)
    assert len(pictures) == 6
    assert all(picture.stat().st_size > 1000 for picture in pictures)
    text = overlay_tables.tables(rows, 0.004)
    assert text.count("**Figure") == 5
    assert "| 5, 10 | " in text.partition("**Table 2")[2]
    json.dumps(rows)


@pytest.mark.slow  # processes load all kernels
def test_two_processes_give_the_same_rows(tmp_path):
    settings = overlay_figures.settings_of([1], scale=0.004)[:3]
    for processes in (1, 2):
        overlay_figures.run(settings, tmp_path / f"{processes}.ndjson", processes)

    def ratios(processes):
        rows = overlay_figures.read_rows(tmp_path / f"{processes}.ndjson")
        return {overlay_figures.setting_of(row): row["false_positive_ratio"] for row in rows}

    assert ratios(1) == ratios(2)
