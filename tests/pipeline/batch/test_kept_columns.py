"""Columns of messages and subscriptions in matches: those of their own rows, in every plan, without a join."""

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct
from contrada import pipeline
from effort import slow
from generators.filters_of_every_kind import random_messages

TEMPLATE = "S_INTERSECTS(area, $geometry) AND size >= $least"
TAGS = pa.struct({"colour": pa.string(), "sizes": pa.list_(pa.int32())})
PLANS = [("broadcast", None), ("partitioned", 3), ("scan", None)]


def messages(count=60):
    """Messages whose ids repeat or are null, with columns that tell one row from another."""
    table = random_messages(count, seed=3)
    rows = np.arange(count)
    ids = pa.array([None if row % 5 == 0 else f"m{row % 3}" for row in rows.tolist()])
    tags = pa.array(
        [None if row % 7 == 0 else {"colour": f"c{row}", "sizes": [row, None]} for row in rows.tolist()], TAGS
    )
    return table.set_column(0, "message_id", ids).append_column("Row no", pa.array(rows)).append_column("tags", tags)


def regions(has_filter=False):
    """Rows of a template with several rows to a subscriber, some of them bad; or the same with filters in text."""
    rng = np.random.default_rng(8)
    corners = rng.integers(0, 5, (40, 2)).tolist()
    keys = [f"k{97 * number % 40:02d}" for number in range(40)]
    places = [shapely.box(x, y, x + 2, y + 1) for x, y in corners]
    least = rng.integers(0, 2, 40).astype(float).tolist()
    columns = {
        "key": [*keys, None, "bad", keys[0]],
        "subscriber": [*(f"s{number % 6}" for number in range(40)), "s", None, "x"],
    }
    columns["label"] = [f"label {number}" if number % 4 else None for number in range(43)]
    columns["home"] = [*map(shapely.to_wkb, places), None, None, None]
    columns["opened"] = pa.array([number * 86_400_000_000 for number in range(43)], pa.timestamp("us", "UTC"))
    if has_filter:
        texts = [f"S_INTERSECTS(area, {place.wkt}) AND size >= {own}" for place, own in zip(places, least, strict=True)]
        columns["filter"] = [*texts, texts[0], "size >=", texts[0]]
    else:
        bow_tie = shapely.to_wkb(shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]))
        columns |= {
            "geometry": [*columns["home"][:40], columns["home"][0], bow_tie, columns["home"][0]],
            "least": [*least, 0.0, 0.0, 0.0],
        }
    return pa.table(columns)


def expected(by, rows):
    """The matches of a single process, with the columns of both rows."""
    table, own = ct.ForwardingTable(), rows.to_pylist()[:40]
    for row in own:
        text = (
            row.get("filter")
            or f"S_INTERSECTS(area, {shapely.from_wkb(row['geometry']).wkt}) AND size >= {row['least']}"
        )
        table.subscribe(row["subscriber"], text, row["key"])
    of_key = {row["key"]: row for row in own}
    found = []
    sent = messages()
    answer = table.match_many(sent.select(["size", "area"]), by="subscription")
    for number, row in enumerate(sent.to_pylist()):
        keys = sorted(table.keys_of(answer.rows[answer.offsets[number] : answer.offsets[number + 1]]))
        if by == "subscriber":
            keys = list({of_key[key]["subscriber"]: key for key in reversed(keys)}.values())
        found += [(row, of_key[key]) for key in keys]
    bad = [(row.row, sent["message_id"][row.row].as_py()) for row in answer.rejected]
    return found, bad


