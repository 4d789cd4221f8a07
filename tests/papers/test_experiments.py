"""`contrada experiment`: one entry for all exhibits; rows are kept, the paper's numbers stay with its parameters."""

import csv
import json
import shlex
import subprocess
from dataclasses import replace
from functools import partial

import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure

from console import contrada
from contrada.errors import FormatError
from contrada.papers import row_file, running
from contrada.papers.drawing import add_legend, draw
from contrada.papers.exhibit import (
    Chart,
    Exhibit,
    ExperimentError,
    Measurement,
    PaperClaim,
    SweepParameter,
    TableColumn,
    TableLayout,
    parse_changes,
    parse_seeds,
)  # fmt: skip
from contrada.papers.provenance import commit, provenance
from contrada.papers.registry import EXHIBITS, find_exhibits
from contrada.papers.running import Choice
from contrada.papers.showing import findings, markdown
from doc_pages import check_printed, commands, page_text

experiment = partial(contrada, "experiment")
measured = []  # runs, by the function that a test measures with


def square(setting, seed, data):
    measured.append((setting, seed))
    if setting["x"] == 13:
        raise KeyboardInterrupt
    return {"y": setting["x"] ** 2 + seed, "parts": [1, 2]}


SQUARES = Exhibit(
    "squares", "test", "figure 1", "Squares rise.", Measurement("squares", square),
    {"x": SweepParameter("number", (1, 2, 3), (1,)), "how": SweepParameter("way", ("slow",), is_printed=False)},
    (TableLayout(("x",), (TableColumn("y", "square"),), "how"),), (Chart("x", "y", "number", "square", ("how",)),),
    (PaperClaim("squares rise", lambda rows: rows[0]["y"] < rows[-1]["y"] if len(rows) > 1 else None),
     PaperClaim("the square of 3 is 4711", lambda rows: False, has_numbers=True)),
    seeds=(1, 2), printed=lambda row: {"y": 4711.0} if row["x"] == 3 else {},
)  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_measured(monkeypatch):
    measured.clear()
    monkeypatch.setattr(running, "is_spark_there", lambda: False)  # in this process, however many runs


def choice(folder, seeds=(1, 2), **changes):
    return Choice(SQUARES, SQUARES.grid(changes=changes), seeds, folder)


def test_rows_are_measured_once(tmp_path):
    rows = running.run(choice(tmp_path))
    assert [(row["x"], row["seed"], row["y"]) for row in rows] == [
        (1, 1, 2), (1, 2, 3), (2, 1, 5), (2, 2, 6), (3, 1, 10), (3, 2, 11),
    ]  # fmt: skip
    assert running.run(choice(tmp_path)) == rows
    assert len(measured) == 6
    wider = running.run(choice(tmp_path, x=(1, 2, 3, 4)))
    assert len(wider) == 8
    assert [setting["x"] for setting, _ in measured[6:]] == [4, 4]


