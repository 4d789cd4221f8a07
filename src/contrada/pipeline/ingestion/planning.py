"""Plan how surveyed files are read: one CRS, one set of columns, pieces for the tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from contrada.errors import CrsError
from contrada.formats.spatial import NO_CRS, Spatial
from contrada.formats.tables.schema_merge import settled_type, united_schema
from contrada.geometry.crs import LONGITUDE_LATITUDE, Crs, is_same_crs
from contrada.pipeline.ingestion.quarantine import GEOMETRY, MARKS
from contrada.pipeline.ingestion.sources import JSON_FORMATS
from contrada.pipeline.ingestion.splits import pieces_of
from contrada.pipeline.ingestion.survey import Surveyed, TaskSizes

MAX_SHOWN_FILES = 3  # files per CRS in an error message


def resolved(found: Sequence[Surveyed], spatial: Spatial) -> list[Surveyed]:
    """Set the CRS of every surveyed part: the one the file names, else the default of `spatial` for its format."""
    named: dict[tuple[str, str | None], Crs] = {}
    for item in found:  # ranges of one file share its CRS
        if (crs := Crs.of(item.crs)) is not None:
            named.setdefault((item.path, item.layer), crs)
    made = []
    for item in found:
        is_json = item.format in JSON_FORMATS
        own = None if is_json and spatial.crs == NO_CRS else named.get((item.path, item.layer))
        made.append(item._replace(crs=own or spatial.input_crs(LONGITUDE_LATITUDE if is_json else None)))
    return made


def one_crs(places: Iterable[tuple[str, Any]], to_crs: Any) -> Crs | None:
    """Return the one CRS of all output rows, given (file, CRS) pairs; raise CrsError with file names if they differ.

    >>> one_crs([("a.gpkg", "EPSG:3857"), ("b.wkb", None)], None)
    'EPSG:3857'
    """
    groups: dict[Crs | None, list[str]] = {}
    for file, named in places:
        crs = Crs.of(named)
        same = next((known for known in groups if known is not None and crs and is_same_crs(known, crs)), crs)
        groups.setdefault(same, []).append(file)
    if to_crs is not None:
        if None in groups:
            raise CrsError(f"cannot reproject to {to_crs}: no CRS is known for {_some(groups[None])}; pass crs=")
        return Crs.of(to_crs)
    known = {crs: files for crs, files in groups.items() if crs is not None}
    if len(known) > 1:
        told = "; ".join(f"{crs.label} in {_some(files)}" for crs, files in known.items())
        raise CrsError(f"coordinate reference systems differ: {told}; pass to_crs= to reproject all")
    return next(iter(known), None)


def _some(files: Sequence[str]) -> str:
    different = list(dict.fromkeys(files))
    more = len(different) - MAX_SHOWN_FILES
    return ", ".join(different[:MAX_SHOWN_FILES]) + (f" and {more} more" if more > 0 else "")


def output_names(names: Iterable[str], spelled: dict[str, str]) -> dict[str, str]:
    """Return the output names of a file's columns; `spelled` holds the names of earlier files, and gains these.

    Spark column names are case-insensitive: names that differ in case alone are one column if they come from two
    files; within one file the second gets a number. So does a column with the name of the geometry column.

    >>> output_names(["name", "Name", "geometry"], {"name": "NAME"})
    {'name': 'NAME', 'Name': 'Name_2', 'geometry': 'geometry_2'}
    """
    used = {GEOMETRY, *MARKS}
    made = {}
    for name in names:
        wanted, number = name, 2
        while wanted.casefold() in used:
            wanted, number = f"{name}_{number}", number + 1
        used.add(wanted.casefold())
        made[name] = spelled.setdefault(wanted.casefold(), wanted)
    return made


def united(schemas: Iterable[tuple[Any, dict[str, str]]]) -> Any:
    """Return the Arrow schema of the merged columns of all files, by output name."""
    renamed = [pa.schema([(names[field.name], field.type) for field in schema]) for schema, names in schemas]
    return pa.schema([(field.name, settled_type(field.type)) for field in united_schema(renamed)])


def pieces(found: Iterable[Surveyed], crs: Crs | None, spelled: dict[str, str], sizes: TaskSizes) -> list[Surveyed]:
    """Return the pieces of all files; a file without a CRS is read in `crs`."""
    made: list[Surveyed] = []
    lines: dict[str, int] = {}
    for item in found:
        first = lines.get(item.path, 0)
        lines[item.path] = first + item.lines
        made += pieces_of(item, first, item.crs or crs, output_names(item.schema.names, spelled), sizes)
    return made
