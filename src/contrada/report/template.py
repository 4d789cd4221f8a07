"""The page around a report: its style and its script, which `make web` builds."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

from contrada.errors import ContradaError
from contrada.web import HOW_TO_BUILD, report_folder

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Contrada">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}<script type="application/json" id="report-data">{header}</script>
<script>
window.contradaChunks = [];
window.contradaChunk = (...call) => window.contradaChunks.push(call);
{chunks}</script>
<script type="module">
{script}</script>
</body>
</html>
"""
# Scripts are those of the page and of the files beside it. In a page opened by file://, MapLibre reads the blob of
# its worker and loads it as a data: address. The page can ask no server for anything.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'self' file: blob:; style-src 'unsafe-inline'; "
    "worker-src blob: data:; connect-src blob: data:; img-src blob: data:; base-uri 'none'; form-action 'none'"
)
_END = re.compile(r"<(?=/script|!--|script)", re.IGNORECASE)


class Built(NamedTuple):
    """The style and the script of reports."""

    style: str
    script: str


def read_built(folder: Path | None) -> Built:
    """Return the built style and script in a folder; without a folder, a ContradaError says how to build them.

    >>> read_built(None)
    Traceback (most recent call last):
    contrada.errors.ContradaError: the page of reports was not built: run `make web` in a clone ...
    """
    if folder is None:
        raise ContradaError(f"the page of reports was not built: {HOW_TO_BUILD}")
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    # Only strings and comments of the script have these, and there \\x3C is the same letter.
    return Built(style, _END.sub(r"\\x3C", script))


def built_page() -> Built:
    """Return the style and the script that the package carries."""
    return read_built(report_folder())


def fill_page(built: Built, title: str, body: str, header: str, chunks: str) -> str:
    """Return the whole page: `body` is HTML, `header` and `chunks` are text from `json_text`."""
    return PAGE.format(
        policy=escape(POLICY),
        title=escape(title),
        style=built.style,
        body=body,
        header=header,
        chunks=chunks,
        script=built.script,
    )
