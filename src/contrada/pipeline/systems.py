"""Coordinate reference systems (CRS) of Spark columns, from the metadata of a field or of its GeoParquet files.

A column of a DataFrame is in the CRS that its field names (`with_crs`), else in the CRS named by the GeoParquet files
that it comes from unchanged. Rows of WKB may name theirs by an SRID. A column without any has an unknown CRS, which is
compatible with every other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from contrada.errors import ContradaError, CrsError, FormatError
from contrada.formats.tables.rows import geometry_columns, parquet_schema
from contrada.geometry.arrow.geoarrow import with_crs as typed
from contrada.geometry.arrow.mixed import is_spatial
from contrada.geometry.crs import Crs, differing, is_same_crs
from contrada.pipeline.storage import arrow_uri, path_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

CRS = "crs"
READ_THREADS = 16
GEOMETRY = ("binary", "array", "struct")  # Spark types of WKB and GeoArrow
GEOMETRY_FIELDS = {"srid", "wkb"}  # of the struct that Arrow has for Spark's GEOMETRY
Systems = Mapping[str, Crs]
NO_SYSTEMS: Systems = MappingProxyType({})


def with_crs(frame: DataFrame, column: str, crs: Any) -> DataFrame:
    """Return the frame with a CRS in the metadata of a geometry column; matching compares it, Parquet keeps it.

    `crs` is any value that `Region` takes; None removes the CRS.
    """
    known = Crs.of(crs)
    kept = {key: value for key, value in frame.schema[column].metadata.items() if key != CRS}
    return frame.withMetadata(column, kept if known is None else {**kept, CRS: str(known)})


def with_systems(frame: DataFrame, systems: Mapping[str, Crs | None]) -> DataFrame:
    """Return the frame with the CRS of several columns."""
    for column, crs in systems.items():
        if crs is not None:
            frame = with_crs(frame, column, crs)
    return frame


def frame_systems(frame: DataFrame, names: Collection[str]) -> Systems:
    """Return the known CRS of a frame's attributes; two for one column are a CrsError."""
    own = [field.name for field in frame.schema if field.name in names and field.dataType.typeName() in GEOMETRY]
    return {**declared_systems(frame, names), **_of_plan(frame, own)}


def declared_systems(frame: DataFrame, names: Collection[str]) -> Systems:
    """Return the CRS of the attributes whose fields name one."""
    named = {name: metadata[CRS] for name, metadata in _declared(frame.schema) if name in names and CRS in metadata}
    found = {name: _of_metadata(name, value) for name, value in named.items()}
    return {name: crs for name, crs in found.items() if crs is not None}


def _of_metadata(column: str, value: Any) -> Crs | None:
    try:
        return Crs.of(value)
    except ContradaError as error:
        raise CrsError(f"column {column!r}: metadata of the field: {error}") from error


def _declared(schema: StructType, prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all fields by their dotted names, with their metadata."""
    from pyspark.sql.types import StructType

    for field in schema.fields:
        yield prefix + field.name, field.metadata or {}
        if isinstance(field.dataType, StructType):
            yield from _declared(field.dataType, f"{prefix}{field.name}.")


def named_columns(rows: Any, names: Collection[str], systems: Systems, first: int = 0) -> Any:
    """Return the columns from `first` on of an Arrow table or batch as attributes, with the CRS in geometry types."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    return typed_columns(table.select(range(first, first + len(names))).rename_columns(list(names)), names, systems)


def typed_columns(table: Any, names: Collection[str], systems: Systems) -> Any:
    """Set the CRS in the types of geometry columns; the first columns of the table are the attributes `names`."""
    for place, name in enumerate(names):
        crs = systems.get(name)
        if crs is not None and is_spatial(table.column(place)):
            table = table.set_column(place, table.column_names[place], typed(table.column(place), crs))
    return table


@lru_cache(maxsize=4096)
def file_systems(path: str) -> Mapping[str, Crs | None]:
    """Return the CRS of the geometry columns of a Parquet file, from its GeoParquet or GeoArrow metadata."""
    try:
        store, place = (fs.LocalFileSystem(), path) if path.startswith("/") else fs.FileSystem.from_uri(arrow_uri(path))
        with store.open_input_file(place) as file:
            return geometry_columns(parquet_schema(pq.ParquetFile(file))).crs
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"{path}: the CRS of the geometry cannot be read: {error}") from error


def common_systems(paths: Collection[str]) -> Mapping[str, Crs | None] | None:
    """Return the CRS of the geometry columns of Parquet files; None if the files differ."""
    first: Mapping[str, Crs | None] = next(map(file_systems, paths), {})
    return first if all(file_systems(path) == first for path in paths) else None


