"""A real broker of Kafka on the loopback interface, fetched with Maven, and Spark's own connector."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

import contrada as ct

HERE = Path(__file__).parent
SPARK, KAFKA = "org.apache.spark", "org.apache.kafka"
CONNECTOR, TOKENS = "spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13"
# The connector of this Spark; where Maven Central has none, the newest of which it has all parts.
CONNECTORS = [
    [(SPARK, CONNECTOR, pyspark.__version__)],
    [(SPARK, CONNECTOR, "4.2.0"), (SPARK, TOKENS, "4.1.0-preview1")],
]
BROKER = [(KAFKA, "kafka_2.13", "4.2.1")]
NEEDED = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
# Spark's own descriptions name a mirror first that not everybody reaches.
SETTINGS = """<settings><mirrors><mirror><id>central-only</id><mirrorOf>*</mirrorOf>
<url>https://repo.maven.apache.org/maven2</url></mirror></mirrors></settings>"""


def fetched(place, name, artifacts):
    """The jars of artifacts and of what they need; None if Maven does not get them."""
    folder = place / name
    folder.mkdir()
    (folder / "settings.xml").write_text(SETTINGS)
    without = (
        f"<exclusions><exclusion><groupId>{SPARK}</groupId><artifactId>{TOKENS}</artifactId></exclusion></exclusions>"
    )
    listed = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"{without if len(artifacts) > 1 and artifact == CONNECTOR else ''}</dependency>"
        for group, artifact, version in artifacts
    )
    (folder / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>contrada</groupId>'
        f"<artifactId>{name}</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{listed}</dependencies></project>"
    )
    command = ["mvn", "-q", "-B", "-s", "settings.xml", "dependency:copy-dependencies", "-DincludeScope=runtime"]
    run = subprocess.run([*command, "-DoutputDirectory=jars"], cwd=folder, capture_output=True, text=True, timeout=600)
    return sorted((folder / "jars").glob("*.jar")) if run.returncode == 0 else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def jars(tmp_path_factory):
    if shutil.which("mvn") is None:
        pytest.skip("no Maven to fetch Kafka with")
    place = tmp_path_factory.mktemp("jars")
    broker = fetched(place, "broker", BROKER)
    tries = (fetched(place, f"connector{k}", artifacts) for k, artifacts in enumerate(CONNECTORS))
    connector = next(filter(None, tries), None)
    if not broker or not connector:
        pytest.skip("Maven Central is not reached, or has no connector that is whole")
    return broker, [path for path in connector if path.name.startswith(NEEDED)]


@pytest.fixture
def servers(jars, tmp_path):
    """A broker that is its own controller, ended after the test."""
    ports = free_port(), free_port()
    settings = {
        "process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{ports[1]}",
        "listeners": f"PLAINTEXT://127.0.0.1:{ports[0]},CONTROLLER://127.0.0.1:{ports[1]}",
        "log.dirs": str(tmp_path / "logs"), "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1",
    }  # fmt: skip
    (tmp_path / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    java = ["java", "-Xmx512m", "-cp", ":".join(map(str, jars[0]))]
    config = str(tmp_path / "server.properties")
    format = [*java, "kafka.tools.StorageTool", "format", "-t", "contradacontradacontra", "-c", config]
    subprocess.run(format, check=True, capture_output=True)
    with (tmp_path / "broker.log").open("w") as log:
        broker = subprocess.Popen([*java, "kafka.Kafka", config], stdout=log, stderr=log, start_new_session=True)
    try:
        for _ in range(300):
            if broker.poll() is not None:
                raise AssertionError((tmp_path / "broker.log").read_text()[-3000:])
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", ports[0])) == 0:
                    break
            time.sleep(0.2)
        yield f"127.0.0.1:{ports[0]}"
    finally:
        os.killpg(broker.pid, signal.SIGKILL)
        broker.wait()


@pytest.mark.slow
def test_from_kafka_to_kafka(jars, servers, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(ct.__file__).parent.parent)}
    command = [sys.executable, str(HERE / "kafka_driver.py"), servers, ",".join(map(str, jars[1])), str(tmp_path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]
    found = json.loads((tmp_path / "answer.json").read_text())
    matches = [json.loads(text) for text in found["matches"]]
    assert [match["message_id"] for match in matches] == ["a", "c", "c"], "at least once: the batch that came again"
    assert len({(match["message_id"], match["key"], match["version"]) for match in matches}) == 2, "copies can be told"
    (bad,) = map(json.loads, found["matches-rejected"])
    assert bad["raw"] == "{"
