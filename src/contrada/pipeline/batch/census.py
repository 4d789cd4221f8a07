"""Census of a DataFrame: attributes that subscriptions test but messages lack, or have with another type."""

from __future__ import annotations

from pyspark.sql import DataFrame, types
from pyspark.sql import functions as f
from pyspark.sql.types import DataType

from contrada.matching.census import SPATIAL, Census
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.spark_types import fields


def asked_census(artifact: Artifact | PartitionedArtifact) -> Census:
    """Return an empty census of the attributes that a compiled table tests."""
    parts = [part.artifact for part in artifact.partitions] if isinstance(artifact, PartitionedArtifact) else [artifact]
    census = Census()
    for part in parts:
        census.ask(part.kinds)
    return census


def count_messages(messages: DataFrame, census: Census) -> Census:
    """Count the messages of a DataFrame in an empty census, and how many have each attribute that it asks for."""
    there = [(name, path, kind) for name, path, kind in fields(messages.schema) if name in census.asked]
    counts = messages.agg(f.count(f.lit(1)), *(f.count(f.col(path)) for _, path, _ in there)).collect()[0]
    census.messages = int(counts[0])
    for (name, _, kind), count in zip(there, counts[1:], strict=True):
        census.add_counts(name, kind_of_spark(kind), int(count))
    return census


def kind_of_spark(kind: DataType) -> str:
    """Return the kind of values in a Spark column.

    >>> from pyspark.sql.types import BinaryType, LongType, StringType
    >>> kind_of_spark(LongType()), kind_of_spark(StringType()), kind_of_spark(BinaryType())
    ('number', 'text', 'region or point')
    """
    kinds: tuple[tuple[str, tuple[type, ...]], ...] = (
        ("number", (types.NumericType,)),
        ("text", (types.StringType, types.VarcharType, types.CharType)),
        ("boolean", (types.BooleanType,)),
        ("timestamp", (types.TimestampType, types.TimestampNTZType, types.DateType)),
        (SPATIAL, (types.BinaryType, types.StructType)),
        ("array", (types.ArrayType, types.MapType)),
    )
    if kind.typeName() == "geometry":
        return SPATIAL
    return next((name for name, group in kinds if isinstance(kind, group)), kind.simpleString())
