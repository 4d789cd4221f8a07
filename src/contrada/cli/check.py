"""Show what a filter in CQL2 means: the filters it becomes, each on a line.

FILTER is text, JSON, @FILE or - for standard input. contains, covers, inside and covered_by are strict: each is one \
of eight relations that exclude each other. OGC's contains is S_CONTAINS, OGC's within is S_WITHIN; a note says so if \
a filter has one of the strict words. A filter that no message can satisfy gives a warning, which names the two \
constraints that exclude each other.

\b
Show the filters of a query:
  contrada check "NOT (kind = 'storm' OR severity < 3) AND overlaps(area, BBOX(0, 0, 4, 4))"
From a file, as CQL2 JSON:
  contrada check @filter.cql2 --json
All subscriptions of a file, each bad line with its reason:
  contrada check --file subscriptions.ndjson
The rows of a file for a template:
  contrada check --file facilities.geojson --template 'S_INTERSECTS(area, $geometry)'

\b
Exit codes:
  0  no errors; there may be warnings
  1  the filter does not parse, or a subscription is bad
  2  could not run: wrong usage, missing file
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from contrada.amounts import counted
from contrada.cli.ending import FAULTS, complain
from contrada.cli.options import argument, plain
from contrada.cli.subscribing import Asking, parsed_subscriptions
from contrada.cli.summary import summary_of_run
from contrada.cql2 import parse, to_json
from contrada.errors import FilterError, FormatError, LimitError
from contrada.formats.records import Rejected, json_records, opened
from contrada.formats.subscriptions import template_columns
from contrada.formats.tables.subscription_rows import SubscriptionTable
from contrada.geometry import Relation, RelationSet
from contrada.model import Constraint, Filter, Predicate

# Words that OGC uses in a wider sense: our word, OGC's union of relations, and where our word is false.
STRICT_WORDS = {
    Relation.CONTAINS: ("contains", "S_CONTAINS", "boundaries touch (covers)"),
    Relation.COVERS: ("covers", "S_CONTAINS", "boundaries do not touch (contains)"),
    Relation.INSIDE: ("inside", "S_WITHIN", "boundaries touch (covered_by)"),
    Relation.COVERED_BY: ("covered_by", "S_WITHIN", "boundaries do not touch (inside)"),
}


def check(
    filter: Annotated[str | None, argument("CQL2 text or JSON, @FILE, or - for standard input.")] = None,
    as_json: Annotated[bool, plain("Print the filter as CQL2 JSON.", "--json")] = False,
    file: Annotated[Path | None, plain("Check a file of subscriptions; - for standard input.")] = None,
    format: Annotated[
        str | None, plain("Format of the file; default: by suffix or first bytes.", "--format", "-f")
    ] = None,
    template: Annotated[
        str | None, plain("CQL2 filter for every row of the file; $name is the value of column name.")
    ] = None,
    key: Annotated[str, plain("With --template: the column of keys.")] = "key",
) -> None:
    """Check a filter or a file; the docstring of this module is the help page."""
    if (filter is None) == (file is None):
        raise typer.BadParameter("need a filter, or a file of subscriptions with --file")
    if file is not None:
        raise typer.Exit(check_file(file, format, template, key))
    raise typer.Exit(check_filter(_text(filter or ""), as_json))


def check_filter(text: str, as_json: bool) -> int:
    """Print the filters of a query; return the exit code."""
    try:
        predicate = parse(text)
    except (FilterError, LimitError) as error:
        complain(str(error))
        return FAULTS
    constraints = [constraint for part in predicate for constraint in part]
    summary_of_run().note(filters=len(predicate), constraints=len(constraints))
    if as_json:
        typer.echo(json.dumps(to_json(predicate), ensure_ascii=False))
    else:
        typer.echo(f"{counted(len(predicate), 'filter')}, {counted(len(constraints), 'constraint')}")
        for part in predicate:
            typer.echo(f"  {part}")
        if columns := template_columns(predicate):
            typer.echo(f"a template: needs the columns {', '.join(columns)} of a table")
    for line in (*warnings(predicate), *notes(predicate)):
        typer.echo(line, err=as_json)
    return 0


def warnings(predicate: Predicate) -> Iterator[str]:
    """Yield a warning for each filter that can never match, whatever the rows of a template.

    >>> from contrada import parse
    >>> list(warnings(parse("severity >= 5 AND severity < 3 AND area = $area")))
    ['warning: this filter can never match: severity >= 5 and severity < 3 exclude each other']
    """
    for number, reason in _never(predicate).items():
        which = "this filter" if len(predicate) == 1 else f"filter {number} of {len(predicate)}"
        yield f"warning: {which} can never match: {reason}"


def _never(predicate: Predicate) -> dict[int, str]:
    """Return the filters that can never match, by number from 1, and why; constraints with columns are ignored."""
    from contrada.simplification.conflicts import never_satisfied

    fixed = ((k, [one for one in part if not one.columns]) for k, part in enumerate(predicate, 1))
    return dict(never_satisfied((k, Filter(constraints)) for k, constraints in fixed if constraints))


def notes(predicate: Predicate) -> Iterator[str]:
    """Yield notes on words that mean something else in OGC's standards.

    >>> from contrada import parse
    >>> [note.partition(":")[0] for note in notes(parse("contains(area, POINT(1 2)) AND NOT S_WITHIN(a, POINT(1 2))"))]
    ['note']
    """
    found = {strict for part in predicate for one in part if (strict := _strict_relation(one)) is not None}
    for relation in sorted(found):
        word, union, not_there = STRICT_WORDS[relation]
        yield f"note: {word} is strict, false where {not_there} or regions are equal; OGC's word for all is {union}"


def _strict_relation(constraint: Constraint) -> Relation | None:
    """Return the relation of STRICT_WORDS that a constraint tests or excludes, or None."""
    if not isinstance(constraint.operator, RelationSet):
        return None
    return next((one for one in STRICT_WORDS if constraint.relations in (one | one, ~one)), None)


class Warned(Rejected):
    """A filter that no message satisfies: the place of its subscription, and the warning as the reason."""


# Place and key of a subscription, and the number of a filter among all filters of it.
Owner = tuple[str, str, int, str | int | None, int, int]


def _warned(filters: Iterable[tuple[Owner, Filter]]) -> Iterator[Warned]:
    """Yield a warning for each filter that no message satisfies."""
    from contrada.simplification.conflicts import never_satisfied

    for (source, unit, number, key, part, parts), reason in never_satisfied(filters):
        whose = "this subscription" if key is None else f"the subscription {key!r}"
        which = whose if parts == 1 else f"filter {part} of {parts} of {whose}"
        yield Warned(source, unit, number, f"warning: {which} can never match: {reason}", "")


def _line_of(item: Rejected, lines_of_items: Callable[[str], list[int]]) -> int:
    """Return the line of an item of a JSON file, counted from 1; of a line or a row its own number."""
    if item.unit != "item" or not Path(item.source).is_file():
        return item.number
    known = lines_of_items(item.source)
    return known[item.number] if item.number < len(known) else 1


def _lines_of_items(source: str) -> list[int]:
    """Return the first lines of the items of a JSON file."""
    with opened(source, None) as ready:
        data = ready.stream.read()
    found, line, at = [], 1, 0
    for record in json_records(io.BytesIO(data), "json"):
        start = data.index(record.data, at)
        line += data.count(b"\n", at, start)
        found.append(line)
        line, at = line + record.data.count(b"\n"), start + len(record.data)
    return found


def check_file(file: Path, format: str | None, template: str | None, key: str) -> int:
    """Print each bad subscription of a file and each filter that can never match; return the exit code."""
    good, bad, never = 0, 0, 0
    lines = cache(_lines_of_items)
    for item in _checked_rows(file, format, key, template) if template else _checked_filters(file, format):
        if isinstance(item, int):
            good += item
        elif isinstance(item, str):
            typer.echo(item, err=True)
        else:
            never += isinstance(item, Warned)
            bad += not isinstance(item, Warned)
            typer.echo(f"{item.source}:{_line_of(item, lines)}: {item.reason}")
    warned = f", {counted(never, 'filter')} that can never match" if never else ""
    typer.echo(f"{counted(good, 'good subscription')}, {bad:,} bad{warned}", err=True)
    summary_of_run().note(subscriptions=good, never_matching=never, rejected=bad)
    return FAULTS if bad else 0


def _checked_filters(file: Path, format: str | None) -> Iterator[Rejected | str | int]:
    """Yield a rejection or 1 for each subscription, warnings in between, and notes at the end."""
    from contrada.simplification.conflicts import BATCH_FILTERS, is_doubtful

    found: dict[str, str] = {}
    doubtful: list[tuple[Owner, Filter]] = []
    for item in parsed_subscriptions(Asking(file, format, None, {})):
        if isinstance(item, Rejected):
            yield item
            continue
        for note in notes(item.predicate):
            found.setdefault(note, f"{note} (first: {item.source}, {item.unit} {item.number})")
        for part, asked in enumerate(item.predicate, 1):
            if is_doubtful(asked):
                doubtful.append(((item.source, item.unit, item.number, item.key, part, len(item.predicate)), asked))
        if len(doubtful) >= BATCH_FILTERS:
            yield from _warned(doubtful)
            doubtful.clear()
        yield 1
    yield from _warned(doubtful)
    yield from found.values()


def _checked_rows(file: Path, format: str | None, key: str, template: str) -> Iterator[Rejected | str | int]:
    """Yield a rejection for each bad row of a template, the number of good rows, warnings, and notes."""
    predicate, found = Asking(file, format, template, {"key": key}).rows()
    yield from found.rejected
    yield found.table.num_rows
    yield from warnings(predicate)
    yield from _warned_rows(predicate, found)
    yield from notes(predicate)


def _warned_rows(template: Predicate, found: SubscriptionTable) -> Iterator[Warned]:
    """Yield warnings for rows whose values make a filter impossible; faults of the template itself are left out."""
    from contrada.formats.templates import Instances
    from contrada.simplification.conflicts import undecided

    rows, known = found.table, _never(template)
    asked = {part: undecided(filter) for part, filter in enumerate(template, 1) if part not in known}
    parts = {part: constraints for part, constraints in asked.items() if constraints}
    if not parts or not rows.num_rows:
        return
    keys = rows.column("key").to_pylist() if "key" in rows.schema.names else [None] * rows.num_rows
    made = Instances(Predicate(map(Filter, parts.values())), rows)
    filters = (
        ((*origin, key, part, len(template)), bound)
        for origin, key, predicate in zip(found.origins, keys, made, strict=True)
        if isinstance(predicate, Predicate)
        for part, bound in zip(parts, predicate, strict=True)
    )
    yield from _warned(filters)


def _text(filter: str) -> str:
    """Return the filter itself, or the content of a file or of standard input."""
    try:
        if filter == "-":
            return sys.stdin.buffer.read().decode().strip()
        return Path(filter[1:]).read_text(encoding="utf-8").strip() if filter.startswith("@") else filter
    except UnicodeDecodeError as error:
        name = "standard input" if filter == "-" else filter[1:]
        raise FormatError(f"{name} is not UTF-8: {error.reason}") from error
