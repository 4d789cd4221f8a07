"""Names: an append-only list that maps keys or subscriber names to rows and back."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.errors import FilterError
from contrada.matching.store.tuning import DEFAULT_TUNING, Tuning

Name = str | int
NAME_BITS = 128  # of an integer name: Python may not print longer integers, and no column type holds them
DEFAULT_NUMBER_LIMIT = 1 << 62  # default keys stay below this number


class Names:
    """An append-only list of names (str or int) with look-up both ways; of equal names the latest row is found.

    Long Arrow columns are stored as they are; their look-up table of sorted hashes is made on first use. A range stands
    for its integers.

    >>> names = Names()
    >>> names.append("a"), names.append(7), names.row(7), names[0]
    (0, 1, 1, 'a')
    """

    def __init__(self, tuning: Tuning = DEFAULT_TUNING) -> None:
        self._min_column_names = tuning.min_column_names
        self.free = 0  # integers from here up to the limit are unused
        self._count = 0
        self._starts: list[int] = []
        self._segments: list[Any] = []  # Python lists, ranges and Arrow arrays
        self._rows: dict[Name, int] = {}  # of names stored in Python lists
        self._hashed: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def __len__(self) -> int:
        return self._count

    def append(self, name: Name) -> int:
        """Add a name; return its row."""
        row = self._count
        last = self._segments[-1] if self._segments else None
        if name == row and (last is None or (isinstance(last, range) and last.stop == row)):
            self._append_row(row)  # default keys take no memory
        else:
            if not isinstance(last, list):
                self._starts.append(row)
                self._segments.append([])
            self._segments[-1].append(name)
            self._rows[name] = row
        self._count += 1
        if isinstance(name, int) and self.free <= name < DEFAULT_NUMBER_LIMIT:
            self.free = name + 1
        return row

    def _append_row(self, row: int) -> None:
        """Add a name that equals its row to the range of such names, or begin one."""
        if self._segments:
            self._segments[-1] = range(self._segments[-1].start, row + 1)
        else:
            self._starts.append(row)
            self._segments.append(range(row, row + 1))

    def extend(self, names: Any) -> int:
        """Add the distinct names of an Arrow array or a range; return the first row."""
        row = self._count
        if len(names) < self._min_column_names:
            for name in names_in(names):
                self.append(name)
            return row
        self._starts.append(row)
        self._segments.append(names)
        self._count += len(names)
        self.free = max(self.free, _last_number(names) + 1)
        return row

    def __getitem__(self, row: int) -> Name:
        segment = bisect_right(self._starts, row) - 1
        value = self._segments[segment][row - self._starts[segment]]
        name: Name = value if isinstance(value, (str, int)) else value.as_py()
        return name

    def chosen(self, rows: NDArray[np.int64]) -> Any:
        """Return the names of `rows`: an Arrow array if all names are text or all are integers, else a list."""
        whole = self._in_one()
        if whole is None:
            return [self[int(row)] for row in rows]
        is_whole = len(rows) == self._count and np.array_equal(rows, np.arange(self._count))
        return whole if is_whole else whole.take(rows)

    def _in_one(self) -> Any:
        """Return all names as one Arrow array; None if kinds are mixed, if empty, or if an integer exceeds 64 bits."""
        import pyarrow as pa

        if len(self._segments) == 1 and not isinstance(self._segments[0], list):
            return as_arrow(self._segments[0])
        for kind in (pa.int64(), pa.large_string()):
            try:
                parts = [
                    pa.array(part, kind) if isinstance(part, list) else _cast(as_arrow(part), kind)
                    for part in self._segments
                ]
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
                continue
            return pa.concat_arrays(parts) if parts else None
        return None

    def row(self, name: object) -> int | None:
        """Return the row of a name, None if unknown."""
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            return None
        listed = self._rows.get(name)
        for k in range(len(self._segments) - 1, -1, -1):  # latest first: a name may be used again after removal
            if listed is not None and self._starts[k] <= listed:
                return listed
            if not isinstance(self._segments[k], list):
                found = self._row_in(k, name)
                if found is not None:
                    return found
        return None

    def rows(self, names: Any) -> NDArray[np.int64]:
        """Return the rows of the names of an Arrow array or a range, -1 for unknown names."""
        rows = np.full(len(names), -1, np.int64)
        for start, segment in zip(self._starts, self._segments, strict=True):  # later segments overwrite earlier ones
            if not isinstance(segment, list):
                found = _places(names, segment)
                rows = np.where(found >= 0, found + start, rows)
        if self._rows:
            listed = np.fromiter((self._rows.get(name, -1) for name in names_in(names)), np.int64, len(names))
            rows = np.maximum(rows, listed)
        return rows

    def rows_of(self, names: Any) -> NDArray[np.int32]:
        """Return the rows of the names of an Arrow array (may repeat) or a range; unknown names are added."""
        encoded = None if isinstance(names, range) else names.dictionary_encode()
        distinct = names if encoded is None else encoded.dictionary
        rows = self.rows(distinct)
        new = rows < 0
        if new.any():
            first = self.extend(distinct if new.all() else as_arrow(distinct).filter(new))
            rows[new] = np.arange(first, len(self))
        chosen = rows if encoded is None else rows[np.asarray(encoded.indices)]
        return chosen.astype(np.int32)

    def _row_in(self, k: int, name: Name) -> int | None:
        """Return the row of `name` in segment `k`, a range or an Arrow array; None if not there."""
        segment = self._segments[k]
        if isinstance(segment, range):
            return self._starts[k] + name - segment.start if isinstance(name, int) and name in segment else None
        if k not in self._hashed:
            hashes = np.fromiter(map(hash, segment.to_pylist()), np.int64, len(segment))
            order = np.argsort(hashes, kind="stable")
            self._hashed[k] = hashes[order], order
        hashes, order = self._hashed[k]
        at = int(np.searchsorted(hashes, hash(name)))
        while at < len(hashes) and hashes[at] == hash(name):
            if segment[int(order[at])].as_py() == name:
                return self._starts[k] + int(order[at])
            at += 1
        return None


def check_name(what: str, name: object) -> None:
    """Raise FilterError unless `name` is text that UTF-8 can encode, or an integer of at most NAME_BITS bits."""
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        raise FilterError(f"{what}: need a str or int, got {type(name).__name__}")
    if isinstance(name, str) and not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise FilterError(f"{what}: {name[:60]!r} cannot be encoded as UTF-8: {error.reason}") from error
    if isinstance(name, int) and name.bit_length() > NAME_BITS:
        raise FilterError(f"{what}: need an int of at most {NAME_BITS} bits, got {name.bit_length():,} bits; use text")


def names_in(names: Any) -> Any:
    """Return an iterable over the names of an Arrow array or a range."""
    return names if isinstance(names, range) else names.to_pylist()


def as_arrow(names: Any) -> Any:
    """Return the names of an Arrow array or a range as an Arrow array."""
    import pyarrow as pa

    return pa.array(np.arange(names.start, names.stop)) if isinstance(names, range) else names


def _cast(names: Any, kind: Any) -> Any:
    """Cast an Arrow array of names to `kind`; integers are not cast to text, nor text to integers."""
    import pyarrow as pa

    if pa.types.is_integer(names.type) != pa.types.is_integer(kind):
        raise pa.ArrowInvalid(f"{names.type} as {kind}")
    return names.cast(kind)


def _last_number(names: Any) -> int:
    """Return the largest integer below DEFAULT_NUMBER_LIMIT in an Arrow array or a range, -1 if there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(names, range):
        return names.stop - 1
    if not pa.types.is_integer(names.type):
        return -1
    last: int | None = pc.max(names).as_py()
    if last is not None and last >= DEFAULT_NUMBER_LIMIT:
        last = pc.max(names.filter(pc.less(names, pa.scalar(DEFAULT_NUMBER_LIMIT, names.type)))).as_py()
    return -1 if last is None else last


def _places(names: Any, segment: Any) -> NDArray[np.int64]:
    """Return the position of each name in `segment`, -1 if not there; both are Arrow arrays or ranges."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = np.full(len(names), -1, np.int64)
    if isinstance(names, range) and isinstance(segment, range):
        first, last = max(names.start, segment.start), min(names.stop, segment.stop)
        if first < last:
            missing[first - names.start : last - names.start] = np.arange(first, last) - segment.start
        return missing
    wanted, there = as_arrow(names), as_arrow(segment)
    if pa.types.is_integer(wanted.type) != pa.types.is_integer(there.type):
        return missing
    kinds = {wanted.type, there.type}
    if len(kinds) > 1:  # decimal128 holds the integers of all types
        kind = pa.decimal128(20) if pa.types.is_integer(wanted.type) else pa.large_string()
        wanted, there = wanted.cast(kind), there.cast(kind)
    found = pc.index_in(wanted, value_set=there)
    return np.asarray(found.fill_null(-1), np.int64)
