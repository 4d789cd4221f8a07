"""Evaluate the SQL functions on Arrow columns, in Spark's Python workers; this module does not use Spark.

Columns are WKB or EWKB, or Spark's GEOMETRY, which Arrow sends as a struct of SRID and WKB.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contrada.codes import BEYOND_REACH, ELSEWHERE, WITHIN_MASK
from contrada.errors import ArgumentError, ContradaError, CrsError, FilterError, FormatError
from contrada.geometry import LineArray, Relation, RelationSet
from contrada.geometry.arrow.mixed import ValueRows, is_binary, is_null, parts_by_crs
from contrada.geometry.crs import Crs, common_crs, srid_of
from contrada.geometry.distance import checked_distances, near_outcomes
from contrada.geometry.line_relating import ShapeColumn, line_relations
from contrada.geometry.line_relation import LineRelationSet, line_relations_of
from contrada.geometry.metres import NO_LINES, check_degrees, check_places, metre_outcomes
from contrada.geometry.relate import relate_rows
from contrada.pipeline.answers import Slices
from contrada.pipeline.artifact_cache import opened
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.systems import GEOMETRY_FIELDS

NAMES = tuple(relation.name.lower() for relation in Relation)
WORDS = {
    **{name: RelationSet(relation) for name, relation in zip(NAMES, Relation, strict=True)},
    **{
        name.lower(): getattr(RelationSet, name)
        for name in ("S_DISJOINT", "S_TOUCHES", "S_OVERLAPS", "S_EQUALS", "S_WITHIN", "S_CONTAINS", "S_INTERSECTS")
    },
}
CROSSES = "s_crosses"  # the word that lines have and regions lack
NO_ROW = -1
LINE_REFUSED = "a line; the eight relations are between regions and points, ct_relates takes words such as S_CROSSES"


class Values(NamedTuple):
    """A geometry column: parts of one kind and CRS, the part and the place in it of each row, nulls, and faults."""

    parts: list[ValueRows]
    part: NDArray[np.int64]  # by row; NO_ROW for null and for bad values
    place: NDArray[np.int64]
    is_null: NDArray[np.bool_]
    faults: dict[int, str]


def values_of(column: Any, function: str, argument: str) -> Values:
    """Read a geometry column; one of another type is a FormatError. A constant column is read once."""
    wkb = wkb_of(column, f"{function}: {argument}")
    count = len(wkb)
    is_constant = count > 1 and _is_constant(wkb)
    mixed = parts_by_crs(wkb.slice(0, 1) if is_constant else wkb)
    part, place = np.full(count, NO_ROW), np.zeros(count, np.int64)
    nulls, faults = np.asarray(wkb.is_null()), dict[int, str]()
    for number, one in enumerate(mixed.parts):
        rows = slice(None) if is_constant else one.rows
        part[rows], place[rows] = number, 0 if is_constant else np.arange(len(one.rows))
    for bad in mixed.rejected:
        if not is_null(bad):
            faults |= dict.fromkeys(range(count) if is_constant else [bad.row], bad.reason)
    return Values(mixed.parts, part, place, nulls, faults)


def _is_constant(wkb: Any) -> bool:
    """Return True if all values are the first one: a literal is sent as a column."""
    first = wkb[0]
    if not first.is_valid or wkb.null_count or not pc.equal(wkb[len(wkb) - 1], first).as_py():
        return False
    return bool(pc.all(pc.equal(wkb, first)).as_py())


def wkb_of(column: Any, what: str) -> Any:
    """Return a geometry column as WKB or EWKB; Spark's GEOMETRY names its CRS by an SRID for each row."""
    if is_binary(column):
        return column
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.binary())
    if not is_spark_geometry(column.type):
        raise FormatError(f"{what} is {column.type}; need BINARY with WKB, or GEOMETRY")
    wkb = pc.if_else(column.is_valid(), column.field("wkb"), pa.scalar(None, pa.binary()))
    srids = column.field("srid")
    found = wkb
    for srid in pc.unique(srids.filter(column.is_valid())).to_pylist():
        if srid and srid > 0:
            mark = pa.scalar(b"\x20" + int(srid).to_bytes(4, "little"), pa.binary())
            # Spark writes little-endian WKB of two dimensions, with the geometry type in bytes 2 to 5.
            head, tail = pc.binary_slice(wkb, 0, 4), pc.binary_slice(wkb, 5)
            named = pc.binary_join_element_wise(head, mark, tail, pa.scalar(b"", pa.binary()))
            found = pc.if_else(pc.equal(srids, srid), named, found)
    return found


