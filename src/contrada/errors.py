"""The errors this package raises on purpose: one base, a few children."""


class ContradaError(Exception):
    """Base of every error this package raises on purpose."""


class ArgumentError(ContradaError, TypeError, ValueError):
    """An argument has a wrong type or value: the function and the types that were given are named."""


class RegionError(ContradaError, ValueError):
    """A region (or a column of regions) cannot be read or is not a valid region.

    The message names the row, part, ring and place of the first fault; `row`, `part`, `ring` and `place`
    carry the same as data (None where they do not apply).
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
        self.row = row
        self.part = part
        self.ring = ring
        self.place = place


class LimitError(ContradaError, ValueError):
    """An input asks for more than a limit allows: what has how many, the limit, and the variable that changes it."""


class CrsError(ContradaError, ValueError):
    """Two values that meet in one operation have different coordinate reference systems."""


class FilterError(ContradaError, ValueError):
    """A constraint, filter or predicate cannot be built: the attribute, operator or value at fault is named."""


class FormatError(ContradaError, ValueError):
    """A message, a subscription or a file cannot be read: what is wrong, and with which member, is said."""


class LanguageError(FilterError):
    """CQL2 text or JSON cannot be read, or asks for what there is not; the message shows the place.

    Of text `line` and `column` (from 1 on) tell where, and `expected` what could stand there if the grammar knows;
    of JSON `path` does, a JSON pointer.
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
        self.line = line
        self.column = column
        self.expected = expected
        self.path = path


class CoveringError(ContradaError, ValueError):
    """A rectangle or a point cannot be indexed: the attribute or the dimension at fault is named."""


class KeyInUseError(ContradaError, KeyError):
    """A subscription with this key exists already."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownKeyError(ContradaError, KeyError):
    """No subscription has this key."""

    def __str__(self) -> str:
        return str(self.args[0])


class TableError(ContradaError, ValueError):
    """A saved table cannot be opened: the directory and what is wrong with it are named."""


class OverlayError(ContradaError, ValueError):
    """An overlay cannot be set up or joined as asked, or a frame from the network is not one: what is wrong is said."""
