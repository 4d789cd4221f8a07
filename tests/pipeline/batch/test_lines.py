"""Lines on Spark: the rows of a single process, in every plan, as messages, as rows of templates and in streams."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from contrada import pipeline
from generators.line_filters import coarse_shape, drawn, text_of


def messages_of(count: int = 80) -> pa.Table:
    """Return messages with lines, regions and points."""
    rng = np.random.default_rng(3)
    shapes = [coarse_shape(rng).wkb for _ in range(count)]
    return pa.table({"message_id": [str(k) for k in range(count)], "area": pa.array(shapes, pa.binary())})


def expected_of(table: ct.ForwardingTable, messages: pa.Table) -> set[tuple[str, object]]:
    answer = table.match_many(messages, by="subscription")
    return {(str(k), key) for k in range(len(messages)) for key in answer.keys(k)}


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
def test_rows_are_those_of_a_single_process(spark, place, plan):
    texts = [text_of(*one) for one in drawn(np.random.default_rng(4), 30)]
    table, messages = ct.ForwardingTable(), messages_of()
    for k, text in enumerate(texts):
        table.subscribe(f"s{k}", text, key=f"k{k}")
    rows = {"key": [f"k{k}" for k in range(30)], "subscriber": [f"s{k}" for k in range(30)], "filter": texts}
    options = {"partitions": 2} if plan == "partitioned" else {}
    compiled = pipeline.compile(spark.createDataFrame(pa.table(rows)), place, plan=plan, **options)
    found = pipeline.match(spark.createDataFrame(messages).repartition(3), compiled)
    assert {(row["message_id"], row["key"]) for row in found.matches.collect()} == expected_of(table, messages)
    assert found.rejected.collect() == []


def test_templates_have_columns_of_lines(spark):
    rng, messages = np.random.default_rng(5), messages_of()
    lines = [one.wkb for one in (coarse_shape(rng) for _ in range(60)) if "Line" in one.geom_type]
    numbers = [str(k) for k in range(len(lines))]
    rows = pa.table({"key": numbers, "subscriber": numbers, "geometry": pa.array(lines, pa.binary())})
    for template, plan in (("S_TOUCHES(area, $geometry)", "broadcast"), ("S_INTERSECTS(area, $geometry)", "scan")):
        table = ct.ForwardingTable()
        table.subscribe_many(rows, template)
        found = pipeline.match(spark.createDataFrame(messages), spark.createDataFrame(rows), plan, template=template)
        assert {(row["message_id"], row["key"]) for row in found.matches.collect()} == expected_of(table, messages)


def test_streams_have_lines(spark, tmp_path):
    text, messages = "S_CROSSES(area, LINESTRING (0 0, 9 9)) OR S_INTERSECTS(area, BBOX(0, 0, 3, 3))", messages_of()
    table = ct.ForwardingTable()
    table.subscribe("b", text, key="a")
    asked = spark.createDataFrame(pa.table({"key": ["a"], "subscriber": ["b"], "filter": [text]}))
    frame = spark.createDataFrame(messages)
    frame.write.parquet(str(tmp_path / "incoming"))
    streamed = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "incoming"))
    stream = pipeline.match_stream(
        streamed, asked, sink=tmp_path / "out", checkpoint=tmp_path / "state", trigger={"availableNow": True}
    )
    assert stream.wait(300)
    found = spark.read.parquet(str(tmp_path / "out" / "matches")).collect()
    assert {(row["message_id"], row["key"]) for row in found} == expected_of(table, messages)
