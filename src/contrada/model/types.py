"""Types of values that users add: with operators and, if they like, an index of their own.

Regions and points are kept in the same way (matching/residual.py): a table knows of a type only that its constraints
can be asked one by one, and that an index finds all that a value satisfies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from contrada.errors import FilterError

Asked = tuple[str, Any]  # an operator and an operand


class ValueType:
    """A type of values: give it a name, its operators, and say which values it accepts and when an operator holds.

    >>> from ipaddress import ip_address, ip_network
    >>> class Address(ValueType):
    ...     name, operators = "address", ("in network",)
    ...     def accepts(self, value): return hasattr(value, "max_prefixlen") and not hasattr(value, "netmask")
    ...     def takes(self, operator, operand): return hasattr(operand, "netmask")
    ...     def holds(self, operator, operand, value): return value in operand
    >>> Address().matcher([("in network", ip_network("10.0.0.0/8")), ("in network", ip_network("::/0"))])(
    ...     ip_address("10.1.2.3"))
    [0]
    """

    name: str
    operators: tuple[str, ...]

    def accepts(self, value: Any) -> bool:
        """True for the values of messages that are of this type; constraints of the type are unknown of all others."""
        raise NotImplementedError

    def takes(self, operator: str, operand: Any) -> bool:
        """True for the operands of constraints that are of this type; others may be of another type."""
        return self.accepts(operand)

    def holds(self, operator: str, operand: Any, value: Any) -> bool:
        """Whether a value that is accepted satisfies `value operator operand`."""
        raise NotImplementedError

    def matcher(self, asked: Sequence[Asked]) -> Callable[[Any], Iterable[int]]:
        """The index: a function from a value to the places, in `asked`, of all that it satisfies; a scan by default."""

        def scan(value: Any) -> list[int]:
            return [k for k, (operator, operand) in enumerate(asked) if self.holds(operator, operand, value)]

        return scan

    def share(self, operator: str, operand: Any) -> float:
        """The share of messages that is likely to satisfy a constraint: filters are reached through the rarest."""
        return 0.5

    def printed(self, name: str, operator: str, operand: Any) -> str:
        """The constraint as text."""
        return f"{operator.replace(' ', '_')}({name}, '{operand}')"

    def dump(self, operand: Any) -> Any:
        """An operand as JSON has it, for tables that are saved."""
        raise NotImplementedError

    def load(self, dumped: Any) -> Any:
        """The operand that was dumped."""
        raise NotImplementedError


_TYPES: dict[str, ValueType] = {}
BUILT_IN = ("region", "point", "number", "timestamp", "boolean", "text")


def register_type(added: ValueType) -> None:
    """Add a type of values, for all tables of this process; one of the same name takes its place."""
    if added.name in BUILT_IN:
        raise FilterError(f"the type {added.name!r} is built in")
    _TYPES[added.name] = added


def type_named(name: str) -> ValueType:
    """The type of a name; a FilterError if nobody added it."""
    if name not in _TYPES:
        raise FilterError(f"nobody registered a type {name!r}; there are {', '.join((*BUILT_IN, *_TYPES))}")
    return _TYPES[name]


def type_taking(operator: str, operand: Any) -> ValueType | None:
    """The type that was added last and takes an operand with this operator."""
    for added in reversed(_TYPES.values()):
        if operator in added.operators and added.takes(operator, operand):
            return added
    return None


def has_types() -> bool:
    """True if a type was added at all."""
    return bool(_TYPES)


def types_accepting(value: Any) -> list[str]:
    """The names of the types that were added and accept a value."""
    return [name for name, added in _TYPES.items() if added.accepts(value)]