def with_crs(column: Any, systems: Any) -> Any:
    """Return WKB as EWKB in the CRS that `systems` names for each row, such as 'EPSG:3035'; an SRID of a row stays.

    >>> import contrada as ct, pyarrow as pa
    >>> made = with_crs(pa.array([ct.Point(1, 2).to_wkb()]), pa.array(["EPSG:3035"]))
    >>> made[0].as_py()[:9].hex()
    '0101000020db0b0000'
    """
    wkb = wkb_of(column, "ct_with_crs: first argument")
    found, named = wkb, systems.dictionary_encode()
    # The first byte tells the order of the others; of the type of geometry, the highest byte has flags.
    firsts = pc.binary_slice(wkb, 0, 5)
    for head in pc.unique(firsts).to_pylist():
        if head is None or len(head) < 5 or head[0] > 1:
            continue  # null or damaged, which other functions tell
        is_little = head[0] == 1
        if head[4 if is_little else 1] & 0x20:
            continue
        flagged = head[:4] + bytes([head[4] | 0x20]) if is_little else head[:1] + bytes([head[1] | 0x20]) + head[2:]
        own = pc.equal(firsts, head)
        for code, text in enumerate(named.dictionary.to_pylist()):
            srid = srid_of(Crs.of(text)).to_bytes(4, "little" if is_little else "big")
            mark, none = pa.scalar(flagged + srid, pa.binary()), pa.scalar(b"", pa.binary())
            made = pc.binary_join_element_wise(mark, pc.binary_slice(wkb, 5), none)
            chosen = pc.and_(own, pc.equal(named.indices, code)).fill_null(False)
            found = pc.if_else(chosen, made, found)
    return found


def is_spark_geometry(kind: Any) -> bool:
    """Return True for the Arrow type of Spark's GEOMETRY.

    >>> import pyarrow as pa
    >>> is_spark_geometry(pa.struct({"srid": pa.int32(), "wkb": pa.binary()}))
    True
    """
    return pa.types.is_struct(kind) and {field.name for field in kind} == GEOMETRY_FIELDS


class ShapePairs(NamedTuple):
    """Rows of two geometry columns whose values are of one kind and CRS each, and the places of these in parts."""

    rows: NDArray[np.int64]
    a: ShapeColumn
    b: ShapeColumn
    a_rows: NDArray[np.int64]
    b_rows: NDArray[np.int64]

    @property
    def has_line(self) -> bool:
        """Whether one of the values of each pair is a line."""
        return isinstance(self.a, LineArray) or isinstance(self.b, LineArray)


def paired(a: Any, b: Any, function: str, third: Any = None) -> tuple[list[ShapePairs], NDArray[np.bool_]]:
    """Return the pairs of two columns by kinds, and where a value of a row is null, or that of a third column.

    An invalid value is a FormatError that names the argument and the fault; so are two different CRS.
    """
    first, second = values_of(a, function, "first argument"), values_of(b, function, "second argument")
    missing = first.is_null | second.is_null
    if third is not None:
        missing |= np.asarray(third.is_null())
    for values, argument in ((first, "first"), (second, "second")):
        bad = next((row for row in sorted(values.faults) if not missing[row]), None)
        if bad is not None:
            raise FormatError(
                f"{function}: {argument} argument: {values.faults[bad]}; ct_valid tells which values are valid"
            )
    kinds = np.where(missing, NO_ROW, first.part * (len(second.parts) or 1) + second.part)
    found = []
    for kind in np.unique(kinds[kinds != NO_ROW]).tolist():
        k, m = divmod(kind, len(second.parts))
        one, other = first.parts[k].column, second.parts[m].column
        try:
            common_crs(one.crs, other.crs)
        except CrsError as error:
            raise CrsError(f"{function}: {error}") from error
        rows = np.flatnonzero(kinds == kind)
        found.append(ShapePairs(rows, one, other, first.place[rows], second.place[rows]))
    return found, missing


