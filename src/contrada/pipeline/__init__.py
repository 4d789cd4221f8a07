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
    from contrada.pipeline.ingest.dataset import Dataset, read_dataset
    from contrada.pipeline.ingest.ingesting import Ingested, ingest
    from contrada.pipeline.match.compiling import Compiled, compile
    from contrada.pipeline.match.matching import Matched, match
    from contrada.pipeline.match.simplifying import SimplifiedSubscriptions, simplify
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

# No module has the name of a public function: importing the module would replace the function in this namespace.
_HOMES = {
    "Artifact": "artifacts",
    "ChangeTable": "changes",
    "Compiled": "compiling",
    "ConsoleSink": "sinks",
    "Dataset": "dataset",
    "Decoding": "versioned",
    "Ingested": "ingesting",
    "KafkaSink": "sinks",
    "Matched": "matching",
    "MessageFiles": "message_files",
    "ParquetSink": "sinks",
    "PartitionedArtifact": "partitions",
    "SimplifiedSubscriptions": "simplifying",
    "Stream": "streaming",
    "compile": "compiling",
    "ingest": "ingesting",
    "match": "matching",
    "match_stream": "streaming",
    "publish": "artifacts",
    "read_dataset": "dataset",
    "simplify": "simplifying",
    "with_crs": "systems",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec("pyspark") is None:
        raise ContradaError(missing("the pipeline needs PySpark", "spark"))
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
