"""A stream whose table a Python worker cannot hold: `memory_driver.py PLACE`.

A worker has 2 GiB of addresses, of which Python with its libraries takes most. The plan broadcast must fail, in a
stream that compiles and in one that gets a table compiled elsewhere; partitions must give the rows of one process.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from streams import AVAILABLE, written

import contrada as ct
from console import write_lines
from contrada import pipeline
from contrada.pipeline.session import session as start_session
from generators.filters_of_every_kind import expected

TEMPLATE = "S_INTERSECTS(area, $geometry)"
SETTINGS = {
    "spark.executor.pyspark.memory": "2g",
    "spark.executor.cores": "1",
    "spark.contrada.partition.bytes": "24m",
    "spark.sql.shuffle.partitions": "2",
}
REGIONS, SEGMENTS = 12_000, 500  # 2,000 vertices each: 384 MB


def circles(rng):
    """Rows of subscriptions."""
    places = shapely.points(rng.uniform(0, 1000, (REGIONS, 2)))
    return pa.table(
        {
            "key": [f"k{k}" for k in range(REGIONS)],
            "geometry": shapely.to_wkb(shapely.buffer(places, 4, quad_segs=SEGMENTS)).tolist(),
        }
    )


def boxes(rng, start):
    """Messages over the same ground."""
    corners = rng.uniform(0, 1000, (150, 2))
    areas = [shapely.to_wkb(shapely.box(x, y, x + 9, y + 9)) for x, y in corners.tolist()]
    return pa.table({"message_id": range(start, start + 150), "area": areas})


def main(place):
    rng = np.random.default_rng(3)
    rows, batches = circles(rng), [boxes(rng, 0), boxes(rng, 150)]
    for folder in ("rows", "in", "changes"):
        (place / folder).mkdir()
    for number in range(4):
        pq.write_table(rows.slice(number * REGIONS // 4, REGIONS // 4), place / "rows" / f"{number}.parquet")
    pq.write_table(batches[0], place / "in" / "0.parquet")
    table = ct.ForwardingTable()
    table.subscribe_many(rows, TEMPLATE)
    right = [expected(table, batches[0])]
    spark = start_session("local[1]", {**SETTINGS, "spark.sql.warehouse.dir": str(place / "warehouse")})
    frame = spark.read.parquet(str(place / "rows"))

    def run(plan, subscriptions, **options):
        files = pipeline.MessageFiles(spark, place / "in", "parquet")
        places = {"sink": place / f"out-{plan}", "checkpoint": place / plan}
        stream = pipeline.match_stream(
            files, subscriptions, place / "changes", **places, **options, plan=plan, trigger=AVAILABLE
        )
        assert stream.wait(600)
        return stream

    with pytest.raises(ct.ContradaError, match='use plan="partitioned"'):
        run("broadcast", frame, template=TEMPLATE)
    # Where the limit is met decides how: an error in Python, or the end of the process.
    with pytest.raises(Exception, match=r"MemoryError|does not fit into the memory|worker exited unexpectedly"):
        run("broadcast", pipeline.publish(table, place / "artifacts"))
    run("partitioned", frame, template=TEMPLATE)
    changes = [{"action": "unsubscribe", "key": f"k{k}"} for k in range(0, 400, 2)]
    changes += [{"key": "new", "filter": "S_INTERSECTS(area, BBOX(0, 0, 500, 500))"}]
    write_lines(place / "changes" / "1.ndjson", changes)
    for change in changes[:-1]:
        table.unsubscribe(change["key"])
    table.subscribe("new", changes[-1]["filter"], "new")
    pq.write_table(batches[1], place / "in" / "1.parquet")
    right.append(expected(table, batches[1]))
    made = run("partitioned", None).versions.current.artifact
    found = written(place / "out-partitioned" / "matches", ("batch", "message_id", "subscriber", "key"))
    for number, (matches, _) in enumerate(right):
        assert matches
        assert [row[1:] for row in found if row[0] == number] == matches
    print(f"{made.bytes >> 20} MiB in {len(made.partitions)} partitions, {len(found)} matches")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
