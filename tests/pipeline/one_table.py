"""A table with one subscription, and what an open copy of it matches."""

import contrada as ct


def some_table(least=3):
    table = ct.ForwardingTable()
    table.subscribe("ops-team", f"severity >= {least} AND S_INTERSECTS(area, POLYGON((0 0, 4 0, 4 4, 0 0)))", key="k")
    return table


def matches(opened):
    return set(opened.table.match({"severity": 5, "area": ct.Point(1, 0.5)}))