def test_an_interrupted_sweep_resumes(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        running.run(choice(tmp_path, x=(1, 2, 13, 5)))
    assert len(measured) == 5
    with (tmp_path / "rows" / "squares.ndjson").open("a") as target:
        target.write('{"setting": {"x": 5, "ho')  # interrupted while writing
    assert len(running.run(choice(tmp_path, x=(1, 2, 5)))) == 6
    assert [setting["x"] for setting, _ in measured[5:]] == [5, 5]


def test_rows_say_where_they_were_measured_in_every_format(tmp_path):
    row = running.run(choice(tmp_path, seeds=(7,)))[0]
    assert {
        "commit",
        "version",
        "python",
        "numpy",
        "numba",
        "shapely",
        "geos",
        "pyspark",
        "cpu",
        "cores",
        "system",
        "seed",
        "x",
        "how",
    } <= row.keys()
    table = pq.read_table(tmp_path / "squares.parquet")
    assert table["y"].to_pylist() == [8, 11, 16]
    assert json.loads(table.schema.metadata[b"parameters"]) == {"x": [1, 2, 3], "how": ["slow"]}
    with (tmp_path / "squares.csv").open() as source:
        lines = list(csv.DictReader(source))
    assert [line["y"] for line in lines] == ["8", "11", "16"]
    assert json.loads(lines[0]["parts"]) == [1, 2]


def test_the_papers_numbers_stay_with_its_parameters(tmp_path):
    rows = running.run(choice(tmp_path))
    assert "(4,711)" in markdown(SQUARES, rows)
    assert findings(SQUARES, rows) == {"squares rise": True, "the square of 3 is 4711": False}
    some = [row for row in rows if row["x"] != 1]
    assert "(4,711)" in markdown(SQUARES, some), "a part of the paper's grid is the paper's"
    for changes in ({"x": (1, 2, 3, 4)}, {"x": (3, 4)}):
        others = running.run(choice(tmp_path, **changes))
        assert "4711" not in markdown(SQUARES, others)
        own = [row for row in others if row["x"] == 3]
        assert "(4,711)" in markdown(SQUARES, own)
    beside = SQUARES.beside(rows[-1] | {"how": "fast"})
    assert beside == {"y": 4711.0}, "the paper says nothing about `how`: every value is a reading of it"
    assert SQUARES.beside(rows[-1] | {"x": 4}) == {}


def test_pictures_come_from_rows_alone(tmp_path):
    rows = running.run(choice(tmp_path))
    count = len(measured)
    png, svg = draw(SQUARES, rows, tmp_path / "pictures")
    assert (png.name, svg.name) == ("squares.png", "squares.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    text = svg.read_text()
    assert "<svg" in text
    assert len(measured) == count
    again = draw(SQUARES, rows, tmp_path / "again")[1].read_text()
    assert text.count("<path") == again.count("<path")


@pytest.mark.parametrize("columns", [2, 6])
def test_legends_are_no_wider_than_their_figures(columns):
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    labels = [f"counting Algorithm 1, simplified = yes, reading {at}: the paper's" for at in range(6)]
    add_legend(figure, {label: axes.plot([0, 1], label=label)[0] for label in labels}, columns)
    figure.canvas.draw()
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == labels
    box = legend.get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1


OWN = replace(
    SQUARES, name="own", measurement=Measurement("own", square, file_of=lambda setting: setting["how"] + ".parquet"),
    parameters=SQUARES.parameters | {"how": SweepParameter("set", ("paper",), is_printed=False)},
)  # fmt: skip


def test_a_file_that_was_replaced_is_measured_again(tmp_path):
    own = Choice(OWN, OWN.grid(changes={"how": ("mine",), "x": (1,)}), (1,), tmp_path / "out", tmp_path)
    (tmp_path / "mine.parquet").write_text("first")
    first = running.run(own)
    assert running.run(own) == first
    (tmp_path / "mine.parquet").write_text("second")
    second = running.run(own)
    assert len(measured) == 2
    assert len(second) == 1
    assert second[0]["data"] != first[0]["data"]
    (tmp_path / "mine.parquet").write_text("first")
    assert running.run(own) == first
    assert len(measured) == 2


def test_sets_of_the_paper_that_are_not_there_are_skipped_with_a_message(tmp_path):
    (tmp_path / "mine.parquet").write_text("squares")
    both = Choice(OWN, OWN.grid(changes={"how": ("mine", "paper"), "x": (1,)}), (1,), tmp_path / "out", tmp_path)
    told = []
    assert [row["how"] for row in running.run(both, warn=told.append)] == ["mine"]
    assert len(told) == 1
    assert "paper.parquet" in told[0]
    wider = Choice(OWN, OWN.grid(changes={"how": ("mine", "paper"), "x": (5,)}), (1,), tmp_path / "out", tmp_path)
    assert [row["how"] for row in running.run(wider)] == ["mine"], "whatever the other parameters are"
    for data in (tmp_path, None):
        with pytest.raises(ExperimentError, match=r"needs region sets \(paper\.parquet\)"):
            running.run(Choice(OWN, OWN.grid(), (1,), tmp_path / "out", data))
    with pytest.raises(ExperimentError, match=r"there is no .*yours\.parquet"):
        running.run(Choice(OWN, OWN.grid(changes={"how": ("yours",)}), (1,), tmp_path / "out", tmp_path))


def test_rows_of_other_commits_are_told_and_measured_again_if_asked_for(tmp_path, monkeypatch):
    told = []
    here = provenance() | {"commit": "0123456789ab"}
    monkeypatch.setattr("contrada.papers.running.provenance", lambda: here | {"commit": "ba9876543210"})
    running.run(choice(tmp_path), warn=told.append)
    monkeypatch.setattr("contrada.papers.running.provenance", lambda: here)
    monkeypatch.setattr("contrada.papers.provenance.provenance", lambda: here)
    rows = running.run(choice(tmp_path, x=(1, 2, 3, 4)), warn=told.append)
    assert len(measured) == 8
    assert told == ["squares: 6 of 6 rows were measured earlier, by sources of ba9876543210; "
                    "run with --again to measure them again"]  # fmt: skip
    assert {row["commit"] for row in rows} == {"0123456789ab", "ba9876543210"}
    again = replace(choice(tmp_path), is_again=True)
    assert {row["commit"] for row in running.run(again, warn=told.append)} == {"0123456789ab"}
    assert len(measured) == 14
    assert len(told) == 1


def test_commits_of_changed_sources_are_marked(tmp_path):
    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    assert commit(tmp_path) == "unknown", "no repository"
    git("init")
    (tmp_path / "__init__.py").write_text("")
    assert commit(tmp_path) == "unknown", "a repository that does not track the sources"
    git("add", ".")
    git("commit", "-m", "first")
    clean = commit(tmp_path)
    assert len(clean) == 12
    (tmp_path / "__init__.py").write_text("1")
    assert commit(tmp_path) == f"{clean}-changed"


def test_spark_is_used_for_many_runs_that_are_not_timed(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "is_spark_there", lambda: True)
    one = choice(tmp_path, seeds=(1,))
    assert [running.wants_spark(one, runs) for runs in (1, 24, 25)] == [False, False, True]
    assert [running.wants_spark(replace(one, master="local[2]"), runs) for runs in (1, 2)] == [False, True]
    timed = replace(SQUARES, measurement=replace(SQUARES.measurement, is_timed=True))
    assert not running.wants_spark(replace(one, exhibit=timed, master="local[2]"), 100)


@pytest.mark.parametrize("text", [
    "rubbish\n", "[]\n", '{"a": 1}\n', '{"setting": 1, "seed": 1, "values": {}, "about": {}}\n', '"x"\n', "{\n",
])  # fmt: skip
def test_files_of_something_else_are_refused_and_kept(text, tmp_path):
    path = tmp_path / "rows" / "squares.ndjson"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(FormatError, match=r"squares\.ndjson, line 1"):
        running.run(choice(tmp_path))
    assert path.read_text() == text
    assert not measured


@pytest.mark.parametrize(("text", "problem"), [
    ("k", "name=value"), ("k=", "name=value"), ("rubbish=1", "no parameter 'rubbish'"), ("k=x", "does not fit"),
    ("k=1.5", "does not fit"), ("p=nan", "does not fit"), ("p=0.7", "below 0.5"), ("k=-1", "does not fit"),
    ("draw=middle", "unknown draw"), ("index=b-tree", "unknown index"), (f"k={'9' * 5000}", "does not fit"),
])  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(text, problem):
    with pytest.raises(ExperimentError, match=problem) as raised:
        parse_changes(EXHIBITS["cover-table-1"], [text])
    assert len(str(raised.value)) < 400


def test_parameters_are_read_as_the_type_of_their_defaults():
    changes = parse_changes(EXHIBITS["cover-table-1"], ["k=1,2,6,2", "p=0.1", "draw=ends:32,length"])
    assert changes == {"k": (1, 2, 6), "p": (0.1,), "draw": ("ends:32", "length")}


@pytest.mark.parametrize("text", ["", "x", "3-1", "-1", "1-", "1,,2", "1-99999999999"])
def test_seeds_that_do_not_fit_are_refused(text):
    with pytest.raises(ExperimentError, match="--seeds"):
        parse_seeds(text)


def test_too_many_combinations_are_refused_before_they_are_made():
    exhibit = EXHIBITS["cover-readings"]
    with pytest.raises(ExperimentError, match="combinations"):
        exhibit.settings(exhibit.grid(changes={"k": tuple(range(1, 10_000))}))


def test_every_exhibit_is_found_by_its_name_and_its_paper():
    assert find_exhibits(["overlay", "overlay-table-2"]) == [e for e in EXHIBITS.values() if e.paper == "overlay"]
    with pytest.raises(ExperimentError, match="unknown exhibit 'rubbish'"):
        find_exhibits(["rubbish"])
    for exhibit in EXHIBITS.values():
        assert exhibit.claim.endswith((".", "?"))
        quick, whole = exhibit.grid(quick=True), exhibit.grid()
        assert quick.keys() == whole.keys() == exhibit.parameters.keys()
        assert quick != whole, f"{exhibit.name} has no reduced sweep"
        for name, parameter in exhibit.parameters.items():
            assert parse_changes(exhibit, [f"{name}={','.join(map(str, parameter.values))}"]) == {name: whole[name]}


def test_list_and_show_describe_without_measuring(tmp_path):
    lines = experiment("list", code=0).stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(EXHIBITS)
    names = [json.loads(line)["name"] for line in experiment("list", "--json", code=0).stdout.splitlines()]
    assert names == list(EXHIBITS)
    shown = experiment("show", "cover-table-1", "--output", tmp_path, code=0).stdout
    assert "--set k=1,2,3,4,5,6" in shown
    assert "No rows with these parameters" in shown
    assert not any(tmp_path.iterdir())


def test_a_small_run_from_the_command_line(tmp_path):
    small = ["cover-table-1", "--set", "commands=300", "--set", "k=1,3", "--seeds", "1,2", "--output", tmp_path]
    printed = json.loads(experiment("run", *small, "--json", code=0).stdout)
    assert printed["seeds"] == [1, 2]
    assert [(row["k"], row["seed"]) for row in printed["rows"]] == [(1, 1), (1, 2), (3, 1), (3, 2)]
    assert printed["pictures"] == [str(tmp_path / f"cover-table-1.{suffix}") for suffix in ("png", "svg")]
    again = json.loads(experiment("show", *small, "--json", code=0).stdout)
    assert again == printed
    text = experiment("run", *small, code=0).stdout
    assert "mean and standard deviation over 2 seeds" in text
    assert "(813)" not in text
    assert len(row_file.read_rows(tmp_path / "rows" / "cover-counts.ndjson")) == 4


@pytest.mark.parametrize("arguments", [
    ["rubbish"], ["cover-table-1", "--set", "k"], ["cover-table-1", "--seeds", "x"], ["network", "--set", "sweep=x"],
    ["overlay-figure-7", "--set", "method=best"], ["overlay-figure-7", "--set", "degree=9:2"],
    ["cover-table-1", "--data", "not there"],
])  # fmt: skip
def test_bad_input_is_one_line_and_nothing_is_written(arguments, tmp_path):
    result = experiment("run", *arguments, "--output", tmp_path / "out")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_the_page_shows_what_the_command_prints(tmp_path):
    ((command, expected),) = commands(page_text("experiments.md"))
    words = shlex.split(command)
    assert words[:2] == ["contrada", "experiment"]
    check_printed(command, expected, experiment(*words[2:], "--output", tmp_path, code=0).stdout)


def test_without_matplotlib_nothing_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("contrada.cli.experiment.find_spec", lambda name: None)
    result = experiment("run", "cover-table-1", "--output", tmp_path, code=2)
    assert "[experiments]" in result.output
    assert not any(tmp_path.iterdir())


@pytest.mark.slow  # Spark starts
def test_sweeps_that_count_run_as_spark_jobs_with_the_same_rows(tmp_path, monkeypatch):
    small = ["cover-table-1", "--set", "commands=300", "--set", "k=1,3", "--seeds", "1,2", "--json"]
    plain = json.loads(experiment("run", *small, "--output", tmp_path / "plain", code=0).stdout)
    spark = json.loads(experiment("run", *small, "--master", "local[2]", "--output", tmp_path / "spark", code=0).stdout)
    assert spark["rows"] == plain["rows"]


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """The reduced sweep of all exhibits."""
    folder = tmp_path_factory.mktemp("all")
    lines = experiment("all", "--quick", "--json", "--output", folder, code=0).stdout.splitlines()
    return {found["exhibit"]: found for found in map(json.loads, lines)}, folder


@pytest.mark.slow
@pytest.mark.parametrize("name", EXHIBITS)
def test_every_exhibit_runs_with_quick_and_its_rows_are_sane(name, everything):
    found, folder = everything
    if name not in found:
        pytest.skip("needs region sets")
    exhibit, rows = EXHIBITS[name], found[name]["rows"]
    assert rows
    named = [chart.y for chart in exhibit.charts if chart.y not in ("share",)]
    named += [column.value for layout in exhibit.layouts for column in layout.columns]
    for row in rows:
        assert all(row[value] is None or row[value] >= 0 for value in named), row
        assert row.get("false_negatives", 0) == 0
    for picture in found[name]["pictures"]:
        assert (folder / picture).stat().st_size > 5000
    assert found[name]["pictures"] or not exhibit.charts
    assert "the paper's in brackets" not in markdown(exhibit, rows), "a reduced sweep is not the paper's"
    assert (folder / f"{name}.parquet").exists()
    assert (folder / f"{name}.csv").exists()
