"""A cluster whose workers share no package with the client: the environment travels as an archive of venv-pack."""

import json
import os
import sys
from pathlib import Path

import packed_driver
import pytest
from test_cluster import rows_of_one_process

from cluster import bare_environment, cluster, environment
from console import python
from doc_pages import ROOT
from environments import Environment


def packed(place):
    """An archive of an environment with the wheel of these sources, without PySpark, which the workers have."""
    made = Environment(place)
    python("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place, ROOT)
    (wheel,) = place.glob("contrada-*.whl")
    needed = [wheel, "pandas<3", "pyogrio", "venv-pack==0.2.0", "setuptools<81"]
    made.run("python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", *needed)
    archive = place / "environment.tar.gz"
    made.run("venv-pack", "--prefix", place / "venv", "--output", archive, "--compress-level", "1")
    return archive


@pytest.mark.slow
def test_executors_have_nothing_but_the_archive(tmp_path):
    (tmp_path / "pack").mkdir()
    archive = packed(tmp_path / "pack")
    client = environment(tmp_path / "client")
    support = Path(__file__).parent.parent / "support"
    client["PYTHONPATH"] = os.pathsep.join([client["PYTHONPATH"], str(support)])
    with cluster(tmp_path, hosts=bare_environment) as (master, _):
        python(packed_driver.__file__, master, archive, tmp_path, env=client)
    answer = json.loads((tmp_path / "answer.json").read_text())
    for one in answer["looked"]:
        assert str(tmp_path / "work-") in one["package"], "unpacked beside the executor"
        assert "/environment/lib/python" in one["package"]
        assert one["python"].endswith("environment/bin/python")
        assert str(Path(sys.prefix)) not in one["python"]
        assert str(ROOT / "src") not in one["path"]
    assert answer["matches"] == rows_of_one_process()
    assert answer["rejected"] == [[2, "k2"]]
    assert answer["stream"] == [["a", "k0"]]
