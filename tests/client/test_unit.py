"""The systemd unit is one that systemd takes."""

import re
import shutil
import subprocess
import sys

import pytest

from doc_pages import ROOT


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd")
def test_the_unit_of_the_server(tmp_path):
    unit = (ROOT / "deploy" / "contrada.service").read_text()
    file = tmp_path / "contrada.service"
    file.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", unit, flags=re.MULTILINE))
    run = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
