"""One Spark session for all tests of the pipeline; what it writes goes to a temporary directory."""

import sys

import pytest

from contrada import jit


@pytest.fixture(scope="session")
def kafka_jars():
    """Jars of a broker of Kafka and of Spark's connector; where Maven does not get them, the test is skipped."""
    import kafka_broker

    try:
        return kafka_broker.jars()
    except kafka_broker.UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    place = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.local.dir": str(place / "local"),
    }
    builder = SparkSession.builder.master("local[2]").appName("contrada-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    # Workers inherit what is set when Java starts. They keep their copies of tables in a directory of their own, but
    # find the kernels that are compiled already.
    (place / "cache").mkdir()
    (place / "cache" / "kernels").symlink_to(jit.cache_directory().parent)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYSPARK_PYTHON", sys.executable)
        patched.setenv("CONTRADA_CACHE_DIR", str(place / "cache"))
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def stream_command(spark, monkeypatch):
    """Runs `contrada stream` on the session of the tests, which it must not stop."""
    from typer.testing import CliRunner

    from contrada.cli import spark_running
    from contrada.cli.main import app

    monkeypatch.setattr(spark_running, "session", lambda *asked: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)

    def command(*arguments):
        return CliRunner().invoke(app, ["stream", *map(str, arguments)])

    return command
