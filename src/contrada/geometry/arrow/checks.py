"""Validate Arrow data from outside (files, columns, streams) in full before anything reads it.

Arrow trusts the offsets, lengths and indices of an array. An array with one wrong offset reads foreign memory or ends
the process, so every place that takes Arrow data calls `check_column` first. Text that is not UTF-8 passes; `bad_texts`
finds its rows, so that only these are rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from contrada.errors import ContradaError, FormatError
from contrada.geometry.arrow import lazy_pyarrow as pa

UNREADABLE = "cannot be read from here on"
MAX_ERROR_CHARS = 300  # characters of a library's error message


def guarded(items: Iterable[Any], what: str) -> Iterator[Any]:
    """Yield the items of a file reader; any exception becomes a FormatError that says `what` cannot be read.

    Readers of damaged files raise OSError, UnicodeDecodeError, SystemError and many others.

    >>> list(guarded((1 // n for n in (1, 0)), "numbers.arrow"))
    Traceback (most recent call last):
    contrada.errors.FormatError: numbers.arrow cannot be read from here on: integer division or modulo by zero
    """
    try:
        yield from items
    except ContradaError:
        raise
    except Exception as error:  # readers raise many kinds: see the docstring
        reason = str(error) or type(error).__name__
        raise FormatError(f"{what} {UNREADABLE}: {reason[:MAX_ERROR_CHARS]}") from error


def unreadable_reason(error: ContradaError) -> str:
    """Return why the rest of a file cannot be read; errors of `guarded` already say so.

    >>> unreadable_reason(FormatError("the footer is damaged"))
    'the file cannot be read from here on: the footer is damaged'
    """
    return str(error) if UNREADABLE in str(error) else f"the file {UNREADABLE}: {error}"


def check_column(column: Any, what: str, is_full: bool = True) -> Any:
    """Return an Arrow array or chunked array if it is sound, or raise FormatError; UTF-8 is not checked.

    Unless `is_full`, only the sizes of buffers are checked, and the first and the last offset.

    Linear in rows: 1.5 ms for a million values of WKB. A match takes hundreds of times as long, so columns that Spark
    made are checked too.

    >>> import numpy as np, pyarrow as pa
    >>> offsets = pa.py_buffer(np.array([0, 900, 2], np.int32))
    >>> check_column(pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"ab")]), "column 'area'")
    Traceback (most recent call last):
    contrada.errors.FormatError: column 'area' is damaged: ...
    """
    try:
        if not _is_text(column.type):
            column.validate(full=is_full)
            return column
    except Exception:
        pass  # bad texts in it, or damaged
    try:
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            _check_but_texts(chunk)
    except Exception as error:
        raise FormatError(f"{what} is damaged: {str(error)[:MAX_ERROR_CHARS]}") from error
    return column


def _check_but_texts(array: Any) -> None:
    """Validate an array in full, except the UTF-8 of its texts."""
    kind = array.type
    array.validate()
    if isinstance(array, pa.ExtensionArray):
        _check_but_texts(array.storage)
    elif _is_text(kind):
        array.view(pa.binary() if pa.types.is_string(kind) else pa.large_binary()).validate(full=True)
    elif pa.types.is_string_view(kind):
        array.view(pa.binary_view()).validate(full=True)
    elif pa.types.is_dictionary(kind):
        pa.DictionaryArray.from_arrays(array.indices, pa.nulls(len(array.dictionary))).validate(full=True)
        _check_but_texts(array.dictionary)
    elif pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            _check_but_texts(array.field(place))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        make = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
        inner = [array.keys, array.items] if pa.types.is_map(kind) else [array.values]
        for values in inner:
            make.from_arrays(array.offsets, pa.nulls(len(values))).validate(full=True)
            _check_but_texts(values)
    elif pa.types.is_fixed_size_list(kind):
        _check_but_texts(array.values)
    else:
        array.validate(full=True)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def whole_array(values: Any, reader_checks_offsets: bool = False) -> Any:
    """Return one sound Arrow array from an array, a chunked array or an object with an Arrow interface.

    If the reader of binary values checks their offsets itself, they are not checked here.

    >>> import pyarrow as pa
    >>> whole_array(pa.chunked_array([[1], [2, 3]])).to_pylist()
    [1, 2, 3]
    """
    if not isinstance(values, pa.Array | pa.ChunkedArray):  # a stream drops types that are not registered
        make = pa.chunked_array if hasattr(values, "__arrow_c_stream__") else pa.array
        values = next(guarded((make(each) for each in (values,)), f"the {type(values).__name__}"))
    is_binary = pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)
    check_column(values, "the column", is_full=not (reader_checks_offsets and is_binary))
    if isinstance(values, pa.Array):
        return values
    if values.num_chunks == 1:
        return values.chunk(0)  # Arrow would copy it
    joined = next(guarded((column.combine_chunks() for column in (values,)), "the column"))
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def bad_texts(column: Any) -> list[int]:
    """Return the rows of a sound column whose text is not UTF-8; none for columns of other types.

    >>> import numpy as np, pyarrow as pa
    >>> offsets = pa.py_buffer(np.array([0, 1, 2], np.int32))
    >>> bad_texts(pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(bytes([65, 255]))]))
    [1]
    """
    if not _is_text(column.type):
        return []
    try:
        column.validate(full=True)
        return []
    except pa.ArrowInvalid:
        data = column.cast(pa.large_binary()).to_pylist()
    # Text that is UTF-8 loses nothing when other bytes are left out.
    return [row for row, text in enumerate(data) if text is not None and text.decode(errors="ignore").encode() != text]
