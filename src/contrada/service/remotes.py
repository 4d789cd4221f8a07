"""Remote: a topic of Kafka, NATS or MQTT elsewhere, as a URL names it, with the credentials to reach it."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from contrada.errors import ContradaError, FormatError
from contrada.installation import missing

# Scheme: engine, whether TLS is used, and the port if the URL has none.
SCHEMES: dict[str, tuple[str, bool, int]] = {
    "kafka": ("kafka", False, 9092),
    "kafkas": ("kafka", True, 9093),
    "nats": ("nats", False, 4222),
    "natss": ("nats", True, 4222),
    "mqtt": ("mqtt", False, 1883),
    "mqtts": ("mqtt", True, 8883),
}
EXAMPLE = "kafka://host:9092/topic, nats://host:4222/subject or mqtt://host:1883/topic"
HOST = re.compile(r"([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{1,5}))?")
TOPIC_CHARACTERS = 249  # the longest name of a topic in Kafka
TOPICS = {"kafka": re.compile(r"[A-Za-z0-9._-]+"), "nats": re.compile(r"[^\s.?#\x00-\x1f]+(\.[^\s.?#\x00-\x1f]+)*")}


class MissingEngineError(ContradaError):
    """The library for an engine is not installed; the message has the command that installs it."""


class RemoteUrl(NamedTuple):
    """A URL in parts: `servers` are hosts and ports."""

    engine: str
    servers: tuple[tuple[str, int], ...]
    topic: str
    is_tls: bool

    @classmethod
    def parse(cls, url: str) -> RemoteUrl:
        """Return the parts of a URL; raise FormatError, which does not repeat the URL, if it is none of ours.

        >>> RemoteUrl.parse("kafka://a:9092,b/floods")
        RemoteUrl(engine='kafka', servers=(('a', 9092), ('b', 9092)), topic='floods', is_tls=False)
        """
        scheme, _, rest = url.partition("://")
        if scheme not in SCHEMES:
            raise FormatError(f"need a URL such as {EXAMPLE}; the schemes are {', '.join(SCHEMES)}")
        engine, is_tls, port = SCHEMES[scheme]
        hosts, _, path = rest.partition("/")
        if "@" in hosts:
            raise FormatError("need a URL without user and password; `user` and `password_file` give them")
        servers = tuple(_server(host, port) for host in hosts.split(","))
        if engine == "mqtt" and len(servers) > 1:
            raise FormatError("need one server in a URL of MQTT")
        try:
            topic = unquote(path, errors="strict")  # wildcards of MQTT have a # that starts no fragment
        except ValueError as error:
            raise FormatError(f"need a URL such as {EXAMPLE}: {error}") from error
        _check_topic(engine, topic)
        return cls(engine, servers, topic, is_tls)

    @property
    def addresses(self) -> list[str]:
        """Servers as `host:port`."""
        return [f"{host}:{port}" for host, port in self.servers]


class Remote(NamedTuple):
    """A topic and how to log in; `password` is never part of the representation."""

    url: RemoteUrl
    user: str | None = None
    password: str | None = None
    ca_file: Path | None = None

    def __repr__(self) -> str:
        return f"Remote({self.url!r})"

    def tls(self) -> ssl.SSLContext | None:
        """Return how certificates are checked; None without TLS."""
        if not self.url.is_tls:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ContradaError(f"{self.ca_file}: {error.strerror or error}") from error


def read_password(variable: str | None, file: Path | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return a password from an environment variable or the first line of a file; None if neither is named."""
    if variable is not None:
        if not environment.get(variable):
            raise ContradaError(f"password_env: the environment variable {variable} is not set")
        return environment[variable]
    if file is None:
        return None
    try:
        return file.read_text("utf-8").partition("\n")[0].rstrip("\r")
    except OSError as error:
        raise ContradaError(f"password_file: {file}: {error.strerror}") from error
    except UnicodeError as error:
        raise ContradaError(f"password_file: {file} is not UTF-8") from error


def missing_engine(error: ModuleNotFoundError, what: str, extra: str) -> MissingEngineError:
    """Return the error for an engine whose library is not there.

    >>> print(missing_engine(ModuleNotFoundError(name="nats"), "sink 'a'", "nats"))
    sink 'a' needs nats; to install it: ...
    """
    return MissingEngineError(missing(f"{what} needs {error.name}", extra))


def _server(text: str, port: int) -> tuple[str, int]:
    found = HOST.fullmatch(text)
    number = port if found is None or found[2] is None else int(found[2])
    if found is None or not 0 < number < 65_536:
        raise FormatError(f"need a URL such as {EXAMPLE}; its host and port cannot be read")
    return found[1].strip("[]"), number


def _check_topic(engine: str, topic: str) -> None:
    if engine == "mqtt":
        is_good = topic.isprintable()
    else:
        is_good = TOPICS[engine].fullmatch(topic) is not None and topic not in (".", "..")
    if not (0 < len(topic) <= TOPIC_CHARACTERS and is_good):
        raise FormatError(f"need a topic of {engine} after the host, such as {EXAMPLE}; got {topic!r:.60}")
