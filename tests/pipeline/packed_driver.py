"""A job whose executors have nothing but an archive: `packed_driver.py MASTER ARCHIVE PLACE`.

The archive is unpacked beside every executor; `--py-files` brings a module of the job. The job compiles, matches and
streams.
"""

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
from cluster_driver import FILTERS, messages
from streams import AVAILABLE, rows_in

from console import write_lines
from contrada import pipeline
from contrada.pipeline.session import session as start_session

MODULE = "import contrada\n\n\ndef where():\n    return contrada.__file__\n"


def look(batches):
    """Where the executors' Python and Contrada are."""
    import own_module  # by --py-files

    for _ in batches:
        found = {"python": sys.executable, "package": own_module.where(), "path": os.environ.get("PYTHONPATH", "")}
        yield pa.RecordBatch.from_pylist([found])


def main(master, archive, place):
    os.environ["PYSPARK_PYTHON"] = "./environment/bin/python"
    module = place / "own_module.py"
    module.write_text(MODULE)
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--archives {archive}#environment --py-files {module} pyspark-shell"
    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.executor.memory": "512m",
        "spark.sql.warehouse.dir": str(place / "warehouse"), "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s", "spark.sql.shuffle.partitions": "2",
        "spark.contrada.artifacts": str(place / "artifacts"),
    }  # fmt: skip
    spark = start_session(master, settings)
    looked = spark.range(0, 8, 1, 8).mapInArrow(look, "python string, package string, path string").distinct().collect()
    named = [(f"k{k}", f"s{k // 2}", text) for k, text in enumerate(FILTERS)]
    rows = spark.createDataFrame(named, "key string, subscriber string, filter string")
    matched = pipeline.match(spark.createDataFrame(messages()).repartition(8), rows)
    answer = {
        "looked": [row.asDict() for row in looked],
        "matches": sorted(map(list, matched.matches.collect())),
        "rejected": sorted(map(list, matched.compiled.rejected.select("row", "key").collect())),
    }
    write_lines(place / "in" / "1.ndjson", [{"id": "a", "size": 4}, {"id": "b", "size": 1}])
    stream = pipeline.match_stream(
        pipeline.MessageFiles(spark, place / "in"), matched.compiled, sink=place / "out", checkpoint=place / "state",
        trigger=AVAILABLE,
    )  # fmt: skip
    stream.wait(120)
    answer["stream"] = sorted([row["message_id"], row["key"]] for row in rows_in(place / "out" / "matches"))
    (place / "answer.json").write_text(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
