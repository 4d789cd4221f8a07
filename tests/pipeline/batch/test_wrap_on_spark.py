"""Tables that wrap attributes at the date line, on Spark: the answers of a table in this process."""

import json

import pytest
import shapely
from streams import AVAILABLE

import contrada as ct
from contrada import pipeline
from effort import slow

WRAP = {"area": "longitude"}
BOXES = [(x, 0, x + 20, 9) for x in range(-540, 560, 37)]


def ewkb(shape):
    return bytearray(shapely.to_wkb(shapely.set_srid(shape, 4326), include_srid=True))


@pytest.fixture(scope="module")
def frames(spark):
    """Subscriptions and messages around the globe, and the matches of a table."""
    rows = [{"key": f"k{n}", "geometry": ewkb(shapely.box(*box))} for n, box in enumerate(BOXES)]
    shapes = [shapely.box(x, 1, x + 3, 2) for x in range(-400, 420, 23)] + [
        shapely.Point(190, 5),
        shapely.Point(-545, 5),
    ]
    shapes.append(shapely.box(0, 0, 400, 1))
    messages = [{"message_id": n, "area": ewkb(shape)} for n, shape in enumerate(shapes)]
    table = ct.ForwardingTable(wrap=WRAP)
    for row in rows:
        table.subscribe(row["key"], ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.read_regions(
            [bytes(row["geometry"])], wrap="longitude").regions[0]), key=row["key"])  # fmt: skip
    answer = table.match_many([{"area": bytes(message["area"])} for message in messages], by="subscription")
    right = {(n, key) for n in range(len(shapes)) for key in answer[n]}
    assert len(right) > 50
    assert [bad.row for bad in answer.rejected] == [len(shapes) - 1]
    return spark.createDataFrame(rows), spark.createDataFrame(messages).repartition(3), right, len(shapes) - 1


TEMPLATE = "S_INTERSECTS(area, $geometry)"


def test_matches_are_those_of_a_table(spark, frames, place):
    rows, messages, right, bad = frames
    for subscriptions, options in (
        (rows, {"template": TEMPLATE, "wrap": WRAP, "artifacts": place}),
        (pipeline.compile(rows, place, template=TEMPLATE, wrap=WRAP), {}),
    ):
        found = pipeline.match(messages, subscriptions, **options)
        assert {(row.message_id, row.key) for row in found.matches.collect()} == right
        ((rejected, reason),) = found.rejected.collect()
        assert rejected == bad
        assert "attribute 'area': wrap: longitudes" in reason
    # Without wrap, values off the globe are rejected.
    plain = pipeline.match(messages, rows, template=TEMPLATE, artifacts=place)
    assert {(row.message_id, row.key) for row in plain.matches.collect()} < right


def test_filters_in_text_and_sql(spark, place):
    rows = spark.createDataFrame([("w", "S_INTERSECTS(area, BBOX(170, 0, 190, 9))")], "key string, filter string")
    compiled = pipeline.compile(rows, place, wrap=WRAP)
    shapes = [ewkb(shapely.box(185, 1, 186, 2)), ewkb(shapely.box(-175, 1, -174, 2)), ewkb(shapely.box(0, 1, 1, 2))]
    messages = spark.createDataFrame(list(enumerate(shapes)), "message_id int, area binary")
    assert {row.message_id for row in pipeline.match(messages, compiled).matches.collect()} == {0, 1}
    pipeline.register(spark)
    messages.createOrReplaceTempView("wrapped_messages")
    path = compiled.artifact.path
    found = spark.sql(f"SELECT message_id, ct_match('{path}', struct(area)) AS who FROM wrapped_messages").collect()
    assert {row.message_id: row.who for row in found} == {0: ["w"], 1: ["w"], 2: []}


@slow
def test_streams_and_their_changes(spark, place, tmp_path):
    rows = spark.createDataFrame([("w", "S_INTERSECTS(area, BBOX(170, 0, 190, 9))")], "key string, filter string")
    compiled = pipeline.compile(rows, place, wrap=WRAP)
    (tmp_path / "changes").mkdir()
    changes = [
        {
            "op": "subscribe",
            "key": "east",
            "subscriber": "east",
            "filter": "S_INTERSECTS(area, BBOX(-190, 0, -175, 9))",
        },
        {"op": "subscribe", "key": "wide", "subscriber": "wide", "filter": "S_INTERSECTS(area, BBOX(0, 0, 400, 9))"},
    ]
    (tmp_path / "changes" / "1.ndjson").write_text("".join(json.dumps(change) + "\n" for change in changes))
    shapes = [ewkb(shapely.box(185, 1, 186, 2)), ewkb(shapely.box(-179, 1, -178, 2))]
    spark.createDataFrame(list(enumerate(shapes)), "message_id int, area binary").write.parquet(str(tmp_path / "m"))
    frame = spark.readStream.schema("message_id int, area binary").parquet(str(tmp_path / "m"))
    stream = pipeline.match_stream(
        frame, compiled, sink=tmp_path / "out", checkpoint=tmp_path / "checkpoint", changes=tmp_path / "changes",
        trigger=AVAILABLE,
    )  # fmt: skip
    stream.wait(120)
    found = spark.read.parquet(str(tmp_path / "out" / "matches")).collect()
    assert {(row.message_id, row.key) for row in found} == {(0, "w"), (0, "east"), (1, "w"), (1, "east")}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"plan": "partitioned"}, "has no partitions"),
        ({"plan": "scan"}, "not scanned with wrap"),
        ({"partitions": 3}, "has no partitions"),
        ({"wrap": {"area": "latitude"}}, "'longitude' or 'shorter'"),
    ],
)
def test_plans_without_wrap_are_clear_errors(frames, place, options, reason):
    rows, messages, _, _ = frames
    with pytest.raises(ct.ContradaError, match=reason):
        pipeline.match(messages, rows, **{"template": TEMPLATE, "wrap": WRAP, "artifacts": place, **options})
