"""What a broker forwards to one neighbour: everything, what no other subscription covers, or that merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, Protocol

import msgspec

from contrada.broker.change import NO_CHANGE, LinkChange
from contrada.broker.merging import Merger
from contrada.covering import CoveringIndex
from contrada.errors import ArgumentError
from contrada.model import Predicate

Mode = Literal["covering", "merging", "flooding"]


class LinkOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How subscriptions are forwarded over a link.

    With `covering` a subscription that another one covers is not forwarded; with `withdraw` a later one that covers
    earlier ones replaces them. `merging` also forwards one filter in place of several, on each tick: a region of
    `shape` around theirs, of which at most `share` belongs to none of them. `flooding` forwards everything.
    """

    mode: Mode = "covering"
    withdraw: bool = False
    share: float = 0.1
    shape: Literal["box", "region"] = "box"

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ArgumentError(f"share: need a number from 0 to less than 1, got {self.share}")


class Forwarding(Protocol):
    """The subscriptions that concern a neighbour, by number, and which of them it is told about."""

    def add(self, number: int, predicate: Predicate) -> LinkChange:
        """Take a subscription; return what to tell the neighbour."""

    def remove(self, number: int) -> LinkChange:
        """Forget a subscription; return what to tell the neighbour."""

    def settle(self) -> LinkChange:
        """Return what to tell the neighbour now that time has passed."""

    def told(self) -> Iterator[tuple[int, Predicate]]:
        """Yield id and predicate of everything that the neighbour is told about."""

    def members(self, id: int) -> tuple[int, ...]:
        """Return the subscriptions for which the neighbour is told about `id`."""

    def __contains__(self, number: int) -> bool: ...

    def __len__(self) -> int: ...


class Flooding:
    """Forward every subscription: the control that others are compared with."""

    def __init__(self) -> None:
        self._predicates: dict[int, Predicate] = {}

    def add(self, number: int, predicate: Predicate) -> LinkChange:
        """Forward a subscription."""
        self._predicates[number] = predicate
        return LinkChange(((number, predicate),))

    def remove(self, number: int) -> LinkChange:
        """Withdraw a subscription."""
        del self._predicates[number]
        return LinkChange(withdraw=(number,))

    def settle(self) -> LinkChange:
        """Return no change."""
        return NO_CHANGE

    def told(self) -> Iterator[tuple[int, Predicate]]:
        """Yield every subscription."""
        yield from self._predicates.items()

    def members(self, id: int) -> tuple[int, ...]:
        """Return the subscription itself."""
        return (id,)

    def __contains__(self, number: int) -> bool:
        return number in self._predicates

    def __len__(self) -> int:
        return len(self._predicates)


class Covering:
    """Forward subscriptions that no other one covers; of those that cover each other the earliest.

    >>> from contrada.cql2 import parse
    >>> covering = Covering(withdraw=True)
    >>> covering.add(1, parse("severity >= 5"))
    LinkChange(forward=((1, <Predicate severity >= 5>),), withdraw=())
    >>> covering.add(2, parse("severity >= 3"))
    LinkChange(forward=((2, <Predicate severity >= 3>),), withdraw=(1,))
    >>> covering.remove(2)
    LinkChange(forward=((1, <Predicate severity >= 5>),), withdraw=(2,))
    """

    def __init__(self, withdraw: bool) -> None:
        self._index = CoveringIndex(withdraw=withdraw)

    def add(self, number: int, predicate: Predicate) -> LinkChange:
        """Forward a subscription unless another one covers it; with `withdraw`, withdraw those that it covers."""
        said = self._index.subscribe(number, predicate)
        return LinkChange(((number, predicate),), _numbers(said.withdraw)) if said.forward else NO_CHANGE

    def remove(self, number: int) -> LinkChange:
        """Forward what only this subscription covered, then withdraw it if it was forwarded."""
        said = self._index.unsubscribe(number)
        forward = tuple((key, self._index.predicate(key)) for key in _numbers(said.forward))
        return LinkChange(forward, (number,) if said.withdraw else ())

    def settle(self) -> LinkChange:
        """Return no change."""
        return NO_CHANGE

    def told(self) -> Iterator[tuple[int, Predicate]]:
        """Yield the subscriptions that are forwarded."""
        for number in _numbers(self._index.forwarded):
            yield number, self._index.predicate(number)

    def members(self, id: int) -> tuple[int, ...]:
        """Return the subscription itself."""
        return (id,)

    def __contains__(self, number: int) -> bool:
        return number in self._index

    def __len__(self) -> int:
        return len(self._index)


class Merging(Covering):
    """Forward uncovered subscriptions merged into fewer, larger ones, whenever time has passed."""

    def __init__(self, options: LinkOptions, new_id: Callable[[], int]) -> None:
        super().__init__(withdraw=True)
        self._merger = Merger(options.share, options.shape, new_id=new_id)

    def add(self, number: int, predicate: Predicate) -> LinkChange:
        """Take a subscription, to be forwarded when time has passed."""
        self._pass(super().add(number, predicate))
        return NO_CHANGE

    def remove(self, number: int) -> LinkChange:
        """Forget a subscription; what covers it stays forwarded until time has passed."""
        self._pass(super().remove(number))
        return NO_CHANGE

    def _pass(self, change: LinkChange) -> None:
        for number, predicate in change.forward:
            self._merger.add(number, predicate)
        for number in change.withdraw:
            self._merger.remove(number)

    def settle(self) -> LinkChange:
        """Return what to forward and withdraw for all that was added and removed."""
        return self._merger.settle()

    def told(self) -> Iterator[tuple[int, Predicate]]:
        """Yield the merged and unmerged filters that are forwarded."""
        yield from self._merger.forwarded.items()

    def members(self, id: int) -> tuple[int, ...]:
        """Return the subscriptions that a filter was merged from."""
        return self._merger.members(id)


def _numbers(keys: Iterable[Any]) -> tuple[int, ...]:
    """Return keys of the index, which are all numbers here."""
    return tuple(keys)


def forwarding_of(options: LinkOptions, new_id: Callable[[], int]) -> Forwarding:
    """Return an empty Forwarding of the given options; `new_id` gives ids for merged filters."""
    if options.mode == "flooding":
        return Flooding()
    return Merging(options, new_id) if options.mode == "merging" else Covering(options.withdraw)
