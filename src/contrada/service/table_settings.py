"""Tables of the settings file that name topics elsewhere: `[[sinks]]` and `[[sources]]`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta, field

from contrada.errors import FormatError
from contrada.service.remotes import Remote, RemoteUrl, read_password

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Formats of the records of a source: the content type of a record that names none.
FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "json": "application/json",
        "ndjson": "application/x-ndjson",
        "geojsonseq": "application/geo+json-seq",
        "cloudevent": "application/cloudevents+json",
        "cloudevents": "application/cloudevents-batch+json",
        "cap": "application/cap+xml",
    }
)
TENANT = "default"
PAGE = """
## Tables

Sinks and sources are lists of tables, in the file only; [Sinks and sources](sinks.md) tells what they do.

```toml
[[sinks]]
name = "floods"
url = "kafka://kafka.example:9092/floods"
subscriber = "ann"

[[sources]]
name = "buoys"
url = "mqtts://mqtt.example/buoys/+/position"
user = "contrada"
password_file = "mqtt.password"
```
"""


class RemoteTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings that sinks and sources share. Passwords are read when the server starts, and never shown."""

    name: Annotated[str, Meta(description="letters, digits, `.`, `_` and `-`; its place is kept by this name")]
    url: Annotated[
        str,
        Meta(
            description="`kafka://host:9092,host2:9092/topic`, `nats://host:4222/subject` or `mqtt://host:1883/topic`;"
            " with TLS `kafkas`, `natss`, `mqtts`"
        ),
    ]
    tenant: Annotated[str, Meta(min_length=1, max_length=200, description="tenant of the events or messages")] = TENANT
    user: Annotated[str | None, Meta(description="user name")] = None
    password_env: Annotated[
        str | None, Meta(description="environment variable with the password; without `user`: a token of NATS")
    ] = None
    password_file: Annotated[Path | None, Meta(description="file whose first line is the password")] = None
    ca_file: Annotated[Path | None, Meta(description="PEM file of the authorities that sign the server's key")] = None
    timeout: Annotated[float, Meta(gt=0, le=3_600, description="seconds that an answer may take")] = 15.0

    KIND: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise FormatError(f"name: need 1 to 100 letters, digits, '.', '_' and '-', got {self.name!r:.60}")
        try:
            RemoteUrl.parse(self.url)
        except FormatError as error:
            raise FormatError(f"url: {error}") from error
        if self.password_env is not None and self.password_file is not None:
            raise FormatError("password_env and password_file: give one of them")

    def remote(self) -> Remote:
        """Return the topic with its credentials; raise ContradaError if they cannot be read."""
        return Remote(
            RemoteUrl.parse(self.url), self.user, read_password(self.password_env, self.password_file), self.ca_file
        )


class SinkTable(RemoteTable, frozen=True):
    """A topic that receives the events of a subscriber."""

    KIND: ClassVar[str] = "sinks"

    subscriber: Annotated[str, Meta(min_length=1, max_length=200, description="subscriber whose events are sent")]
    format: Annotated[
        Literal["plain", "cloudevents"], Meta(description="body of a record: `plain` or `cloudevents`")
    ] = "plain"
    batch: Annotated[int, Meta(ge=1, le=1_000, description="events that are sent together")] = 100
    start: Annotated[
        Literal["now", "oldest"], Meta(description="first event of a new sink: `now` or `oldest` that is kept")
    ] = field(default="now", name="from")
    attempts: Annotated[
        Annotated[int, Meta(ge=1, le=1 << 31)] | None,
        Meta(description="attempts until an event is dead-lettered; default `webhooks.attempts`"),
    ] = None
    age: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="seconds until an event is dead-lettered; default `webhooks.age`"),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        url = RemoteUrl.parse(self.url)
        if (url.engine == "mqtt" and set(url.topic) & {"+", "#"}) or (url.engine == "nats" and "*" in url.topic):
            raise FormatError(f"url: a sink needs a topic without wildcards, got {url.topic!r:.60}")
        if url.engine == "nats" and ">" in url.topic:
            raise FormatError(f"url: a sink needs a subject without wildcards, got {url.topic!r:.60}")


