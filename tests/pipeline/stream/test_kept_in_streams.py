"""Streams carry columns of messages, or attributes of texts, into matches and rejections."""

import json

import pytest
from streams import AVAILABLE, written

import contrada as ct
from contrada import pipeline

FILTERS = [("low", "size >= 1"), ("high", "size >= 3")]


def matched(spark, home, messages, plan="broadcast", **options):
    """The output of a stream that has matched what is there."""
    rows = spark.createDataFrame(FILTERS, "key string, filter string")
    stream = pipeline.match_stream(
        messages, rows, sink=home / "out", checkpoint=home / "state", trigger=AVAILABLE, plan=plan, **options
    )
    assert stream.wait(300)
    return home / "out"


@pytest.mark.parametrize("plan", ["broadcast", pytest.param("partitioned", marks=pytest.mark.slow)])
def test_columns_travel_with_rows_whose_ids_repeat(spark, tmp_path, plan):
    rows = [(1, 1.0, "a", (7,)), (1, 3.0, "b", None), (None, 5.0, None, (8,)), (2, 0.0, "c", None)]
    schema = "message_id int, size double, title string, tags struct<n:int>"
    spark.createDataFrame(rows, schema).coalesce(1).write.parquet(str(tmp_path / "in"))
    messages = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    options = {"partitions": 2} if plan == "partitioned" else {}
    out = matched(spark, tmp_path, messages, plan, keep=["title", "tags"], **options)
    assert written(out / "matches", ["message_id", "title", "tags", "key"]) == sorted(
        [
            (1, "a", {"n": 7}, "low"), (1, "b", None, "low"), (1, "b", None, "high"),
            (None, None, {"n": 8}, "low"), (None, None, {"n": 8}, "high"),
        ],
        key=repr,
    )  # fmt: skip


def test_attributes_of_texts_travel_as_text(spark, tmp_path):
    (tmp_path / "in").mkdir()
    first = {"id": "x", "size": 1, "title": "T", "n": [1, None]}
    texts = [first, {"id": "y", "size": 4}, {"id": "z", "size": 0, "title": "no"}]
    (tmp_path / "in" / "1.ndjson").write_text("".join(json.dumps(text) + "\n" for text in texts) + '{"id": "half')
    files = pipeline.MessageFiles(spark, tmp_path / "in", "ndjson", id="id")
    out = matched(spark, tmp_path, files, keep=["title", "n"])
    assert written(out / "matches", ["title", "n", "key"]) == sorted(
        [("T", "[1, null]", "low"), (None, None, "low"), (None, None, "high")], key=repr
    )
    assert written(out / "rejected", ["title", "n", "raw"]) == [(None, None, '{"id": "half')]


def test_a_name_of_a_column_of_matches_is_refused(spark, tmp_path):
    messages = spark.readStream.format("rate").load().selectExpr("value AS message_id", "value AS version")
    with pytest.raises(ct.FormatError, match="keep: 'version' is a column of matches"):
        matched(spark, tmp_path, messages, keep=["version"])
