"""`contrada overlay`: what people type, and what they get."""

import json
from functools import partial

import pytest

from console import contrada, read_lines
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.trace import TracedSimulator

run = partial(contrada, "overlay")


def test_simulate_prints_what_was_promised_as_json_and_for_people():
    result = run(
        "simulate", "--subscriptions", 200, "--messages", 40, "--split", "rstar", "--degree", "2,5", "--json", code=0
    )
    row = json.loads(result.stdout)
    for name in ("false_positive_ratio", "false_receipt_ratio", "control_ratio", "hits", "hops", "degree", "seconds"):
        assert name in row
    assert row["false_negatives"] == 0
    assert (row["choose"], row["least"], row["most"]) == ("rstar", 2, 5)
    assert "false negatives   0" in run("simulate", "--subscriptions", 100, "--messages", 10, code=0).stdout


def test_show_draws_a_tree_its_boxes_and_a_message(tmp_path):
    for suffix in ("svg", "png"):
        picture = tmp_path / f"overlay.{suffix}"
        run("show", "--subscriptions", 25, "--message", "500,500", "--output", picture, code=0)
        assert picture.stat().st_size > 5000
    text = (tmp_path / "overlay.svg").read_text()
    assert text.count("<path") > 25 * 2
    solid = ["--subscriptions", 12, "--dimensions", 3, "--message", "1,2,3", "--at", 4]
    run("show", *solid, "--output", tmp_path / "x.svg", code=0)


def test_show_draws_what_a_trace_led_to(tmp_path):
    path = tmp_path / "trace.ndjson"
    with path.open("w") as target:
        traced = TracedSimulator(target, Rules(2, 4))
        for k in range(9):
            traced.add([(float(k), 0.0, k + 2.0, float("inf"))])
    run("show", "--trace", path, "--message", "3,3", "--output", tmp_path / "overlay.svg", code=0)


WRONG = {
    ("simulate",): [
        (["--degree", "5"], "two whole numbers"), (["--degree", "6,10"], "cannot be split"),
        (["--distribution", "x"], "unknown distribution"),
    ],
    ("show", "--subscriptions", "8"): [
        (["--output", "overlay.txt"], "need one of the suffixes"),
        (["--message", "1,x"], "need one number per dimension"), (["--message", "1"], "need 2 dimensions, got 1"),
        (["--message", "1,1", "--at", "999"], "unknown peer 999"), (["--split", "cubic"], "values: quadratic"),
        (["--trace", "nowhere"], "nowhere"),
    ],
    ("peer", "--subscribe"): [
        (["x <", "--dimensions", "x"], "expected one of"),
        (["x < 1 AND x > 2", "--dimensions", "x"], "no message can match"),
        (["x < 1", "--dimensions", "x:text"], "kinds: number, region"),
        (["x < 1", "--dimensions", "x", "--listen", "here"], "HOST:PORT"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "arguments", "word"),
    [(command, arguments, word) for command, cases in WRONG.items() for arguments, word in cases],
)
def test_wrong_options_say_what_is_wrong(command, arguments, word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert word in run(*command, *arguments, code=2).stderr


def test_publish_says_when_nobody_is_there(tmp_path):
    run("publish", "{}", "--to", "127.0.0.1:9", code=2)
    assert "HOST:PORT" in run("publish", "{}", "--to", "nowhere").stderr
    (tmp_path / "empty").write_text("\n")
    assert "is empty" in run("publish", "{}", "--to", "127.0.0.1:9", "--secret-file", tmp_path / "empty").stderr
    assert "needs all of" in run("publish", "{}", "--to", "127.0.0.1:9", "--tls-cert", tmp_path / "empty").stderr


@pytest.mark.parametrize(
    "host", ["a..b:7000", "no-such-host.invalid:7000", f"{'x' * 70}:1", "h:99999", "h:\u00b2", "a b:1"]
)
def test_bad_hosts_are_one_line(host):
    peer = ("peer", "--subscribe", "x < 1", "--dimensions", "x")
    for arguments in [("publish", "{}", "--to", host), (*peer, "--listen", host), (*peer[:3], "--join", host)]:
        told = run(*arguments, code=2).stderr
        assert told.startswith("error: ")
        assert host.rpartition(":")[0] in told or "port" in told
        assert told.count("\n") == 1, told


def test_churn_counts_what_was_missed():
    arguments = ("churn", "--peers", 30, "--seconds", 6, "--crashes", 1, "--loss", 0.1, "--degree", "2,5")
    row = json.loads(run(*arguments, "--json").stdout)
    assert row["false_negatives_after"] == 0
    assert row["healed_after"] is not None
    assert 0 <= row["false_negatives"] <= row["wanted"]
    assert "whole again" in run(*arguments).stdout
    run("churn", "--loss", 2, code=2)


def test_churn_of_several_seeds_tells_means_and_ranges():
    arguments = ("churn", "--peers", 30, "--seconds", 6, "--crashes", 1, "--degree", "2,5", "--seed", 4, "--seeds", 3)
    rows = read_lines(run(*arguments, "--json").stdout)
    assert [row["seed"] for row in rows] == [4, 5, 6]
    missed = [100 * row["false_negative_ratio"] for row in rows]
    told = run(*arguments).stdout.splitlines()
    assert len(told) == 3 * 7 + 1
    assert f"3 seeds: {sum(missed) / 3:.3f} % missed meanwhile ({min(missed):.3f} to {max(missed):.3f}), " in told[-1]
    assert ", 0 false negatives afterwards, " in told[-1]
