"""Plan "scan": few messages, rows of subscriptions that are read past them; the rows of every other plan."""

import numpy as np
import pyarrow as pa
import pytest
import shapely
from sample_tables import TEMPLATE, template_rows

import contrada as ct
from contrada import pipeline
from contrada.pipeline.batch.scan import MIN_ROWS
from contrada.pipeline.batch.scan_batches import FewMessages, scan_batches
from contrada.pipeline.batch.simplified_batches import Job
from effort import slow
from generators.filters_of_every_kind import expected, random_messages, rows_of, subscribers_for

MIXED = "(S_INTERSECTS(area, $geometry) AND size >= $least) OR (S_WITHIN(area, $geometry) AND name LIKE $name)"


def squares(count, seed=5, srid=0):
    """Rows of squares, some with equal sides, among the messages."""
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 40, (count, 2))
    shapes = shapely.set_srid(shapely.box(*corners.T, *(corners + rng.integers(1, 3, (count, 1))).T), srid)
    names = {"key": [f"k{k}" for k in range(count)], "subscriber": subscribers_for(count)}
    values = {"least": rng.integers(0, 3, count).astype(float), "name": ["a%", "%b"] * (count // 2)}
    return pa.table(names | {"geometry": shapely.to_wkb(shapes, include_srid=srid > 0)} | values)


def bad_subscriptions(matched):
    return sorted(map(tuple, matched.compiled.rejected.collect()))


@pytest.mark.parametrize(("by", "partitions"), [slow("subscription", 3), ("subscriber", 3), slow("subscription", 1)])
def test_rows_are_those_of_a_single_process(spark, by, partitions):
    rows, messages = squares(400), random_messages(60)
    table = ct.ForwardingTable()
    table.subscribe_many(rows, MIXED)
    frame = spark.createDataFrame(rows).repartition(partitions)
    matched = pipeline.match(spark.createDataFrame(messages), frame, "scan", by, template=MIXED)
    right = expected(table, messages, by)
    assert (matched.plan, matched.compiled.count, bad_subscriptions(matched)) == ("scan", 400, [])
    assert "plan: scan" in matched.explain()
    assert matched.census().messages == 60
    assert rows_of(matched) == right
    assert all(right)


def test_bad_rows_have_the_numbers_and_reasons_of_compiling(spark, place):
    frame, _ = template_rows(spark, 3)
    frame = frame.where("key IS NULL OR key <> 1 OR least = 1").where("key IS NULL OR key <> 6")  # neither keys twice
    messages = spark.createDataFrame(random_messages(40))
    compiled = pipeline.match(messages, frame, "broadcast", template=TEMPLATE, artifacts=place)
    scanned = pipeline.match(messages, frame, "scan", template=TEMPLATE, artifacts=place)
    assert (compiled.plan, scanned.plan) == ("broadcast", "scan")
    assert bad_subscriptions(scanned) == bad_subscriptions(compiled)
    assert len(bad_subscriptions(scanned)) == 6
    assert scanned.compiled.count == compiled.compiled.count
    assert rows_of(scanned) == rows_of(compiled)


def test_default_keys_run_over_the_partitions_in_order(spark, place):
    rows = squares(90).select(["geometry"])
    frame, messages = spark.createDataFrame(rows).repartition(3), spark.createDataFrame(random_messages(30))
    plans = [
        pipeline.match(messages, frame, plan, template="S_INTERSECTS(area, $geometry)", artifacts=place)
        for plan in ("scan", "broadcast")
    ]
    assert [matched.plan for matched in plans] == ["scan", "broadcast"]
    assert plans[0].matches.schema["key"].dataType == plans[1].matches.schema["key"].dataType
    scanned, compiled = map(rows_of, plans)
    assert scanned == compiled
    assert scanned[0]


@pytest.mark.parametrize("what", ["keys", slow("systems"), "kinds", slow("messages")])
def test_rows_that_depend_on_rows_of_other_tasks_are_compiled(spark, place, what):
    first, second = squares(40), squares(40, seed=6)
    if what == "systems":
        first, second = squares(40, srid=4326), squares(40, seed=6, srid=3857)
    elif what == "messages":  # some rows name a system, and messages are in another one
        first = squares(40, srid=4326)
    points = shapely.to_wkb(shapely.points(np.arange(80.0).reshape(40, 2)))
    later = {"key": [f"k{k + 40}" for k in range(40)]} if what != "keys" else {}
    later |= {"geometry": points} if what == "kinds" else {}
    for name, column in later.items():
        second = second.set_column(second.column_names.index(name), name, [pa.array(column)])
    frame = spark.createDataFrame(first).union(spark.createDataFrame(second))
    messages = spark.createDataFrame(random_messages(30))
    if what == "messages":
        messages = pipeline.with_crs(messages, "area", "EPSG:3857")
    options = {"template": MIXED, "artifacts": place}
    scanned, compiled = (pipeline.match(messages, frame, plan, **options) for plan in ("scan", "broadcast"))
    assert scanned.plan == "broadcast"
    assert ("keys are repeated" if what == "keys" else "geometry of subscriptions is of several kinds") in scanned.why
    assert bad_subscriptions(scanned) == bad_subscriptions(compiled)
    assert rows_of(scanned) == rows_of(compiled)


def test_systems_of_messages_and_rows_are_compared(spark, place):
    frame = spark.createDataFrame(squares(40, srid=4326))
    messages = pipeline.with_crs(spark.createDataFrame(random_messages(20)), "area", "EPSG:3857")
    matched = pipeline.match(messages, frame, "scan", template=MIXED)
    matches, rejected = rows_of(matched)
    assert (matched.plan, matches) == ("scan", [])
    assert any("EPSG:4326 and EPSG:3857" in reason for _, reason in rejected)
    compiled = pipeline.match(messages, frame, "broadcast", template=MIXED, artifacts=place)
    assert rows_of(compiled) == (matches, rejected)


@pytest.mark.parametrize("chunk_rows", [7, 1000])
def test_chunks_find_what_the_whole_table_finds(chunk_rows):
    rows, messages = squares(100), random_messages(40).select(["message_id", "area", "size", "name"])
    data = pa.BufferOutputStream()
    with pa.ipc.new_stream(data, messages.schema) as writer:
        writer.write_table(messages)
    few = FewMessages(data.getvalue().to_pybytes(), ("area", "size", "name"), {})
    job = Job(tuple(rows.column_names), ct.parse(MIXED), ("string", "string"), {})
    batches = rows.append_column("row", pa.array(range(100))).to_batches(max_chunksize=5)
    found = pa.Table.from_batches(
        list(scan_batches(iter(batches), few, job, "subscription", chunk_rows=chunk_rows))
    ).to_pylist()
    lists = [(row["message_id"], one["subscriber"], one["key"]) for row in found for one in row["found"] or ()]
    table = ct.ForwardingTable()
    table.subscribe_many(rows, MIXED)
    right, rejected = expected(table, messages)
    assert sorted(lists, key=repr) == right
    assert {(row["message_id"], row["reason"]) for row in found if row["reason"]} == set(rejected)
    assert sum(row["about"] is not None for row in found) == (10 if chunk_rows == 7 else 1)


def test_attributes_that_no_message_has_match_nothing(spark):
    rows = spark.createDataFrame(squares(6))
    matched = pipeline.match(spark.range(3).toDF("message_id"), rows, "scan", template=MIXED)
    assert (matched.plan, matched.compiled.count, rows_of(matched)) == ("scan", 6, ([], []))


def test_nothing_in_nothing_out(spark):
    messages, rows = spark.createDataFrame(random_messages(9)), spark.createDataFrame(squares(6))
    empty = pipeline.match(messages, rows.limit(0), "scan", template=MIXED)
    assert (empty.compiled.count, rows_of(empty)) == (0, ([], []))
    none = pipeline.match(messages.limit(0), rows, "scan", template=MIXED)
    assert (none.plan, none.compiled.count, rows_of(none)) == ("scan", 6, ([], []))


def test_auto_scans_many_rows_for_few_messages(spark, place):
    rng = np.random.default_rng(1)
    corners = rng.integers(0, 300, (MIN_ROWS, 2))
    rows = pa.table({"geometry": shapely.to_wkb(shapely.box(*corners.T, *(corners + 1).T))})
    messages, template = random_messages(50), "S_INTERSECTS(area, $geometry)"
    table = ct.ForwardingTable()
    table.subscribe_many(rows, template)
    frames = spark.createDataFrame(messages), spark.createDataFrame(rows).coalesce(1)
    matched = pipeline.match(*frames, template=template, artifacts=place)
    assert (matched.plan, matched.why) == ("scan", "50 messages for 50,000 rows")
    assert rows_of(matched) == expected(table, messages)
    few = pipeline.match(frames[0], frames[1].limit(400), template=template, artifacts=place)
    assert few.plan == "broadcast"


def test_a_plan_that_cannot_be_is_a_clear_error(spark, place):
    messages, rows = spark.createDataFrame(random_messages(2)), spark.createDataFrame(squares(4))
    for template in (None, "size >= $least", "S_DISJOINT(area, $geometry)"):
        with pytest.raises(ct.ContradaError, match='plan "scan" needs a template'):
            pipeline.match(messages, rows, "scan", template=template)
    with pytest.raises(ct.ContradaError, match="pass their rows"):
        pipeline.match(messages, pipeline.compile(rows, place, template=MIXED), "scan")
