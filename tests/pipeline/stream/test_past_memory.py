"""A stream runs over partitions where no Python worker can hold its table, and broadcast fails."""

import os
import sys
from pathlib import Path

import pytest

from cluster import environment
from console import python

DRIVER = Path(__file__).parent.parent / "memory_driver.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="addresses of workers are limited on Linux only")
def test_a_table_larger_than_the_memory_of_a_worker_is_matched_in_partitions(tmp_path):
    settings = environment(tmp_path / "cache")
    settings["PYTHONPATH"] += f"{os.pathsep}{DRIVER.parent.parent / 'support'}"
    assert "partitions" in python(DRIVER, tmp_path, env=settings).stdout
