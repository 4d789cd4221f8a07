"""Damaged files through the doors of the pipeline: change files, and pieces of Parquet; see verification.damage."""

import io
import tempfile

import numpy as np

import contrada as ct
from contrada.formats.spatial import Spatial, sift_column
from contrada.pipeline.ingestion.splits import IngestRows, pieces_of, read_piece
from contrada.pipeline.ingestion.survey import Surveyed, TaskSizes, surveyed
from contrada.pipeline.stream.changes import apply_changes, read_changes
from verification.damage import damaged
from verification.damaged_arrow import good_files


def read_case(number):
    rng = np.random.default_rng([number, 12])
    files = good_files()
    name = sorted(files)[int(rng.integers(0, len(files)))]
    data = damaged(files[name], rng)
    if name.endswith("parquet") and number % 2:
        read_pieces(data)
    else:
        repr(apply_changes(ct.ForwardingTable(), read_changes(io.BytesIO(data), name), ("string", "string")))


def read_pieces(data):
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        file.write(data)
        file.flush()
        for found in surveyed(Surveyed(file.name, "parquet", len(data), 0, len(data), file.name), None):
            for piece in pieces_of(found, 0, None, {}, TaskSizes()):
                for batch in read_piece(piece):
                    if isinstance(batch, IngestRows):
                        repr(sift_column(batch.geometry, Spatial()).rejected)
