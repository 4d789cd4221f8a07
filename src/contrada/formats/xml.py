"""XML of strangers as a small tree: no document types, so no entities of theirs; nothing nested without end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.parsers import expat

from contrada.errors import ContradaError, FormatError, LimitError
from contrada.limits import check_limit, limit, variable

JUNK_AFTER_ROOT, MISPLACED_DECLARATION = 9, 17  # expat's codes for what follows a whole document
PIECE = 1 << 14  # bytes that the parser is given at once: it copies them, and a document may be short
FIRST = 1 << 9  # bytes that it is given first: the parser copies 16 KB in the time that it reads a short document
# Broken documents may each have to be read to the end of all: so often in all, and no more.
PATIENCE = 16
_ROOT = re.compile(rb"<(?:[\w.-]+:)?alert[\s>]")
_BEGINNING = re.compile(rb"<\?xml\s|" + _ROOT.pattern)


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
    root: Element | ContradaError


def documents(data: bytes) -> Iterator[Document]:
    """The XML documents that follow one another in data; after a bad one, on with the next that begins.

    >>> [document.root.name for document in documents(b"<?xml version='1.0'?><a/>  <?xml version='1.0'?><b>x</b>")]
    ['a', 'b']
    """
    start, number, left = 0, 0, PATIENCE * len(data) + (1 << 24)
    view = memoryview(data)
    while start < len(data):
        while start < len(data) and data[start : start + 1].isspace():
            start += 1
        if start == len(data):
            return
        reason = _reason_to_stop(number, left)
        if reason is not None:
            yield Document(start, len(data), reason)
            return
        number += 1
        root, stop, read = _parse(view[start:])
        end = start + stop
        if isinstance(root, ContradaError):
            left -= read
            end = _next_beginning(data, start)
        end = max(end, start + 1)
        yield Document(start, end, root)
        start = end


def _reason_to_stop(number: int, left: int) -> ContradaError | None:
    """Why no further document is read after so many, of which broken ones left so many bytes to be looked at."""
    if number >= limit("alerts"):
        return LimitError(f"more than {limit('alerts'):,} documents ({variable('alerts')}); the rest is not read")
    return FormatError("too much is broken; the rest is not read") if left < 0 else None


def _next_beginning(data: bytes, start: int) -> int:
    """Where the next document seems to begin after a bad one: with a declaration, or an alert other than its root."""
    had_root = not data.startswith(b"<", start) or _ROOT.match(data, start) is not None
    for found in _BEGINNING.finditer(data, start + 1):
        if had_root or found[0].startswith(b"<?"):
            return found.start()
        had_root = True
    return len(data)


def _parse(data: memoryview) -> tuple[Element | ContradaError, int, int]:
    """The root of the document that data begins with or what is wrong, where it ends, and how much was looked at."""
    parser = expat.ParserCreate(namespace_separator=" ")
    top = Element("", "")
    stack = [top]
    names: dict[str, str] = {}  # the parser makes a name anew for every element; one copy of each is kept
    deepest, longest = limit("nesting"), limit("name_bytes")
    ends: list[int] = []  # where the tag begins that closes the root

    def begin(name: str, attributes: dict[str, str]) -> None:
        if len(stack) > deepest:
            check_limit("nesting", len(stack), "the XML")
        if len(name) > longest:
            check_limit("name_bytes", len(name), f"the XML element {name[:40]}...")
        namespace, _, local = name.rpartition(" ")
        element = Element(names.setdefault(namespace, namespace), names.setdefault(local, local))
        stack[-1].children.append(element)
        stack.append(element)

    def end(_: str) -> None:
        stack.pop()
        if len(stack) == 1:
            ends.append(parser.CurrentByteIndex)

    def text(piece: str) -> None:
        stack[-1].pieces.append(piece)

    def refuse(*_: object) -> None:
        raise FormatError("XML document type declarations, and with them entities, are not allowed in CAP alerts")

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, text
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    place = 0
    try:
        parser.Parse(data[:FIRST], False)
        for place in range(0, len(data), PIECE):
            parser.Parse(data[max(place, FIRST) : place + PIECE], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        if ends:  # the document is whole, what follows it is another
            if error.code in (JUNK_AFTER_ROOT, MISPLACED_DECLARATION):
                return top.children[0], parser.ErrorByteIndex, place + PIECE
            tag = bytes(data[ends[0] : ends[0] + PIECE])
            return top.children[0], ends[0] + tag.find(b">") + 1, place + PIECE
        return FormatError(f"XML: {error}"), 0, place + PIECE
    except ContradaError as error:
        return error, 0, place + PIECE
    except (ValueError, LookupError) as error:  # an encoding that nobody knows
        return FormatError(f"XML: {error}"), 0, place + PIECE
    finally:
        parser.EndElementHandler = None  # it refers to the parser: without the cycle both are freed at once
    return top.children[0], len(data), len(data)
