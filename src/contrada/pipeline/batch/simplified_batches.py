"""Simplify Arrow batches of subscriptions in Spark's Python workers; this module does not use Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.cql2 import parse
from contrada.errors import ContradaError, CrsError, FilterError
from contrada.formats.tables.rows import values_of
from contrada.formats.tables.subscription_rows import row_faults
from contrada.formats.templates import Instances
from contrada.geometry import LineArray, PointArray, RegionArray
from contrada.geometry.arrow.mixed import parts_of
from contrada.geometry.faults import Rejection
from contrada.halving import in_halves
from contrada.model import Predicate
from contrada.pipeline.answers import arrow_type
from contrada.pipeline.systems import Systems, typed_columns
from contrada.simplification.simplifying import RULES, Simplification, simplified_groups

PART_BITS = 33  # lower bits of Spark's row numbers; the bits above are the partition
SIZES = ("filters_before", "filters_after", "constraints_before", "constraints_after")
COUNTS = (*SIZES, *RULES)
TEXTS = ("filter", "reason", "crs")
KINDS: dict[str, type] = {"region": RegionArray, "point": PointArray, "line": LineArray}
WORDS = {kind: word for word, kind in KINDS.items()}


class Job(NamedTuple):
    """How workers read a batch: its columns are `names`, then `row` and `repeated`."""

    names: tuple[str, ...]
    template: Predicate | None
    types: tuple[str, str]  # Spark types of keys and subscribers
    systems: Systems  # of the columns that name one
    kinds: dict[str, str] = {}  # noqa: RUF012 - "region", "point" or "line", by geometry column of a template; never modified
    offsets: dict[int, int] = {0: 0}  # noqa: RUF012 - number of the first row of each partition; never modified
    wrap: dict[str, str] = {}  # noqa: RUF012 - attributes that the table wraps; never modified

    def typed(self, table: Any) -> Any:
        """Set the CRS in the type of geometry columns; the table has the columns of the job, then others."""
        return typed_columns(table, self.names, self.systems)


class QueryRow(NamedTuple):
    """A row: its number, key, subscriber, and its query or why it is bad; `crs` of its attributes is JSON."""

    row: int
    key: Any
    subscriber: Any
    predicate: Predicate | None
    reason: str | None
    crs: str | None


def simplify_batches(batches: Iterator[Any], job: Job) -> Iterator[Any]:
    """Simplify batches of subscriptions; yield, in order, the new filter of each row or why it is bad."""
    for batch in batches:
        rows = [one._asdict() for one in asked_rows(pa.Table.from_batches([batch]), job)]
        good = [row for row in rows if row["predicate"] is not None]
        for row, found in zip(good, simplified_groups([row["predicate"].filters for row in good]), strict=True):
            row.update(_simplified(found))
        yield from _table(rows, job).to_batches()


def simplify_subscriber(table: Any, job: Job) -> Any:
    """Simplify all subscriptions of one subscriber into one row; bad rows come too. Filters are ordered by key."""
    asked = sorted(asked_rows(table, job), key=lambda one: (one.key is None, one.key, one.row))
    good = [one for one in asked if one.predicate is not None]
    rows: list[dict[str, Any]] = [one._asdict() for one in asked if one.predicate is None]
    if good:
        filters = [part for one in good if one.predicate is not None for part in one.predicate.filters]
        (found,) = simplified_groups([filters])
        rows.append({"subscriber": good[0].subscriber, **_simplified(found)})
        rows += [{"crs": crs} for crs in sorted({one.crs for one in good if one.crs is not None})]
    return _table(rows, job)


def good_rows(batches: Iterator[Any], job: Job) -> Iterator[Any]:
    """Yield key and `row` of subscriptions that are good apart from repeated keys."""
    for batch in batches:
        asked = asked_rows(pa.Table.from_batches([batch]), job)
        good = pa.array([one.predicate is not None for one in asked], pa.bool_())
        keys = batch.column(job.names.index("key"))
        yield pa.record_batch([keys, batch.column(len(job.names))], ["key", "row"]).filter(good)


def first_kinds(batches: Iterator[Any], job: Job) -> Iterator[Any]:
    """Yield, for each batch and geometry column, the first good row and whether it is a region or a point."""
    assert job.template is not None
    schema = pa.schema({"name": pa.string(), "row": pa.int64(), "kind": pa.string()})
    for batch in batches:
        rows = []
        for part in of_one_crs(job.typed(pa.Table.from_batches([batch]))):
            kinds: dict[str, type] = {}
            faults_of(part, job, kinds)
            row = part.column(len(job.names))[0].as_py()
            rows += [{"name": name, "row": row, "kind": WORDS[kind]} for name, kind in kinds.items()]
        yield from pa.Table.from_pylist(rows, schema).to_batches()


def asked_rows(table: Any, job: Job) -> list[QueryRow]:
    """Read the rows of a table with the columns of a job, `row` and `repeated`."""
    table = job.typed(table)
    columns = dict(zip(job.names, table.columns, strict=False))
    numbers = row_numbers(table.column(len(job.names)), job.offsets).tolist()
    keys = values_of(columns["key"]) if "key" in columns else numbers
    subscribers = values_of(columns["subscriber"]) if "subscriber" in columns else [None] * len(numbers)
    asked = _filters(columns["filter"]) if job.template is None else _instances(table, job)
    marks = table.column(len(job.names) + 1).to_pylist()
    rows = []
    for number, key, own, repeated, (what, crs) in zip(numbers, keys, subscribers, marks, asked, strict=True):
        subscriber = key if own is None else own
        fault = next((one.reason for one in (key, subscriber) if isinstance(one, Rejection)), None)
        if fault is not None or key is None:
            rows.append(QueryRow(number, None, None, None, fault or "no key", None))
        elif isinstance(what, Predicate) and not repeated:
            rows.append(QueryRow(number, key, subscriber, what, None, crs))
        else:
            reason = f"duplicate key {key!r:.60}" if isinstance(what, Predicate) else str(what)
            rows.append(QueryRow(number, key, subscriber, None, reason, None))
    return rows


def row_numbers(marks: Any, offsets: dict[int, int]) -> NDArray[np.int64]:
    """Turn a column of Spark's row numbers into positions among all rows."""
    rows = np.asarray(marks)
    parts, which = np.unique(rows >> PART_BITS, return_inverse=True)
    firsts = np.array([offsets[part] for part in parts.tolist()], np.int64)
    return firsts[which] + (rows & (1 << PART_BITS) - 1)


