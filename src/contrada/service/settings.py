"""Settings of `contrada serve`, from a TOML file, environment variables and flags, in this order of rising weight.

A setting has one name everywhere: `body_bytes` of the section `[limits]` in a file is `CONTRADA_LIMITS_BODY_BYTES` in
the environment and `--limits-body-bytes` as a flag. Flags of the section `server` have no prefix (`--port`), and
`CONTRADA_ADMIN_KEY` is short for `CONTRADA_ACCESS_ADMIN_KEY`. An environment variable that is empty is not set.

`python -m contrada.service.settings > docs/serve-settings.md` writes the page that lists them all.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, field, inspect

from contrada.errors import FormatError
from contrada.service.map.map_settings import MapSettings
from contrada.service.setting_section import Section as Section
from contrada.service.setting_section import SettingsError as SettingsError
from contrada.service.state_wrap import wrap_in
from contrada.service.table_settings import SinkTable, SourceTable, read_tables, tables_page

PREFIX = "CONTRADA_"
SHORT_VARIABLES = {"CONTRADA_ADMIN_KEY": "CONTRADA_ACCESS_ADMIN_KEY"}
WITHOUT_FLAG = {*SHORT_VARIABLES.values(), "CONTRADA_LINKS_KEYS"}
UNPREFIXED = "server"  # the section whose flags are written without its name
DAY = 86_400.0

Count = Annotated[int, Meta(ge=1, le=(1 << 62))]
Seconds = Annotated[float, Meta(gt=0)]


class ServerSettings(Section, frozen=True):
    """Where the server listens and keeps its state."""

    SECRETS: ClassVar[frozenset[str]] = frozenset({"store"})  # the URL may have a password

    host: Annotated[str, Meta(min_length=1, description="address to listen on; 0.0.0.0 for all of IPv4")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description="port to listen on; 0 takes a free one")] = 8080
    state: Annotated[Path, Meta(description="directory of the state, relative to the working directory")] = Path(
        "contrada-state"
    )
    store: Annotated[
        str | None, Meta(description="`postgresql://` URL of the store; none: SQLite in the directory of the state")
    ] = None
    tls_cert: Annotated[Path | None, Meta(description="PEM file with the certificate chain; with `tls_key`: TLS")] = (
        None
    )
    tls_key: Annotated[Path | None, Meta(description="PEM file with the private key")] = None
    cors_origins: Annotated[
        tuple[str, ...],
        Meta(description="origins that browsers may call from, such as `https://map.example`; `*`: all"),
    ] = ()
    name: Annotated[
        str | None,
        Meta(description="name of the broker in a network; none: one is made at the first start and kept"),
    ] = None
    link: Annotated[
        tuple[str, ...],
        Meta(
            description="brokers to link with by calling them, such as `wss://north.example:8443`; `ws://` to loopback"
        ),
    ] = ()

    log: Annotated[
        str | None,
        Meta(description="log that several servers share, such as `nats://host:4222` or `kafka://host:9092`"),
    ] = None
    wrap: Annotated[
        tuple[str, ...],
        Meta(description="attributes to wrap at the date line, such as `area=longitude`; without `link` and `log`"),
    ] = ()

    @property
    def wrapped(self) -> dict[str, str]:
        """The attributes that are wrapped, with their modes."""
        return wrap_in(self.wrap)

    def __post_init__(self) -> None:
        if self.wrapped and (self.link or self.log is not None):
            raise SettingsError("server.wrap: a server that wraps attributes has no links and no shared log")
        if self.log is not None and (self.store is not None or self.link):
            raise SettingsError("server.log: a server with a shared log keeps SQLite in its directory and has no links")
        if self.store is not None and not self.store.startswith(("postgresql://", "postgres://")):
            raise SettingsError("server.store: need a postgresql:// URL, or none for SQLite in the state directory")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise SettingsError("server.tls_cert and server.tls_key: need both files, or neither")
        for origin in self.cors_origins:
            if origin != "*" and not re.fullmatch(r"https?://[^/\s?#@]+", origin):
                raise SettingsError(f"server.cors_origins: need origins such as https://map.example, got {origin!r}")
        if self.name is not None and not re.fullmatch(r"[!-~]([ -~]{0,253}[!-~])?", self.name):
            raise SettingsError(f"server.name: need 1 to 255 printable ASCII characters, got {self.name!r:.80}")
        for url in self.link:
            scheme, host = _scheme_and_host(url)
            if not host or "@" in url or not (scheme == "wss" or (scheme == "ws" and _is_loopback(host))):
                raise SettingsError(f"server.link: need wss:// URLs, or ws:// to loopback, got {url!r:.80}")


class AccessSettings(Section, frozen=True):
    """The first key, and tokens for browsers."""

    SECRETS: ClassVar[frozenset[str]] = frozenset({"admin_key"})

    admin_key: Annotated[
        str | None, Meta(description="key with all scopes; none: one is made at the first start and printed once")
    ] = None
    stream_token_seconds: Annotated[
        Seconds, Meta(description="time in which a stream token can be used to connect")
    ] = 60.0

    def __post_init__(self) -> None:
        if self.admin_key is not None and not re.fullmatch(r"[!-~]{1,512}", self.admin_key):
            raise SettingsError("access.admin_key: need 1 to 512 visible ASCII characters without spaces")


class JwtSettings(Section, frozen=True):
    """OpenID Connect: bearer tokens of an identity provider are taken if `issuer`, `audience` and `jwks` are set."""

    issuer: Annotated[str | None, Meta(description="required claim `iss`, the URL of the identity provider")] = None
    audience: Annotated[str | None, Meta(description="required claim `aud`, the name of this server there")] = None
    jwks: Annotated[
        str | None, Meta(description="`https://` URL or file of the provider's keys; `http://` to loopback only")
    ] = None
    tenant_claim: Annotated[str, Meta(min_length=1, description="claim that names the tenant")] = "tenant"
    scopes_claim: Annotated[str, Meta(min_length=1, description="claim that lists scopes, as text or array")] = "scope"
    scope_prefix: Annotated[str, Meta(description="prefix of our scopes there, for instance `contrada:`")] = ""
    leeway: Annotated[float, Meta(ge=0, description="seconds by which clocks may differ")] = 30.0
    refresh: Annotated[Seconds, Meta(description="seconds after which the provider's keys are read again")] = 3600.0

    @property
    def enabled(self) -> bool:
        """Whether bearer tokens of an identity provider are taken."""
        return self.issuer is not None

    def __post_init__(self) -> None:
        given = [self.issuer, self.audience, self.jwks]
        if any(given) and not all(given):
            raise SettingsError("jwt.issuer, jwt.audience and jwt.jwks: need all three, or none")
        if self.jwks and "://" in self.jwks:
            scheme, host = _scheme_and_host(self.jwks)
            if not host or (scheme != "https" and not (scheme == "http" and _is_loopback(host))):
                raise SettingsError(
                    f"jwt.jwks: need an https:// URL, http:// to loopback, or a file, got {self.jwks!r}"
                )


class RetentionSettings(Section, frozen=True):
    """How long messages are kept for consumers that have not taken them."""

    age: Annotated[Seconds, Meta(description="seconds that a message is kept (default 7 days)")] = 7 * DAY
    bytes: Annotated[
        Count, Meta(description="bytes of messages that are kept; older ones go first (default 1 GiB)")
    ] = 1 << 30
    message_ids: Annotated[
        int, Meta(ge=0, le=1 << 32, description="latest messages whose ids are remembered, to recognise a repeated one")
    ] = 100_000
    track_expiry: Annotated[
        Seconds, Meta(description="seconds without a fix after which a tracked object is forgotten (default 1 day)")
    ] = DAY


class LimitSettings(Section, frozen=True):
    """Limits of one request, one key, one tenant and the server."""

    body_bytes: Annotated[Count, Meta(description="bytes in the body of a request (default 16 MiB)")] = 16 << 20
    vertices: Annotated[Count, Meta(description="vertices in one message")] = 100_000
    filter_bytes: Annotated[Count, Meta(description="bytes in one filter (default 1 MiB)")] = 1 << 20
    subscriptions: Annotated[Count, Meta(description="subscriptions of one tenant")] = 1_000_000
    requests_per_second: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="requests per second of one key; none: no limit")
    ] = None
    burst: Annotated[
        Count | None, Meta(description="requests that one key may make at once; none: those of one second")
    ] = None
    connections: Annotated[Count, Meta(description="open streams: Server-Sent Events, WebSockets, long polls")] = 10_000
    tenant_connections: Annotated[Count, Meta(description="open streams of one tenant")] = 5_000
    queue: Annotated[Count, Meta(description="messages that wait for the engine; beyond: status 503")] = 10_000
    queue_bytes: Annotated[Count, Meta(description="bytes that wait for the engine (default 256 MiB)")] = 256 << 20


class WebhookSettings(Section, frozen=True):
    """Deliveries to webhooks."""

    allow_private: Annotated[
        bool, Meta(description="allow private, shared and loopback addresses; link-local ones stay refused")
    ] = False
    allow: Annotated[
        tuple[str, ...], Meta(description="networks that are allowed besides public addresses, such as `10.1.0.0/16`")
    ] = ()
    connect_timeout: Annotated[Seconds, Meta(description="seconds to connect")] = 5.0
    timeout: Annotated[Seconds, Meta(description="seconds until the endpoint has answered")] = 15.0
    parallel: Annotated[
        int, Meta(ge=2, le=65_536, description="deliveries under way at once; one per endpoint, a fifth to slow ones")
    ] = 640
    retry_first: Annotated[Seconds, Meta(description="seconds until the first retry; doubled for each further one")] = (
        1.0
    )
    retry_most: Annotated[Seconds, Meta(description="most seconds between two retries")] = 600.0
    attempts: Annotated[
        Count | None, Meta(description="attempts until a delivery is dead-lettered; none: only `age` counts")
    ] = None
    age: Annotated[Seconds, Meta(description="seconds until a delivery is dead-lettered (default 3 days)")] = 3 * DAY

    def __post_init__(self) -> None:
        for network in self.allow:
            try:
                ip_network(network)
            except ValueError as error:
                raise SettingsError(f"webhooks.allow: need networks such as 10.1.0.0/16; {error}") from error


class LinkSettings(Section, frozen=True):
    """Links to other brokers."""

    SECRETS: ClassVar[frozenset[str]] = frozenset({"keys"})

    keys: Annotated[
        tuple[str, ...],
        Meta(description="keys of the called brokers with the scope `link`: one for all of `server.link`, or one each"),
    ] = ()
    tenant: Annotated[str, Meta(min_length=1, description="tenant here that the links of `server.link` belong to")] = (
        "default"
    )
    ca: Annotated[
        Path | None,
        Meta(description="PEM file of authorities for the certificates of called brokers; none: the system's"),
    ] = None
    retry_first: Annotated[
        Seconds, Meta(description="seconds until a lost link is called again; doubled each time")
    ] = 0.5
    retry_most: Annotated[Seconds, Meta(description="most seconds between two calls")] = 30.0
    ping: Annotated[
        Seconds,
        Meta(description="seconds between signs of life; a link that is silent for three times as long is closed"),
    ] = 10.0
    backlog_bytes: Annotated[
        Count, Meta(description="bytes that wait for one neighbour; beyond: the older half is dropped (default 64 MiB)")
    ] = 64 << 20
    expected: Annotated[
        tuple[str, ...],
        Meta(description="neighbours from which a broker without state hears what they want before it takes messages"),
    ] = ()
    patience: Annotated[Seconds, Meta(description="seconds that it waits for them at most")] = 60.0


class LogSettings(Section, frozen=True):
    """The log that `server.log` names."""

    user: Annotated[str | None, Meta(description="user name")] = None
    password_env: Annotated[str | None, Meta(description="environment variable with the password")] = None
    password_file: Annotated[Path | None, Meta(description="file whose first line is the password")] = None
    ca_file: Annotated[Path | None, Meta(description="PEM file of the authorities that sign the server's key")] = None
    monitor: Annotated[
        str | None, Meta(description="URL of the monitoring port of nats-server, to see that it synchronises always")
    ] = None
    trust: Annotated[bool, Meta(description="start although the log may lose what it acknowledged")] = False
    snapshot_bytes: Annotated[
        Count, Meta(description="bytes of records, at least, after which a snapshot replaces them (default 64 MiB)")
    ] = 64 << 20


class TelemetrySettings(Section, frozen=True):
    """Logs and traces."""

    log_format: Annotated[
        Literal["text", "json"], Meta(description="lines for people, or one JSON object per line")
    ] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="least level that is logged")
    ] = "info"
    otlp_endpoint: Annotated[
        str | None,
        Meta(description="URL that traces are sent to by OTLP over HTTP (`/v1/traces` if no path); none: no traces"),
    ] = None

    def __post_init__(self) -> None:
        if self.otlp_endpoint is not None:
            scheme, host = _scheme_and_host(self.otlp_endpoint)
            if scheme not in ("http", "https") or not host:
                raise SettingsError("telemetry.otlp_endpoint: need a URL such as http://localhost:4318")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a server.

    >>> Settings().server.port, Settings().limits.body_bytes
    (8080, 16777216)
    """

    server: ServerSettings = field(default_factory=ServerSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    jwt: JwtSettings = field(default_factory=JwtSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    links: LinkSettings = field(default_factory=LinkSettings)
    log: LogSettings = field(default_factory=LogSettings)
    map: MapSettings = field(default_factory=MapSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    sinks: tuple[SinkTable, ...] = ()
    sources: tuple[SourceTable, ...] = ()


class Option(msgspec.Struct, frozen=True):
    """One setting: where it stands, its type, its default and its meaning."""

    section: str
    name: str
    type: Any
    default: Any
    meaning: str
    allowed: str
    is_optional: bool
    is_list: bool
    is_secret: bool

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"{PREFIX}{self.section}_{self.name}".upper()

    @property
    def parameter(self) -> str | None:
        """The key in the flags of `load_settings`; None for a key, which the list of processes would show."""
        if self.variable in WITHOUT_FLAG:
            return None
        return self.name if self.section == UNPREFIXED else f"{self.section}_{self.name}"

    @property
    def flag(self) -> str | None:
        """The flag of the command line."""
        return self.parameter and "--" + self.parameter.replace("_", "-")


class GivenSetting(NamedTuple):
    """A value that was given for a setting; `source` names the place in the file, the variable or the flag."""

    option: Option
    value: Any
    source: str


def load_settings(
    file: Path | None = None, environment: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None
) -> Settings:
    """Return settings from a TOML file, then `environment`, then `flags`: later ones replace earlier ones.

    `flags` has the parameters of `Option.parameter` as keys; a flag that is None or an empty list was not given.
    Raise SettingsError for unknown names and bad values.

    >>> load_settings(None, {"CONTRADA_SERVER_PORT": "9000"}, {"host": "::1", "port": None}).server.port
    9000
    >>> load_settings(None, {"CONTRADA_SERVER_PORT": "none"})
    Traceback (most recent call last):
    contrada.service.setting_section.SettingsError: CONTRADA_SERVER_PORT='none': need a whole number from 0 to 65,535
    """
    given: dict[Option, GivenSetting] = {}
    tables = _read_toml(file)
    for found in (_read_sections(file, tables), _read_environment(environment or {}), _read_flags(flags or {})):
        given.update((one.option, one) for one in found)
    sections = {section: _make_section(section, given) for section in SECTIONS}
    try:
        sinks = read_tables(SinkTable, tables.get(SinkTable.KIND, []))
        sources = read_tables(SourceTable, tables.get(SourceTable.KIND, []))
    except FormatError as error:
        raise SettingsError(f"{file}: {error}") from error
    return Settings(**sections, sinks=sinks, sources=sources)


def _make_section(section: str, given: Mapping[Option, GivenSetting]) -> Any:
    values = {option.name: one.value for option, one in given.items() if option.section == section}
    try:
        return SECTIONS[section](**values)
    except SettingsError as error:
        sources = [one.source for option, one in given.items() if f"{option.section}.{option.name}" in str(error)]
        raise SettingsError(f"{error} (set by {', '.join(sources)})") from error


def _read_toml(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:  # of TOML, or of UTF-8
        raise SettingsError(f"{file} is not TOML: {error}") from error


def _read_sections(file: Path | None, tables: Mapping[str, Any]) -> Iterator[GivenSetting]:
    for section, table in tables.items():
        if section in TABLES:
            continue
        if section not in SECTIONS:
            known = ", ".join((*SECTIONS, *TABLES))
            raise SettingsError(f"{file}: unknown section [{section}]; the sections are {known}")
        if not isinstance(table, dict):
            raise SettingsError(f"{file}: {section} is a section; write [{section}] and its settings below")
        for name, value in table.items():
            option = _find(f"{file}: [{section}]", section, name)
            source = f"{file}: {section}.{name}"
            yield GivenSetting(option, _convert(f"{source} = ", option, value, strict=True), source)


def _read_environment(environment: Mapping[str, str]) -> Iterator[GivenSetting]:
    given = {name: text for name, text in environment.items() if text}
    for short, full in SHORT_VARIABLES.items():
        if short in given and given.setdefault(full, given[short]) != given[short]:
            raise SettingsError(f"{short} and {full} have different values; set one of them")
    for variable, text in sorted(given.items()):
        # Others than ours have this prefix too, for instance CONTRADA_PORT=tcp://10.0.0.7:8080, which Kubernetes sets.
        section, _, name = variable.removeprefix(PREFIX).lower().partition("_")
        if variable.startswith(PREFIX) and section in SECTIONS and variable not in SHORT_VARIABLES:
            option = _find(variable, section, name)
            yield GivenSetting(option, _convert(f"{variable}=", option, text, strict=False), variable)


def _read_flags(flags: Mapping[str, Any]) -> Iterator[GivenSetting]:
    known = {option.parameter: option for option in OPTIONS if option.parameter}
    for parameter, value in flags.items():
        flag = "--" + parameter.replace("_", "-")
        if parameter not in known:
            flags_of_settings = ", ".join(str(option.flag) for option in known.values())
            raise SettingsError(f"{flag}: there is no such setting; the flags are {flags_of_settings}")
        if value is not None and value not in ([], ()):
            option = known[parameter]
            yield GivenSetting(option, _convert(f"{flag}=", option, value, strict=False), flag)


def _find(source: str, section: str, name: str) -> Option:
    found = next((option for option in OPTIONS if (option.section, option.name) == (section, name)), None)
    if found is None:
        names = ", ".join(SECTIONS[section].__struct_fields__)
        raise SettingsError(f"{source}: there is no setting {name!r} in {section}; its settings are {names}")
    return found


def _convert(source: str, option: Option, value: Any, *, strict: bool) -> Any:
    """Return a value as the type of its setting, or raise an error that begins with `source`."""
    if option.is_optional and isinstance(value, str) and value.lower() == "none":
        return None
    if option.is_list and isinstance(value, str) and not strict:  # of a variable or the command line
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        converted = msgspec.convert(value, option.type, strict=strict, dec_hook=_read_path)
        if converted is not None and not (isinstance(converted, float) and not math.isfinite(converted)):
            return converted
    except msgspec.ValidationError:
        pass
    shown = "***" if option.is_secret else repr(value)
    raise SettingsError(f"{source}{shown if len(shown) <= 100 else shown[:97] + '...'}: need {option.allowed}")


def _read_path(kind: type, value: Any) -> Path:
    if kind is not Path or not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise ValueError("not a path")
    try:
        return Path(value).expanduser()
    except RuntimeError as error:  # ~name of an unknown user
        raise ValueError("no such home") from error


def _scheme_and_host(url: str) -> tuple[str, str]:
    """Return scheme and host of a URL; both are empty if it is none."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or ""
    except ValueError:
        return "", ""


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _allowed(kind: inspect.Type) -> str:
    """Return the values that a type allows, in words."""
    match kind:
        case inspect.Metadata():
            return _allowed(kind.type)
        case inspect.UnionType():
            return " or ".join(_allowed(inner) for inner in kind.types)
        case inspect.NoneType():
            return "none"
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return " or ".join(str(value) for value in kind.values)
        case inspect.IntType(ge=least, le=most):
            above = "on" if most is None or most == 1 << 62 else f"to {most:,}"
            return f"a whole number from {least:,} {above}"
        case inspect.FloatType(gt=0):
            return "a number above 0"
        case inspect.FloatType():
            return "a number from 0 on"
        case inspect.VarTupleType():
            return "a list (in variables and flags: separated by commas)"
        case inspect.CustomType():
            return "a path"
        case _:
            return "text"


def _options(section: str, kind: type[Section]) -> Iterator[Option]:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    types = msgspec.structs.fields(kind)
    for known, declared in zip(described.fields, types, strict=True):
        assert isinstance(known.type, inspect.Metadata)
        inner = known.type.type
        while isinstance(inner, inspect.Metadata):
            inner = inner.type
        yield Option(
            section=section,
            name=known.name,
            type=declared.type,
            default=known.default,
            meaning=str((known.type.extra_json_schema or {})["description"]),
            allowed=_allowed(inner),
            is_optional=isinstance(inner, inspect.UnionType) and inner.includes_none,
            is_list=isinstance(inner, inspect.VarTupleType),
            is_secret=known.name in kind.SECRETS,
        )


TABLES = (SinkTable.KIND, SourceTable.KIND)  # lists, in the file only
SECTIONS: dict[str, type[Section]] = {
    entry.name: entry.type for entry in msgspec.structs.fields(Settings) if entry.name not in TABLES
}
OPTIONS: tuple[Option, ...] = tuple(option for name, kind in SECTIONS.items() for option in _options(name, kind))


def settings_table() -> str:
    """Return all settings as a Markdown table."""
    lines = ["| setting | environment | flag | default | meaning |", "|---|---|---|---|---|"]
    for option in OPTIONS:
        flag = f"`{option.flag}`" if option.flag else ""
        short = [f"`{short}`" for short, full in SHORT_VARIABLES.items() if full == option.variable]
        variables = ", ".join([*short, f"`{option.variable}`"])
        name = f"`{option.section}.{option.name}`"
        lines.append(f"| {name} | {variables} | {flag} | {_shown(option.default)} | {option.meaning} |")
    return "\n".join(lines)


def _shown(default: Any) -> str:
    """Return a default as TOML writes it."""
    if default is None:
        return "none"
    shown = list(default) if isinstance(default, tuple) else str(default) if isinstance(default, Path) else default
    return f"`{msgspec.json.encode(shown).decode()}`"


PAGE = """# Settings of the server

All settings of `contrada serve`. A TOML file gives them by sections, and environment variables and flags replace what
the file says; flags weigh most.

```console
$ cat > settings.toml <<'END'
[server]
port = 9000

[limits]
requests_per_second = 100
END
$ contrada serve --config settings.toml --port 90000
error: --port=90000: need a whole number from 0 to 65,535
```

An empty variable is not set. Lists are separated by commas in a variable or a flag. `none` stands for no value where
that is the default. Unknown names in a section, and wrong values, stop the start with an error that names the file,
variable or flag. A flag has a value always, also `--webhooks-allow-private true`. A key has no flag: the list of
processes would show it.

"""


def settings_page() -> str:
    """Return the page of the documentation that lists all settings."""
    note = "<!-- Written by `python -m contrada.service.settings > docs/serve-settings.md`. -->\n"
    return f"{PAGE}{note}\n{settings_table()}\n{tables_page()}"


if __name__ == "__main__":
    print(settings_page(), end="")
