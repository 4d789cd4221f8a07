"""`contrada overlay`: what people type, and what they get."""

import json

import pytest
from typer.testing import CliRunner

from contrada.cli.main import app


def run(*arguments, input=None):
    return CliRunner().invoke(app, ["overlay", *map(str, arguments)], input=input)


def test_simulate_prints_what_was_promised():
    result = run("simulate", "--subscriptions", 200, "--messages", 40, "--split", "rstar", "--degree", "2,5", "--json")
    assert result.exit_code == 0, result.output
    row = json.loads(result.stdout)
    for name in ("false_positive_ratio", "false_receipt_ratio", "control_ratio", "hits", "hops", "degree", "seconds"):
        assert name in row
    assert row["false_negatives"] == 0
    assert (row["choose"], row["least"], row["most"]) == ("rstar", 2, 5)


def test_simulate_for_people():
    result = run("simulate", "--subscriptions", 100, "--messages", 10)
    assert result.exit_code == 0
    assert "false negatives   0" in result.stdout


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--degree", "5", "two whole numbers"),
        ("--degree", "6,10", "cannot be split"),
        ("--distribution", "x", "there are"),
    ],
)
def test_wrong_options_say_what_is_wrong(option, value, word):
    result = run("simulate", option, value)
    assert result.exit_code == 2
    assert word in result.stderr


def test_evaluate_draws_from_its_rows(tmp_path):
    arguments = ("evaluate", "--scale", 0.002, "--seeds", 1, "--processes", 1, "--rows", tmp_path / "rows.ndjson")
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "figure_07_size.png").exists()
    assert "| 20, 40 |" in result.stdout
    again = run(*arguments)
    assert again.stderr == "", "nothing is computed twice"
