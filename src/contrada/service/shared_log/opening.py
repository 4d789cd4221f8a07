"""Finds the shared log that a URL names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from contrada.errors import FormatError
from contrada.service.remotes import Remote, RemoteUrl, missing_engine

if TYPE_CHECKING:
    from contrada.service.shared_log.engine_log import EngineLog

NAME = "contrada"  # of a log whose URL has none
NAMES = re.compile(r"[A-Za-z0-9_-]{1,100}")
EXAMPLE = "nats://host:4222/name or kafka://host:9092/name"


def open_shared_log(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    ca_file: Path | None = None,
    monitor: str | None = None,
    trust: bool = False,
    timeout: float = 5.0,
    patience: float = 10.0,
) -> EngineLog:
    """Return the log of a URL, which is not connected before its `open` is called.

    The schemes nats, natss, kafka and kafkas are known; the path names the log, `contrada` if there is none. `monitor`
    is the HTTP address of a NATS server's monitor. FormatError says what is wrong with a URL, MissingEngineError how to
    install the library for an engine.
    """
    remote = Remote(_parsed(url), user, password, ca_file)
    if remote.url.engine == "kafka" and monitor is not None:
        raise FormatError("a shared log in Kafka has no monitor: its topic says whether it is durable")
    try:
        if remote.url.engine == "kafka":
            from contrada.service.shared_log.kafka_log import KafkaLog

            return KafkaLog(remote, trust=trust, timeout=timeout, patience=patience)
        from contrada.service.shared_log.nats_log import NatsLog

        return NatsLog(remote, monitor=monitor, trust=trust, timeout=timeout, patience=patience)
    except ModuleNotFoundError as error:
        raise missing_engine(error, f"a shared log in {remote.url.engine}", remote.url.engine) from error


def _parsed(url: str) -> RemoteUrl:
    scheme, mark, rest = url.partition("://")
    host, _, path = rest.partition("/")
    found = RemoteUrl.parse(f"{scheme}{mark}{host}/{path or NAME}")
    if found.engine not in ("nats", "kafka"):
        raise FormatError(f"a shared log needs NATS or Kafka: {EXAMPLE}")
    if NAMES.fullmatch(found.topic) is None:
        raise FormatError(
            f"the name of a shared log has letters, digits, - and _, 100 at most; got {found.topic!r:.60}"
        )
    return found
