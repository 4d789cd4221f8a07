"""All commands of the command line, arguments with which each runs, and processes that run them."""

import signal
import subprocess
import sys

import typer

from console import write_lines
from contrada.cli.main import app


def leaves(command, path=()):
    below = getattr(command, "commands", None)
    if below is None:
        yield " ".join(path)
        return
    for name, child in below.items():
        yield from leaves(child, (*path, name))


COMMANDS = sorted(leaves(typer.main.get_command(app)))
GROUPS = sorted({"", *(command.rpartition(" ")[0] for command in COMMANDS)})


def start(*arguments, **options):
    """Python in a process as a shell starts it in the foreground: a suite in the background ignores SIGINT."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    options = {**pipes, "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options}
    return subprocess.Popen([sys.executable, *map(str, arguments)], **options)


def messages(folder):
    return write_lines(folder / "messages.ndjson", [{"id": "a", "severity": 4}])


def subscriptions(folder):
    return write_lines(folder / "subscriptions.ndjson", [{"key": "k", "subscriber": "s", "filter": "severity > 3"}])


def incoming(folder):
    (folder / "incoming").mkdir(exist_ok=True)
    return folder / "incoming"


SMALL = ("--subscriptions", "20")
SAMPLE = {
    "match": lambda folder: [messages(folder), subscriptions(folder)],
    "check": lambda folder: ["x > 1 AND x < 0 AND x < 5"],
    "simplify": lambda folder: [subscriptions(folder)],
    "stream": lambda folder: [incoming(folder), subscriptions(folder), "--checkpoint", folder / "c", "--output", "-"],
    "ingest": lambda folder: [messages(folder), folder / "ingested"],
    "demo": lambda folder: ["--output", folder / "demo", "--scale", "0.01"],
    "doctor": lambda folder: [],
    "overlay simulate": lambda folder: [*SMALL, "--messages", "5"],
    "overlay churn": lambda folder: ["--peers", "5", "--seconds", "1"],
    "overlay evaluate": lambda folder: ["--scale", "0.001", "--seeds", "1", "--rows", folder / "rows.ndjson"],
    "overlay show": lambda folder: [*SMALL, "--output", folder / "overlay.svg"],
    "overlay peer": lambda folder: ["--subscribe", "price > 1"],
    "overlay publish": lambda folder: ["{}", "--to", "127.0.0.1:9"],
    "experiment cover-tables": lambda folder: ["--commands", "50", "--output", folder / "tables"],
    "experiment cover-figures": lambda folder: ["--commands", "50", "--output", folder / "figures"],
}
