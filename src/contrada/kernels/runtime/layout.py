"""Layout of a table of addresses: the order, types and shapes of the arrays that a kernel reads from it.

A kernel reads whatever lies at an address, so a wrong address or type corrupts memory. Each table is declared once, as
an `AddressLayout`: Python writes the table from arrays by name (`addresses` checks them), and kernels read arrays by
name (`reader` in kernels/runtime/pointers.py). Importing this module does not import Numba.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

NUMBER = "number"  # type of a field that stands in the table itself, as an integer


class Field(NamedTuple):
    """Array of a table, or a number: `type` is NUMBER or a NumPy type such as "f8"; `columns` is 0 for a flat array."""

    name: str
    type: str
    columns: int = 0
    holds: str = ""  # for the documentation
    is_writable: bool = False  # kernels know the array as one that they may write to

    @property
    def shape(self) -> str:
        """Type and shape in words: `float64 (n, 2)`."""
        if self.type == NUMBER:
            return NUMBER
        return f"{np.dtype(self.type)} ({f'n, {self.columns}' if self.columns else 'n'})"

    def check(self, array: NDArray[Any]) -> None:
        """Raise ValueError unless an array has the type, dimensions and order in memory of this field."""
        if self.type == NUMBER:
            raise ValueError(f"{self.name} is an array, not a number")
        is_shaped = array.ndim == 2 and array.shape[1] == self.columns if self.columns else array.ndim == 1
        if array.dtype != self.type or not is_shaped:
            raise ValueError(f"{self.name} is {array.dtype} {array.shape}, not {self.shape}")
        if not array.flags.c_contiguous:
            raise ValueError(f"{self.name} is not contiguous in C order")


class AddressLayout:
    """Fields of a table in order; an array takes two places, its address and its number of rows, a number takes one.

    >>> layout = AddressLayout([Field("corners", "f8", 2), Field("first", NUMBER), Field("rows", "i4")])
    >>> layout.at("corners"), layout.at("first"), layout.at("rows"), layout.size
    (0, 2, 3, 5)
    >>> corners = np.zeros((3, 2))
    >>> table = layout.addresses({"corners": corners, "first": 7, "rows": np.arange(4, dtype=np.int32)})
    >>> bool(table[0] == corners.ctypes.data), table[[1, 2, 4]].tolist()
    (True, [3, 7, 4])
    >>> layout.addresses({"corners": corners, "first": 7, "rows": np.arange(4.0)})
    Traceback (most recent call last):
    ValueError: rows is float64 (4,), not int32 (n)
    """

    def __init__(self, fields: Iterable[Field]) -> None:
        self.fields = {field.name: field for field in fields}
        self._places: dict[str, int] = {}
        self.size = 0
        for name, field in self.fields.items():
            self._places[name] = self.size
            self.size += 1 if field.type == NUMBER else 2

    def at(self, name: str) -> int:
        """Return the place in the table of a number, or of an array's address; its number of rows comes next."""
        return self._places[name]

    def followed_by(self, *fields: Field) -> AddressLayout:
        """Return a layout that begins like this one: kernels that read these fields can read both tables."""
        return AddressLayout([*self.fields.values(), *fields])

    def check(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Raise ValueError unless each of some arrays is what the field with its name asks for."""
        for name, array in arrays.items():
            self.fields[name].check(array)

    def addresses(self, values: Mapping[str, NDArray[Any] | int]) -> NDArray[np.int64]:
        """Return the read-only table of arrays and numbers by name; the caller keeps the arrays alive.

        Raises ValueError if a name is missing or unknown, or if an array does not fit its field.
        """
        if values.keys() != self.fields.keys():
            wrong = ", ".join(sorted(values.keys() ^ self.fields.keys()))
            raise ValueError(f"a table of addresses misses these fields, or does not have them: {wrong}")
        numbers: list[int] = []
        for name, field in self.fields.items():
            value = values[name]
            if not isinstance(value, np.ndarray):
                if field.type != NUMBER:
                    raise ValueError(f"{name} is {value!r}, not an array")
                numbers.append(value)
                continue
            field.check(value)
            if field.is_writable and not value.flags.writeable:
                raise ValueError(f"{name} is read-only")
            numbers += value.ctypes.data, len(value)
        table = np.array(numbers, np.int64)
        table.setflags(write=False)
        return table

    def markdown(self) -> str:
        """Return the fields as a Markdown table: place, name, type and shape, contents.

        >>> print(AddressLayout([Field("corners", "f8", 2, "of boxes"), Field("first", NUMBER)]).markdown())
        | place | name | type | holds |
        |---|---|---|---|
        | 0 | `corners` | float64 (n, 2) | of boxes |
        | 2 | `first` | number |  |
        """
        rows = (f"| {self.at(f.name)} | `{f.name}` | {f.shape} | {f.holds} |" for f in self.fields.values())
        return "\n".join(["| place | name | type | holds |", "|---|---|---|---|", *rows])
