"""Errors that this package raises on purpose: one base class and a few subclasses."""


class ContradaError(Exception):
    """Base class of all errors that this package raises on purpose."""


class ArgumentError(ContradaError, TypeError, ValueError):
    """An argument has a wrong type or value; the message names the function and the given types."""


class RegionError(ContradaError, ValueError):
    """A region (or a column of regions) cannot be read or is not a valid region.

    The message names the row, part, ring and place of the first fault; `row`, `part`, `ring` and `place` carry the same
    as data (None where they do not apply).
    """

    def __init__(
        self,
        message: str,
        *,
        row: int | None = None,
        part: int | None = None,
        ring: int | None = None,
        place: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(message)
        self.row, self.part, self.ring, self.place = row, part, ring, place


class LimitError(ContradaError, ValueError):
    """An input exceeds a limit; the message names the count, the limit, and the variable that changes it."""


class CrsError(ContradaError, ValueError):
    """Two values in one operation have different coordinate reference systems, or a system is unknown."""


class FilterError(ContradaError, ValueError):
    """A constraint, filter or predicate cannot be built; the message names the faulty attribute, operator or value."""


class FormatError(ContradaError, ValueError):
    """A message, a subscription or a file cannot be read; the message names the fault and the member."""


class LanguageError(FilterError):
    """CQL2 text or JSON cannot be read, or asks for something unsupported; the message shows the place.

    For text, `line` and `column` (from 1 on) give the place, and `expected` what could be there if the grammar knows.
    For JSON, `path` is a JSON pointer to the place.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        expected: tuple[str, ...] = (),
        path: str | None = None,
    ) -> None:
        super().__init__(message)
        self.line, self.column, self.expected, self.path = line, column, expected, path


class CoveringError(ContradaError, ValueError):
    """A rectangle or a point cannot be indexed; the message names the attribute or the dimension at fault."""


class KeyInUseError(ContradaError, KeyError):
    """A subscription with this key already exists."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownKeyError(ContradaError, KeyError):
    """No subscription has this key."""

    def __str__(self) -> str:
        return str(self.args[0])


class TableError(ContradaError, ValueError):
    """A saved table cannot be opened; the message names the directory and the fault."""


class OverlayError(ContradaError, ValueError):
    """An overlay cannot be set up or joined, or a frame from the network is invalid; the message names the fault."""


class BrokerError(ContradaError, ValueError):
    """A broker refuses a command or a frame; the message names the fault."""
