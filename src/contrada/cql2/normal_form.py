"""Turn any nesting of AND, OR and NOT into a predicate: NOT moves to the leaves, AND below OR (normal form).

Logic is three-valued: De Morgan's laws and distribution also hold for unknown, and every constraint has a negation
that is unknown exactly where the constraint is. Only TRUE itself is dropped as always true. The number of filters is
known before the first is made.
"""

from __future__ import annotations

from itertools import chain, product
from typing import NamedTuple, TypeAlias

from contrada.cql2.conditions import constraint_of
from contrada.cql2.syntax import Fault, Node, Operation
from contrada.limits import limit, variable
from contrada.model import Constraint, Filter, Predicate

MAX_COUNTED = 10**15  # larger sizes are not counted exactly
NEGATED_JOIN = {"and": "or", "or": "and"}

Conjunction: TypeAlias = tuple[int, ...]  # the numbers of its constraints


class ExpressionPart(NamedTuple):
    """A part of an expression, NOTs above it applied: AND or OR of later parts, or a leaf."""

    node: Node
    joins: str  # "and", "or", or "" for a leaf
    parts: list[int]
    leaf: Constraint | bool


class ExpansionSize(NamedTuple):
    """The number of filters that a part expands to, and of constraints in all of them."""

    filters: int
    constraints: int


def predicate_of(root: Node) -> Predicate:
    """Return the predicate of an expression; raise a Fault if it is always or never true, or too large."""
    parts = _parts(root)
    sizes: list[ExpansionSize] = [ExpansionSize(0, 0)] * len(parts)
    for number in reversed(range(len(parts))):
        sizes[number] = _size(parts[number], sizes)
        _check(parts[number].node, sizes[number])
    constraints, conjunctions = _expanded(parts)
    if not conjunctions:
        raise Fault(root.at, "the filter is never true; no message would match")
    if () in conjunctions:
        raise Fault(root.at, "the filter is always true; to match every message with x write `x IS NOT NULL`")
    unique: dict[frozenset[int], Conjunction] = {}
    for each in conjunctions:
        unique.setdefault(frozenset(each), each)
    return Predicate(Filter(constraints[number] for number in dict.fromkeys(each)) for each in unique.values())


def _parts(root: Node) -> list[ExpressionPart]:
    """Return the parts of an expression, each before the parts that it joins; without recursion, to allow any depth."""
    parts: list[ExpressionPart] = []
    waiting: list[tuple[Node, bool, int]] = [(root, False, -1)]  # node, whether it is negated, the part that joins it
    while waiting:
        node, is_negated, above = waiting.pop()
        while isinstance(node, Operation) and node.name == "not":
            if len(node.arguments) != 1:
                raise Fault(node.at, f"NOT needs one condition, got {len(node.arguments)}")
            node, is_negated = node.arguments[0], not is_negated
        if above >= 0:
            parts[above].parts.append(len(parts))
        if isinstance(node, Operation) and node.name in NEGATED_JOIN:
            if not node.arguments:
                raise Fault(node.at, f"{node.name.upper()} needs at least one condition")
            joins = NEGATED_JOIN[node.name] if is_negated else node.name
            waiting += [(argument, is_negated, len(parts)) for argument in reversed(node.arguments)]
            parts.append(ExpressionPart(node, joins, [], False))
        else:
            leaf = constraint_of(node)
            if is_negated:
                leaf = not leaf if isinstance(leaf, bool) else leaf.negated
            parts.append(ExpressionPart(node, "", [], leaf))
    return parts


def _size(part: ExpressionPart, sizes: list[ExpansionSize]) -> ExpansionSize:
    """Return the size of a part, from the sizes of the parts that it joins."""
    if not part.joins:
        return ExpansionSize(int(part.leaf is not False), int(isinstance(part.leaf, Constraint)))
    below = [sizes[number] for number in part.parts]
    if part.joins == "or":
        filters, constraints = (sum(column) for column in zip(*below, strict=True))
    else:
        filters = 1
        constraints = 0
        for size in below:
            constraints = min(constraints * size.filters + size.constraints * filters, MAX_COUNTED)
            filters = min(filters * size.filters, MAX_COUNTED)
    return ExpansionSize(min(filters, MAX_COUNTED), min(constraints, MAX_COUNTED))


def _check(node: Node, size: ExpansionSize) -> None:
    """Raise a Fault if the expansion is too large. Inner parts are checked first, so the smallest one is reported."""
    filters, constraints = ("more than 10^15" if count == MAX_COUNTED else f"{count:,}" for count in size)
    if size.filters > limit("filters"):
        name, found = "filters", f"{filters} filters"
    elif size.constraints > limit("constraints") and size.filters > 1:
        name, found = "constraints", f"{filters} filters with {constraints} constraints"
    else:
        return
    message = f"this part expands to {found}, as an OR of ANDs; the limit is {limit(name):,} ({variable(name)})"
    raise Fault(node.at, f"{message}; use several subscriptions, or IN for an OR of equal comparisons")


def _expanded(parts: list[ExpressionPart]) -> tuple[list[Constraint], list[Conjunction]]:
    """Return the distinct constraints, and the expression as a list of conjunctions of their numbers."""
    numbers: dict[Constraint, int] = {}
    expanded: list[list[Conjunction]] = [[]] * len(parts)
    for number in reversed(range(len(parts))):
        part = parts[number]
        below = [expanded[each] for each in part.parts]
        if part.joins == "or":
            expanded[number] = list(chain.from_iterable(below))
        elif part.joins == "and":
            expanded[number] = [tuple(chain.from_iterable(chosen)) for chosen in product(*below)]
        elif isinstance(part.leaf, bool):
            expanded[number] = [()] if part.leaf else []
        else:
            expanded[number] = [(numbers.setdefault(part.leaf, len(numbers)),)]
        for each in part.parts:
            expanded[each] = []  # no longer needed
    return list(numbers), expanded[0]
