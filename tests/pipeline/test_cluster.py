"""A real cluster on this machine: a standalone master, two workers, and a driver, with a cache directory each."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import contrada as ct
from cluster import WORKERS, cluster, environment

HERE = Path(__file__).parent


def expected():
    """The same in a single process."""
    table = ct.ForwardingTable()
    table.subscribe("s0", "size >= 3", "k0")
    table.subscribe("s0", "S_INTERSECTS(area, POLYGON((0 0, 5 0, 5 5, 0 5, 0 0)))", "k1")
    table.subscribe("s1", "name LIKE 'm%' AND size < 2", "k3")
    places = np.array([0.0, 1.0, 4.0, 6.0])
    rows = []
    for number in range(400):
        place = places[number % 4]
        size = None if number % 10 == 7 else number % 5
        message = {"size": size, "name": f"m{number}", "area": ct.Point(place, place)}
        rows += [[number, "s1" if key == "k3" else "s0", key] for key in table.match_keys(message)]
    return sorted(rows)


@pytest.mark.slow
def test_artifacts_reach_executors_and_rows_are_equal(tmp_path):
    hosts = tmp_path / "hosts"
    with cluster(tmp_path) as (master, _):
        command = [sys.executable, str(HERE / "cluster_driver.py"), master, str(tmp_path)]
        run = subprocess.run(command, env=environment(hosts / "driver"), capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr[-4000:]
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert "spark.contrada.artifacts" in answer["unset"]
    assert answer["rejected"] == [[2, "k2"]]
    assert answer["matches"] == expected()
    assert (tmp_path / "failed").exists()
    assert (tmp_path / "artifacts" / answer["digest"]).is_dir()
    for name in WORKERS:
        assert (hosts / name / "tables" / answer["digest"]).is_dir()
    assert not (hosts / "driver" / "tables").exists()
