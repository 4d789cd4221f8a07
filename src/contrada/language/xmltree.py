"""XML of strangers as a small tree: no document types, so no entities of theirs; nothing nested without end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.parsers import expat

from contrada.errors import FormatError

DEEPEST = 64
JUNK_AFTER_ROOT, MISPLACED_DECLARATION = 9, 17  # expat's codes for what follows a whole document
_NEXT_DOCUMENT = re.compile(rb"<\?xml\s|<(?:[\w.-]+:)?alert[\s>]")


class Element:
    """An element: its namespace and name, the text directly in it, its children."""

    __slots__ = ("children", "name", "namespace", "pieces")

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace, self.name = namespace, name
        self.pieces: list[str] = []
        self.children: list[Element] = []

    @property
    def text(self) -> str:
        """The text, without the white space around it."""
        return "".join(self.pieces).strip()

    def all(self, name: str) -> list[Element]:
        """The children of a name, in the element's own namespace."""
        return [child for child in self.children if child.name == name and child.namespace == self.namespace]

    def first(self, name: str) -> str | None:
        """The text of the first child of a name; None if there is none, or nothing in it."""
        found = self.all(name)
        return found[0].text or None if found else None


class Document(NamedTuple):
    """One document of several: where it begins and ends, and its root or what is wrong with it."""

    start: int
    stop: int
    root: Element | FormatError


def documents(data: bytes) -> Iterator[Document]:
    """The XML documents that follow one another in data; after a bad one, on with the next that begins.

    >>> [document.root.name for document in documents(b"<?xml version='1.0'?><a/>  <?xml version='1.0'?><b>x</b>")]
    ['a', 'b']
    """
    start = 0
    view = memoryview(data)
    while start < len(data):
        while start < len(data) and data[start : start + 1].isspace():
            start += 1
        if start == len(data):
            return
        root, stop = _parse(view[start:])
        if isinstance(root, FormatError):
            following = _NEXT_DOCUMENT.search(data, start + max(stop, 1))
            end = following.start() if following else len(data)
        else:
            end = start + stop
        yield Document(start, end, root)
        start = end


def _parse(data: memoryview) -> tuple[Element | FormatError, int]:
    """The root of the document that data begins with, and where it ends; or what is wrong, and where."""
    parser = expat.ParserCreate(namespace_separator=" ")
    top = Element("", "")
    stack = [top]

    def begin(name: str, _: dict[str, str]) -> None:
        if len(stack) > DEEPEST:
            raise FormatError(f"XML is nested more than {DEEPEST} deep")
        namespace, local = name.rpartition(" ")[::2]
        stack[-1].children.append(Element(namespace, local))
        stack.append(stack[-1].children[-1])

    def end(_: str) -> None:
        stack.pop()

    def text(piece: str) -> None:
        stack[-1].pieces.append(piece)

    def refuse(*_: object) -> None:
        raise FormatError("a document type declaration; no entities are taken from strangers")

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, text
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        whole = len(stack) == 1 and len(top.children) == 1
        if whole and error.code in (JUNK_AFTER_ROOT, MISPLACED_DECLARATION):
            return top.children[0], parser.ErrorByteIndex
        return FormatError(f"XML: {error}"), parser.ErrorByteIndex
    except FormatError as error:
        return error, parser.CurrentByteIndex
    except (ValueError, LookupError) as error:  # an encoding that nobody knows
        return FormatError(f"XML: {error}"), 1
    return top.children[0], len(data)
