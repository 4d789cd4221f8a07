"""Opens the shared log that a URL names."""

from __future__ import annotations

from pathlib import Path

from contrada.service.shared_log.shared_log import SharedLog, SharedLogError


def open_shared_log(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    ca_file: Path | None = None,
    monitor: str | None = None,
    trust: bool = False,
) -> SharedLog:
    """Return a client of the log that a URL names; `open` connects it."""
    raise SharedLogError(f"no engine for {url!r:.80}")
