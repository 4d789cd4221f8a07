"""Tables against plain evaluation: what was subscribed, kept beside the table, and every door's answers against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import shapely

import contrada as ct
from oracles.plain import predicate_holds

Model: TypeAlias = dict[Any, tuple[Any, ct.Predicate]]  # subscriber and predicate by key


def subscribed(table: ct.ForwardingTable, predicates: Iterable[ct.Predicate], first: int = 0) -> Model:
    """Subscribe under numbers from `first`, for one of five subscribers; a number too close to another is refused."""
    model: Model = {}
    for key, predicate in enumerate(predicates, first):
        try:
            table.subscribe(f"s{key % 5}", predicate, key=key)
        except ct.FilterError as error:
            if "cannot be distinguished" not in str(error):
                raise
        else:
            model[key] = f"s{key % 5}", predicate
    return model


def unsubscribe(table: ct.ForwardingTable, model: Model, keys: Iterable[Any]) -> None:
    """Remove those of the keys that there are from a table and its model."""
    for key in set(keys) & model.keys():
        table.unsubscribe(key)
        del model[key]


def saved_and_opened(table: ct.ForwardingTable) -> ct.ForwardingTable:
    """Return a table that another one was saved as; what it maps outlives the directory."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "table"
        table.save(path)
        ct.ForwardingTable.verify(path)
        return ct.ForwardingTable.open(path)


def recalled(table: ct.ForwardingTable, key: Any) -> ct.Predicate:
    """Return the predicate of a subscription, of the constraints that an explanation names."""
    filters = table.explain({}, key).filters
    return ct.Predicate(ct.Filter(part.constraint for part in each.constraints) for each in filters)


def matching_keys(model: Model, message: Mapping[str, Any]) -> set[Any]:
    """The keys whose predicates hold for a message, one by one."""
    return {key for key, (_, predicate) in model.items() if predicate_holds(predicate, message)}


def check_answers(table: ct.ForwardingTable, model: Model, messages: Sequence[Mapping[str, Any]]) -> None:
    """Raise AssertionError unless match_keys, match and match_many answer as plain evaluation does."""
    table.check()
    assert set(table) == model.keys()
    expected = [matching_keys(model, message) for message in messages]
    for message, keys in zip(messages, expected, strict=True):
        assert set(table.match_keys(message)) == keys, message
        assert set(table.match(message)) == {model[key][0] for key in keys}, message
    many = table.match_many(list(messages), by="subscription")
    assert not many.rejected
    assert [set(many.keys(k)) for k in range(len(messages))] == expected


def bound(template: ct.Predicate, row: Mapping[str, Any]) -> ct.Predicate:
    """A template with the values of a row in place of its columns; bytes are WKB."""

    def put(item: Any) -> Any:
        value = row[item.name] if isinstance(item, ct.Column) else item
        if not isinstance(value, bytes):
            return value
        shape = shapely.from_wkb(value)
        return ct.Point.from_shapely(shape) if shape.geom_type == "Point" else ct.Region.from_shapely(shape)

    def constraint(one: ct.Constraint) -> ct.Constraint:
        value = tuple(map(put, one.value)) if type(one.value) is tuple else put(one.value)
        return ct.Constraint(one.attribute, one.operator, value, casei=one.casei, accenti=one.accenti)

    return ct.Predicate(ct.Filter(constraint(one) for one in part) for part in template)
