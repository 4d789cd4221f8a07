"""Streams give the rows of a single process: all operators, shared subscribers, changes, compaction, both forms."""

import json

import pyarrow.parquet as pq
import pytest
import shapely
from sample_tables import every_operator
from streams import AVAILABLE, written

from console import write_lines
from contrada import pipeline
from contrada.formats.messages import message_of
from effort import slow
from generators.filters_of_every_kind import expected, random_messages

CHANGES = [
    {"key": "k3", "subscriber": "s1", "filter": "size >= 0"},  # another subscriber and filter for a key in use
    {"action": "unsubscribe", "key": "k1"},
    {"key": "new-1", "subscriber": "s0", "filter": "name LIKE 'a%'"},  # of a subscriber that has others
    {"key": "new-2", "subscriber": "late", "filter": "size < 2"},
    {"key": "new-3", "subscriber": "late", "filter": "flag IS NULL"},
    {"action": "unsubscribe", "key": "new-2"},
]


def texts_of(messages):
    """Messages as JSON, some of them cut, some no object, some without an id."""
    texts = []
    for number, row in enumerate(messages.to_pylist()):
        area = row["area"]
        if area is not None:
            shape = shapely.from_wkb(area, on_invalid="ignore")
            area = "no geometry" if shape is None else shapely.geometry.mapping(shape)
        message = {"size": row["size"], "name": row["name"], "area": area}
        if number % 17 != 3:
            message["id"] = row["message_id"]
        text = json.dumps(message)
        texts.append({5: text[:-3], 9: "[]"}.get(number % 17, text))
    return texts


class Columns:
    """Messages as Parquet files."""

    decoding = None
    rejected = ("message_id", "reason")

    def __init__(self, spark, folder):
        self.spark, self.folder = spark, folder

    def write(self, name, messages):
        pq.write_table(messages, self.folder / f"{name}.parquet")

    def stream(self):
        schema = self.spark.createDataFrame(random_messages(1)).schema
        return self.spark.readStream.schema(schema).parquet(str(self.folder))

    def expected(self, table, messages, by):
        return expected(table, messages, by)


class Texts(Columns):
    """Messages as lines of JSON."""

    decoding = pipeline.Decoding(ids=("id",))
    rejected = ("message_id", "reason", "raw")

    def write(self, name, messages):
        (self.folder / f"{name}.ndjson").write_text("".join(f"{text}\n" for text in texts_of(messages)))

    def stream(self):
        return self.spark.readStream.text(str(self.folder)).selectExpr("'place' AS message_id", "value")

    def expected(self, table, messages, by):
        rows, bad = [], []
        for text in texts_of(messages):
            try:
                message = message_of(text)
            except ValueError as error:
                bad.append(("place", str(error), text))
                continue
            found = table.match_many([message], by=by)
            names = [table.subscribers_of(found.rows, by)]
            names += [table.keys_of(found.rows)] if by == "subscription" else []
            id = message.get("id", "place")
            rows += [(id, *rest) for rest in zip(*names, strict=True)]
            bad += [(id, item.reason, text) for item in found.rejected]
        assert any("an array" in reason for _, reason, _ in bad)
        return sorted(rows, key=repr), sorted(bad, key=repr)


@pytest.mark.parametrize(
    ("form", "by", "plan"),
    [
        (Columns, "subscription", "auto"), slow(Texts, "subscriber", "auto"), slow(Columns, "subscriber", "auto"),
        slow(Texts, "subscription", "auto"), slow(Columns, "subscriber", "partitioned"),
        slow(Texts, "subscriber", "partitioned"), slow(Columns, "subscription", "partitioned"),
        slow(Texts, "subscription", "partitioned"),
    ],
)  # fmt: skip
def test_rows_are_those_of_a_single_process(spark, tmp_path, form, by, plan):
    (tmp_path / "messages").mkdir()
    (tmp_path / "changes").mkdir()
    source = form(spark, tmp_path / "messages")
    rows, table = every_operator()
    columns = {"matches": ("message_id", "subscriber", "key")[: 3 if by == "subscription" else 2],
               "rejected": source.rejected}  # fmt: skip

    def run(number, count):
        """One batch with so many messages, which must have the answers of the table as it is."""
        messages = random_messages(count, seed=number)
        source.write(f"{number}", messages)
        stream = pipeline.match_stream(
            source.stream(), spark.createDataFrame(rows), tmp_path / "changes", sink=tmp_path / "output",
            checkpoint=tmp_path / "checkpoint", by=by, decoding=source.decoding, trigger=AVAILABLE, compact_after=3,
            plan=plan, partitions=4 if plan == "partitioned" else None,
        )  # fmt: skip
        stream.wait(300)
        stream.versions.wait()
        right = source.expected(table, messages, by)
        assert len(right[0]) > count
        assert right[1]
        for expected_rows, (name, wanted) in zip(right, columns.items(), strict=True):
            found = written(tmp_path / "output" / name, ("batch", *wanted))
            assert [row[1:] for row in found if row[0] == number] == expected_rows
        assert stream.progress().messages == count
        assert stream.progress().matches == len(right[0])
        assert stream.progress().subscriptions == len(table)
        assert isinstance(stream.versions.current.artifact, pipeline.PartitionedArtifact) == (plan == "partitioned")

    run(0, 60)
    write_lines(tmp_path / "changes" / "1.ndjson", CHANGES)
    for change in CHANGES:
        if change.get("action") == "unsubscribe":
            table.unsubscribe(change["key"])
        else:
            table.subscribe(change["subscriber"], change["filter"], change["key"], replace=True)
    run(1, 60)
    write_lines(tmp_path / "changes" / "2.ndjson", [{"action": "unsubscribe", "key": "new-3"}])
    table.unsubscribe("new-3")
    run(2, 20)
