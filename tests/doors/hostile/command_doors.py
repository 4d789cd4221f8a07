"""Doors of the command line: every command with hostile files and options. Errors are lines, never tracebacks."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from hostile.files import CORPORA, line
from hostile.gis_files import file_name
from hostile.language_doors import text_corpus
from hostile.registry import Door

EXITS = (0, 1, 2, 130, 141)
ODD = ("", "-", "--", "not there", "\udcff", "a\nb", "9" * 400, "NaN", "-1", "1e400", "☃", "../..", "'", "a" * 5000)
# Commands that start Java or a network are given only what they must refuse before that.
REFUSED_EARLY = {
    "contrada ingest": [
        ["not there", "out"], ["m.ndjson"], ["m.ndjson", "taken"], ["m.ndjson", "out", "--buffer", "x"],
    ],
    "contrada stream": [
        ["in", "--checkpoint", "c"], ["in", "not there", "--checkpoint", "c", "--output", "o"],
        ["in", "--checkpoint", "c", "--output", "o", "--format", "x"],
        ["in", "--checkpoint", "c", "--output", "o", "--once", "--every", "2 seconds"],
        ["in", "--checkpoint", "c", "--output", "o", "--files", "0"],
    ],
    "contrada demo": [["--data", "not there"], ["--scale", "0"], ["--scale", "nan"], ["--seed", "x"]],
    "contrada overlay peer": [
        ["--subscribe", "rubbish ("], ["--subscribe", "a = 1", "--listen", "rubbish"],
        ["--subscribe", "a = 1", "--degree", "1,1"], ["--subscribe", "a = 1", "--split", "x"],
        ["--subscribe", "a = 1", "--listen", "127.0.0.1:99999999"], ["--subscribe", "a = 1", "--period", "nan"],
        ["--subscribe", "a = 1", "--listen", "\udcff:1"], ["--subscribe", "a = 1", "--join", "..:1"],
        ["--subscribe", "a = 1", "--secret-file", "not there"], ["--subscribe", "a = 1", "--tls-cert", "m.ndjson"],
        ["--subscribe", "a = 1", "--dimensions", ","],
    ],
    "contrada overlay publish": [
        ["{}", "--to", "rubbish"], ["{}", "--to", "127.0.0.1:0"], ["{}", "--to", ":"], ["{}", "--to", "127.0.0.1:x"],
        ["{}", "--to", ("a" * 70) + ".b:1"], ["{}", "--to", "127.0.0.1:1"], ["{}", "--to", "\udcff:1"],
    ],
    "contrada overlay simulate": [
        ["--degree", "x"], ["--degree", "1,1"], ["--degree", "9" * 5000 + ",1"], ["--distribution", "x"],
        ["--distribution", "zipf-0:0"], ["--dimensions", "0"], ["--subscriptions", "5", "--messages", "2", "--json"],
    ],
    "contrada overlay churn": [
        ["--peers", "0"], ["--seconds", "-1"], ["--latency", "nan"], ["--loss", "2"], ["--distribution", "x"],
        ["--peers", "3", "--seconds", "1", "--json"],
    ],
    "contrada overlay evaluate": [["--seeds", "0"], ["--scale", "nan"], ["--scale", "2"]],
    "contrada overlay show": [["not there"], ["m.ndjson"], ["--rubbish"]],
    "contrada experiment cover-figures": [["--rubbish"], ["--seed", "x"]],
    "contrada experiment cover-tables": [["--rubbish"], ["--seed", "x"]],
    "contrada doctor": [["--json"], [], ["--rubbish"]],
}  # fmt: skip


def command_doors() -> Iterator[Door]:
    """A door for every command."""
    yield Door("contrada match", ("contrada match",), _run, match_corpus, 3)
    yield Door("contrada check", ("contrada check",), _run, check_corpus, 2)
    yield Door("contrada simplify", ("contrada simplify",), _run, simplify_corpus, 1.5)
    for command in REFUSED_EARLY:
        yield Door(command, (command,), _run, partial(early_corpus, command), 0)


@cache
def _app() -> Any:
    from contrada.cli.main import app

    return app


def _run(case: dict[str, Any]) -> object:
    """Run a command in a directory with the files of the case."""
    from typer.testing import CliRunner

    words = words_of(case)
    home = os.getcwd()
    folder = tempfile.mkdtemp(dir=home)
    os.chdir(folder)
    try:
        write_files(case, Path("."))
        result = CliRunner().invoke(_app(), words, input=_bytes(case.get("stdin")))
    finally:
        os.chdir(home)
        shutil.rmtree(folder, ignore_errors=True)
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        raise error
    assert result.exit_code in EXITS, f"exit code {result.exit_code}"
    assert b"Traceback (most recent" not in result.stderr_bytes, result.stderr_bytes[-2000:]
    return result.exit_code


def words_of(case: dict[str, Any]) -> list[str]:
    """The words of a case, as a shell would pass them."""
    command = [str(word) for word in case.get("command", [])]
    return command + [_word(word) for word in _listed(case.get("words"))]


def write_files(case: dict[str, Any], folder: Path) -> None:
    """Write the files of a case, and a directory that is in the way."""
    files = case.get("files")
    for name, data in (files if isinstance(files, dict) else {}).items():
        if isinstance(data, bytes) and name and "/" not in name and "\0" not in name:
            with suppress(UnicodeEncodeError):  # a name that no file can have
                (folder / name).write_bytes(data)
    (folder / "taken").mkdir()
    (folder / "taken" / "file").touch()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _word(word: Any) -> str:
    """A word as the system hands it over: no NUL, what is not UTF-8 as Python has it."""
    text = word if isinstance(word, str) else str(word)[:1000]
    return text.encode("utf-8", "surrogatepass").replace(b"\0", b"").decode("utf-8", "surrogateescape")[:100_000]


def _bytes(value: Any) -> bytes | None:
    return value if isinstance(value, bytes) else None


def _case(command: str, words: list[str], files: dict[str, bytes] | None = None, **more: bytes) -> dict[str, Any]:
    return {"command": command.split(), "words": words, "files": files or {}, **more}


MESSAGES = line() + b"\n" + line(key="k2", severity=1)
SUBSCRIPTIONS = line(wind=None) + b"\n" + line(key="k2", filter="kind = 'flood'")
TEMPLATE = ["--template", "S_INTERSECTS(geometry, $geometry) AND severity >= $severity"]


@cache
def match_corpus() -> dict[str, Any]:
    """Files of every format as messages, as subscriptions and as rows of a template; odd options."""
    found: dict[str, Any] = {}
    for format, corpus in CORPORA.items():
        for name, data in corpus().items():
            for use in ("messages", "subscriptions", "template") if not callable(data) else ("messages",):
                found[f"{format} as {use}: {name}"] = _match_case(format, use, data)
    for name, packed in packed_files().items():
        words, files = [name, "s.ndjson", "--reject", "bad.ndjson"], {"s.ndjson": SUBSCRIPTIONS, name: packed}
        found[f"packed: {name}"] = _case("match", words, files)
    good = {"m.ndjson": MESSAGES, "s.ndjson": SUBSCRIPTIONS}
    base = ["m.ndjson", "s.ndjson"]
    options = (
        "--template", "--key", "--id", "--messages-format", "--times", "--zones", "--crs", "--to-crs", "--buffer",
        "--output", "--format", "--by", "--explain", "--limit", "--reject", "--threads", "--plan",
    )  # fmt: skip
    for option in options:
        for k, word in enumerate(ODD):
            found[f"{option} {k}"] = _case("match", [*base, option, word], good)
    for k, word in enumerate(ODD):
        found[f"words {k}"] = _case("match", [word, "s.ndjson"], good)
    for suffix in ("csv", "parquet", "arrow", "json", "x"):
        words = [*base, "--output", f"o.{suffix}", "--reject", "bad.ndjson"]
        found[f"output {suffix}"] = _case("match", words, good)
    found["standard input"] = _case("match", ["-", "s.ndjson"], good, stdin=MESSAGES)
    found["explain"] = _case("match", [*base, "--explain", "k1"], good)
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


def _match_case(format: str, use: str, data: Any) -> Any:
    def case(content: bytes) -> dict[str, Any]:
        name = file_name(format, content)
        files = {"m.ndjson": MESSAGES, "s.ndjson": SUBSCRIPTIONS, name: content}
        words = {
            "messages": [name, "s.ndjson", "--messages-format", format, "--reject", "bad.ndjson"],
            "subscriptions": ["m.ndjson", name, "--subscriptions-format", format],
            "template": ["m.ndjson", name, "--subscriptions-format", format, *TEMPLATE],
        }[use]
        return _case("match", [*words, "--threads", "1"], files)

    return partial(lambda make: case(make()), data) if callable(data) else case(data)


def _small_files(*words: str) -> dict[str, Any]:
    """A command with each small file of every format as its last word."""
    found: dict[str, Any] = {}
    for format, corpus in CORPORA.items():
        for name, data in corpus().items():
            if not callable(data):
                file = file_name(format, data)
                found[f"{format}: {name}"] = _case(words[0], [*words[1:], file], {file: data})
    return found


@cache
def check_corpus() -> dict[str, Any]:
    """Filters as text, from a file and from standard input; files of subscriptions."""
    found: dict[str, Any] = {}
    for name, text in text_corpus().items():
        if callable(text):
            found[f"from a file: {name}"] = partial(_check_file, text)
        else:
            found[f"text: {name}"] = _case("check", [text])
            found[f"standard input: {name}"] = _case("check", ["-"], stdin=text.encode("utf-8", "surrogatepass"))
    found |= _small_files("check", "--file")
    for k, word in enumerate(ODD):
        found[f"odd {k}"] = _case("check", [word])
        found[f"odd file {k}"] = _case("check", [f"@{word}"])
    return found


def _check_file(text: Any) -> dict[str, Any]:
    return _case("check", ["@f"], {"f": text().encode("utf-8", "surrogatepass")})


@cache
def simplify_corpus() -> dict[str, Any]:
    """Files of subscriptions."""
    found = _small_files("simplify")
    for k, word in enumerate(ODD):
        found[f"odd {k}"] = _case("simplify", [word])
        words = ["s.ndjson", "--output", word]
        found[f"output {k}"] = _case("simplify", words, {"s.ndjson": SUBSCRIPTIONS})
    return found


def early_corpus(command: str) -> dict[str, Any]:
    """Words that a command refuses, or small runs."""
    path, files = command.removeprefix("contrada "), {"m.ndjson": MESSAGES}
    found = {f"words {k}": _case(path, each, files) for k, each in enumerate(REFUSED_EARLY[command])}
    return {"help": _case(path, ["--help"]), **found}
