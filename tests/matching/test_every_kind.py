"""Filters of every kind: what a single process answers, the reference of pipelines, is what plain evaluation says."""

import shapely

import contrada as ct
from generators.filters_of_every_kind import FILTERS, expected, random_messages, subscription_rows, table_of
from oracles.plain import predicate_holds


def value_of(data):
    """The region or point of WKB, as Shapely reads it; None if it is neither."""
    shape = shapely.from_wkb(data, on_invalid="ignore")
    kinds = {"Point": ct.Point, "Polygon": ct.Region, "MultiPolygon": ct.Region}
    return kinds[shape.geom_type].from_shapely(shape) if getattr(shape, "geom_type", "") in kinds else None


def test_a_single_process_answers_as_plain_evaluation_does():
    rows, messages, sent = subscription_rows(FILTERS), random_messages(300), {}
    for row in messages.flatten().to_pylist():
        area = row.pop("area")
        value = None if area is None else value_of(area)
        if area is None or value is not None:
            sent[row.pop("message_id")] = {**row, "area": value}
    table, bad = table_of(rows)
    assert bad == []
    matches, rejected = expected(table, messages)
    assert {name for name, _ in rejected} == set(messages["message_id"].to_pylist()) - sent.keys()
    asked = [(row["subscriber"], row["key"], ct.parse(row["filter"])) for row in rows.to_pylist()]
    right = [
        (name, subscriber, key)
        for name, message in sent.items()
        for subscriber, key, predicate in asked
        if predicate_holds(predicate, message)
    ]
    assert matches == sorted(right, key=repr)
    by_subscriber, _ = expected(table, messages, "subscriber")
    assert by_subscriber == sorted({(name, subscriber) for name, subscriber, _ in right}, key=repr)
