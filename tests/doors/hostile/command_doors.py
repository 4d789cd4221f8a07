"""Doors of the command line: every command with hostile files and options. Errors are lines, never tracebacks."""

from __future__ import annotations

import gzip
import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import chdir, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from hostile.files import CORPORA, file_name, line
from hostile.language_doors import text_corpus
from hostile.mutation import encoded
from hostile.registry import Door

EXITS = (0, 1, 2, 130, 141)
ODD = ("", "-", "--", "not there", "\udcff", "a\nb", "9" * 400, "NaN", "-1", "1e400", "☃", "../..", "'", "a" * 5000)
# Commands that start Java or a network are given only what they must refuse before that.
REFUSED_EARLY: dict[str, tuple[str, ...]] = {
    "ingest": ("'not there' out", "m.ndjson", "m.ndjson taken", "m.ndjson out --buffer x"),
    "stream": (
        "in --checkpoint c", "in 'not there' --checkpoint c --output o",
        *(f"in --checkpoint c --output o {more}" for more in ("--format x", "--once --every '2 seconds'", "--files 0")),
    ),
    "demo": ("--data 'not there'", "--scale 0", "--scale nan", "--seed x"),
    "overlay peer": ("--subscribe 'rubbish ('", *(
        f"--subscribe 'a = 1' {more}" for more in (
            "--listen rubbish", "--listen 127.0.0.1:99999999", "--listen \udcff:1", "--join ..:1", "--degree 1,1",
            "--split x", "--period nan", "--secret-file 'not there'", "--tls-cert m.ndjson", "--dimensions ,",
        )
    )),
    "overlay publish": tuple(f"{{}} --to {to}" for to in (
        "rubbish", "127.0.0.1:0", ":", "127.0.0.1:x", f"{'a' * 70}.b:1", "127.0.0.1:1", "\udcff:1",
    )),
    "overlay simulate": (
        "--degree x", "--degree 1,1", f"--degree {'9' * 5000},1", "--distribution x", "--distribution zipf-0:0",
        "--dimensions 0", "--subscriptions 5 --messages 2 --json",
    ),
    "overlay churn": (
        "--peers 0", "--seconds -1", "--latency nan", "--loss 2", "--distribution x", "--peers 3 --seconds 1 --json",
    ),
    "overlay show": ("'not there'", "m.ndjson", "--rubbish"),
    "experiment list": ("--rubbish", "rubbish", "--json"),
    "experiment show": ("", "rubbish", "\udcff", "network --seeds x", "cover-table-1 --set k=x --json"),
    "experiment all": ("--rubbish", "--seeds x", "--data 'not there'", "--seeds -1"),
    "experiment run": (
        "network --rubbish", "rubbish", "network --seeds x", "", "network --set sweep=\udcff", "network --set =",
        f"cover-table-1 --set k={'9' * 5000}", "cover-table-1 --data m.ndjson", "cover-readings --seeds 1-99999999999",
        "overlay-figure-7 --set degree=1:1", "overlay-figure-7 --set distribution=zipf-0:0",
    ),
    "serve": (
        "--port x", "--port 99999999", "--config 'not there'", "--config m.ndjson", "--limits-body-bytes", "rubbish",
        "--rubbish 1", "--limits-body-bytes x", "--store rubbish", "--config taken", "--state m.ndjson",
        "--link rubbish", "--link ws://example.org", "--link wss://example.org --port 0", "--name '\n'",
        "--demo --port x", "--demo --state m.ndjson", "--demo --map-tiles rubbish", "--map-public ' '",
        "--map-public-shows rubbish", "--demo=1",
    ),
    "sync": (
        "'not there' --all --url http://127.0.0.1:1", "s.ndjson", "m.ndjson --all --url rubbish", "taken --all",
        "s.ndjson --all --template 'rubbish ('", "s.ndjson --prefix x --format rubbish",
    ),
    "network show": ("--url rubbish", "--url http://127.0.0.1:1 --patience 0", "--patience x"),
    "network remove": ("", "north --url rubbish", "\udcff --url http://127.0.0.1:1 --patience 0"),
    "artifacts list": ("'not there'", "m.ndjson", "\udcff", "rubbish://x", "taken --json"),
    "artifacts prune": (
        "'not there'", "m.ndjson", "\udcff", "rubbish://x --dry-run", "taken --older x", "taken --older -1s",
        "taken --older nan", "taken --older 1ms",
    ),
    "doctor": ("--json", "", "--rubbish"),
}  # fmt: skip


