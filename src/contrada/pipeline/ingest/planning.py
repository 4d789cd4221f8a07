"""From what a survey found to what is read: one CRS, one set of columns, pieces for tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from contrada.errors import CrsError
from contrada.formats.spatial import NO_CRS, Spatial
from contrada.geometry.crs import LONGITUDE_LATITUDE, Crs, is_same_crs
from contrada.pipeline.ingest.quarantine import FILE, GEOMETRY, RAW, REASON, REPAIRED, ROW
from contrada.pipeline.ingest.sources import JSON_FORMATS
from contrada.pipeline.ingest.splits import Piece, pieces_of
from contrada.pipeline.ingest.survey import Surveyed

SHOWN = 3  # files of each CRS in an error


def resolved(found: Sequence[Surveyed], spatial: Spatial) -> list[Surveyed]:
    """Return the columns with the CRS of each: the one it names, or the one `spatial` gives its format."""
    named: dict[tuple[str, str | None], Crs] = {}
    for item in found:  # ranges of one file have one CRS
        if (crs := Crs.of(item.crs)) is not None:
            named.setdefault((item.path, item.layer), crs)
    made = []
    for item in found:
        is_json = item.format in JSON_FORMATS
        own = None if is_json and spatial.crs == NO_CRS else named.get((item.path, item.layer))
        made.append(item._replace(crs=own or spatial.input_crs(LONGITUDE_LATITUDE if is_json else None)))
    return made


def one_crs(places: Iterable[tuple[str, Any]], to_crs: Any) -> Crs | None:
    """The CRS that all rows come out in, from files and theirs; raises a CrsError that names files if there is none.

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
            raise CrsError(f"to reproject to {to_crs} one must know where from: name the crs of {_some(groups[None])}")
        return Crs.of(to_crs)
    known = {crs: files for crs, files in groups.items() if crs is not None}
    if len(known) > 1:
        told = "; ".join(f"{crs.label} in {_some(files)}" for crs, files in known.items())
        raise CrsError(f"coordinate reference systems differ: {told}. to_crs= brings all into one")
    return next(iter(known), None)


def _some(files: Sequence[str]) -> str:
    different = list(dict.fromkeys(files))
    more = len(different) - SHOWN
    return ", ".join(different[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def output_names(names: Iterable[str], spelled: dict[str, str]) -> dict[str, str]:
    """The names that columns of one file come out with; `spelled` has those of the files before, and gains these.

    Spark does not tell upper case from lower: names that differ in case alone are one column if they are from two
    files, and the second gets a number if they are from one. So does a column that is called like the geometry.

    >>> output_names(["name", "Name", "geometry"], {"name": "NAME"})
    {'name': 'NAME', 'Name': 'Name_2', 'geometry': 'geometry_2'}
    """
    used = {GEOMETRY, FILE, ROW, REASON, RAW, REPAIRED}
    made = {}
    for name in names:
        wanted, number = name, 2
        while wanted.casefold() in used:
            wanted, number = f"{name}_{number}", number + 1
        used.add(wanted.casefold())
        made[name] = spelled.setdefault(wanted.casefold(), wanted)
    return made


def schema_names(schema: bytes, spelled: dict[str, str]) -> dict[str, str]:
    """`output_names` of a serialised schema."""
    return output_names(schema_in(schema).names, spelled)


def schema_in(schema: bytes) -> Any:
    """A schema that was serialised."""
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(schema))


def united(schemas: Iterable[tuple[bytes, dict[str, str]]]) -> bytes:
    """The columns of all files, by the names that they come out with."""
    import pyarrow as pa

    from contrada.formats.schema_merge import settled_type, united_schema

    renamed = [pa.schema([(names[field.name], field.type) for field in schema_in(schema)]) for schema, names in schemas]
    settled = pa.schema([(field.name, settled_type(field.type)) for field in united_schema(renamed)])
    return bytes(settled.serialize().to_pybytes())


def pieces(found: Iterable[Surveyed], crs: Crs | None, spelled: dict[str, str]) -> list[Piece]:
    """The pieces of all files; a file without a CRS is in the one of the others."""
    made: list[Piece] = []
    lines: dict[str, int] = {}
    for item in found:
        first = lines.get(item.path, 0)
        lines[item.path] = first + item.lines
        made += pieces_of(item, first, item.crs or crs, schema_names(item.schema, spelled))
    return made