def _of_plan(frame: DataFrame, names: Collection[str]) -> Systems:
    """Return the CRS of columns of known origin: Parquet files, or a CRS that was set on the way from there.

    The field of a union has the metadata of its first frame only, and so has a table of several files.
    """
    if not names or frame.isStreaming:
        return {}
    if is_connect(frame):
        return _of_files(frame, [name for name in names if CRS not in (frame.schema[name].metadata or {})])
    plan = cast(Any, frame)._jdf.queryExecution
    analyzed = plan().analyzed()
    outputs = {attribute.name(): attribute.exprId().id() for attribute in sequence_of(analyzed.output())}
    found: dict[str, Crs] = {}
    for name in names:
        known = list(_known(list(_origins(analyzed, outputs[name]))))
        if not known:
            continue
        first, found[name] = known[0]
        for where, crs in known[1:]:
            if not is_same_crs(found[name], crs):
                raise CrsError(
                    f"column {name!r}: {differing(found[name], crs)}, in {first} and {where}; "
                    "match them separately, or ingest them with to_crs="
                )
    return found


def is_connect(made: Any) -> bool:
    """Return True for a frame or session of Spark Connect."""
    return type(made).__module__.startswith("pyspark.sql.connect")


def _of_files(frame: DataFrame, names: Collection[str]) -> Systems:
    """Return the CRS that the files of a frame of Spark Connect name for columns of these names.

    Connect does not tell the origin of a column. So a column that no file names must not come from files with a CRS.
    """
    if not names:
        return {}
    paths = [path for path in frame.inputFiles() if path.lower().endswith(".parquet")]
    with ThreadPoolExecutor(READ_THREADS) as pool:
        known = dict(zip(paths, pool.map(_readable, paths), strict=True))
    found: dict[str, Crs] = {}
    for name in names:
        own = [(path, crs) for path, of_file in known.items() if (crs := of_file.get(name)) is not None]
        if not own and any(crs is not None for of_file in known.values() for crs in of_file.values()):
            raise CrsError(
                f"column {name!r}: its files name coordinate systems, but Spark Connect does not tell from which of "
                f"their columns it comes; set it: pipeline.with_crs(frame, {name!r}, ...)"
            )
        for path, crs in own:
            if not is_same_crs(found.setdefault(name, crs), crs):
                raise CrsError(
                    f"column {name!r}: {differing(found[name], crs)}, in {own[0][0]} and {path}; "
                    "match them separately, or ingest them with to_crs="
                )
    return found


def _known(origins: list[tuple[str, str, bool]]) -> Iterator[tuple[str, Crs]]:
    """Yield the CRS of origins; files are read by several threads, since stores respond slowly."""
    paths = list({path for path, _, is_file in origins if is_file})
    with ThreadPoolExecutor(READ_THREADS) as pool:
        of_files = dict(zip(paths, pool.map(_readable, paths), strict=True))
    for where, what, is_file in origins:
        crs = of_files[where].get(what) if is_file else _of_metadata(where, what)
        if crs is not None:
            yield where, crs


def _readable(uri: str) -> Mapping[str, Crs | None]:
    """Return the CRS of a file's columns; none for a store that PyArrow cannot read."""
    path = path_of(uri)
    try:
        return file_systems(path)
    except FormatError:
        if path.startswith("/"):
            raise
        return {}


def sequence_of(scala: Any) -> list[Any]:
    """Return the items of a Scala sequence."""
    return [scala.apply(k) for k in range(scala.size())]


def class_name(made: Any) -> str:
    """Return the name of an object's Java class, without its package."""
    return str(made.getClass().getSimpleName())


def _origins(plan: Any, number: int) -> Iterator[tuple[str, str, bool]]:
    """Yield where a plan's attribute comes from unchanged: a file and its column, or a projection that sets its CRS."""
    kind, children = class_name(plan), sequence_of(plan.children())
    if kind == "LogicalRelation":
        format = getattr(plan.relation(), "fileFormat", None)
        if format is not None and "parquet" in class_name(format()).lower():
            for one in sequence_of(plan.output()):
                if one.exprId().id() == number:
                    yield from ((path, one.name(), True) for path in plan.relation().location().inputFiles())
        return
    if kind == "Project":
        made = next((one for one in sequence_of(plan.projectList()) if one.exprId().id() == number), None)
        if made is not None and class_name(made) == "Alias":
            if made.metadata().contains(CRS) and made.explicitMetadata().isDefined():
                yield f"column {made.name()!r}", made.metadata().getString(CRS), False
                return
            if class_name(made.child()) != "AttributeReference":
                return
            number = made.child().exprId().id()
    places = [k for k, one in enumerate(sequence_of(plan.output())) if one.exprId().id() == number]
    for child in children:
        outputs = sequence_of(child.output())
        for wanted in [outputs[k].exprId().id() for k in places] if kind == "Union" else [number]:
            if any(one.exprId().id() == wanted for one in outputs):
                yield from _origins(child, wanted)
