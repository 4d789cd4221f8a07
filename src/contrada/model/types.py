"""Value types that users register, with their own operators and optionally their own index.

Regions and points are handled in the same way (matching/residual.py): a table only needs to test the constraints of a
type one by one, and an index that finds all constraints that a value satisfies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from contrada.errors import FilterError

Asked = tuple[str, Any]  # operator and operand


class ValueType:
    """Type of values: defines its name, its operators, the values it accepts and when an operator holds.

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
        """Return True for message values of this type; constraints of the type are unknown for other values."""
        raise NotImplementedError

    def takes(self, operator: str, operand: Any) -> bool:
        """Return True for operands of constraints that are of this type; others may be of another type."""
        return self.accepts(operand)

    def holds(self, operator: str, operand: Any, value: Any) -> bool:
        """Return whether an accepted value satisfies `value operator operand`."""
        raise NotImplementedError

    def matcher(self, asked: Sequence[Asked]) -> Callable[[Any], Iterable[int]]:
        """Return the index: a function from a value to the positions in `asked` it satisfies; a scan by default."""

        def scan(value: Any) -> list[int]:
            return [k for k, (operator, operand) in enumerate(asked) if self.holds(operator, operand, value)]

        return scan

    def share(self, operator: str, operand: Any) -> float:
        """Return the expected share of messages that satisfy a constraint: filters are reached through the rarest."""
        return 0.5

    def printed(self, name: str, operator: str, operand: Any) -> str:
        """Return the constraint as text."""
        return f"{operator.replace(' ', '_')}({name}, '{operand}')"

    def dump(self, operand: Any) -> Any:
        """Return an operand as JSON data, for saved tables."""
        raise NotImplementedError

    def load(self, dumped: Any) -> Any:
        """Return the operand that was dumped."""
        raise NotImplementedError


_TYPES: dict[str, ValueType] = {}
BUILT_IN_TYPES = (
    "region", "point", "near region", "near point", "near line", "metres region", "metres point", "line", "line region",
    "line point", "number", "timestamp", "boolean", "text",
)  # fmt: skip


def register_type(added: ValueType) -> None:
    """Register a type of values for all tables of this process; it replaces a type of the same name."""
    if added.name in BUILT_IN_TYPES:
        raise FilterError(f"cannot register type {added.name!r}: the name belongs to a built-in type")
    _TYPES[added.name] = added


def forget_types() -> list[ValueType]:
    """Remove all registered types, and return them."""
    forgotten = list(_TYPES.values())
    _TYPES.clear()
    return forgotten


def type_named(name: str) -> ValueType:
    """Return the registered type with this name; raise FilterError if there is none."""
    if name not in _TYPES:
        raise FilterError(
            f"unknown type {name!r}; types: {', '.join((*BUILT_IN_TYPES, *_TYPES))}; add one with register_type"
        )
    return _TYPES[name]


def type_taking(operator: str, operand: Any) -> ValueType | None:
    """Return the most recently registered type that takes this operand with this operator."""
    for added in reversed(_TYPES.values()):
        if operator in added.operators and added.takes(operator, operand):
            return added
    return None


def has_types() -> bool:
    """Return True if any type is registered."""
    return bool(_TYPES)


def types_accepting(value: Any) -> list[str]:
    """Return the names of the registered types that accept a value."""
    return [name for name, added in _TYPES.items() if added.accepts(value)]
