"""Format counts, sizes and rates for people: `1 file`, `4.1 GiB`, `0.83 messages/s`."""

from __future__ import annotations

UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
MIN_SHOWN_RATE = 0.01  # lower rates are printed as "less than 0.01"
MIN_SECONDS = 1e-9  # two readings of a clock may be equal


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun; `many` is the plural if it is not `one` with an s.

    >>> counted(1, "message"), counted(2000, "match", "matches"), counted(0, "file")
    ('1 message', '2,000 matches', '0 files')
    """
    return f"{number:,} {noun(number, one, many)}"


def noun(number: int, one: str, many: str | None = None) -> str:
    """Return the noun that goes with a number.

    >>> noun(1, "file"), noun(0, "file")
    ('file', 'files')
    """
    return one if number == 1 else many or f"{one}s"


def byte_size(nbytes: float) -> str:
    """Return a number of bytes in the unit that leaves one to four digits before the point.

    >>> byte_size(1), byte_size(1000), byte_size(1536), byte_size(300 << 20), byte_size(4.2e9), byte_size(1 << 62)
    ('1 byte', '1,000 bytes', '1.5 KiB', '300 MiB', '3.9 GiB', '4,096 PiB')
    """
    if nbytes < 1024:
        return counted(round(nbytes), "byte")
    power = 0
    while round(nbytes / 1024) >= 1024 and power < len(UNITS) - 1:
        nbytes /= 1024
        power += 1
    return f"{_digits(nbytes / 1024)} {UNITS[power]}"


def rate(number: float, seconds: float, one: str, many: str | None = None) -> str:
    """Return a rate per second: a whole number from 10 on, two digits below.

    >>> rate(2500, 1, "message"), rate(1, 1, "message"), rate(1, 1.2, "match", "matches"), rate(0, 0, "row")
    ('2,500 messages/s', '1 message/s', '0.83 matches/s', '0 rows/s')
    """
    a_second = number / max(seconds, MIN_SECONDS)
    if 0 < a_second < MIN_SHOWN_RATE:
        return f"less than {MIN_SHOWN_RATE} {many or f'{one}s'}/s"
    digits = _digits(a_second)
    return f"{digits} {one if digits == '1' else many or f'{one}s'}/s"


def _digits(value: float) -> str:
    """Return two significant digits below 10, a whole number above."""
    return f"{value:.2g}" if value < 9.95 else f"{value:,.0f}"
