"""Subscriptions that several tests share: one, one of every operator, and rows of a template, most of them bad."""

import pyarrow as pa
import shapely

import contrada as ct
from contrada.matching.building import TableBuilder
from generators.filters_of_every_kind import FILTERS, subscription_rows, table_of


def some_table(least=3):
    table = ct.ForwardingTable()
    table.subscribe("ops-team", f"severity >= {least} AND S_INTERSECTS(area, POLYGON((0 0, 4 0, 4 4, 0 0)))", key="k")
    return table


def square(x, y, width):
    return shapely.to_wkb(shapely.box(x, y, x + width, y + width))


BOX, WIDE, POINT = square(0, 0, 2), square(0, 0, 5), shapely.to_wkb(shapely.Point(1, 1))
BOW_TIE = shapely.to_wkb(shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]))
TEMPLATE = "S_INTERSECTS(area, $geometry) AND size >= $least AND size >= 1"
TEMPLATE_ROWS = [
    (1, "x", BOX, 1.0), (2, "x", BOW_TIE, 1.0), (None, "x", BOX, 1.0), (4, "x", None, 1.0),
    (5, "x", BOX, float("nan")), (6, "x", POINT, 1.0), (1, "x", BOX, 2.0), (8, "y", b"odd", 1.0),
    (9, "x", WIDE, 0.0), (10, None, BOX, 1.0),
]  # fmt: skip


def template_rows(spark, partitions):
    """Those rows in Spark, and the row and key of each that a table of a single process refuses."""
    sent = [(key, who, area and bytearray(area), least) for key, who, area, least in TEMPLATE_ROWS]
    schema = "key int, subscriber string, geometry binary, least double"
    frame = spark.createDataFrame(spark.sparkContext.parallelize(sent, partitions), schema)
    columns = pa.table(list(map(pa.array, zip(*TEMPLATE_ROWS, strict=True))), frame.columns)
    bad = TableBuilder(ct.parse(TEMPLATE)).add(columns)
    return frame, [(item.row, item.key) for item in bad]


def every_operator():
    """Rows of subscriptions with every operator, several to a subscriber, and the table of a single process."""
    rows = subscription_rows(FILTERS, [f"k{k}" for k in range(len(FILTERS))])
    table, bad = table_of(rows)
    assert not bad
    return rows, table


def matches(opened):
    return set(opened.table.match({"severity": 5, "area": ct.Point(1, 0.5)}))
