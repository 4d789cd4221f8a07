"""A real broker of Kafka on the loopback interface, and Spark's own connector, both fetched with Maven.

`kafka_broker.py` fetches them and says where the jars are. Nothing here names a host: Maven's own settings apply.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark

from console import wait_for

CACHE = Path(__file__).parents[2] / "build" / "kafka"
SPARK, KAFKA, COMMONS = "org.apache.spark", "org.apache.kafka", "org.apache.commons"
CONNECTOR, TOKENS = "spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13"
CLIENTS, POOL = (KAFKA, "kafka-clients", "3.9.2"), (COMMONS, "commons-pool2", "2.13.1")
# Every jar is named and nothing is followed: the descriptions of Spark's jars name places to look for what they need
# that not everybody reaches. The connector of this Spark, if there is one; else the newest that Maven Central has,
# with the newest token provider (of which it has fewer versions). Both work with PySpark 4.3.0.
CONNECTORS = [
    [(SPARK, CONNECTOR, pyspark.__version__), (SPARK, TOKENS, pyspark.__version__), CLIENTS, POOL],
    [(SPARK, CONNECTOR, "4.2.0"), (SPARK, TOKENS, "4.1.0-preview1"), CLIENTS, POOL],
]
BROKER = [(KAFKA, "kafka_2.13", "4.2.1")]
ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
WAITING = 600  # seconds for Maven, and so many for another process that fetches


class UnavailableError(Exception):
    """Kafka cannot be had here; the text says why."""


class Jars(NamedTuple):
    """Jars of a broker, and of Spark's connector."""

    broker: list[Path]
    connector: list[Path]

    @property
    def spark(self) -> str:
        """The connector as `spark.jars` and `--jars` take it."""
        return ",".join(map(str, self.connector))


def broker_jars(cache=CACHE):
    """The jars of a broker, from a cache or fetched into it; UnavailableError if there is no way to get them."""
    return fetched(cache, "broker", BROKER, is_alone=False)


def jars(cache=CACHE):
    """All jars, from a cache or fetched into it; UnavailableError if there is no way to get them."""
    broker = broker_jars(cache)
    reasons = []
    for artifacts in CONNECTORS:
        try:
            return Jars(broker, fetched(cache, "connector", artifacts, is_alone=True))
        except UnavailableError as error:
            reasons.append(str(error))
    raise UnavailableError("; ".join(reasons))


def fetched(cache, name, artifacts, is_alone):
    """The jars of artifacts, and, unless they are to stand alone, of what they need at run time."""
    folder = cache / f"{name}-{artifacts[0][2]}"
    if not folder.is_dir():
        if shutil.which("mvn") is None:
            raise UnavailableError("there is no Maven (mvn) to fetch jars with")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as place:
            _fetch(Path(place), artifacts, is_alone)
            if not folder.is_dir():
                (Path(place) / "jars").rename(folder)
    return sorted(folder.glob("*.jar"))


def _fetch(place, artifacts, is_alone):
    listed = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"{ALONE if is_alone else ''}</dependency>"
        for group, artifact, version in artifacts
    )
    (place / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>contrada</groupId><artifactId>kafka</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{listed}</dependencies></project>"
    )
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"]
    try:
        run = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=WAITING)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"Maven did not end in {WAITING} seconds") from error
    if run.returncode != 0:
        said = next((line for line in run.stdout.splitlines() if "ERROR" in line), run.stderr.strip())
        raise UnavailableError(f"Maven does not get {':'.join(artifacts[0])}: {said}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Broker:
    """A broker that is its own controller, on free ports of the loopback interface; it can be killed and started again.

    `settings` are further ones of the broker. With certificates it has one more listener, at `guarded`, with TLS and
    the user `ann`, who has the password. In a cluster it is number `node` of those whose controllers listen at the
    ports `controllers`; they are started together, since none answers alone.
    """

    def __init__(self, paths, place, partitions=2, tls=None, password="", *, node=1, controllers=(), **settings):
        self._ports = free_port(), controllers[node - 1] if controllers else free_port()
        voters = controllers or self._ports[1:]
        self.address, self.guarded = f"127.0.0.1:{self._ports[0]}", f"127.0.0.1:{free_port()}"
        common = {
            "process.roles": "broker,controller", "node.id": str(node), "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(f"{id}@127.0.0.1:{port}" for id, port in enumerate(voters, 1)),
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self._ports[1]}",
            "log.dirs": str(place / "kafka"), "num.partitions": str(partitions),
            "offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }  # fmt: skip
        if tls is not None:
            common |= _guards(common["listeners"], self.guarded, place / "kafka.pem", tls)
        self._config, self._log = place / "server.properties", place / "broker.log"
        self._config.write_text("".join(f"{name}={value}\n" for name, value in {**common, **settings}.items()))
        self._java = ["java", "-Xmx512m", "-cp", os.pathsep.join(map(str, paths))]
        # Every cluster of Kafka has an id: sixteen bytes in base64.
        format = ["kafka.tools.StorageTool", "format", "-t", "contradacontradacontrQ", "-c", str(self._config)]
        format += [] if tls is None else ["--add-scram", f"SCRAM-SHA-512=[name=ann,password={password}]"]
        subprocess.run([*self._java, *format], check=True, capture_output=True, timeout=120)
        self._process = None

    def start(self):
        """Start it and wait until it answers."""
        with self._log.open("a") as output:
            self._process = process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._config)], stdout=output, stderr=output, start_new_session=True
            )
        wait_for(lambda: _answers(self._ports[0]) or process.poll() is not None, 120, self._log.read_text)
        assert process.poll() is None, f"the broker did not start:\n{self._log.read_text()[-3000:]}"

    def kill(self):
        """End it with -9."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def cluster(paths, place, **settings):
    """Three brokers that keep topics together; they are not started."""
    controllers = [free_port() for _ in range(3)]
    made = []
    for node in (1, 2, 3):
        (place / f"k{node}").mkdir()
        made.append(Broker(paths, place / f"k{node}", 1, node=node, controllers=controllers, **settings))
    return made


def _guards(listeners, address, keys, tls):
    """Settings of a broker with a listener for TLS and users; its key and certificate are written into one file."""
    keys.write_bytes(tls.key.read_bytes() + tls.certificate.read_bytes())
    return {
        "listeners": f"{listeners},SASL_SSL://{address}", "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "ssl.keystore.type": "PEM", "ssl.keystore.location": str(keys), "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config":
            "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    }  # fmt: skip


@contextmanager
def broker(paths, place, partitions=2):
    """A broker while a block runs: its address."""
    made = Broker(paths, place, partitions)
    try:
        made.start()
        yield made.address
    finally:
        made.kill()


def _answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    print(jars().spark)