def relations(a: Any, b: Any) -> Any:
    """Return the names of relations of two columns; null where one of them is null.

    >>> import contrada as ct, pyarrow as pa
    >>> box = lambda *sides: ct.Region.box(*sides).to_wkb()
    >>> relations(pa.array([box(0, 0, 4, 4), None]), pa.array([box(4, 0, 8, 4)] * 2, pa.binary())).to_pylist()
    ['meets', None]
    """
    pairs, missing = paired(a, b, "ct_relate")
    codes = np.zeros(len(missing), np.int8)
    for one in pairs:
        codes[one.rows] = _relation_codes(one, "ct_relate")
    return pa.array(NAMES).take(pa.array(codes, mask=missing))


def _relation_codes(pairs: ShapePairs, function: str) -> NDArray[np.uint8]:
    """Return the codes of the eight relations; a line is a FormatError."""
    a, b = pairs.a, pairs.b
    if isinstance(a, LineArray) or isinstance(b, LineArray):
        argument = "first" if isinstance(a, LineArray) else "second"
        raise FormatError(f"{function}: {argument} argument: {LINE_REFUSED}")
    return relate_rows(a, b, pairs.a_rows, pairs.b_rows)


def are_related(a: Any, b: Any, words: Any) -> Any:
    """Return whether one of the relations holds that `words` name, such as 'meets|overlaps' or 'S_INTERSECTS'.

    Where a line takes part, words are those of OGC, and S_CROSSES is one of them.

    >>> import contrada as ct, pyarrow as pa
    >>> line, box = ct.Line([(0, 0), (4, 4)]).to_wkb(), ct.Region.box(2, 0, 6, 8).to_wkb()
    >>> words = pa.array(["S_CROSSES", "s_within|s_touches"])
    >>> are_related(pa.array([line] * 2), pa.array([box] * 2), words).to_pylist()
    [True, False]
    """
    pairs, missing = paired(a, b, "ct_relates", words)
    coded = words.dictionary_encode()
    asked = [relation_words(word) for word in coded.dictionary.to_pylist()]
    word_of = np.asarray(coded.indices.fill_null(0))
    found = np.zeros(len(missing), bool)
    for one in pairs:
        used = word_of[one.rows]
        if not one.has_line:
            masks = np.array([own.regions.mask for own in asked], np.uint8)[used]
            found[one.rows] = masks >> _relation_codes(one, "ct_relates") & 1 == 1
            continue
        for number in np.unique(used).tolist():
            if (word := asked[number].of_regions) is not None:
                raise FilterError(f"ct_relates: {word!r} is between regions and points, and a value is a line")
        masks = np.array([own.lines.mask for own in asked], np.uint8)[used]
        found[one.rows] = masks >> line_relations(one.a, one.b, one.a_rows, one.b_rows, masks) & 1 == 1
    return pa.array(found, mask=missing)


def are_near(a: Any, b: Any, distances: Any, function: str, unit: str | None) -> Any:
    """Return whether two columns are within distances of each other; null where one of the three is null.

    With the unit "m", distances are in metres on longitude and latitude, and lines have none.

    >>> import contrada as ct, pyarrow as pa
    >>> line, point = ct.Line([(0, 0), (8, 0)]).to_wkb(), ct.Point(3, 2).to_wkb()
    >>> are_near(pa.array([line] * 2), pa.array([point] * 2), pa.array([2, 1.9]), "f", None).to_pylist()
    [True, False]
    """
    pairs, missing = paired(a, b, function, distances)
    try:
        most = checked_distances(np.asarray(distances.cast(pa.float64()).fill_null(0.0)))
        found = np.zeros(len(missing), bool)
        for one in pairs:
            sent = one.a_rows, one.b_rows, most[one.rows]
            if unit is None:
                outcomes = near_outcomes(one.a, one.b, *sent, np.full(len(one.rows), WITHIN_MASK, np.uint8))
            else:
                outcomes = _metre_outcomes(one, *sent)
            found[one.rows] = outcomes != BEYOND_REACH
    except ArgumentError as error:
        raise ArgumentError(f"{function}: {error}") from error
    return pa.array(found, mask=missing)


