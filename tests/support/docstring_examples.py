"""Extension of Griffe for the API reference: examples in docstrings become blocks of code.

Docstrings have examples as doctest reads them, without a heading. Markdown would read their prompts as quotations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from griffe import Extension, Object


def fenced(text: str) -> str:
    """Return a docstring with a fence around each example: from a prompt to the next empty line.

    >>> fenced("Add.\\n>>> 1 + 1\\n2\\n\\nMore.").split("\\n")
    ['Add.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'More.']
    """
    return "\n".join(_fenced_lines(text.splitlines()))


def _fenced_lines(lines: list[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        starts = line.startswith(">>> ")
        if starts and not inside:
            yield from ("", "```pycon")  # the text before needs no empty line in doctest, but in Markdown
            inside = True
        elif inside and not line.strip():
            yield "```"
            inside = False
        yield line.replace("<BLANKLINE>", "") if inside else line
    if inside:
        yield "```"


class Doctests(Extension):
    """Fences the examples of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of an object after Griffe has read it."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
