"""The environment that Sedona runs in, build/peers/sedona, with jars that mvn fetches by its own settings."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import ROOT
from benchmarks.timing import say

HOME = ROOT / "build" / "peers" / "sedona"
JARS = HOME / "jars"
READY = HOME / "ready.json"
NOT_THERE = "Could not find artifact"  # what mvn says of a jar that its repository has not


class Release(NamedTuple):
    """A release of Sedona, the newest Spark that it supports, and the GeoTools wrapper that it asks for."""

    sedona: str
    spark: str
    geotools: str | None  # from 1.9 on only rasters need it

    @property
    def artifacts(self) -> list[str]:
        """Return what mvn is to fetch."""
        found = [f"org.apache.sedona:sedona-spark-shaded-{self.spark}_2.13:{self.sedona}"]
        return [*found, f"org.datasyslab:geotools-wrapper:{self.geotools}"] if self.geotools else found


RELEASES = (
    Release("1.9.1", "4.1", None),
    Release("1.9.0", "4.1", None),
    Release("1.8.1", "4.0", "1.8.0-33.1"),
    Release("1.8.0", "4.0", "1.8.0-33.1"),
)  # the newest first


def prepare() -> tuple[Path, list[str]]:
    """Return the environment's Python, made if it is not there, and the newer releases that could not be had."""
    if not READY.exists():
        release, passed_over = _fetched()
        _installed(release)
        READY.write_text(json.dumps({"release": release, "passed over": passed_over}))
    made = json.loads(READY.read_text())
    return HOME / "bin" / "python", made["passed over"]


def _fetched() -> tuple[Release, list[str]]:
    """Return the newest release whose jars mvn finds, and those that it does not find."""
    if shutil.which("mvn") is None:
        raise SystemExit("Sedona's jars are fetched by Maven, and there is no mvn; on Debian: apt-get install maven")
    shutil.rmtree(HOME, ignore_errors=True)
    JARS.mkdir(parents=True)
    passed_over = []
    for release in RELEASES:
        say(f"mvn: the jars of Sedona {release.sedona} for Spark {release.spark}")
        missing = next((name for name in release.artifacts if not _copied(name)), None)
        if missing is None:
            return release, passed_over
        passed_over.append(f"Sedona {release.sedona}: mvn does not find {missing}")
    raise SystemExit("mvn finds no release of Sedona: " + "; ".join(passed_over))


def _copied(artifact: str) -> bool:
    """Return whether mvn has put a jar beside the others; False if its repository has none, and an end if mvn fails."""
    command = ["mvn", "-B", "-U", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={JARS}"]
    run = subprocess.run(command, cwd=HOME, capture_output=True, text=True)
    if run.returncode == 0:
        return True
    if NOT_THERE in run.stdout:
        return False
    said = next((line for line in run.stdout.splitlines() if "ERROR" in line), run.stderr.strip() or "nothing")
    raise SystemExit(f"mvn could not fetch {artifact}: is there a network that mvn reaches? It says: {said[:400]}")


def _installed(release: Release) -> None:
    """A virtual environment with Sedona's Python package and the newest PySpark of the Spark that it supports."""
    say(f"pip: apache-sedona {release.sedona} and pyspark {release.spark} in {HOME.relative_to(ROOT)}")
    subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
    wanted = [f"apache-sedona=={release.sedona}", f"pyspark=={release.spark}.*", "pandas<3", "pyarrow"]
    pip = [str(HOME / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run = subprocess.run([*pip, *wanted], capture_output=True, text=True)
    if run.returncode != 0:
        last = (run.stderr.strip().splitlines() or ["nothing"])[-1]
        raise SystemExit(f"pip could not install {', '.join(wanted)}: is there a network? It says: {last[:400]}")


class Peer:
    """A process with Sedona that does one order after the other; the clock of an order runs on this side."""

    def __init__(self, work: Path) -> None:
        python, self.passed_over = prepare()
        own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
        own["PYSPARK_PYTHON"] = str(python)
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [str(python), "-m", "benchmarks.sedona.server", str(JARS), str(work)], cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=own,
        )  # fmt: skip
        self.versions: dict[str, str] = self._answer()

    def ask(self, order: str, **arguments: Any) -> Any:
        """Return the answer to an order; an error on the other side is one here."""
        print(json.dumps({"do": order, **arguments}), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise SystemExit(f"Sedona's process ended: {self._log.read()[-2000:]}")
        found = json.loads(line)
        if "error" in found:
            raise RuntimeError(f"Sedona: {found['error']}")
        return found["answer"]

    def close(self) -> None:
        """End the process."""
        try:
            self._process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()
