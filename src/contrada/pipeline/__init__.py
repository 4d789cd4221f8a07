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
    from contrada.pipeline.artifacts import Artifact, publish
    from contrada.pipeline.batch.compiling import Compiled, compile
    from contrada.pipeline.batch.matching import Matched, match
    from contrada.pipeline.batch.simplifying import SimplifiedSubscriptions, simplify
    from contrada.pipeline.ingestion.dataset import Dataset, read_dataset
    from contrada.pipeline.ingestion.ingesting import Ingested, ingest
    from contrada.pipeline.partitioned.partitions import PartitionedArtifact
    from contrada.pipeline.stream.changes import ChangeTable
    from contrada.pipeline.stream.message_files import MessageFiles
    from contrada.pipeline.stream.sinks import ConsoleSink, KafkaSink, ParquetSink
    from contrada.pipeline.stream.streaming import Stream, match_stream
    from contrada.pipeline.stream.worker import Decoding
    from contrada.pipeline.systems import with_crs
    from contrada.report.report import write_report

__all__ = [
    "Artifact",
    "ChangeTable",
    "Compiled",
    "ConsoleSink",
    "Dataset",
    "Decoding",
    "Ingested",
    "KafkaSink",
    "Matched",
    "MessageFiles",
    "ParquetSink",
    "PartitionedArtifact",
    "SimplifiedSubscriptions",
    "Stream",
    "compile",
    "ingest",
    "match",
    "match_stream",
    "publish",
    "read_dataset",
    "simplify",
    "with_crs",
    "write_report",
]

# No module or folder here has the name of a public function: importing it would replace the function.
_HOMES = {
    name: f"contrada.{module}"
    for module, names in {
        "pipeline.artifacts": ("Artifact", "publish"),
        "pipeline.batch.compiling": ("Compiled", "compile"),
        "pipeline.batch.matching": ("Matched", "match"),
        "pipeline.batch.simplifying": ("SimplifiedSubscriptions", "simplify"),
        "pipeline.ingestion.dataset": ("Dataset", "read_dataset"),
        "pipeline.ingestion.ingesting": ("Ingested", "ingest"),
        "pipeline.partitioned.partitions": ("PartitionedArtifact",),
        "pipeline.stream.changes": ("ChangeTable",),
        "pipeline.stream.message_files": ("MessageFiles",),
        "pipeline.stream.sinks": ("ConsoleSink", "KafkaSink", "ParquetSink"),
        "pipeline.stream.streaming": ("Stream", "match_stream"),
        "pipeline.stream.worker": ("Decoding",),
        "pipeline.systems": ("with_crs",),
        "report.report": ("write_report",),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec("pyspark") is None:
        raise ContradaError(missing("the pipeline needs PySpark", "spark"))
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
