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
    value, reason = decoded(data, shape)
    if reason is not None:
        raise FormatError(reason)
    return value


def decoded(data: bytes | str, shape: Any = None) -> tuple[Any, str | None]:
    """Return the value of a JSON text and None, or None and the reason why it is malformed; raises nothing.

    >>> decoded(b"{}"), decoded(b"{")
    (({}, None), (None, 'Input data was truncated'))
    """
    try:
        if isinstance(data, bytes) and data.startswith(BYTE_ORDER_MARK):
            data = data[3:]
        return (_decode(data) if shape is None else msgspec.json.decode(data, type=shape)), None
    except UnicodeError as error:
        return None, f"JSON is not UTF-8: {error.reason}"  # type: ignore[attr-defined]
    except msgspec.MsgspecError as error:
        return None, str(error)
    except RecursionError:
        return None, "JSON is nested too deeply"
