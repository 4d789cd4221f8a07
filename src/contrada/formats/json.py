"""Decode JSON (RFC 8259): integers exact, doubles correctly rounded, no NaN; of equal names the last wins."""

from __future__ import annotations

from typing import Any

import msgspec

from contrada.errors import FormatError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_decode = msgspec.json.Decoder().decode


def decode(data: bytes | str, shape: Any = None) -> Any:
    """Decode a JSON text, to the msgspec type `shape` if given; bad JSON is a FormatError.

    >>> decode(b'{"n": 36893488147419103232, "n": 0.1}')
    {'n': 0.1}
    >>> decode("[NaN]")
    Traceback (most recent call last):
    contrada.errors.FormatError: JSON is malformed: invalid character (byte 1)
    """
    try:
        if isinstance(data, bytes) and data.startswith(BYTE_ORDER_MARK):
            data = data[3:]
        return _decode(data) if shape is None else msgspec.json.decode(data, type=shape)
    except UnicodeError as error:
        raise FormatError(f"JSON is not UTF-8: {error.reason}") from error  # type: ignore[attr-defined]
    except msgspec.MsgspecError as error:
        raise FormatError(str(error)) from error
    except RecursionError as error:
        raise FormatError("JSON is nested too deeply") from error
