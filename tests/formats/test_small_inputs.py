"""Inputs below 1 MB take less than 1 GB, whether they are read or refused (small_inputs.py has them)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from effort import slow

LARGEST = 1000  # MB


@pytest.mark.parametrize("group", [slow("read"), "dictionary", "parsed", slow("matched")])
def test_a_small_input_takes_little_memory(group):
    command = [sys.executable, Path(__file__).with_name("small_inputs.py"), group]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (lines, done.stderr[-2000:])
    for name, outcome, expected, peak in lines:
        assert peak < LARGEST, name
        if group == "dictionary":
            assert outcome[0] < 1000, name
            assert outcome[1] == 1, name
        else:
            assert outcome == expected, name
