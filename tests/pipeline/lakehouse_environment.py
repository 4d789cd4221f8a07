"""An environment with the newest PySpark that Delta and Iceberg both support, build/lakehouse, and their jars.

Of its packages only PySpark is its own; the others are those of the environment that runs the tests.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

import kafka_broker
from filelock import FileLock

CACHE = Path(__file__).parents[2] / "build" / "lakehouse"
PYSPARK = "4.1.4"
JARS = [
    ("io.delta", "delta-spark_4.1_2.13", "4.4.0"), ("io.delta", "delta-storage", "4.4.0"),
    ("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"),
]  # fmt: skip


def lakehouse(cache=CACHE):
    """The Python of the environment, and the jars; UnavailableError if there is no way to get them."""
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "making.lock"):
        jars = kafka_broker.fetched(cache, "jars", JARS, is_alone=True)
        ready, home = cache / f"pyspark-{PYSPARK}", cache / "environment"
        if not ready.exists():
            try:
                subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True, capture_output=True)
                command = [home / "bin" / "python", "-m", "pip", "install", "--quiet", f"pyspark=={PYSPARK}"]
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=kafka_broker.WAITING)
            except (subprocess.SubprocessError, OSError) as error:
                raise kafka_broker.UnavailableError(f"pip does not install PySpark {PYSPARK}: {error}") from error
            (packages,) = home.glob("lib/python*/site-packages")
            # Added behind its own packages, so PySpark is found there first.
            (packages / "tests.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
            ready.touch()
    return home / "bin" / "python", jars
