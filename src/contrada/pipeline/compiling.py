"""Subscriptions of a DataFrame compiled into one table, inside one Spark task, at a place that all can reach."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrada.errors import FilterError, FormatError
from contrada.language.subscriptions import template_columns
from contrada.matching.asked import Asked, asked_predicate
from contrada.matching.building import TableBuilder
from contrada.model import Predicate
from contrada.pipeline.artifacts import Artifact, publish, store_of
from contrada.pipeline.edge import artifacts_place, attribute_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NAMES = ("key", "subscriber")
NAME_TYPES = ("string", "tinyint", "smallint", "int", "bigint")
REJECTED = "row bigint, key string, reason string"
CHUNK_ROWS, CHUNK_BYTES = 1 << 17, 1 << 28  # that are subscribed together: packing takes a few large parts best
READ_ROWS = 1 << 14


@dataclass(frozen=True)
class Compiled:
    """A compiled table and the rows that are not in it; `count` is the number of subscriptions."""

    artifact: Artifact
    session: SparkSession
    rejected_path: str | None

    @property
    def count(self) -> int:
        """The number of subscriptions."""
        return self.artifact.subscriptions

    @property
    def rejected(self) -> DataFrame:
        """The bad rows with `row`, `key` and `reason`, read from a file beside the artifact."""
        if self.rejected_path is None:
            return self.session.createDataFrame([], REJECTED)
        # Not Spark's own reader: it may know the store by another scheme, or look for a plain path elsewhere.
        return self.session.range(0, 1, 1, 1).mapInArrow(partial(read_rejected, path=self.rejected_path), REJECTED)


def compile(
    subscriptions: DataFrame, artifacts: str | os.PathLike[str] | None = None, *, template: Asked | None = None
) -> Compiled:
    """Compile rows of `key, subscriber, filter`, or with a template of its columns, into an artifact.

    Keys default to the number of the row, running over the partitions in order, subscribers to the key. Bad rows are
    set aside and the rest compile. The table is built by one task and never passes through the driver.
    """
    from pyspark.sql.functions import monotonically_increasing_id

    predicate = None if template is None else asked_predicate(template)
    session = subscriptions.sparkSession
    place = artifacts_place(session, artifacts)
    columns, types = subscription_columns(subscriptions, predicate)
    # A coalesced task may begin with the partition that lies near: the sort puts the rows in order again.
    numbered = subscriptions.select(*columns.values(), monotonically_increasing_id()).toDF(
        *(f"c{k}" for k in range(len(columns))), "row"
    )
    built = partial(build_batches, names=tuple(columns), predicate=predicate, place=place, types=types)
    ordered = numbered.coalesce(1).sortWithinPartitions("row")
    found = ordered.mapInArrow(built, "about string").collect()
    if not found:  # Spark runs no task for what it knows to be empty
        found = session.range(0, 1, 1, 1).mapInArrow(partial(build_empty, build=built), "about string").collect()
    about = json.loads(found[0]["about"])
    return Compiled(Artifact.of(about["artifact"]), session, about["rejected"])


def subscription_columns(
    subscriptions: DataFrame, template: Predicate | None
) -> tuple[dict[str, Column], tuple[str, str]]:
    """The columns of subscriptions that are asked for, by name, and the Spark types of keys and subscribers."""
    wanted = [*(["filter"] if template is None else template_columns(template)), *NAMES]
    types = _name_types(subscriptions, wanted)
    columns = attribute_columns(subscriptions, wanted)
    for name in wanted:
        if name not in columns and name not in NAMES:
            who = "subscriptions without a template have" if template is None else "the template asks for"
            raise FilterError(f"{who} the column {name!r}; there are {subscriptions.columns}")
    return columns, types


def _name_types(subscriptions: DataFrame, wanted: list[str]) -> tuple[str, str]:
    """The Spark types of keys and subscribers; a column that holds neither text nor integers is an error."""
    found = {field.name: field.dataType.simpleString() for field in subscriptions.schema if field.name in wanted}
    found = {name: "string" if kind.startswith(("string", "varchar", "char")) else kind for name, kind in found.items()}
    for name in NAMES:
        if found.get(name, "string") not in NAME_TYPES:
            raise FormatError(f"a {name} is text or an integer, and the column holds {found[name]}")
    if "filter" in wanted and found.get("filter", "string") != "string":
        raise FormatError(f"a filter is CQL2 text, and the column holds {found['filter']}")
    key = found.get("key", "bigint")
    return key, found.get("subscriber", key)


def build_empty(batches: Iterator[Any], build: Any) -> Iterator[Any]:
    """Build the table of no rows, whatever comes in."""
    for _ in batches:
        pass
    return build(iter(()))  # type: ignore[no-any-return]


def build_batches(
    batches: Iterator[Any], names: tuple[str, ...], predicate: Predicate | None, place: str, types: tuple[str, str]
) -> Iterator[Any]:
    """Build a table of all batches and put it in its place: runs in one task, and gives one row that tells where."""
    import pyarrow as pa

    builder = TableBuilder(predicate)
    with tempfile.TemporaryDirectory(prefix="contrada-") as temporary:
        rejections = _Rejections(Path(temporary) / "rejected.parquet")
        for chunk in _chunks(batches):
            rejections.add(builder.add(chunk.select(range(len(names))).rename_columns(names)))
        artifact = publish(builder.table, place, key_type=types[0], subscriber_type=types[1])
        about = json.dumps({"artifact": artifact._asdict(), "rejected": rejections.placed(place)})
    yield pa.record_batch([pa.array([about])], ["about"])


def _chunks(batches: Iterator[Any]) -> Iterator[Any]:
    """Batches put together to tables of some size."""
    import pyarrow as pa

    held: list[Any] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


class _Rejections:
    """Bad rows on their way to a Parquet file, which is named by what it holds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def add(self, rejected: list[Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not rejected:
            return
        schema = pa.schema({"row": pa.int64(), "key": pa.string(), "reason": pa.string()})
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, schema)
        self._writer.write_table(pa.Table.from_pylist([item._asdict() for item in rejected], schema))

    def placed(self, place: str) -> str | None:
        """The address of the file after it was put beside the artifacts; None if no row was bad."""
        from pyarrow.fs import LocalFileSystem, copy_files

        if self._writer is None:
            return None
        self._writer.close()
        store, root = store_of(place)
        folder, name = "rejected", hashlib.sha256(self._path.read_bytes()).hexdigest()
        store.create_dir(f"{root}/{folder}")
        fresh = f"{root}/{folder}/.new-{uuid.uuid4().hex}"
        copy_files(str(self._path), fresh, source_filesystem=LocalFileSystem(), destination_filesystem=store)
        store.move(fresh, f"{root}/{folder}/{name}.parquet")
        return f"{place.rstrip('/')}/{folder}/{name}.parquet"


def read_rejected(batches: Iterator[Any], path: str) -> Iterator[Any]:
    """The rows of a file of bad rows, whatever comes in."""
    import pyarrow.parquet as pq

    for _ in batches:
        pass
    store, place = store_of(path)
    with store.open_input_file(place) as file:
        yield from pq.ParquetFile(file).iter_batches(READ_ROWS)
