"""Run the durable broker over HTTP: publish messages, keep subscriptions, deliver matches.

The state is in one directory. A first start prints an admin key once, unless CONTRADA_ADMIN_KEY has one. Settings \
come from --config, then from the environment, then from flags; every setting of docs/serve-settings.md has a flag, \
for instance --limits-body-bytes. SIGTERM and Ctrl-C end requests and streams before the process ends.

\b
Start on this machine:
  contrada serve --port 8080 --state ./state
With a file of settings, and one of them replaced:
  contrada serve --config contrada.toml --retention-age 86400
A made-up district on the map, to look around:
  contrada serve --demo
Linked with another broker, whose key is in CONTRADA_LINKS_KEYS:
  contrada serve --name south --link wss://north.example:8443

\b
Exit codes:
  0  stopped by SIGTERM or Ctrl-C
  2  could not run: wrong settings, the directory or the port is in use
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from contrada.cli.options import plain
from contrada.errors import ContradaError
from contrada.installation import missing

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}  # flags of settings


def serve(
    context: typer.Context,
    host: Annotated[str | None, plain("Address to listen on; default: 127.0.0.1.")] = None,
    port: Annotated[int | None, plain("Port to listen on, 0 for a free one; default: 8080.")] = None,
    state: Annotated[Path | None, plain("Directory of the state; default: contrada-state.")] = None,
    config: Annotated[Path | None, plain("TOML file with settings.")] = None,
    name: Annotated[str | None, plain("Name of this broker in a network; default: made once and kept.")] = None,
    link: Annotated[list[str] | None, plain("Broker to link with, wss://HOST:PORT; may be given again.")] = None,
    demo: Annotated[
        bool, plain("Show a made-up district on the map; its state is temporary unless --state says.")
    ] = False,
) -> None:
    """Run the server until it is stopped."""
    from contrada.service.memory import save_memory

    save_memory()
    try:
        from contrada.service.http.server import run
    except ModuleNotFoundError as error:
        raise ContradaError(missing(f"the server needs {error.name}", "broker")) from error
    from contrada.service.http.logs import configure_logs
    from contrada.service.settings import load_settings

    flags = dict(given_flags(context.args)) | {
        "host": host, "port": port, "state": state, "name": name, "link": link,
    }  # fmt: skip
    if demo:
        from contrada.cli.serving_demo import serve_demo

        serve_demo(config, flags, say)
        return
    settings = load_settings(config, os.environ, flags)
    configure_logs(settings.telemetry)
    run(settings, say)
    logging.shutdown()


def say(text: str) -> None:
    """Print what people should see."""
    typer.echo(text, err=True)


def given_flags(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield names and values of flags such as `--limits-body-bytes 1000` or `--limits-body-bytes=1000`."""
    rest = iter(words)
    for word in rest:
        name, has_value, value = word.partition("=")
        if not name.startswith("--"):
            raise ContradaError(f"unexpected argument {word!r}; settings are flags such as --limits-body-bytes 1000")
        found = value if has_value else next(rest, None)
        if found is None:
            raise ContradaError(f"{name} needs a value")
        yield name.removeprefix("--").replace("-", "_"), found
