"""Delta and Iceberg tables as sources and sinks of streams, with the newest PySpark that both support."""

import json
import os
import subprocess
from pathlib import Path

import kafka_broker
import pytest
from lakehouse_environment import PYSPARK, lakehouse

import contrada as ct


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    place = tmp_path_factory.mktemp("lakehouse")
    try:
        program, jars = lakehouse()
    except kafka_broker.UnavailableError as error:
        pytest.skip(str(error))
    tests = Path(__file__).parent
    paths = Path(ct.__file__).parents[1], tests.parent / "support", tests
    hidden = ("VIRTUAL_ENV", "SPARK_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYSPARK_PYTHON": str(program)}
    command = [program, tests / "lakehouse_driver.py", ",".join(map(str, jars)), place]
    run = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads((place / "answer.json").read_text())


FIRST = [[0, "a", "gone", 0], [0, "a", "here", 0], [0, "a", "high", 0]]
FIRST = sorted([*FIRST, *FIRST, [0, "b", "here", 0]])  # two messages have the id a
SECOND = [[1, "c", "there", 1], [1, "d", "high", 1], [1, "d", "there", 1]]
LAST = [[2, "e", "high", 1], [2, "e", "there", 1]]


@pytest.mark.slow
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_stream_from_tables_to_tables(answer, format):
    """Every match once, by the subscriptions of its version; a repeated batch adds nothing."""
    found = answer[format]
    # Version 1 has the rows of the table: the changes are read before the first batch.
    versions = {row[3] for row in found["first"]}
    assert len(versions) == 1
    plain = [row[:3] for row in found["first"]]
    assert plain == [row[:3] for row in FIRST]
    assert [row[:3] for row in found["second"]] == [row[:3] for row in (*FIRST, *SECOND)]
    assert {row[3] for row in found["second"] if row[0] == 1} == {versions.pop() + 1}
    assert found["again"] == found["second"]
    assert [row[:3] for row in found["last"]] == [row[:3] for row in (*FIRST, *SECOND, *LAST)]
    (bad,) = found["rejected changes"]
    assert json.loads(bad)["key"] == "bad"
    assert len(found["batch"]) == 8


@pytest.mark.slow
def test_what_has_no_change_feed(answer):
    plain, missing, silent, sink = answer["errors"]
    assert plain == "default.plain: need a table of delta or iceberg, got one of parquet"
    assert missing.startswith("default.missing: the change feed cannot be read")
    assert silent.startswith("default.silent: the change feed cannot be read")
    assert sink == "format: need delta or iceberg, got 'parquet'"
    assert answer["spark"] == PYSPARK
