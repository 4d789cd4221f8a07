"""Schemathesis makes requests from the OpenAPI document: no answer may be a fault of the server."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from served import ADMIN, served

EXAMPLES = 100  # for each of 25 operations
SECONDS = 600
COMMAND = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
# A stream of events does not end; mutated queries of it are in test_abuse.py. Of the queries of a bulk upload most that
# are generated do not fit all of its parameters: that takes longer, but is no fault.
FLAGS = (
    "--checks", "not_a_server_error", "--phases", "examples,coverage,fuzzing", "--generation-database", "none",
    "--seed", "1", "--exclude-path", "/subscribers/{name}/events", "--exclude-path", "/map/events",
    "--request-timeout", "60",
    "--suppress-health-check", "filter_too_much",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(COMMAND is None, reason="needs schemathesis")
def test_requests_made_from_the_openapi_document_find_no_fault(tmp_path):
    with served(tmp_path / "state") as server:
        command = [COMMAND, "run", f"{server.url}/openapi.json", "--header", f"Authorization: Bearer {ADMIN}", *FLAGS]
        run = subprocess.run(
            [*command, "--max-examples", str(EXAMPLES)], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS
        )
        assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]
        assert server.process.poll() is None
