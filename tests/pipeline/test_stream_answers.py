"""Streams give the rows of a single process: all operators, shared subscribers, changes, compaction, both forms."""

import json

import pyarrow.parquet as pq
import pytest
import shapely

from contrada import pipeline
from contrada.formats.messages import message_of
from generators.filters_of_every_kind import FILTERS, expected, random_messages, subscription_rows, table_of

AVAILABLE = {"availableNow": True}
CHANGES = [
    {"key": "k3", "subscriber": "s1", "filter": "size >= 0"},  # another subscriber and filter for a key in use
    {"action": "unsubscribe", "key": "k1"},
    {"key": "new-1", "subscriber": "s0", "filter": "name LIKE 'a%'"},  # of a subscriber that has others
    {"key": "new-2", "subscriber": "late", "filter": "size < 2"},
    {"key": "new-3", "subscriber": "late", "filter": "flag IS NULL"},
    {"action": "unsubscribe", "key": "new-2"},
]


def texts_of(messages):
    """Messages as JSON, some of them no JSON, some no object."""
    texts = []
    for number, row in enumerate(messages.to_pylist()):
        area = row["area"]
        if area is not None:
            shape = shapely.from_wkb(area, on_invalid="ignore")
            area = "no geometry" if shape is None else shapely.geometry.mapping(shape)
        texts.append(json.dumps({"id": row["message_id"], "size": row["size"], "name": row["name"], "area": area}))
        if number % 17 == 5:
            texts[-1] = texts[-1][:-3]
    return texts


class Columns:
    """Messages as Parquet files."""

    decoding = None

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
                bad.append(("place", str(error)))
                continue
            found = table.match_many([message], by=by)
            names = [table.subscribers_of(found.rows, by)]
            names += [table.keys_of(found.rows)] if by == "subscription" else []
            rows += [(message["id"], *rest) for rest in zip(*names, strict=True)]
            bad += [(message["id"], item.reason) for item in found.rejected]
        return sorted(rows, key=repr), sorted(bad, key=repr)


def written(output, batch, by):
    """What a stream wrote for a batch."""
    parts = []
    names = {"matches": ["message_id", "subscriber", "key"][: 3 if by == "subscription" else 2]}
    for what, columns in {**names, "rejected": ["message_id", "reason"]}.items():
        rows = []
        for path in (output / what / f"batch={batch}").glob("*.parquet"):
            rows += pq.ParquetFile(path).read(columns).to_pylist()
        parts.append(sorted((tuple(row[name] for name in columns) for row in rows), key=repr))
    return tuple(parts)


@pytest.mark.parametrize("by", ["subscription", "subscriber"])
@pytest.mark.parametrize("form", [Columns, Texts])
def test_rows_are_those_of_a_single_process(spark, tmp_path, form, by):
    (tmp_path / "messages").mkdir()
    (tmp_path / "changes").mkdir()
    source = form(spark, tmp_path / "messages")
    rows = subscription_rows(FILTERS, [f"k{k}" for k in range(len(FILTERS))])
    table, bad = table_of(rows)
    assert not bad

    def run(number, count):
        """One batch with so many messages, which must have the answers of the table as it is."""
        messages = random_messages(count, seed=number)
        source.write(f"{number}", messages)
        stream = pipeline.match_stream(
            source.stream(), spark.createDataFrame(rows), tmp_path / "changes", sink=tmp_path / "output",
            checkpoint=tmp_path / "checkpoint", by=by, decoding=source.decoding, trigger=AVAILABLE, compact_after=3,
        )  # fmt: skip
        stream.wait(300)
        stream.versions.wait()
        right = source.expected(table, messages, by)
        assert len(right[0]) > count
        assert right[1]
        assert written(tmp_path / "output", number, by) == right
        assert stream.progress().messages == count
        return stream

    run(0, 60)
    (tmp_path / "changes" / "1.ndjson").write_text("".join(json.dumps(change) + "\n" for change in CHANGES))
    for change in CHANGES:
        if change.get("action") == "unsubscribe":
            table.unsubscribe(change["key"])
        else:
            table.subscribe(change["subscriber"], change["filter"], change["key"], replace=True)
    run(1, 60)
    (tmp_path / "changes" / "2.ndjson").write_text('{"action": "unsubscribe", "key": "new-3"}\n')
    table.unsubscribe("new-3")
    run(2, 20)
