"""One Spark session for all tests of the pipeline; what it writes goes to a temporary directory."""

import sys

import pytest
from pyspark.sql import SparkSession
from sample_tables import some_table

from console import contrada
from contrada import jit, pipeline
from contrada.pipeline import artifact_cache
from contrada.pipeline.session import session


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
    place = tmp_path_factory.mktemp("spark")
    settings = {
        # Rows are few: to compile code for each query takes longer than to interpret it.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.local.dir": str(place / "local"),
    }
    # Workers inherit what is set when Java starts. They keep their copies of tables in a directory of their own, but
    # find the kernels that are compiled already.
    (place / "cache").mkdir()
    (place / "cache" / "kernels").symlink_to(jit.cache_directory().parent)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYSPARK_PYTHON", sys.executable)
        patched.setenv("CONTRADA_CACHE_DIR", str(place / "cache"))
        made = session("local[2]", settings)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def free_frames():
    """Frees the DataFrames that a test left persisted, if there is a session."""
    yield
    if running := SparkSession.getActiveSession():
        running.catalog.clearCache()


@pytest.fixture
def command(spark, monkeypatch):
    """Runs a command on the session of the tests, which it must not stop."""
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    return contrada


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory for artifacts that the tests of a module share."""
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture
def artifact(tmp_path):
    return pipeline.publish(some_table(), tmp_path / "artifacts")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Copies of tables that this process opens go to a directory of the test, and are closed after it."""
    monkeypatch.setattr(artifact_cache, "cache_home", lambda: tmp_path / "cache")
    yield
    for digest in artifact_cache.open_digests():
        artifact_cache.remove_copy(digest, tmp_path / "cache" / "tables")


@pytest.fixture
def root(tmp_path):
    """The directory of a cache of tables, which is not there yet."""
    return tmp_path / "cache" / "tables"
