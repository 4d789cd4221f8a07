"""A driver of the cluster that tests/pipeline/test_cluster.py starts: `cluster_driver.py MASTER PLACE`.

Compiles and matches on the executors, with a task that fails once on its way, and writes down what it got.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
import shapely
from failing import failing_once

import contrada as ct
from contrada import pipeline
from contrada.pipeline.batch import matching
from contrada.pipeline.session import session as start_session

FILTERS = [
    "size >= 3",
    "S_INTERSECTS(area, POLYGON((0 0, 5 0, 5 5, 0 5, 0 0)))",
    "size <",
    "name LIKE 'm%' AND size < 2",
]


def messages():
    """Points on a diagonal; of every ten one has no size."""
    points = [shapely.to_wkb(shapely.Point(x, x)) for x in (0, 1, 4, 6)]
    sizes = [None if k % 10 == 7 else k % 5 for k in range(400)]
    names = [f"m{k}" for k in range(400)]
    return pa.table({"message_id": range(400), "size": sizes, "name": names, "area": points * 100})


def main(master, place):
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }
    session = start_session(master, settings)
    named = [(f"k{k}", f"s{k // 2}", text) for k, text in enumerate(FILTERS)]
    rows = session.createDataFrame(named, "key string, subscriber string, filter string")
    try:
        pipeline.compile(rows)
        unset = ""
    except ct.ContradaError as error:
        unset = str(error)
    session.conf.set("spark.contrada.artifacts", str(place / "artifacts"))
    matching.match_batches = failing_once(place / "failed")
    matched = pipeline.match(session.createDataFrame(messages()).repartition(8), rows)
    answer = {
        "unset": unset,
        "digest": matched.artifact.digest,
        "matches": sorted(map(list, matched.matches.collect())),
        "rejected": sorted(map(list, matched.compiled.rejected.select("row", "key").collect())),
    }
    (place / "answer.json").write_text(json.dumps(answer))
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
