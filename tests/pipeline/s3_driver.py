"""The pipeline on an object store, in a process whose Spark has the jars of s3a: `s3_driver.py JARS ENDPOINT PLACE`.

Ingests, compiles, matches and streams to `s3a://runs/`, and writes down what it found there. The environment has the
keys and the endpoint for PyArrow; Spark gets both by its settings.
"""

import json
import os
import sys
import time
from pathlib import Path

from streams import AVAILABLE

from console import contrada, feature, write_lines
from contrada import pipeline
from contrada.pipeline import artifact_store
from contrada.pipeline.session import session
from contrada.pipeline.storage import Storage

ROOT = "s3a://runs"
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
SUBSCRIPTIONS = [
    ("high", "ops", "level >= 3"),
    ("here", "ops", "S_INTERSECTS(area, POLYGON((0 0, 5 0, 5 5, 0 5, 0 0)))"),
]
SCHEMA = "key string, subscriber string, filter string"
DAY = 24 * 3600


def settings(jars, endpoint):
    return {
        "spark.jars": jars,
        "spark.sql.shuffle.partitions": "2",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": os.environ["AWS_REGION"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": os.environ["AWS_ACCESS_KEY_ID"],
        "spark.hadoop.fs.s3a.secret.key": os.environ["AWS_SECRET_ACCESS_KEY"],
    }


def rows_in(spark, place):
    return sorted(map(list, spark.read.parquet(place).select("message_id", "key").collect()))


def batches(spark, place):
    """Rows of complete batches, as their manifests list the files."""
    found = []
    for name in Storage(f"{place}/matches").folders():
        batch = f"{place}/matches/{name}"
        manifest = pipeline.read_output(batch, verify=True)
        files = [f"{batch}/{one.path}" for one in manifest.files]
        rows = spark.read.parquet(*files).collect()
        found += [[name, row.message_id, row.key, row.version] for row in rows]
        assert manifest.counts["matches"] == len(rows)
    return sorted(found)


def ingest(spark, place):
    source = write_lines(place / "in.geojsonl", [feature(SQUARE, name="a"), feature(None, name="b")])
    pipeline.ingest(spark, source).write(f"{ROOT}/places")
    contrada("ingest", source, f"{ROOT}/places2", code=0)
    again = contrada("ingest", source, f"{ROOT}/places2", code=2)
    counts = [pipeline.read_output(f"{ROOT}/{name}", verify=True).counts for name in ("places", "places2")]
    back = pipeline.read_dataset(spark, f"{ROOT}/places")
    rows = pipeline.ingest(spark, spark.read.parquet(f"{ROOT}/places/rows"))
    return {"counts": counts, "rows": back.rows.count(), "crs": rows.crs, "frame": rows.counts(), "again": again.output}


def match(spark, place):
    asked = spark.createDataFrame(SUBSCRIPTIONS, SCHEMA)
    messages = spark.createDataFrame([(1, 4), (2, 1)], "message_id int, level int").selectExpr(
        "*", "unhex('010100000000000000000000400000000000000840') AS area"
    )
    found = {}
    for plan in ("broadcast", "partitioned"):
        compiled = pipeline.compile(asked, f"{ROOT}/tables", plan=plan)
        again = pipeline.compile(asked, f"{ROOT}/tables", plan=plan)
        assert compiled.artifact.digest == again.artifact.digest
        matched = pipeline.match(messages, compiled)
        matched.write(f"{ROOT}/{plan}")
        matched.write(f"{ROOT}/{plan}", mode="overwrite")
        found[plan] = [
            pipeline.read_output(f"{ROOT}/{plan}", verify=True).counts,
            rows_in(spark, f"{ROOT}/{plan}/matches"),
        ]
        matched.unpersist()
    lines = write_lines(place / "m.ndjson", [{"id": "x", "level": 4}])
    subscriptions = write_lines(
        place / "s.ndjson", [{"key": k, "subscriber": s, "filter": t} for k, s, t in SUBSCRIPTIONS]
    )
    words = ["match", lines, subscriptions, "--spark", "--artifacts", f"{ROOT}/tables", "--output", f"{ROOT}/command"]
    told = json.loads(contrada(*words, "--summary", "json", code=0).stderr.splitlines()[-1])
    found["command"] = [told["outputs"], pipeline.read_output(f"{ROOT}/command", verify=True).counts["matches"]]
    return found


def stream(spark, place, artifact):
    """A stream in three runs: the second batch comes again, and its first output was interrupted."""
    incoming, changes, state = f"{ROOT}/in", place / "changes", f"{ROOT}/state"
    store = Storage(ROOT)

    def run(number, **more):
        store.write(f"in/{number}.ndjson", json.dumps({"id": f"m{number}", "level": 4}).encode())
        again()

    def again():
        stream = pipeline.match_stream(
            pipeline.MessageFiles(spark, incoming), artifact, changes, sink=f"{ROOT}/out", checkpoint=state,
            trigger=AVAILABLE,
        )  # fmt: skip
        stream.wait(120)
        stream.versions.wait()

    changes.mkdir()
    run(0)
    write_lines(changes / "1.ndjson", [{"key": "more", "subscriber": "ops", "filter": "level = 4"}])
    run(1)
    first = batches(spark, f"{ROOT}/out")
    # As a driver leaves them that was killed between the files and the mark of batch 1.
    store.remove("state/commits/1")
    store.remove("out/matches/batch=1/_SUCCESS")
    store.write("out/matches/.new-1-dead/part-0.parquet", b"half")
    again()
    second = batches(spark, f"{ROOT}/out")
    left = [name for name in Storage(f"{ROOT}/out/matches").folders() if name.startswith(".")]
    used = {one.digest: list(one.streams) for one in artifact_store.list_artifacts(f"{ROOT}/tables") if one.streams}
    later = time.time() + 8 * DAY
    pruned = artifact_store.prune_artifacts(f"{ROOT}/tables", "7d", now=later)
    # So many changes become a table of the stream; the batch after removes the versions before.
    write_lines(changes / "2.ndjson", [{"key": f"n{number}", "filter": "level = 9"} for number in range(501)])
    run(2)
    run(3)
    last = artifact_store.prune_artifacts(f"{ROOT}/tables", "7d", now=later)
    return {
        "first": first, "second": second, "left": left, "used": used, "kept": dict(pruned.kept),
        "removed": [one.digest for one in pruned.removed], "then": [one.digest for one in last.removed],
        "end": Storage(f"{ROOT}/tables").files_below(), "all": batches(spark, f"{ROOT}/out"),
    }  # fmt: skip


def main(jars, endpoint, place):
    spark = session("local[2]", settings(jars, endpoint))
    stop, type(spark).stop = spark.stop, lambda self: None  # commands run on this session
    found = {"ingest": ingest(spark, place), "match": match(spark, place)}
    whole = pipeline.compile(spark.createDataFrame(SUBSCRIPTIONS, SCHEMA), f"{ROOT}/tables", plan="broadcast").artifact
    found["digest"], found["stream"] = whole.digest, stream(spark, place, whole)
    (place / "answer.json").write_text(json.dumps(found, default=str))
    stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
