"""The experiments on covering: small runs keep the paper's trends, and plots come from the file."""

import json

import pytest

from console import contrada
from contrada.errors import FormatError
from contrada.papers import result_file
from contrada.papers.cover import figures as cover_figures
from contrada.papers.cover import tables as cover_tables


def experiment(*arguments, exit_code=0):
    """Run a command and return it."""
    done = contrada("experiment", *arguments)
    assert done.exit_code == exit_code, done.output
    return done


def test_the_trends_hold_in_a_small_run():
    rows = list(cover_tables.measure(commands=6000, limits=[(16, 5), (64, 20)]))
    assert len(rows) == 2 * 2 * 6
    for trend in cover_tables.trends(rows):
        assert [trend[name] for name in ("nv rises", "pc rises", "k = 1 is cheapest")] == [True] * 3, trend
    for row in rows:
        assert row["nv"] == row["nv_s"] + row["nv_u"]
        assert row["pc"] == row["pc_s"] + row["pc_u"]
        # The theorem: no more queries due to unsubscribing than unsubscriptions, about, and fewer for larger k.
        assert row["queries_u"] <= 1.05 * (6000 - row["queries_s"])
    by_k = {row["k"]: row["queries_u"] for row in rows if row["p"] == 0.4 and row["overflow"] == 16}
    assert by_k[6] < by_k[1]


def test_trends_that_do_not_hold_are_told():
    rows = [{"p": 0.4, "overflow": 8, "k": k, "nv": 5, "pc": -k, "queries_u": k} for k in (1, 2)]
    assert [value for value in cover_tables.trends(rows)[0].values() if isinstance(value, bool)] == [False] * 4


def test_the_papers_tables_add_up():
    # Table I and II as printed: the totals are those of their parts.
    for table in cover_tables.PAPER.values():
        for nv, nv_s, nv_u, pc, pc_s, pc_u in table.values():
            assert (nv, pc) == (nv_s + nv_u, pc_s + pc_u)


def test_tables_from_the_command_line(tmp_path):
    printed = json.loads(experiment("cover-tables", "--json", "--commands", 300, "--output", tmp_path).stdout)
    assert printed["settings"] == {"seed": 7, "commands": 300, "attributes": 5}
    assert len(printed["rows"]) == 2 * len(cover_tables.BUCKET_LIMITS) * 6
    assert printed["rows"][0]["paper"]["pc"] == 6_147_000
    assert result_file.load(tmp_path / "cover_tables.json", cover_tables.NAME)["rows"] == printed["rows"]
    assert "(6,147)" in experiment("cover-tables", "--commands", 300, "--output", tmp_path).output


def test_figures_from_the_command_line_and_again_from_the_file(tmp_path):
    arguments = ["cover-figures", "--output", tmp_path, "--commands", 500, "--repeats", 1, "--json"]
    printed = json.loads(experiment(*arguments).stdout)
    assert {row["figure"] for row in printed["rows"]} == {"8", "10", "11", "12"}
    assert all(row["seconds"] > 0 for row in printed["rows"])
    plots = [tmp_path / "cover_modes.png", tmp_path / "cover_dimensions.png"]
    assert printed["plots"] == [str(plot) for plot in plots]
    for plot in plots:
        assert plot.stat().st_size > 10_000
        plot.unlink()
    assert json.loads(experiment(*arguments, "--redraw").stdout) == printed
    assert all(plot.exists() for plot in plots)


def test_without_matplotlib_nothing_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("contrada.cli.experiment.find_spec", lambda name: None)
    assert "[experiments]" in experiment("cover-figures", "--output", tmp_path, exit_code=2).output
    assert not any(tmp_path.iterdir())


def test_plots_want_a_file_of_their_experiment(tmp_path):
    arguments = ["cover-figures", "--redraw", "--output", tmp_path]
    assert "cover_figures.json" in experiment(*arguments, exit_code=2).output
    (tmp_path / "cover_figures.json").write_text('{"experiment": "other"}')
    assert "no results of cover-figures" in experiment(*arguments, exit_code=2).output
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(FormatError, match="not JSON"):
        result_file.load(tmp_path / "x.json", cover_figures.NAME)
