"""Files of messages that arrive in a directory, read by Spark so that all damage is detected."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from contrada.errors import ContradaError, TableError
from contrada.formats.records import IDENTIFIERS
from contrada.pipeline.java_errors import SPARK_ERRORS, java_reason, without_log
from contrada.pipeline.storage import Storage, path_of
from contrada.pipeline.stream.worker import FILE, Decoding
from contrada.spark_names import quoted

LINES, PARQUET = "ndjson", "parquet"
COLUMNS = "contrada/columns.json"  # beside the checkpoint
# The opposite settings of Spark would skip damage silently. Page checksums are compared if a file has them.
STRICT = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false", "parquet.page.verify-checksum.enabled": "true"}
WILDCARDS = re.compile(r"[\\{}\[\]*?]")
LINE_ID = "concat(_metadata.file_name, ':', hex(xxhash64(value))) AS message_id"


class MessageFiles:
    """Messages in the files of a directory, for `match_stream`; a damaged file is rejected, the others are read.

    `format` is "ndjson" (lines of JSON, also in .gz and .zst files) or "parquet". `id` names the attribute or column
    that identifies a message; the default is the first of `message_id`, `id`, `identifier` and `ce.id`. `schema` is
    that of Parquet files; by default the first readable file gives the columns, and the checkpoint keeps them.
    `options` are those of Spark's file source, such as `maxFilesPerTrigger`.
    """

    def __init__(
        self,
        session: SparkSession,
        directory: str | os.PathLike[str],
        format: str = LINES,
        *,
        id: str | None = None,
        schema: StructType | str | None = None,
        **options: Any,
    ) -> None:
        if format not in (LINES, PARQUET):
            raise ContradaError(f'format: need "{LINES}" or "{PARQUET}", got {format!r:.60}')
        text = os.fspath(directory)
        if "://" not in text:
            if not os.path.isdir(text):
                raise ContradaError(f"{text} is not a directory")
            text = os.path.abspath(text)  # Java may have another working directory
        self.session, self.directory, self.format = session, text, format
        self._id, self._options = id, {**{key: str(value) for key, value in options.items()}, **STRICT}
        self._schema: Any = "value string" if format == LINES else schema
        self._source = "text" if format == LINES else "parquet"

    @property
    def decoding(self) -> Decoding | None:
        """Return how texts are decoded unless `match_stream` gets its own `decoding`; None for Parquet."""
        if self.format == PARQUET:
            return None
        return Decoding(IDENTIFIERS if self._id is None else (self._id,), self._id is not None)

    def stream(self, checkpoint: Storage, *, partly: bool = False) -> DataFrame:
        """Return the messages of arriving files: `message_id`, the columns or the text, and the file.

        With `partly`, damage is no error, and the rows before it are read.
        """
        if self._schema is None:
            self._schema = self._settled_columns(checkpoint)
        options = (
            {**self._options, "ignoreCorruptFiles": "true", "ignoreMissingFiles": "true"} if partly else self._options
        )
        reader = self.session.readStream.options(**options).schema(self._schema)
        return self._selected(reader.format(self._source).load(self.directory))

    def read(self, session: SparkSession, uris: Sequence[str], *, partly: bool = False) -> DataFrame:
        """Read the messages of some files; with `partly`, damage is no error and the rows before it are read."""
        options = {**self._options, "basePath": self.directory}
        if partly:
            options["ignoreCorruptFiles"] = "true"
        reader = session.read.options(**options).schema(self._schema).format(self._source)
        return self._selected(reader.load([path_pattern(uri) for uri in uris]))

    def _selected(self, frame: DataFrame) -> DataFrame:
        file = f"_metadata.file_path AS {FILE}"
        if self.format == LINES:
            return frame.where("trim(value) <> ''").selectExpr(LINE_ID, "value", file)
        usual = ("message_id", *IDENTIFIERS)
        names = [self._id] if self._id is not None else [name for name in usual if name in frame.columns]
        if not names or names[0] not in frame.columns:
            raise ContradaError(
                f"no column identifies the messages; pass id= or --id; columns: {', '.join(frame.columns)}"
            )
        own = [] if names[0] == "message_id" else [f"{quoted(names[0])} AS message_id"]
        return frame.selectExpr(*own, "*", file)

    def _settled_columns(self, checkpoint: Storage) -> StructType:
        """Return the columns in the checkpoint, and further ones of a file in the directory.

        Otherwise a later file with other types could decide, at the next start, that the earlier files are wrong.
        """
        kept = _kept_columns(checkpoint)
        try:
            found = self._found_columns()
        except ContradaError:
            if kept is None:
                raise
            return kept
        if kept is not None:
            names = {field.name.lower() for field in kept}
            found = StructType([*kept, *(field for field in found if field.name.lower() not in names)])
        checkpoint.write(COLUMNS, found.json().encode())
        return found

    def _found_columns(self) -> StructType:
        """Return the columns of the first readable file."""
        with suppress(*SPARK_ERRORS):  # the file that Spark chose is damaged, or there is none
            return self.session.read.options(**self._options).parquet(self.directory).schema
        listed = self.session.read.options(**self._options).format("binaryFile").load(self.directory).select("path")
        paths = sorted(row.path for row in listed.collect())
        reader = self.session.read.options(**self._options).option("basePath", self.directory)
        first = ""
        with without_log(self.session):
            for path in paths:
                try:
                    return reader.parquet(path_pattern(path)).schema
                except SPARK_ERRORS as error:
                    first = first or f"{path_of(path)}: {java_reason(error)}"
        if not paths:
            raise ContradaError(f"{self.directory}: need at least one Parquet file to read the columns from")
        raise ContradaError(f"{self.directory}: none of {len(paths):,} Parquet files can be read: {first}")


def path_pattern(uri: str) -> str:
    """Return the path of a URI for Spark's readers, which decode nothing and expand wildcards.

    Wildcards are escaped here because Spark 4.3 reads files twice with its option `__globPaths__` if one of several
    has such a character in its name.

    >>> print(path_pattern("file:///data/a%20b.ndjson"), path_pattern("s3a://bucket/a%5B1%5D.ndjson"))
    file:///data/a b.ndjson s3a://bucket/a\\[1\\].ndjson
    """
    path = path_of(uri)
    return WILDCARDS.sub(r"\\\g<0>", f"file://{path}" if path.startswith("/") else unquote(path))


def _kept_columns(checkpoint: Storage) -> StructType | None:
    data = checkpoint.read(COLUMNS)
    try:
        return None if data is None else StructType.fromJson(json.loads(data))
    except Exception as error:  # StructType raises many types for foreign JSON
        raise TableError(f"{checkpoint.where}/{COLUMNS} is damaged: {error}") from error
