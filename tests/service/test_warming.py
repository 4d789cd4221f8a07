"""After the warm-up of a server no kernel is left to be loaded or compiled, whatever is subscribed and published."""

import subprocess
import sys

import pytest

WORK = """
import json
import math

from contrada import kernels
from contrada.broker.broker import Broker
from contrada.service.http.bulk import read_rows
from contrada.service.http.warming import warm_kernels
from contrada.service.intake import BodyReader, Post


def circle(x, y, radius, vertices):
    turns = [2 * math.pi * k / vertices for k in range(vertices)]
    ring = [[x + radius * math.cos(turn), y + radius * math.sin(turn)] for turn in turns]
    return [*ring, ring[0]]


def feature(shape, coordinates, **properties):
    geometry = {"type": shape, "coordinates": coordinates}
    return json.dumps({"type": "Feature", "properties": properties, "geometry": geometry}).encode()


def region(*circle_of):
    return "POLYGON ((" + ", ".join(f"{x} {y}" for x, y in circle(*circle_of)) + "))"


def loaded():
    return set(vars(kernels)) & set(kernels.NAMES)


warm_kernels()
before = loaded()
broker, reader, published = Broker("b", 1), BodyReader(), 0


def publish(*bodies):
    global published
    for part in reader.read([Post("json", body) for body in bodies]).parts:
        broker.publish(part.table, [str(published + row) for row in range(part.table.num_rows)])
        published += part.table.num_rows


filters = [f"S_INTERSECTS(geometry, {region(k % 30, k // 30, 1, 12)})" for k in range(600)]
filters += [f"severity >= {k % 7} AND kind = 'k{k % 50}' AND x < {k}" for k in range(600)]
filters += [f"S_INTERSECTS(geometry, {region(k % 30, 1, 1, 9)}) AND severity >= {k % 7}" for k in range(600)]
filters += [f"S_WITHIN(geometry, {region(3, 3, 2, 900)})", "S_INTERSECTS(geometry, POINT (1 1))", "kind LIKE '%a%b'"]
filters += [f"S_INTERSECTS(geometry, {region(1, 1, 1, 9)}) AND S_WITHIN(geometry, {region(1, 1, 3, 9)})"]
filters += [f"S_EQUALS(geometry, {region(1, 1, 1, 9)}) OR S_DISJOINT(geometry, {region(1, 1, 3, 9)})"]
for number, text in enumerate(filters):
    broker.subscribe("c", number, text)
    if number % 300 == 0:
        publish(feature("Point", [1, 1], severity=3, kind="k1", x=1))
holes = [[circle(1, 1, 2, 20), circle(1, 1, 1, 10)], [circle(9, 9, 2, 20)]]
publish(feature("Polygon", [circle(1, 1, 2, 12)]))
publish(feature("Polygon", [circle(1, 1, 2, 3_000)]))
publish(feature("MultiPolygon", holes), feature("Point", [1, 1], kind="xayb"), b'{"severity": 1e300}')
publish(*[feature("Polygon", [circle(k % 30, 1, 2, 12)], severity=k % 9, kind=f"k{k % 50}", x=k) for k in range(1_200)])
publish(*[feature("Point", [k % 30, 1], severity=k % 9, kind=f"k{k % 50}", x=k) for k in range(1_200)])
for number in range(0, len(filters), 3):
    broker.unsubscribe(number)
publish(feature("Point", [1, 1], severity=3, kind="k1", x=1))
rows = [json.loads(feature("Polygon", [circle(k, 1, 1, 12)], key=str(k))) for k in range(50)]
upload = json.dumps({"type": "FeatureCollection", "features": rows}).encode()
assert len(list(read_rows(upload, "json", "S_INTERSECTS(geometry, $geometry)"))) == 50
assert list(broker.predicates())
print(sorted(loaded() - before))
"""


@pytest.mark.slow
def test_a_warm_server_loads_no_further_kernel():
    found = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, timeout=600)
    assert (found.stdout, found.stderr) == ("[]\n", "")
