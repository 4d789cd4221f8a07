"""Match, compile, ingest and stream with Spark DataFrames; every answer equals that of a `ForwardingTable`.

PySpark is imported on first use only, and `import contrada` does not import this package.
"""

from __future__ import annotations

import importlib.util
from importlib import import_module
from typing import TYPE_CHECKING, Any

from contrada.errors import ContradaError
from contrada.installation import missing

if TYPE_CHECKING:
    from contrada.pipeline.artifact_store import Pruned as Pruned
    from contrada.pipeline.artifact_store import StoredArtifact as StoredArtifact
    from contrada.pipeline.artifact_store import list_artifacts as list_artifacts
    from contrada.pipeline.artifact_store import prune_artifacts as prune_artifacts
    from contrada.pipeline.artifacts import Artifact as Artifact
    from contrada.pipeline.artifacts import publish as publish
    from contrada.pipeline.batch.compiling import Compiled as Compiled
    from contrada.pipeline.batch.compiling import compile as compile
    from contrada.pipeline.batch.matching import Matched as Matched
    from contrada.pipeline.batch.matching import match as match
    from contrada.pipeline.batch.simplifying import SimplifiedSubscriptions as SimplifiedSubscriptions
    from contrada.pipeline.batch.simplifying import simplify as simplify
    from contrada.pipeline.batch.tracking import Tracked as Tracked
    from contrada.pipeline.batch.tracking import track as track
    from contrada.pipeline.ingestion.dataset import Dataset as Dataset
    from contrada.pipeline.ingestion.dataset import Ingested as Ingested
    from contrada.pipeline.ingestion.dataset import read_dataset as read_dataset
    from contrada.pipeline.ingestion.ingesting import ingest as ingest
    from contrada.pipeline.kafka import MatchRecords as MatchRecords
    from contrada.pipeline.kafka import kafka_matches as kafka_matches
    from contrada.pipeline.kafka import kafka_settings as kafka_settings
    from contrada.pipeline.outputs import OutputFile as OutputFile
    from contrada.pipeline.outputs import OutputManifest as OutputManifest
    from contrada.pipeline.outputs import read_output as read_output
    from contrada.pipeline.partitioned.partitions import PartitionedArtifact as PartitionedArtifact
    from contrada.pipeline.sql.registering import register as register
    from contrada.pipeline.stream.change_feeds import ChangeFeed as ChangeFeed
    from contrada.pipeline.stream.changes import ChangeTable as ChangeTable
    from contrada.pipeline.stream.message_files import MessageFiles as MessageFiles
    from contrada.pipeline.stream.running import Stream as Stream
    from contrada.pipeline.stream.sinks import ConsoleSink as ConsoleSink
    from contrada.pipeline.stream.sinks import KafkaSink as KafkaSink
    from contrada.pipeline.stream.sinks import ParquetSink as ParquetSink
    from contrada.pipeline.stream.streaming import match_stream as match_stream
    from contrada.pipeline.stream.table_sink import TableSink as TableSink
    from contrada.pipeline.stream.tracking import TrackedStream as TrackedStream
    from contrada.pipeline.stream.tracking import track_stream as track_stream
    from contrada.pipeline.stream.worker import Decoding as Decoding
    from contrada.pipeline.systems import with_crs as with_crs
    from contrada.report.report import write_report as write_report

# No module or folder here has the name of a public function: importing it would replace the function.
_HOMES = {
    name: f"contrada.{module}"
    for module, names in {
        "pipeline.artifact_store": ("Pruned", "StoredArtifact", "list_artifacts", "prune_artifacts"),
        "pipeline.artifacts": ("Artifact", "publish"),
        "pipeline.batch.compiling": ("Compiled", "compile"),
        "pipeline.batch.matching": ("Matched", "match"),
        "pipeline.batch.simplifying": ("SimplifiedSubscriptions", "simplify"),
        "pipeline.batch.tracking": ("Tracked", "track"),
        "pipeline.ingestion.dataset": ("Dataset", "Ingested", "read_dataset"),
        "pipeline.ingestion.ingesting": ("ingest",),
        "pipeline.kafka": ("MatchRecords", "kafka_matches", "kafka_settings"),
        "pipeline.outputs": ("OutputFile", "OutputManifest", "read_output"),
        "pipeline.partitioned.partitions": ("PartitionedArtifact",),
        "pipeline.stream.change_feeds": ("ChangeFeed",),
        "pipeline.sql.registering": ("register",),
        "pipeline.stream.changes": ("ChangeTable",),
        "pipeline.stream.message_files": ("MessageFiles",),
        "pipeline.stream.sinks": ("ConsoleSink", "KafkaSink", "ParquetSink"),
        "pipeline.stream.running": ("Stream",),
        "pipeline.stream.streaming": ("match_stream",),
        "pipeline.stream.table_sink": ("TableSink",),
        "pipeline.stream.tracking": ("TrackedStream", "track_stream"),
        "pipeline.stream.worker": ("Decoding",),
        "pipeline.systems": ("with_crs",),
        "report.report": ("write_report",),
    }.items()
    for name in names
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec("pyspark") is None:
        raise ContradaError(missing("the pipeline needs PySpark", "spark"))
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
