"""Distances in metres on Spark: the rows of a single process in every plan, and in a stream."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from contrada import pipeline

TEMPLATE = "within_distance(area, $geometry, $metres, 'm')"
TEXTS = [
    "within_distance(area, POINT(179.9 60), 30000, 'm')",
    "beyond_distance(area, POINT(179.9 60), 60000, 'm') AND size > 1",
    "within_distance(area, BBOX(-181, 60, -180.5, 61), 5000, 'm') OR size > 2",
]


def messages(count: int = 80) -> pa.Table:
    """Return points and boxes on both sides of the date line."""
    rng = np.random.default_rng(3)
    areas = []
    for k in range(count):
        x, y = rng.uniform(178, 182), rng.uniform(59.5, 60.5)
        x -= 360 * (k % 3 == 0)
        areas.append((ct.Point(x, y) if k % 2 else ct.Region.box(x, y, x + 0.05, y + 0.05)).to_wkb())
    size = [k % 4 for k in range(count)]
    return pa.table({"message_id": [str(k) for k in range(count)], "area": areas, "size": size})


def rows() -> pa.Table:
    names = [f"k{k}" for k in range(len(TEXTS))]
    return pa.table({"key": names, "subscriber": names, "filter": TEXTS})


def expected(table: ct.ForwardingTable) -> set[tuple[str, str]]:
    answer = table.match_many(messages(), by="subscription")
    return {(str(k), str(key)) for k in range(len(messages())) for key in answer.keys(k)}


@pytest.mark.parametrize("plan", ["broadcast", "partitioned", "scan"])
def test_rows_are_those_of_a_single_process(spark, place, plan):
    table = ct.ForwardingTable()
    frame = spark.createDataFrame(messages()).repartition(3)
    if plan == "scan":
        points = ct.PointArray([(179.5 + 0.1 * k, 60.0) for k in range(10)])
        asked = pa.table({
            "key": [f"k{k}" for k in range(10)], "subscriber": ["a"] * 10, "geometry": points.to_wkb(),
            "metres": [5000.0 * k for k in range(10)],
        })  # fmt: skip
        table.subscribe_many(asked, TEMPLATE)
        found = pipeline.match(frame, spark.createDataFrame(asked), "scan", template=TEMPLATE)
    else:
        for name, text in zip(rows()["key"].to_pylist(), TEXTS, strict=True):
            table.subscribe(name, text, key=name)
        options = {"partitions": 2} if plan == "partitioned" else {}
        compiled = pipeline.compile(spark.createDataFrame(rows()), place, plan=plan, **options)
        found = pipeline.match(frame, compiled)
    right = expected(table)
    assert len(right) > 20
    assert {(row["message_id"], row["key"]) for row in found.matches.collect()} == right
    assert found.rejected.collect() == []


def test_streams(spark, tmp_path):
    frame = spark.createDataFrame(messages())
    frame.write.parquet(str(tmp_path / "incoming"))
    streamed = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "incoming"))
    stream = pipeline.match_stream(
        streamed, spark.createDataFrame(rows()), sink=tmp_path / "out", checkpoint=tmp_path / "state",
        trigger={"availableNow": True},
    )  # fmt: skip
    assert stream.wait(300)
    table = ct.ForwardingTable()
    for name, text in zip(rows()["key"].to_pylist(), TEXTS, strict=True):
        table.subscribe(name, text, key=name)
    found = spark.read.parquet(str(tmp_path / "out" / "matches")).collect()
    assert {(row["message_id"], row["key"]) for row in found} == expected(table)
