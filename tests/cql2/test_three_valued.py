"""Any nesting of AND, OR and NOT, against plain three-valued evaluation of the expression itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada import Constraint
from contrada.cql2 import LanguageError, parse_json, parse_text, to_json
from effort import examples
from generators.scalars import constraints, messages
from oracles.plain import holds, predicate_holds
from oracles.subscriptions import subscribed


def trees():
    leaves = constraints() | st.sampled_from([True, False, *(f"flag{k}" for k in range(3))])

    def joined(below):
        several = st.lists(below, min_size=2, max_size=3)
        return st.tuples(st.just("not"), below) | st.builds(
            lambda name, parts: (name, *parts), st.sampled_from(["and", "or"]), several
        )

    return st.recursive(leaves, joined, max_leaves=9)


def truth(tree, message):
    """Kleene's logic: the least for AND, the greatest for OR, with unknown between false and true."""
    if isinstance(tree, bool):
        return tree
    if isinstance(tree, str):
        return message[tree] if type(message.get(tree)) is bool else None
    if isinstance(tree, Constraint):
        return holds(tree, message)
    name, *parts = tree
    below = [truth(part, message) for part in parts]
    if name == "not":
        return None if below[0] is None else not below[0]
    decided = name == "or"
    if decided in below:
        return decided
    return None if None in below else not decided


def as_text(tree):
    if isinstance(tree, bool):
        return str(tree).upper()
    if isinstance(tree, (str, Constraint)):
        return str(tree)
    name, *parts = tree
    if name == "not":
        return f"NOT ({as_text(parts[0])})"
    return f" {name} ".join(f"({as_text(part)})" for part in parts)


def as_json(tree):
    if isinstance(tree, bool):
        return tree
    if isinstance(tree, str):
        return {"property": tree}
    if isinstance(tree, Constraint):
        return to_json(tree)
    name, *parts = tree
    return {"op": name, "args": [as_json(part) for part in parts]}


def flagged():
    flag = st.sampled_from([True, False, None, 1, "true"])
    return st.builds(lambda message, *flags: message | {f"flag{k}": f for k, f in enumerate(flags)},
                     messages(), flag, flag, flag)  # fmt: skip


def parsed(tree):
    """The predicate, or why it is none."""
    try:
        return parse_text(as_text(tree))
    except LanguageError as error:
        if "always true" not in str(error) and "never true" not in str(error):
            raise
        return str(error)


@settings(deadline=None, max_examples=examples(200))
@given(st.lists(trees(), min_size=1, max_size=6), st.lists(flagged(), min_size=1, max_size=10))
def test_compiled_expressions_say_what_they_say(given_trees, asked):
    table = ct.ForwardingTable()
    kept = {}
    for key, tree in enumerate(given_trees):
        predicate = parsed(tree)
        if isinstance(predicate, str):  # which says that it is constant
            assert {truth(tree, message) is True for message in asked} == {"always true" in predicate}
            continue
        if isinstance(tree, tuple):
            assert parse_json(as_json(tree)) == predicate
        for message in asked:
            assert predicate_holds(predicate, message) == (truth(tree, message) is True)
        if subscribed(table, [predicate], key):
            kept[key] = tree
    for message in asked:
        assert set(table.match_keys(message)) == {key for key, tree in kept.items() if truth(tree, message) is True}


def test_what_is_true_of_all_numbers_asks_for_a_number():
    table = ct.ForwardingTable()
    table.subscribe("number", "x < 5 OR x >= 5")
    table.subscribe("region", "relation(x, BBOX(0, 0, 1, 1), 'meets', 'overlaps') OR "
                              "NOT relation(x, BBOX(0, 0, 1, 1), 'meets', 'overlaps')")  # fmt: skip
    names = "'disjoint', 'meets', 'overlaps', 'equals', 'inside', 'contains', 'covers', 'covered-by'"
    table.subscribe("region too", f"relation(x, BBOX(0, 0, 1, 1), {names})")
    table.subscribe("nobody", f"NOT relation(x, BBOX(0, 0, 1, 1), {names})")
    assert set(table.match({"x": 7})) == {"number"}
    assert set(table.match({"x": ct.Region.box(5, 5, 6, 6)})) == {"region", "region too"}
    assert set(table.match({"x": "text"})) == set(table.match({})) == set(table.match({"x": None})) == set()
