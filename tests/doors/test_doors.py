"""Whatever comes through a door: an answer or a ContradaError, soon and in little memory. `make verify` drives more."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada.formats.records import FORMATS
from effort import examples
from hostile import processes
from hostile.__main__ import mutation_inputs
from hostile.doors import DOORS, SELF_TEST, uncovered
from hostile.processes import run_command
from hostile.runner import Input, Pool, failed, told

# A simulation or an experiment may take minutes on purpose: such commands get their corpus alone.
WORK = (
    "contrada overlay", "contrada experiment", "contrada demo", "contrada ingest", "contrada stream", "contrada serve",
    "contrada sync",
)  # fmt: skip
CONTENT = [name for name in DOORS if not name.endswith("()") and not name.startswith((*WORK, SELF_TEST.name))]
# Doors whose corpora the others share get up to so many inputs here; the rest follows in `make verify`.
FIRST = (
    "Region.from_", "Point.from_", "PointArray.from_", "RegionArray.from_", "arrow columns", "parse", "message_of",
    "filter and message", "read_messages[", "overlay frames", "Artifact", "ForwardingTable.open, damaged",
    "RegionArray.open, damaged",
)  # fmt: skip
MANY, FEW = 20, 2
MUTATIONS = 200


@pytest.fixture(scope="module")
def pool():
    with Pool(1) as made:
        yield made


def complain(results):
    bad = failed(results)
    assert not bad, "\n".join(map(told, bad[:20]))


def test_every_entry_point_has_a_corpus_or_a_reason():
    assert uncovered() == {}


def test_a_new_function_without_a_corpus_is_noticed(monkeypatch):
    monkeypatch.setattr(ct, "read_everything", lambda anything: anything, raising=False)
    monkeypatch.setattr(ct, "__all__", [*ct.__all__, "read_everything"])
    assert uncovered() == {"read_everything": "no corpus"}


def test_a_new_format_without_a_corpus_is_noticed():
    assert "read_messages[kml]" in uncovered((*FORMATS, "kml"))


def test_a_new_command_without_a_corpus_is_noticed():
    from contrada.cli.main import app

    app.command("everything")(lambda: None)
    try:
        assert uncovered() == {"contrada everything": "no corpus"}
    finally:
        app.registered_commands.pop()


@pytest.mark.parametrize(
    ("what", "outcome"),
    [
        ("answer", "answer"),
        ("refuse", "refused"),
        ("raise", "other error"),
        ("crash", "crash"),
        ("memory", "memory"),
        ("exhaust", "memory"),
    ],
)
def test_the_runner_notices(pool, what, outcome):
    result = pool.one(Input("self test", case=what))
    assert result.outcome == outcome, result
    assert pool.one(Input("self test", case="answer")).outcome == "answer"


@pytest.mark.slow
def test_the_runner_notices_what_takes_too_long():
    with Pool(1, most_seconds=0.5) as pool:
        assert [pool.one(Input("self test", case=what)).outcome for what in ("spin", "answer")] == ["time", "answer"]


def test_inputs_follow_from_the_seed():
    door = DOORS["Region.from_wkt"]
    drawn = [[door.mutation(seed, number) for number in range(20)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def sampled(name):
    names = DOORS[name].names(large=False)
    most = MANY if name.startswith(FIRST) and not name.endswith(("()", "changed")) else FEW
    return [Input(name, one) for one in names[:: max(1, -(-len(names) // most))]]


def test_the_corpus(pool):
    complain(pool.run([one for name in DOORS for one in sampled(name)]))


def test_mutations(pool):
    complain(pool.run(mutation_inputs(CONTENT, MUTATIONS, seed=7)))


@settings(max_examples=examples(50))
@given(st.sampled_from(CONTENT), st.randoms(use_true_random=False))
def test_any_mutation(pool, name, rng):
    complain([pool.one(Input(name, case=DOORS[name].drawn(rng)))])


COMMANDS = [
    Input("contrada match", "json as messages: deep crs"),
    Input("contrada match", "parquet as messages: footer that lies"),
    Input("contrada match", "gis as messages: GPKG, damaged 1"),
    Input("contrada match", "packed: flipped.ndjson.gz"),
    Input("contrada check", "from a file: nots deep"),
    Input("contrada simplify", "arrow: file, zstd"),
]


@pytest.mark.slow
@pytest.mark.parametrize("one", COMMANDS, ids=lambda one: one.label)
def test_commands_in_processes_of_their_own_are_watched(one):
    complain([run_command(one)])


@pytest.mark.slow
def test_a_command_that_takes_too_long_or_too_much_is_noticed(monkeypatch):
    one = Input("contrada match", "standard input")
    for allowed, outcome in (((60.0, 1 << 30), "answer"), ((-5.0, 0), "time"), ((60.0, -1 << 30), "memory")):
        monkeypatch.setattr(processes, "allowance", lambda allowed=allowed: allowed)
        assert run_command(one).outcome == outcome


@pytest.mark.parametrize(("words", "code"), [(["check", "(" * 10_000], 1), (["simplify", "\udcff"], 2)], ids=["1", "2"])
def test_commands_in_a_process_of_their_own(words, code):
    """The corpus has further words, which commands get in one process."""
    command = [sys.executable, "-m", "contrada.cli.main", *words]
    run = subprocess.run(command, capture_output=True, input=b"", timeout=120)
    assert run.returncode == code
    assert b"Traceback" not in run.stderr
