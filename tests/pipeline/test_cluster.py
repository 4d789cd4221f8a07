"""A real cluster on this machine: a standalone master, two workers, and a driver, with a cache directory each."""

import json

import cluster_driver
import pytest

import contrada as ct
from cluster import WORKERS, cluster, environment
from console import python
from generators.filters_of_every_kind import expected


def rows_of_one_process():
    table = ct.ForwardingTable()
    for k in (0, 1, 3):  # 2 is bad
        table.subscribe(f"s{k // 2}", cluster_driver.FILTERS[k], f"k{k}")
    return sorted(map(list, expected(table, cluster_driver.messages())[0]))


@pytest.mark.slow
def test_artifacts_reach_executors_and_rows_are_equal(tmp_path):
    hosts = tmp_path / "hosts"
    with cluster(tmp_path) as (master, _):
        python(cluster_driver.__file__, master, tmp_path, env=environment(hosts / "driver"))
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert "spark.contrada.artifacts" in answer["unset"]
    assert answer["rejected"] == [[2, "k2"]]
    assert answer["matches"] == rows_of_one_process()
    assert (tmp_path / "failed").exists()
    assert (tmp_path / "artifacts" / answer["digest"]).is_dir()
    for name in WORKERS:
        assert (hosts / name / "tables" / answer["digest"]).is_dir()
    assert not (hosts / "driver" / "tables").exists()