# Tables of a file of settings, all of which `serve` refuses before it listens.
REMOTE_TABLES = (
    "sinks = 1", "[sinks]", "sources = [1]", "[[sinks]]", "[[sinks]]\nname = 1", "[[sources]]\nname = 'a'",
    *(
        f"[[{kind}]]\nname = {name}\nurl = {url}\n{more}"
        for kind in ("sinks]]\nsubscriber = 'ann'\n#", "sources")
        for name, url, more in (
            ("''", "'kafka://h/t'", ""), ("'../a'", "'kafka://h/t'", ""), ("'a'", "''", ""), ("'a'", "'kafka://'", ""),
            ("'a'", "'kafka://h:99999/t'", ""), ("'a'", "'kafka://[::/t'", ""), ("'a'", "'kafka://h/a b'", ""),
            ("'a'", "'kafka://h/%zz%ff'", ""), ("'a'", "'kafka://u:hunter2@h/t'", ""), ("'a'", "'http://h/t'", ""),
            ("'a'", "'nats://h/a..b'", ""), ("'a'", "'nats://h/t?x=1'", ""), ("'a'", "'mqtt://h,i/t'", ""),
            ("'a'", "'mqtt://h/'", ""), ("'a'", "'kafka://h/t'", "rubbish = 1"), ("'a'", "'kafka://h/t'", "batch = 0"),
            ("'a'", "'kafka://h/t'", "timeout = nan"), ("'a'", "'kafka://h/t'", "from = 'rubbish'"),
            ("'a'", "'kafka://h/t'", "password_env = 'A'\npassword_file = 'b'"), ("7", "7", "tenant = ''"),
        )
    ),
)  # fmt: skip


def command_doors() -> Iterator[Door]:
    """A door for every command."""
    early = ((command, partial(early_corpus, command), 0) for command in REFUSED_EARLY)
    for command, corpus, weight in (
        ("match", match_corpus, 3), ("check", check_corpus, 2), ("simplify", simplify_corpus, 1.5), *early,
    ):  # fmt: skip
        yield Door(f"contrada {command}", (f"contrada {command}",), _run, corpus, weight)


def _run(case: dict[str, Any]) -> object:
    """Run a command in a directory with the files of the case."""
    from console import contrada

    with tempfile.TemporaryDirectory(dir=os.getcwd(), ignore_cleanup_errors=True) as folder, chdir(folder):
        write_files(case, Path("."))
        result = contrada(*words_of(case), input=bytes_of(case.get("stdin")))
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        raise error
    assert result.exit_code in EXITS, f"exit code {result.exit_code}"
    assert b"Traceback (most recent" not in result.stderr_bytes, result.stderr_bytes[-2000:]
    return result.exit_code


def words_of(case: dict[str, Any]) -> list[str]:
    """The words of a case as the system hands them over: no NUL, what is not UTF-8 as Python has it."""
    given = case.get("words")
    texts = [word if isinstance(word, str) else str(word)[:1000] for word in (given if isinstance(given, list) else [])]
    data = [text.encode("utf-8", "surrogatepass").replace(b"\0", b"") for text in texts]
    return [word.decode("utf-8", "surrogateescape")[:100_000] for word in data]


def write_files(case: dict[str, Any], folder: Path) -> None:
    """Write the files of a case, and a directory that is in the way."""
    files = case.get("files")
    for name, data in (files if isinstance(files, dict) else {}).items():
        if isinstance(data, bytes) and name and "/" not in name and "\0" not in name:
            with suppress(UnicodeEncodeError):  # a name that no file can have
                (folder / name).write_bytes(data)
    (folder / "taken").mkdir()
    (folder / "taken" / "file").touch()


def bytes_of(value: Any) -> bytes | None:
    """The value if it is bytes, which a mutation need not leave it."""
    return value if isinstance(value, bytes) else None


def case_of(command: str, *words: str, files: dict[str, bytes] | None = None, **more: bytes) -> dict[str, Any]:
    """A case: a command as it is typed, further words as they are, and files."""
    return {"words": [*shlex.split(command), *words], "files": files or {}, **more}


MESSAGES = line() + b"\n" + line(key="k2", severity=1)
SUBSCRIPTIONS = line(wind=None) + b"\n" + line(key="k2", filter="kind = 'flood'")
GOOD_FILES = {"m.ndjson": MESSAGES, "s.ndjson": SUBSCRIPTIONS}
TEMPLATE = "--template 'S_INTERSECTS(geometry, $geometry) AND severity >= $severity'"
OPTIONS = (
    "--template", "--key", "--id", "--messages-format", "--times", "--zones", "--crs", "--to-crs", "--buffer",
    "--output", "--format", "--by", "--explain", "--limit", "--reject", "--threads", "--plan",
)  # fmt: skip
TRACK_OPTIONS = ("--track", "--on", "--time", "--exit-buffer", "--exit-after", "--first", "--late", "--expire-after")
TRACKED = "match m.ndjson s.ndjson --track key --on enter,exit,change"