def _metre_outcomes(pairs: ShapePairs, a_rows: Any, b_rows: Any, metres: Any) -> NDArray[np.uint8]:
    """Return outcomes of distances in metres; shapes that are nowhere on Earth, and lines, are errors."""
    a, b = pairs.a, pairs.b
    if isinstance(a, LineArray) or isinstance(b, LineArray):
        raise ArgumentError(NO_LINES)
    check_degrees(a.crs)
    check_degrees(b.crs)
    outcomes = metre_outcomes(a, b, a_rows, b_rows, metres)
    lost = outcomes == ELSEWHERE
    if lost.any():
        check_places(a[a_rows[lost]])
        check_places(b[b_rows[lost]])
    return outcomes


class Words(NamedTuple):
    """The relations that a text names, for regions and points and for lines, and a word that lines have not."""

    regions: RelationSet
    lines: LineRelationSet
    of_regions: str | None


@lru_cache(maxsize=256)
def relation_words(text: str) -> Words:
    """Return the relations that a text names.

    >>> found = relation_words("meets | covered-by")
    >>> found.regions == Relation.MEETS | Relation.COVERED_BY, found.of_regions
    (True, 'meets')
    """
    regions, lines, of_regions = RelationSet(), LineRelationSet(), None
    for word in text.split("|"):
        name = word.strip().lower().replace("-", "_")
        if name == CROSSES:
            lines |= LineRelationSet.S_CROSSES
            continue
        own = WORDS.get(name)
        if own is None:
            raise FilterError(f"ct_relates: unknown relation {word.strip()!r:.60}; need {', '.join((*WORDS, CROSSES))}")
        regions |= own
        of_lines = line_relations_of(own) if name.startswith("s_") else None
        if of_lines is None:
            of_regions = of_regions or word.strip()
        else:
            lines |= of_lines
    return Words(regions, lines, of_regions)


def are_valid(column: Any) -> Any:
    """Return whether values are valid regions, points or lines; null for null."""
    values = values_of(column, "ct_valid", "argument")
    return pa.array(values.part != NO_ROW, mask=values.is_null)


def match_messages(artifacts: Any, messages: Any) -> Any:
    """Return the subscribers that each message matches, as text; null for a message that is rejected."""
    found: list[Any] = [None] * len(messages)
    for path in pc.unique(artifacts).to_pylist():
        if path is None:
            continue
        rows = np.flatnonzero(np.asarray(pc.equal(artifacts, path).fill_null(False)))
        for row, names in zip(rows.tolist(), _matched(path, messages.take(pa.array(rows))), strict=True):
            found[row] = names
    return pa.array(found, pa.list_(pa.string()))


def _matched(path: str, messages: Any) -> Any:
    """Match structs with the table of an artifact; yield a list of names, or None, for each."""
    ready = opened(_artifact(path))
    table = attributes_of(messages)
    names = ready.names.subscribers
    names = pa.array(list(map(str, names)), pa.string()) if isinstance(names, list) else names.cast(pa.string())
    for _, answer in Slices().match(ready.table, table, "subscriber"):
        counts = np.bincount(answer.messages, minlength=answer.asked)
        ends = np.cumsum(counts)
        whose = names.take(pa.array(answer.rows)).to_pylist()
        for number, (stop, count) in enumerate(zip(ends.tolist(), counts.tolist(), strict=True)):
            yield None if number in answer.rejected else whose[stop - count : stop]


@lru_cache(maxsize=64)
def _artifact(path: str) -> Artifact:
    """Return the artifact of a path: a worker reads it once, since an artifact never changes."""
    try:
        return Artifact.read(path)
    except ContradaError as error:
        raise FormatError(f"ct_match: {error}; need the path of an artifact of compile or publish") from error


def attributes_of(messages: Any) -> Any:
    """Return structs as a table of attributes: inner structs give dotted names, GEOMETRY becomes EWKB."""
    columns: dict[str, Any] = {}

    def add(prefix: str, values: Any) -> None:
        for field, column in zip(values.type, values.flatten(), strict=True):
            name = prefix + field.name
            if is_spark_geometry(field.type):
                columns[name] = wkb_of(column, f"ct_match: attribute {name!r}")
            elif pa.types.is_struct(field.type):
                add(f"{name}.", column)
            else:
                columns[name] = column

    add("", messages)
    if not columns:
        raise FormatError("ct_match: the second argument is a struct without fields; write struct(*)")
    return pa.table(columns)
