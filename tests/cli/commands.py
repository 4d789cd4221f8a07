"""All commands of the command line, arguments with which each runs, and processes that run them."""

import re
import shlex
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


class Started(subprocess.Popen):
    """A process that is killed if its block fails: a test must not wait for what may never end."""

    def __exit__(self, kind, *rest):
        if kind is not None:
            self.kill()
        super().__exit__(kind, *rest)


def start(*arguments, **options):
    """Python in a process as a shell starts it in the foreground: a suite in the background ignores SIGINT."""
    options = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    } | options
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.SIG_IGN:  # which a new process would inherit
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return Started([sys.executable, *map(str, arguments)], **options)
    finally:
        if handler is signal.SIG_IGN:
            signal.signal(signal.SIGINT, handler)


def words_of(line, folder, **places):
    """The words of a line as a shell passes them on; names of places become paths, and good files are written there."""
    (folder / "incoming").mkdir(exist_ok=True)
    asked = [{"key": "k", "subscriber": "s", "filter": "severity > 3"}]
    places |= {
        "MESSAGES": write_lines(folder / "messages.ndjson", [{"id": "a", "severity": 4}]),
        "SUBSCRIPTIONS": write_lines(folder / "subscriptions.ndjson", asked),
        "FOLDER": folder,
    }
    return [re.sub("|".join(places), lambda name: str(places[name[0]]), word) for word in shlex.split(line)]


SAMPLE = {
    "match": "MESSAGES SUBSCRIPTIONS",
    "check": "'x > 1 AND x < 0 AND x < 5'",
    "simplify": "SUBSCRIPTIONS",
    "stream": "FOLDER/incoming SUBSCRIPTIONS --checkpoint FOLDER/c --output -",
    "ingest": "MESSAGES FOLDER/ingested",
    "demo": "--output FOLDER/demo --scale 0.01",
    "doctor": "",
    "artifacts list": "FOLDER/tables",
    "artifacts prune": "FOLDER/tables --dry-run",
    "overlay simulate": "--subscriptions 20 --messages 5",
    "overlay churn": "--peers 5 --seconds 1",
    "overlay show": "--subscriptions 20 --output FOLDER/overlay.svg",
    "overlay peer": "--subscribe 'price > 1'",
    "overlay publish": "{} --to 127.0.0.1:9",
    "experiment list": "",
    "experiment show": "cover-table-1 --output FOLDER/shown",
    "experiment all": "--quick --output FOLDER/all",
    "network remove": "harbour --url http://127.0.0.1:9 --patience 0",
    "network show": "--url http://127.0.0.1:9 --patience 0",
    "sync": "SUBSCRIPTIONS --all --url http://127.0.0.1:9 --patience 0",
    "serve": "--port 0 --state FOLDER/state",
    "experiment run": "cover-table-1 --quick --output FOLDER/run",
}
