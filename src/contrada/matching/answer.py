"""Answers to `match` and `match_many`: read-only, set-like views over sorted arrays of row numbers."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence, Set
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from contrada.errors import ArgumentError
from contrada.geometry import Rejection
from contrada.matching.names import Name, Names

By = Literal["subscriber", "subscription"]


class Matches(Set[Name]):
    """The subscribers, or the keys of the subscriptions, that match a message.

    Set-like and read-only: `in`, `len`, iteration, comparison and set operations work. Names are looked up only when
    they are read. `rows` holds their rows in the table, sorted; later updates of the table do not change the answer.
    """

    __slots__ = ("_names", "rows")

    def __init__(self, rows: NDArray[np.int64], names: Names) -> None:
        self.rows = rows
        self._names = names
        if len(rows):
            rows.setflags(write=False)

    def __contains__(self, name: object) -> bool:
        row = self._names.row(name)
        if row is None:
            return False
        at = int(np.searchsorted(self.rows, row))
        return at < len(self.rows) and int(self.rows[at]) == row

    def __iter__(self) -> Iterator[Name]:
        return (self._names[int(row)] for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def _from_iterable(cls, names: object) -> set[Name]:  # type: ignore[override]
        return set(names)  # type: ignore[call-overload, no-any-return]

    def _repr_html_(self) -> str:
        """Return the names for Jupyter, of many the first."""
        from contrada.matching.pictures import matches_html

        return matches_html(self)

    def __repr__(self) -> str:
        shown = ", ".join(repr(name) for name, _ in zip(self, range(6), strict=False))
        return f"{{{shown}{', ...' if len(self) > 6 else ''}}}"


class TableNames(NamedTuple):
    """The names behind the rows of a table.

    `subscription_subscriber[k]` is the subscriber row of subscription k (None: row k). `keys` is None without keys.
    """

    subscribers: Names
    subscription_subscriber: NDArray[np.int32] | None
    keys: Names | None

    def of_subscriptions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the subscriber rows of the subscriptions in `rows`."""
        whose = self.subscription_subscriber
        return rows if whose is None else whose[rows].astype(np.int64)


class ManyMatches(Sequence[Matches]):
    """The answers to a batch of messages: `answer[i]` equals what `match` returns for message i.

    `keys(i)` and `subscribers(i)` list names; `to_arrow()` returns a table of all pairs. Message i matches the sorted
    rows `rows[offsets[i]:offsets[i + 1]]`: rows of subscribers if `by` is "subscriber", else of subscriptions.
    A rejected message matches nothing; `rejected` holds the reasons.

    >>> from contrada import ForwardingTable
    >>> table = ForwardingTable()
    >>> table.subscribe("ops-team", "severity >= 3", key="k17")
    'k17'
    >>> answer = table.match_many([{"severity": 4}, {"severity": 1}], by="subscription")
    >>> answer[0], answer.subscribers(0), len(answer[1])
    ({'k17'}, ['ops-team'], 0)
    >>> answer.to_arrow().to_pylist()
    [{'message': 0, 'key': 'k17', 'subscriber': 'ops-team'}]
    """

    __slots__ = ("_owners", "by", "offsets", "rejected", "rows")

    def __init__(
        self,
        offsets: NDArray[np.int64],
        rows: NDArray[np.int64],
        rejected: tuple[Rejection, ...],
        by: By,
        owners: TableNames,
    ) -> None:
        self.offsets, self.rows, self.rejected, self.by, self._owners = offsets, rows, rejected, by, owners

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Matches: ...

    @overload
    def __getitem__(self, index: slice) -> list[Matches]: ...

    def __getitem__(self, index: int | slice) -> Matches | list[Matches]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        names = self._owners.subscribers if self.by == "subscriber" else self._keys()
        return Matches(self._rows_of(index), names)

    def keys(self, index: int) -> list[Name]:
        """Return the keys of the subscriptions that message `index` satisfies; an error in an answer by subscriber."""
        if self.by == "subscriber":
            raise ArgumentError('an answer by subscriber has no keys; call match_many(messages, by="subscription")')
        names = self._keys()
        return [names[row] for row in self._rows_of(index).tolist()]

    def subscribers(self, index: int) -> list[Name]:
        """Return the subscribers that message `index` goes to, each once."""
        rows = self._rows_of(index)
        if self.by == "subscription":
            rows = np.unique(self._owners.of_subscriptions(rows))
        return [self._owners.subscribers[row] for row in rows.tolist()]

    def to_arrow(self) -> Any:
        """Return an Arrow table of all pairs: `message` (its position), `key` (if by subscription), `subscriber`.

        A column of names has integers if all its names are integers, else text.
        """
        import pyarrow as pa

        columns: dict[str, Any] = {"message": np.repeat(np.arange(len(self)), np.diff(self.offsets))}
        owners = self.rows
        if self.by == "subscription":
            columns["key"] = _name_column(self._keys(), self.rows)
            owners = self._owners.of_subscriptions(self.rows)
        columns["subscriber"] = _name_column(self._owners.subscribers, owners)
        return pa.table(columns)

    def _repr_html_(self) -> str:
        """Return the first messages for Jupyter, each with its matches."""
        from contrada.matching.pictures import many_html

        return many_html(self)

    def _keys(self) -> Names:
        assert self._owners.keys is not None, "a table without keys answers by subscriber"
        return self._owners.keys

    def _rows_of(self, index: int) -> NDArray[np.int64]:
        try:
            number = operator.index(index)
        except TypeError:
            raise ArgumentError(f"index: need the position of a message, got {type(index).__name__}") from None
        if not -len(self) <= number < len(self):
            shown = number if abs(number) < 1 << 63 else "beyond 64 bits"  # Python shows no number of 5,000 digits
            raise IndexError(f"message {shown} is outside an answer to {len(self)} messages")
        number %= len(self)
        return self.rows[self.offsets[number] : self.offsets[number + 1]]


def _name_column(names: Names, rows: NDArray[np.int64]) -> Any:
    """Return the names of `rows` as an Arrow array."""
    import pyarrow as pa

    chosen = names.chosen(rows)
    return pa.array([str(name) for name in chosen], pa.large_string()) if isinstance(chosen, list) else chosen
