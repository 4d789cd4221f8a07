"""`contrada serve` on a disk whose fsync takes longer: python -m benchmarks.broker.slow_disk --port 0 --state DIR."""

import os
import sys
import time

from contrada.cli.serve import given_flags
from contrada.service.http.server import run
from contrada.service.settings import Settings, load_settings
from contrada.service.store.sqlite import SqliteStore

ADDED_SECONDS = 0.008


def slow_store(settings: Settings) -> SqliteStore:
    """Return a store that waits before every commit."""
    return SqliteStore(settings.server.state, before_commit=lambda: time.sleep(ADDED_SECONDS))


if __name__ == "__main__":
    flags = dict(given_flags(sys.argv[1:]))
    run(load_settings(None, os.environ, flags), lambda text: print(text, file=sys.stderr, flush=True), slow_store)
