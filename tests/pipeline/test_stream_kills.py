"""The driver of a stream is killed again and again; nothing is lost and nothing is there twice."""

import subprocess
import sys
from pathlib import Path

import pytest

import contrada as ct


@pytest.mark.slow
def test_no_message_is_lost_or_doubled(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(ct.__file__).parent.parent))
    script = Path(__file__).with_name("stream_kills.py")
    command = [sys.executable, str(script), str(tmp_path / "place"), "3", "11"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stdout + run.stderr
