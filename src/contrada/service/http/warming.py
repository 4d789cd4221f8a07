"""Load the kernels that publishing and subscribing use, before the first request needs them."""

from __future__ import annotations

from contrada.broker.broker import Broker
from contrada.service.intake import BodyReader, Post

SQUARE = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
FILTERS = (
    f"S_INTERSECTS(geometry, {SQUARE})",
    f"S_WITHIN(geometry, {SQUARE}) AND severity >= 3",
    "severity >= 3 AND kind IN ('flood', 'storm')",
    "kind LIKE 'fl%' OR depth BETWEEN 1.5 AND 2.5",
)
POINT = (
    b'{"type":"Feature","properties":{"severity":3,"kind":"flood","depth":2.0},'
    b'"geometry":{"type":"Point","coordinates":[1,1]}}'
)
POLYGON = (
    b'{"type":"Feature","properties":{"severity":4,"kind":"storm"},'
    b'"geometry":{"type":"Polygon","coordinates":[[[1,1],[3,1],[3,3],[1,1]]]}}'
)


def warm_kernels() -> None:
    """Subscribe and publish on a broker of its own, with points and polygons, alone and in batches."""
    broker, reader, count = Broker("warm", 1), BodyReader(), 0
    for number in range(64):
        broker.subscribe("warm", number, FILTERS[number % len(FILTERS)])
    for bodies in ([POINT], [POLYGON], [POINT] * 100, [POLYGON] * 100, [POINT, POLYGON] * 50):
        for part in reader.read([Post("json", body) for body in bodies]).parts:
            broker.publish(part.table, [str(count + row) for row in range(part.table.num_rows)])
            count += part.table.num_rows
