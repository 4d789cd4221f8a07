"""Parse untrusted XML into a small tree, without document types or entities, and with limited nesting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.parsers import expat

from contrada.errors import ContradaError, FormatError, LimitError
from contrada.limits import check_limit, limit, variable

JUNK_AFTER_ROOT, MISPLACED_DECLARATION = 9, 17  # expat's error codes for data after a document
CHUNK_BYTES = 1 << 14  # bytes parsed at once: the parser copies them, and a document may be short
FIRST_CHUNK_BYTES = 1 << 9  # bytes parsed first: the parser copies 16 KB in the time that it reads a short document
# Each broken document may be read to the end of the data; in total, MAX_REREADS times the size of the data is read.
MAX_REREADS = 16
_NOT_SPACE = re.compile(rb"\S")
_ROOT = re.compile(rb"<(?:[\w.-]+:)?alert[\s>]")
_BEGINNING = re.compile(rb"<\?xml\s|" + _ROOT.pattern)


class Element:
    """An element: namespace and name, the text directly in it, and its children."""

    __slots__ = ("children", "name", "namespace", "pieces")

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace, self.name = namespace, name
        self.pieces: list[str] = []
        self.children: list[Element] = []

    @property
    def text(self) -> str:
        """Return the text, without surrounding white space."""
        return "".join(self.pieces).strip()

    def all(self, name: str) -> list[Element]:
        """Return the children of a name, in the element's own namespace."""
        return [child for child in self.children if child.name == name and child.namespace == self.namespace]

    def first(self, name: str) -> str | None:
        """Return the text of the first child of a name; None if there is none or it is empty."""
        found = self.all(name)
        return found[0].text or None if found else None


class Document(NamedTuple):
    """One document of several: start, end, and its root or error."""

    start: int
    stop: int
    root: Element | ContradaError


def documents(data: bytes) -> Iterator[Document]:
    """Yield the XML documents that follow one another in data; after a bad one, continue with the next.

    >>> [document.root.name for document in documents(b"<?xml version='1.0'?><a/>  <?xml version='1.0'?><b>x</b>")]
    ['a', 'b']
    """
    start, number, left = 0, 0, MAX_REREADS * len(data) + (1 << 24)
    view = memoryview(data)
    while (found := _NOT_SPACE.search(data, start)) is not None:
        start = found.start()
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
    """Return why document `number` is not read: too many, or `left`, the bytes left for broken ones, is negative."""
    if number >= limit("alerts"):
        return LimitError(f"more than {limit('alerts'):,} documents ({variable('alerts')}); the rest is not read")
    return FormatError("too many broken documents; the rest is not read") if left < 0 else None


def _next_beginning(data: bytes, start: int) -> int:
    """Return where a document seems to begin after a bad one: at a declaration, or an alert that is not its root."""
    had_root = not data.startswith(b"<", start) or _ROOT.match(data, start) is not None
    for found in _BEGINNING.finditer(data, start + 1):
        if had_root or found[0].startswith(b"<?"):
            return found.start()
        had_root = True
    return len(data)


def _parse(data: memoryview) -> tuple[Element | ContradaError, int, int]:
    """Parse the first document in data; return its root or error, its end, and the number of bytes parsed."""
    parser = expat.ParserCreate(namespace_separator=" ")
    top = Element("", "")
    stack = [top]
    names: dict[str, str] = {}  # the parser creates a name for every element; keep one copy of each
    deepest, longest = limit("nesting"), limit("name_bytes")
    ends: list[int] = []  # start of the tag that closes the root

    def begin(name: str, attributes: dict[str, str]) -> None:
        if len(stack) > deepest:
            check_limit("nesting", len(stack), "the XML")
        if len(name) > longest:
            check_limit("name_bytes", len(name), f"XML element {name[:40]}...")
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
        line = parser.CurrentLineNumber
        raise FormatError(f"XML document type and entity declarations are not allowed (line {line})")

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, text
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    place = 0
    try:
        parser.Parse(data[:FIRST_CHUNK_BYTES], False)
        for place in range(0, len(data), CHUNK_BYTES):
            parser.Parse(data[max(place, FIRST_CHUNK_BYTES) : place + CHUNK_BYTES], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        if ends:  # the document is complete, and another follows
            if error.code in (JUNK_AFTER_ROOT, MISPLACED_DECLARATION):
                return top.children[0], parser.ErrorByteIndex, place + CHUNK_BYTES
            tag = bytes(data[ends[0] : ends[0] + CHUNK_BYTES])
            return top.children[0], ends[0] + tag.find(b">") + 1, place + CHUNK_BYTES
        return FormatError(f"XML: {error}"), 0, place + CHUNK_BYTES
    except (ContradaError, ValueError, LookupError) as error:  # a limit, or an unknown encoding
        refusal = error if isinstance(error, ContradaError) else FormatError(f"XML: {error}")
        return refusal, 0, place + CHUNK_BYTES
    finally:
        parser.EndElementHandler = None  # it refers to the parser: without the cycle both are freed at once
    return top.children[0], len(data), len(data)