def _filters(column: Any) -> Iterator[tuple[Predicate | ContradaError, None]]:
    """Parse the filter texts of a column; yield the query or the error of each row."""
    for text in values_of(column):
        try:
            if isinstance(text, Rejection):
                raise FilterError(text.reason)
            if not text:
                raise FilterError("no filter")
            predicate = parse(text)
            for found in (found for part in predicate for one in part for found in one.columns):
                raise FilterError(f"{found} is a column of a template, but no template is given")
            yield predicate, None
        except ContradaError as error:
            yield error, None


def _instances(table: Any, job: Job) -> Iterator[tuple[Predicate | ContradaError, str | None]]:
    """Yield the query of each row of a template, or an error, and the CRS."""
    assert job.template is not None
    for part in of_one_crs(table):
        faults = faults_of(part, job, {name: KINDS[kind] for name, kind in job.kinds.items()})
        try:
            made = Instances(job.template, part.select(range(len(job.names))).rename_columns(job.names))
        except CrsError as error:
            yield from ((error, None) for _ in range(part.num_rows))
            continue
        crs = json.dumps(made.crs) if made.crs else None
        for row, found in enumerate(made):
            yield (FilterError(faults[row]) if row in faults else found), crs


def faults_of(table: Any, job: Job, kinds: dict[str, type]) -> dict[int, str]:
    """Return why rows cannot be subscriptions of a template, as `TableBuilder` does, but without checking keys."""
    own = [place for place, name in enumerate(job.names) if name != "key"]
    names = [job.names[place] for place in own]
    return row_faults(table.select(own).rename_columns(names), kinds) if names else {}


def of_one_crs(table: Any) -> Iterator[Any]:
    """Split a table into parts with one CRS per geometry column; usually the whole table is one part."""

    def checked(start: int, stop: int) -> Any:
        rows = table.slice(start, stop - start)
        for column in rows.columns:
            parts_of(column)
        return rows

    for part in in_halves(table.num_rows, checked, CrsError):
        assert part.error is None, "one row has one CRS"
        yield part.result


def _simplified(found: Any) -> dict[str, Any]:
    """Return the filter and the counts of simplified filters."""
    sizes = {name: getattr(found.report, name) for name in SIZES}
    return {"filter": str(Predicate(found.filters)), **sizes, **found.report.rules}


def report_of(counts: dict[str, int | None]) -> Simplification:
    """Build a report from its counts.

    >>> report_of({"filters_before": 3, "filters_after": 1, "covered": 2}).rules["covered"]
    2
    """
    sizes = {name: counts.get(name) or 0 for name in SIZES}
    return Simplification(**sizes, rules={rule: counts.get(rule) or 0 for rule in RULES})


def outcome_schema(job: Job) -> Any:
    """Return the Arrow schema of simplified and rejected rows."""
    names = zip(("key", "subscriber"), map(arrow_type, job.types), strict=True)
    texts, counts = (dict.fromkeys(some, kind) for some, kind in ((TEXTS, pa.string()), (COUNTS, pa.int64())))
    return pa.schema({"row": pa.int64(), **dict(names), **texts, **counts})


def _table(rows: list[dict[str, Any]], job: Job) -> Any:
    """Return rows as a table of all output columns."""
    schema = outcome_schema(job)
    columns: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in schema.names}
    for name in ("key", "subscriber"):  # a key may stand for a subscriber of another type
        made = str if pa.types.is_string(schema.field(name).type) else int
        columns[name] = [None if value is None else made(value) for value in columns[name]]
    return pa.table(columns, schema)
