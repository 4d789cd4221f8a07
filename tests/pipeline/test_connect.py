"""The pipeline over Spark Connect: a session of its own process, and a server that PySpark starts."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

import contrada
from contrada import jit

pytest.importorskip("grpc", reason="Spark Connect needs the extra connect")
HERE = Path(__file__).parent


def environment(place):
    """Settings of the driver and of the server; tables are kept below `place`, compiled kernels are found."""
    (place / "cache").mkdir()
    (place / "cache" / "kernels").symlink_to(jit.cache_directory().parent)
    source = Path(contrada.__file__).parent.parent
    paths = os.pathsep.join(map(str, (HERE, HERE.parent / "support", source)))
    return {
        **os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1",
        "CONTRADA_CACHE_DIR": str(place / "cache"), "SPARK_NO_DAEMONIZE": "1", "SPARK_LOG_DIR": str(place / "logs"),
    }  # fmt: skip


def run(remote, place, settings, parts):
    """Run checks in a process, since classic and Connect sessions do not mix in one; return what it prints."""
    command = [sys.executable, str(HERE / "connect_driver.py"), remote, str(place), parts]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=570)  # a test has 600
    assert done.returncode == 0, done.stderr[-4000:]
    return [line for line in done.stdout.splitlines() if not line.startswith("Streaming ForeachBatch worker")]


def test_a_local_session_of_connect_matches_as_a_table_does(tmp_path):
    settings = {**environment(tmp_path), "SPARK_TESTING": "1"}  # or its server takes port 15002, which others may have
    assert run("local[2]", tmp_path, settings, "quick") == ["quick"]


@pytest.fixture
def server(tmp_path):
    """The address of a server and the environment of its clients."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = environment(tmp_path)
    command = [
        str(Path(pyspark.__file__).parent / "sbin" / "start-connect-server.sh"), "--master", "local[2]",
        "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false",
        "--conf", "spark.sql.shuffle.partitions=4", "--conf", f"spark.local.dir={tmp_path / 'local'}",
        "--conf", f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}",
    ]  # fmt: skip
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen(command, env=settings, stdout=log, stderr=log, start_new_session=True)
    try:
        for _ in range(600):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (tmp_path / "server.log").read_text()[-4000:]
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}", settings
    finally:
        os.killpg(process.pid, 15)
        process.wait(60)


@pytest.mark.slow
def test_tables_on_a_server(server, tmp_path):
    remote, settings = server
    assert run(remote, tmp_path, settings, "batch") == [
        "plan auto", "plan broadcast", "plan partitioned", "plan scan", "operators, empty frames, kept columns",
        "coordinate systems, ingest", "report", "SQL, data source, simplify, track",
    ]  # fmt: skip


@pytest.mark.slow
def test_streams_on_a_server(server, tmp_path):
    remote, settings = server
    assert run(remote, tmp_path, settings, "streams") == [
        "stream broadcast", "stream partitioned", "stream of files with systems, kept columns, functions",
        "stream of tracked objects", "streams that end, and what is refused",
    ]  # fmt: skip
