"""Make the subscriptions of a server equal those of a file, and print the difference.

Each line of the answer is + (added), ~ (changed) or - (removed) and a key. --prefix or --subscriber names the \
subscriptions that the file stands for: no other is touched; --all stands for all of the key's tenant. A bad row is \
reported, and the subscription that it names stays as it is; if a bad row names none, nothing is removed.

A row may have track, on, exit_buffer, exit_after, time, first and late, as a request for a subscription to tracked \
objects has them; in CSV, on is text such as enter,dwell(5m). Rows of a template say nothing of that, and what is \
there stays.

The server is that of --url or CONTRADA_URL; the variable CONTRADA_KEY has a key with the scope subscribe.

\b
What would change?
  contrada sync subscriptions.ndjson --subscriber ann --dry-run
Rows of a file for a template, under keys that begin with school-:
  contrada sync schools.parquet --template 'S_INTERSECTS(geometry, $geometry)' --prefix school-

\b
Exit codes:
  0  the server has what the file says
  1  the same, apart from rows that were rejected
  2  could not run: wrong usage, missing file, no server
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from contrada.cli.ending import FAULTS
from contrada.cli.options import READ, Key, SubscriptionsCrs, SubscriptionsFormat, Template, argument, option, plain
from contrada.cli.subscribing import Asking, no_subscription, parsed_subscriptions, rejected_subscription
from contrada.cli.summary import summary_of_run
from contrada.cql2 import parse
from contrada.errors import ContradaError, FilterError, FormatError, KeyInUseError
from contrada.formats.records import Rejected
from contrada.formats.subscriptions import Subscription, read_subscriptions
from contrada.geometry.crs import LONGITUDE_LATITUDE
from contrada.installation import missing

if TYPE_CHECKING:
    from contrada.client import Client, SubscriptionInfo
    from contrada.service.tracks.asking import TrackAsked

MEMBERS = ("track", "on", "exit_buffer", "exit_after", "time", "first", "late")  # of tracked subscriptions
ROWS_TOGETHER, BYTES_TOGETHER = 5_000, 4 << 20  # in one request


class WantedSubscription(NamedTuple):
    """A subscription of the file."""

    key: str
    subscriber: str
    filter: str | dict[str, Any]
    tracking: dict[str, Any] | None = None  # None if the file cannot say it, empty if it asks for every message

    def row(self, old: SubscriptionInfo | None = None) -> dict[str, Any]:
        """Return the line of an upload; what the file does not say stays as it is in the old subscription."""
        kept: dict[str, Any] = {}
        if old is not None:
            kept = {"paused": old.paused, "expires": old.expires}
        tracking = (_tracking_of(old) if old is not None else {}) if self.tracking is None else self.tracking
        return {"key": self.key, "subscriber": self.subscriber, "filter": self.filter, **kept, **tracking}


class Scope(NamedTuple):
    """The subscriptions that the file stands for."""

    prefix: str | None
    subscriber: str | None

    def placed(self, item: WantedSubscription) -> WantedSubscription:
        """Return a subscription within the scope; raise FilterError if it is outside."""
        if self.prefix is not None and not item.key.startswith(self.prefix):
            raise FilterError(f"the key {item.key!r:.60} does not begin with {self.prefix!r:.60}, as --prefix asks")
        if self.subscriber in (None, item.subscriber):
            return item
        if item.subscriber != item.key:  # it is the key where the row names none
            raise FilterError(f"the subscriber is {item.subscriber!r:.60}, not {self.subscriber!r:.60}")
        return item._replace(subscriber=str(self.subscriber))


class FileRows:
    """What a file asks for, by key, and its bad rows."""

    def __init__(self, asking: Asking, scope: Scope) -> None:
        self.wanted: dict[str, WantedSubscription] = {}
        self.rejected: list[Rejected] = []
        self._origins: dict[str, tuple[str, str, int]] = {}
        self._key_column = asking.options.get("key", "key")
        for origin, item in _rows(asking):
            if isinstance(item, Rejected):
                self.rejected.append(item)
                continue
            try:
                placed = scope.placed(item)
                if placed.key in self.wanted:
                    raise KeyInUseError(f"duplicate key {placed.key!r:.60}")
                self.wanted[placed.key], self._origins[placed.key] = placed, origin
            except ContradaError as error:
                self.rejected.append(Rejected(*origin, str(error), json.dumps(item.row(), ensure_ascii=False)))
        if not self.wanted and self.rejected:
            raise no_subscription(asking, self.rejected[0])

    def leave(self, foreign: Mapping[str, str]) -> None:
        """Reject rows whose keys belong to other subscribers, named by key."""
        for key in self.wanted.keys() & foreign.keys():
            item = self.wanted.pop(key)
            reason = f"the key {key!r:.60} is that of a subscription of {foreign[key]!r:.60}"
            self.rejected.append(Rejected(*self._origins[key], reason, json.dumps(item.row(), ensure_ascii=False)))

    def spared(self) -> set[str] | None:
        """Return the keys that bad rows name; None if one of them names none."""
        keys = [_key_in(item.raw, self._key_column) for item in self.rejected]
        return None if None in keys else {str(key) for key in keys}


def _rows(asking: Asking) -> Iterator[tuple[tuple[str, str, int], WantedSubscription | Rejected]]:
    """Yield the rows of a file with their origins; filters are as they were written, those of a template as text."""
    if asking.template is not None:
        _, there = asking.rows()
        if there.table.num_rows and "key" not in there.table.column_names:  # numbers of rows change with the file
            raise FormatError(f"{asking.source}: the rows need a column of keys; --key names it")
        for row in parsed_subscriptions(asking):
            if isinstance(row, Rejected):
                yield row[:3], row
            else:
                yield row[:3], WantedSubscription(str(row.key), str(row.subscriber), str(row.predicate))
        return
    for item in read_subscriptions(str(asking.source), asking.format):
        yield item[:3], item if isinstance(item, Rejected) else _checked(item)


def _checked(item: Subscription) -> WantedSubscription | Rejected:
    try:
        if item.key is None:
            raise FilterError("a subscription of a server needs a key")
        for column in (column for part in parse(item.filter) for one in part for column in one.columns):
            raise FilterError(f"{column} is a column of a template; pass --template")
        tracking = _tracking_in(item)
    except ContradaError as error:
        return rejected_subscription(item, error)
    return WantedSubscription(str(item.key), str(item.subscriber), item.filter, tracking)


def _tracking_in(item: Subscription) -> dict[str, Any]:
    """Return what a row asks of tracked objects, empty for every message; raise ContradaError if it does not fit.

    Attributes that are called time, first and late mean nothing in a row without track.
    """
    given = {name: item.row[name] for name in MEMBERS if item.row.get(name) is not None}
    if "track" not in given:
        given = {name: value for name, value in given.items() if name in ("on", "exit_buffer", "exit_after")}
    asked = _asked(given) if given else None
    if asked is None:
        return {}
    import msgspec

    asked.watch(parse(item.filter))
    found: dict[str, Any] = msgspec.to_builtins(asked)
    return found


def _asked(members: Mapping[str, Any]) -> TrackAsked | None:
    """Return what members ask for, None for every message; raise ContradaError if they do not fit."""
    from contrada.service.problems import Problem
    from contrada.service.tracks.requests import members_of_query

    try:
        return members_of_query(members).tracking()
    except Problem as error:
        raise FilterError(error.detail) from error


def _key_in(raw: str, column: str) -> str | int | None:
    """Return the key that the text of a bad row names, if it can be read."""
    try:
        row = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if isinstance(row, dict) and isinstance(row.get("properties"), dict):
        row = {**row, **row["properties"]}
    found = row.get(column, row.get("key")) if isinstance(row, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


class SyncDifference(NamedTuple):
    """What must change on the server, and how many subscriptions need no change."""

    added: list[WantedSubscription]
    changed: list[tuple[WantedSubscription, SubscriptionInfo]]
    removed: list[str]
    unchanged: int


def difference(
    wanted: Mapping[str, WantedSubscription], there: Mapping[str, SubscriptionInfo], spared: set[str]
) -> SyncDifference:
    """Compare what a file wants with what is there; keys in `spared` are not removed."""
    known = [(item, there[key]) for key, item in wanted.items() if key in there]
    changed = [(item, old) for item, old in known if not _is_same(item, old)]
    added = [item for key, item in wanted.items() if key not in there]
    removed = [key for key in there if key not in wanted and key not in spared]
    return SyncDifference(added, changed, removed, len(known) - len(changed))


def _is_same(item: WantedSubscription, old: SubscriptionInfo) -> bool:
    if item.subscriber != old.subscriber:
        return False
    if item.tracking is not None:
        asked = [_asked(one) if one else None for one in (item.tracking, _tracking_of(old))]
        if len({None if one is None else one.normal() for one in asked}) > 1:
            return False
    if item.filter == old.filter:
        return True
    try:
        return str(parse(item.filter)) == str(parse(old.filter))
    except ContradaError:  # a filter of a server of another version
        return False


def sync(
    file: Annotated[Path, argument("Subscriptions: newline JSON, JSON, CSV, Parquet, Arrow; GeoJSON for a template.")],
    url: Annotated[str | None, plain("URL of the server; default: CONTRADA_URL, or http://127.0.0.1:8080.")] = None,
    prefix: Annotated[str | None, plain("Only subscriptions whose keys begin with this.")] = None,
    subscriber: Annotated[str | None, plain("Only subscriptions of this subscriber.")] = None,
    everything: Annotated[bool, plain("All subscriptions of the tenant.", "--all")] = False,
    dry_run: Annotated[bool, plain("Print the difference and change nothing.", "--dry-run")] = False,
    patience: Annotated[float, plain("Seconds to try while the server cannot be reached.", min=0)] = 60.0,
    allow_empty: Annotated[bool, plain("Let an empty file remove everything.", "--allow-empty")] = False,
    template: Template = None,
    key: Key = None,
    subscriber_column: Annotated[
        str | None, option(READ, "With --template: column of the subscribers; default: subscriber.")
    ] = None,
    format: SubscriptionsFormat = None,
    crs: SubscriptionsCrs = None,
) -> None:
    """Compare, print and change; the docstring of this module is the help page."""
    if not (prefix or subscriber or everything):
        raise typer.BadParameter("need --prefix, --subscriber or --all: which subscriptions does the file stand for?")
    try:
        from contrada.client import Client
    except ModuleNotFoundError as error:
        raise ContradaError(missing(f"contrada sync needs {error.name}", "broker")) from error
    options = {"key": key or "key", "subscriber": subscriber_column or "subscriber", "crs": crs}
    asking = Asking(file, format, template, options | {"to_crs": LONGITUDE_LATITUDE})
    rows = FileRows(asking, Scope(prefix, subscriber))
    if not rows.wanted and not allow_empty:
        raise ContradaError(f"{file}: no subscriptions; pass --allow-empty to remove all of them")
    with Client(url, patience=patience) as client:
        listed = {one.key: one for one in client.list(prefix=prefix)}
        there = {key: one for key, one in listed.items() if subscriber in (None, one.subscriber)}
        rows.leave({key: one.subscriber for key, one in listed.items() if key not in there})
        spared = rows.spared()
        found = difference(rows.wanted, there, set(there) if spared is None else spared)
        refused = [] if dry_run else list(_apply(client, found))
    _tell(found, rows.rejected, refused, dry_run, spared is None)
    summary_of_run().note(
        added=len(found.added), changed=len(found.changed), removed=len(found.removed), unchanged=found.unchanged,
        rejected=len(rows.rejected) + len(refused),
    )  # fmt: skip
    raise typer.Exit(FAULTS if rows.rejected or refused else 0)


def _apply(client: Client, found: SyncDifference) -> Iterator[str]:
    """Change the server; yield what it refuses. What is new comes first, so that nobody waits for it in vain."""
    rows = [item.row() for item in found.added] + [item.row(old) for item, old in found.changed]
    for part in _parts(rows):
        for bad in client.bulk(part, content_type="application/x-ndjson").rejected:
            yield f"{bad.key}: {bad.reason}"
    for key in found.removed:
        client.unsubscribe(key, missing_ok=True)


def _tracking_of(old: SubscriptionInfo) -> dict[str, Any]:
    """Return what a subscription asks of tracked objects; nothing if it tracks none."""
    return {} if old.track is None else {name: getattr(old, name) for name in MEMBERS if getattr(old, name) is not None}


def _parts(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield rows as newline JSON of limited size."""
    import msgspec

    part, size = list[bytes](), 0
    for row in rows:
        line = msgspec.json.encode(row)
        if part and (len(part) == ROWS_TOGETHER or size + len(line) > BYTES_TOGETHER):
            yield b"\n".join(part)
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield b"\n".join(part)


def _tell(found: SyncDifference, rejected: list[Rejected], refused: list[str], is_dry: bool, keeps_all: bool) -> None:
    changed = [item for item, _ in found.changed]
    keys = {"+": [item.key for item in found.added], "~": [item.key for item in changed], "-": found.removed}
    for sign, own in keys.items():
        for key in own:
            typer.echo(f"{sign} {key}")
    for item in rejected:
        typer.echo(f"rejected: {item}", err=True)
    for line in refused:
        typer.echo(f"refused by the server: {line}", err=True)
    if keeps_all:
        typer.echo("a bad row names no key: nothing is removed", err=True)
    counts = f"{len(found.added):,} added, {len(changed):,} changed, {len(found.removed):,} removed"
    typer.echo(f"{'would be: ' if is_dry else ''}{counts}, {found.unchanged:,} unchanged", err=True)
