"""Circles on Spark: the rows of a single process, from columns of structs and of bytes, in every plan."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from contrada import pipeline
from generators.circles import circles_near, shapes

TEXTS = [
    "S_INTERSECTS(area, BBOX(0, 0, 4, 4))",
    "within_distance(area, POINT(6 6), 2)",
    "S_WITHIN(area, BBOX(0, 0, 12, 12))",
    "S_DISJOINT(area, BBOX(3, 3, 9, 9)) AND size > 1",
    "beyond_distance(area, BBOX(3, 3, 5, 5), 1.5)",
    "S_WITHIN(area, CIRCLE(POINT(6 6), 4)) OR size > 2 AND S_CONTAINS(area, POINT(2 2))",
]


def circles(count: int = 80) -> list[ct.Circle]:
    """Return circles on a coarse grid."""
    rng = np.random.default_rng(3)
    return [circles_near(rng, shape, 1)[0] for shape in shapes(rng, count)]


def frames(spark, values):
    """Return the messages with circles as structs, and as bytes among other shapes."""
    own = {"message_id": [str(k) for k in range(len(values))], "size": [k % 4 for k in range(len(values))]}
    structs = [{"x": each.center.x, "y": each.center.y, "radius": each.radius} for each in values]
    mixed = [each.center.to_wkb() if k % 3 == 0 else each.to_wkb() for k, each in enumerate(values)]
    tables = [pa.table(own | {"area": pa.array(structs)}), pa.table(own | {"area": pa.array(mixed, pa.binary())})]
    return [(spark.createDataFrame(table).repartition(3), table) for table in tables]


@pytest.mark.parametrize("plan", ["broadcast", "partitioned", "scan"])
def test_rows_are_those_of_a_single_process(spark, place, plan):
    table = ct.ForwardingTable()
    for k, text in enumerate(TEXTS):
        table.subscribe(f"s{k}", text, key=f"k{k}")
    rows = pa.table({
        "key": [f"k{k}" for k in range(len(TEXTS))], "subscriber": [f"s{k}" for k in range(len(TEXTS))], "filter": TEXTS
    })  # fmt: skip
    asked = spark.createDataFrame(rows)
    options = {"partitions": 2} if plan == "partitioned" else {}
    for frame, messages in frames(spark, circles()):
        answer = table.match_many(messages, by="subscription")
        right = {(str(k), key) for k in range(len(messages)) for key in answer.keys(k)}
        assert len(right) > 60
        if plan == "scan":
            boxes = pa.table({"key": ["a"], "subscriber": ["b"], "geometry": [ct.Region.box(0, 0, 4, 4).to_wkb()]})
            found = pipeline.match(
                frame, spark.createDataFrame(boxes), "scan", template="S_INTERSECTS(area, $geometry)"
            )
            expected = {(k, "a") for k, key in right if key == "k0"}
        else:
            compiled = pipeline.compile(asked, place, plan=plan, **options)
            found, expected = pipeline.match(frame, compiled), right
        matched = found.matches.collect()
        assert {(row["message_id"], row["key"]) for row in matched} == expected
        assert found.rejected.collect() == []


def test_streams_have_circles(spark, tmp_path):
    asked = spark.createDataFrame(pa.table({"key": ["a"], "subscriber": ["b"], "filter": [TEXTS[0]]}))
    values = circles()
    (frame, _), _ = frames(spark, values)
    frame.write.parquet(str(tmp_path / "incoming"))
    streamed = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "incoming"))
    stream = pipeline.match_stream(
        streamed, asked, sink=tmp_path / "out", checkpoint=tmp_path / "state", trigger={"availableNow": True}
    )
    assert stream.wait(300)
    box = ct.Region.box(0, 0, 4, 4)
    expected = {str(k) for k, each in enumerate(values) if ct.relate(each, box) is not ct.Relation.DISJOINT}
    found = spark.read.parquet(str(tmp_path / "out" / "matches")).collect()
    assert {row["message_id"] for row in found} == expected