@cache
def match_corpus() -> dict[str, Any]:
    """Files of every format as messages, as subscriptions and as rows of a template; odd options."""
    found: dict[str, Any] = {}
    for format, corpus in CORPORA.items():
        for name, data in corpus().items():
            for use in MATCH_WORDS if not callable(data) else ("messages",):
                case = partial(_match_case, format, use, data)
                found[f"{format} as {use}: {name}"] = case if callable(data) else case()
    for name, packed in packed_files().items():
        words = f"match {name} s.ndjson --reject bad.ndjson"
        found[f"packed: {name}"] = case_of(words, files={"s.ndjson": SUBSCRIPTIONS, name: packed})
    good = partial(case_of, files=GOOD_FILES)
    for k, word in enumerate(ODD):
        found |= {f"{option} {k}": good("match m.ndjson s.ndjson", option, word) for option in OPTIONS}
        found |= {f"{option} {k}": good(TRACKED, option, word) for option in TRACK_OPTIONS}
        found[f"words {k}"] = good("match", word, "s.ndjson")
    for suffix in ("csv", "parquet", "arrow", "json", "x"):
        found[f"output {suffix}"] = good(f"match m.ndjson s.ndjson --output o.{suffix} --reject bad.ndjson")
    found["standard input"] = good("match - s.ndjson", stdin=MESSAGES)
    found["explain"] = good("match m.ndjson s.ndjson --explain k1")
    return found


def packed_files() -> dict[str, bytes]:
    """Messages that are compressed by gzip and Zstandard, sound and damaged, by the names of their files."""
    zipped, packed = gzip.compress(MESSAGES, mtime=0), pa.compress(MESSAGES, "zstd", asbytes=True)
    return {
        "sound.ndjson.gz": zipped,
        "two.ndjson.gz": zipped + zipped,
        "unfinished.ndjson.gz": zipped[:-20],
        "checksum.ndjson.gz": zipped[:-8] + bytes(8),
        "flipped.ndjson.gz": zipped[:30] + bytes([zipped[30] ^ 64]) + zipped[31:],
        "plain.ndjson.gz": MESSAGES,
        "empty.ndjson.gz": b"",
        "sound.csv.gz": gzip.compress(CORPORA["csv"]()["good"], mtime=0),
        "sound.parquet.gz": gzip.compress(CORPORA["parquet"]()["every type"], mtime=0),
        "sound.ndjson.zst": packed,
        "unfinished.ndjson.zst": packed[:-9],
    }


MATCH_WORDS = {
    "messages": "{name} s.ndjson --messages-format {format} --reject bad.ndjson",
    "subscriptions": "m.ndjson {name} --subscriptions-format {format}",
    "template": f"m.ndjson {{name}} --subscriptions-format {{format}} {TEMPLATE}",
}


def _match_case(format: str, use: str, data: Any) -> dict[str, Any]:
    """`contrada match` with such a file; the data may be a function that makes it."""
    content = data() if callable(data) else data
    name = file_name(format, content)
    words = MATCH_WORDS[use].format(name=name, format=format)
    return case_of(f"match {words} --threads 1", files={**GOOD_FILES, name: content})


def _small_files(command: str) -> dict[str, Any]:
    """A command with each small file of every format as its last word."""
    files = {
        f"{format}: {name}": (file_name(format, data), data)
        for format, corpus in CORPORA.items()
        for name, data in corpus().items()
        if not callable(data)
    }
    return {name: case_of(command, file, files={file: data}) for name, (file, data) in files.items()}


@cache
def check_corpus() -> dict[str, Any]:
    """Filters as text, from a file and from standard input; files of subscriptions."""
    found: dict[str, Any] = {}
    for name, text in text_corpus().items():
        if callable(text):
            found[f"from a file: {name}"] = lambda text=text: case_of("check @f", files={"f": encoded(text())})
        else:
            found[f"text: {name}"] = case_of("check", text)
            found[f"standard input: {name}"] = case_of("check -", stdin=encoded(text))
    found |= _small_files("check --file")
    for k, word in enumerate(ODD):
        found |= {f"odd {k}": case_of("check", word), f"odd file {k}": case_of("check", f"@{word}")}
    return found


@cache
def simplify_corpus() -> dict[str, Any]:
    """Files of subscriptions."""
    found = _small_files("simplify")
    for k, word in enumerate(ODD):
        found[f"odd {k}"] = case_of("simplify", word)
        found[f"output {k}"] = case_of("simplify s.ndjson --output", word, files={"s.ndjson": SUBSCRIPTIONS})
    return found


def early_corpus(command: str) -> dict[str, Any]:
    """Words that a command refuses, or small runs."""
    words = {f"words {k}": given for k, given in enumerate(REFUSED_EARLY[command])}
    given = {"help": "--help", **words}
    found = {name: case_of(f"{command} {more}", files={"m.ndjson": MESSAGES}) for name, more in given.items()}
    if command == "serve":
        for place, text in enumerate(REMOTE_TABLES):
            found[f"tables {place}"] = case_of("serve --config c.toml", files={"c.toml": text.encode()})
    return found
