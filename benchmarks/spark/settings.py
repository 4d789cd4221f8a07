"""Settings of embedded Spark, for ours and for Sedona's process, whose environment has no Contrada."""

from pathlib import Path
from typing import Any

DIGEST = ("count(*) AS pairs", "bit_xor(xxhash64(message_id, key)) AS digest")
QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


def embedded(builder: Any, directory: Path, **further: str) -> Any:
    """Return the builder of a session on two cores of this machine."""
    settings = {
        "spark.driver.memory": "4g",
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.shuffle.partitions": "4",  # as a session of ours has it
    }
    return configured(builder.master("local[2]"), QUIET | settings | further)


def configured(builder: Any, settings: dict[str, str]) -> Any:
    """Return the builder with a name and settings."""
    return builder.appName("benchmarks").config(map=settings)
