"""Pages of the documentation as tests read them: blocks of code, and commands with what they print."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def page_text(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / "docs" / name).read_text()


def blocks(text: str, kind: str) -> list[str]:
    """Return the blocks of one kind in the text of a page."""
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands in a text with what they print; a here-document belongs to its command."""
    for session in blocks(text, "console"):
        for part in re.split(r"^\$ ", session.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
            end = part.find("\nEND\n")
            cut = part.index("\n") + 1 if end < 0 else end + len("\nEND\n")
            yield part[:cut].rstrip("\n"), part[cut:]


def check_printed(command: str, expected: str, got: str) -> None:
    """Assert that a command printed what the page says, in which ... stands for any text."""
    assert doctest.OutputChecker().check_output(expected, got, OPTIONS), f"$ {command}\n{got}"