class SourceTable(RemoteTable, frozen=True):
    """A topic whose records are published."""

    KIND: ClassVar[str] = "sources"

    format: Annotated[
        Literal["json", "ndjson", "geojsonseq", "cloudevent", "cloudevents", "cap"],
        Meta(description="format of records without a content type: " + ", ".join(f"`{one}`" for one in FORMATS)),
    ] = "json"
    batch: Annotated[int, Meta(ge=1, le=10_000, description="records that are published together")] = 500
    start: Annotated[
        Literal["now", "oldest"], Meta(description="first record of a new source: `oldest` that is there, or `now`")
    ] = field(default="oldest", name="from")
    group: Annotated[
        str | None, Meta(description="group of Kafka, or client id of MQTT; default `contrada-` and the name")
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group is not None and not NAME.fullmatch(self.group):
            raise FormatError(f"group: need 1 to 100 letters, digits, '.', '_' and '-', got {self.group!r:.60}")

    @property
    def reader(self) -> str:
        """The group of Kafka, or client id of MQTT."""
        return self.group or f"contrada-{self.name}"


R = TypeVar("R", bound=RemoteTable)


def read_tables(kind: type[R], given: Any) -> tuple[R, ...]:
    """Return the tables of a kind; raise FormatError that names the table and the setting at fault.

    >>> read_tables(SinkTable, [{"name": "a", "url": "mqtt://host/t"}])
    Traceback (most recent call last):
    contrada.errors.FormatError: sinks[0]: Object missing required field `subscriber`
    """
    if not isinstance(given, list):
        raise FormatError(f"{kind.KIND} is a list of tables; write [[{kind.KIND}]] and its settings below")
    tables = []
    for place, one in enumerate(given):
        try:
            tables.append(msgspec.convert(one, kind, dec_hook=_path))
        except (msgspec.ValidationError, FormatError) as error:
            raise FormatError(f"{kind.KIND}[{place}]: {_cause(error)}") from error
    check_names(tables)
    return tuple(tables)


def check_names(tables: Sequence[RemoteTable]) -> None:
    """Raise FormatError if two tables have the same name."""
    names = [table.name for table in tables]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise FormatError(f"{tables[0].KIND}[{place}]: name: {name!r} is taken by another one")


def _cause(error: Exception) -> str:
    """Return what is wrong, without the value, which may be a secret."""
    cause = error.__cause__
    return str(cause if isinstance(cause, FormatError) else error)


def _path(kind: type, value: Any) -> Path:
    if kind is not Path or not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("need a path")
    return Path(value)


def tables_page() -> str:
    """Return the part of the documentation that lists the settings of sinks and sources."""
    return PAGE + "".join(_table(kind) for kind in (SinkTable, SourceTable))


def _table(kind: type[RemoteTable]) -> str:
    lines = [f"\n### `[[{kind.KIND}]]`\n", "| setting | default | meaning |", "|---|---|---|"]
    described = msgspec.inspect.type_info(kind)
    assert isinstance(described, msgspec.inspect.StructType)
    shared = RemoteTable.__struct_fields__  # those that every table needs come first, and the rest of them last
    order = {name: place if place < 2 else 100 + place for place, name in enumerate(shared)}
    for one in sorted(described.fields, key=lambda one: order.get(one.name, 50)):
        assert isinstance(one.type, msgspec.inspect.Metadata)
        default = "required" if one.required else "none" if one.default is None else f"`{_toml(one.default)}`"
        meaning = (one.type.extra_json_schema or {})["description"]
        lines.append(f"| `{one.encode_name}` | {default} | {meaning} |")
    return "\n".join([*lines, ""])


def _toml(value: Any) -> str:
    return msgspec.json.encode(value).decode()
