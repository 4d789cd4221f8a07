"""Make reasons of rejections into text that every column and file format can hold."""

from __future__ import annotations

from contrada.errors import ContradaError

MAX_REASON_LENGTH = 2000  # characters


def reason_of(error: BaseException) -> str:
    """Return the message of an error, with its type unless the error is one of this package.

    >>> from contrada.errors import FormatError
    >>> reason_of(FormatError("no filter")), reason_of(OverflowError("too large"))
    ('no filter', 'OverflowError: too large')
    """
    text = str(error) if isinstance(error, ContradaError) else f"{type(error).__name__}: {error}"
    return plain_text(text[:MAX_REASON_LENGTH])


def plain_text(text: str) -> str:
    """Return a text that UTF-8 can hold: lone surrogates become question marks.

    >>> plain_text("a" + chr(0xD800))
    'a?'
    """
    return text.encode(errors="replace").decode()