def facts(value):
    """A value that can be compared and sorted: rows of Spark as dicts, bytes as they are."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {name: facts(one) for name, one in value.items()}
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.parametrize("by", ["subscription", "subscriber"])
@pytest.mark.parametrize(("plan", "partitions"), [PLANS[0], slow(*PLANS[1]), slow(*PLANS[2])])
@pytest.mark.parametrize("is_template", [True, slow(False)])
def test_matches_carry_the_columns_of_their_rows(spark, place, by, plan, partitions, is_template):
    if plan == "scan" and not is_template:
        pytest.skip("a scan needs a template")
    rows = regions(not is_template)
    if plan == "scan":
        rows = rows.slice(0, 42)  # a repeated key would have the rows compiled
    template = TEMPLATE if is_template else None
    matched = pipeline.match(
        spark.createDataFrame(messages()).repartition(3), spark.createDataFrame(rows).coalesce(1), plan, by,
        template=template, artifacts=place, partitions=partitions, keep=["Row no", "tags"],
        keep_subscription=["label", "home", "opened"],
    )  # fmt: skip
    names = ["subscriber"] if by == "subscriber" else ["subscriber", "key"]
    assert matched.matches.columns == ["message_id", "Row no", "tags", *names, "label", "home", "opened"]
    assert matched.rejected.columns == ["message_id", "Row no", "tags", "reason"]
    assert matched.plan == plan
    right, bad = expected(by, rows)
    shown = [
        (m["message_id"], m["Row no"], facts(m["tags"]), *(s[name] for name in names), s["label"], s["home"],
         s["opened"].isoformat())
        for m, s in right
    ]  # fmt: skip
    found = [
        (r["message_id"], r["Row no"], facts(r["tags"]), *(r[name] for name in names), r["label"], facts(r["home"]),
         r["opened"].isoformat() + "+00:00")
        for r in matched.matches.collect()
    ]  # fmt: skip
    assert len(right) > 100
    assert sorted(found, key=repr) == sorted(shown, key=repr)
    assert sorted((r["Row no"], r["message_id"]) for r in matched.rejected.collect() if r["message_id"]) == sorted(
        one for one in bad if one[1]
    )
    assert [r.key for r in matched.compiled.rejected.orderBy("row").collect()] == [
        None, "bad", "k00"
    ][: len(rows) - 40]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("by", ["subscription", "subscriber"])
def test_a_scan_of_parquet_files_carries_columns_that_it_also_reads_for_the_template(spark, place, tmp_path, by):
    sent = regions().slice(0, 40).select(["key", "subscriber", "geometry", "least", "label", "home"])
    spark.createDataFrame(sent).coalesce(1).write.parquet(str(tmp_path / "rows"))
    rows, frame = spark.read.parquet(str(tmp_path / "rows")), spark.createDataFrame(messages())
    options = {"template": TEMPLATE, "artifacts": place, "keep": ["Row no"]}
    found = {}
    for plan, keep in (("scan", ["label", "home"]), ("scan", ["label", "least"]), ("broadcast", ["label", "least"])):
        matched = pipeline.match(frame, rows, plan, by, keep_subscription=keep, **options)
        found[plan, keep[1]] = sorted(matched.matches.select("Row no", "subscriber", "label").collect(), key=repr)
        if plan == "scan" and "home" in keep:
            assert "Parquet files in Python" in matched.explain()
    assert len({repr(rows) for rows in found.values()}) == 1
    assert len(found["scan", "home"]) > 100


def test_kept_geometry_keeps_its_crs_and_artifacts_tell_kept_columns_apart(spark, place):
    rows = spark.createDataFrame(
        [("k", "size >= 1", bytearray(shapely.to_wkb(shapely.Point(1, 2))))], "key string, filter string, home binary"
    )
    rows = pipeline.with_crs(rows, "home", "EPSG:3035")
    sent = rows.selectExpr("1 AS message_id", "home", "home AS plain", "2 AS size")
    whole = pipeline.compile(rows, place, keep_subscription=["home"])
    other, bare = (
        pipeline.compile(rows.withColumn("home", rows.key), place, keep_subscription=["home"]),
        pipeline.compile(rows, place),
    )
    assert len({one.artifact.digest for one in (whole, other, bare)}) == 3
    read = pipeline.Artifact.read(whole.artifact.path)
    assert read == whole.artifact
    matches = pipeline.match(sent, read, keep=["plain"], keep_subscription=["home"]).matches
    assert {name: matches.schema[name].metadata for name in ("plain", "home")} == {
        "plain": {"crs": "EPSG:3035"},
        "home": {"crs": "EPSG:3035"},
    }
    assert [(row.message_id, row.key) for row in matches.collect()] == [(1, "k")]
    with pytest.raises(ct.FormatError, match=r"compile them with keep_subscription=\['home'\]"):
        pipeline.match(sent, bare, keep_subscription=["home"])
    with pytest.raises(ct.FormatError, match="compiled: home"):
        pipeline.match(sent, whole, keep_subscription=["site"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"keep": ["nothing"]}, "keep: need column 'nothing'; columns: message_id, Key, size, odd"),
        ({"keep": ["Key"]}, "keep: 'Key' is a column of matches; rename it"),
        ({"keep": "size"}, "keep: need a list of names"),
        ({"keep": ["size", "size"]}, "keep: column 'size' is kept already"),
        ({"keep": ["size"], "keep_subscription": ["Size"]}, "keep_subscription: column 'Size' is kept already"),
        ({"keep_subscription": ["subscriber"]}, "keep_subscription: 'subscriber' is a column of matches; rename it"),
        ({"keep_subscription": ["nothing"]}, "keep_subscription: need column 'nothing'"),
        ({"keep_subscription": ["key"]}, "'key' is a column of matches"),
        ({"keep": ["odd"]}, "keep: column 'odd' has type interval, which Spark does not send"),
    ],
)
def test_columns_that_cannot_be_kept_are_an_error_before_a_job(spark, options, reason):
    sent = spark.sql("SELECT 1 AS message_id, 2 AS Key, 3 AS size, make_interval(1) AS odd")
    rows = spark.createDataFrame([("k", "size >= 1", 5.0)], "key string, filter string, Size double")
    with pytest.raises(ct.ContradaError, match=reason):
        pipeline.match(sent, rows, **options)
