"""A table with one subscription, what an open copy of it matches, a table with every operator; squares as WKB."""

import shapely

import contrada as ct
from generators.filters_of_every_kind import FILTERS, subscription_rows, table_of


def some_table(least=3):
    table = ct.ForwardingTable()
    table.subscribe("ops-team", f"severity >= {least} AND S_INTERSECTS(area, POLYGON((0 0, 4 0, 4 4, 0 0)))", key="k")
    return table


def square(x, y, width):
    return shapely.to_wkb(shapely.box(x, y, x + width, y + width))


def every_operator():
    """Rows of subscriptions with every operator, several to a subscriber, and the table of a single process."""
    rows = subscription_rows(FILTERS, [f"k{k}" for k in range(len(FILTERS))])
    table, bad = table_of(rows)
    assert not bad
    return rows, table


def matches(opened):
    return set(opened.table.match({"severity": 5, "area": ct.Point(1, 0.5)}))
