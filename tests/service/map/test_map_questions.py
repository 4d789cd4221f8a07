"""Why and why not, filters in all forms, vector tiles, and screens that need no key."""

from __future__ import annotations

import json
import math
import random
import time

import pytest
import shapely

from contrada import Relation
from contrada.cql2 import parse
from contrada.service.catalog import Definition
from contrada.service.map.filter_shapes import FilterShapeReader
from contrada.service.map.tile_index import TileIndex
from contrada.service.views import SubscriptionView
from map_watching import watching
from oracles.rational import relate_rational
from serving import feature, is_problem, run, site

PAIRS = {
    "disjoint": ((0, 0, 1, 1), (2, 2, 3, 3)),
    "meets": ((0, 0, 1, 1), (1, 0, 2, 1)),
    "overlaps": ((0, 0, 2, 2), (1, 1, 3, 3)),
    "equals": ((0, 0, 1, 1), (0, 0, 1, 1)),
    "inside": ((1, 1, 2, 2), (0, 0, 3, 3)),
    "contains": ((0, 0, 3, 3), (1, 1, 2, 2)),
    "covered-by": ((0, 0, 1, 1), (0, 0, 3, 3)),
    "covers": ((0, 0, 3, 3), (0, 0, 1, 1)),
}
OPERATORS = {
    "S_INTERSECTS": set(PAIRS) - {"disjoint"},
    "S_DISJOINT": {"disjoint"},
    "S_TOUCHES": {"meets"},
    "S_OVERLAPS": {"overlaps"},
    "S_EQUALS": {"equals"},
    "S_WITHIN": {"inside", "covered-by", "equals"},
    "S_CONTAINS": {"contains", "covers", "equals"},
}


def polygon(*box):
    return json.loads(shapely.to_geojson(shapely.box(*box)))


def ring(box):
    xmin, ymin, xmax, ymax = box
    return [([(xmin, ymin), (xmax, ymin), (xmax, ymax), (xmin, ymax)], [])]


@pytest.mark.parametrize("relation", PAIRS)
def test_every_relation_is_named_and_decides(tmp_path, relation):
    message, asked = PAIRS[relation]
    assert str(Relation(relate_rational(ring(message), ring(asked)))) == relation

    async def work():
        async with site(tmp_path) as here:
            await here.publish({"area": polygon(*message), "depth": 2})
            for operator, holds in OPERATORS.items():
                filter = f"{operator}(area, BBOX{asked}) AND depth >= 2 AND wind < 5"
                await here.subscribe("a", "ann", filter)
                found = (await here.ask("POST", "/map/explain", {"key": "a", "sequence": 1})).body
                (part,) = found["filters"]
                spatial, *others = sorted(part["constraints"], key=lambda one: one["spatial"] is None)
                assert spatial["relation"] == relation
                assert spatial["truth"] is (relation in holds)
                assert set(spatial["spatial"]["relations"]) == holds
                for name, box in (("asked", asked), ("found", message)):
                    shape = shapely.from_geojson(json.dumps(spatial["spatial"][name]))
                    assert shapely.equals(shape, shapely.box(*box))
                verdicts = {one["attribute"]: (one["truth"], one["value"]) for one in others}
                assert verdicts == {"depth": (True, 2), "wind": (None, None)}
                assert (found["matches"], found["truth"]) == (False, None if relation in holds else False)
                assert (found["key"], found["subscriber"], found["written"]) == ("a", "ann", filter)

    run(work())


def test_a_match_is_explained_by_sequence_message_key_and_filter(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            filter = "S_WITHIN(geometry, BBOX(0, 0, 2, 2)) AND kind IN ('flood', 'storm') OR depth > 9"
            await here.subscribe("a", "ann", filter)
            message = feature(1, 1, kind="storm")
            await here.publish(message)
            answers = [
                (await here.ask("POST", "/map/explain", {**which, **what})).body
                for which in ({"key": "a"}, {"filter": filter})
                for what in ({"sequence": 1}, {"message": message})
            ]
            for found in answers:
                assert (found["matches"], found["truth"], found["nearest"], found["note"]) == (True, True, 0, None)
                assert [part["truth"] for part in found["filters"]] == [True, None]
            assert answers[0]["verdict"] == "'a' of 'ann' matches."
            assert answers[2]["verdict"] == "The filter matches."
            assert (answers[2]["key"], answers[2]["subscriber"]) == (None, None)

    run(work())


def test_a_difference_from_the_log_is_noted(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.publish({"n": 1})
            await here.subscribe("a", "ann", "n > 0")
            found = (await here.ask("POST", "/map/explain", {"key": "a", "sequence": 1})).body
            assert found["matches"] is True
            assert "applies from message 2" in found["note"]
            await here.publish({"n": 2})
            assert (await here.ask("POST", "/map/explain", {"key": "a", "sequence": 2})).body["note"] is None
            await here.subscribe("a", "ann", "n > 5")
            found = (await here.ask("POST", "/map/explain", {"key": "a", "sequence": 2})).body
            assert found["matches"] is False
            assert "another filter" in found["note"]

    run(work())


def test_an_object_that_is_tracked_is_inside_or_not(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("depot", "eve", "S_WITHIN(geometry, BBOX(0, 0, 1, 1))", track="bus")
            await here.publish(feature(0.5, 0.5, bus="b7"))
            found = (await here.ask("POST", "/map/explain", {"key": "depot", "sequence": 1})).body
            assert (found["track"]["id"], found["track"]["inside"]) == ("b7", True)
            asked = {"key": "depot", "message": feature(0.5, 0.5, bus="b8")}
            assert (await here.ask("POST", "/map/explain", asked)).body["track"] == {
                "id": "b8", "inside": False, "since": None,
            }  # fmt: skip

    run(work())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"key": "a"}, 400),
        ({"key": "a", "filter": "n > 1", "sequence": 1}, 400),
        ({"key": "a", "sequence": 1, "message": {}}, 400),
        ({"key": "nobody", "sequence": 1}, 404),
        ({"filter": "n > 1", "sequence": 9}, 404),
        ({"filter": "n >", "sequence": 1}, 400),
        ({"filter": "n > 1", "sequence": 0}, 400),
        (
            {
                "filter": "n > 1",
                "message": {"g": {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}},
            },
            400,
        ),
        ({"filter": "n > 1", "message": [1]}, 400),
        ({"filter": "n > $column", "message": {"n": 1}}, 400),
        ({"filter": "n > 1", "message": {"n": 1}, "more": 1}, 400),
    ],
)
def test_bad_questions_are_problems(tmp_path, body, status):
    async def work():
        async with site(tmp_path) as here:
            await here.publish({"n": 1})
            answer = await here.ask("POST", "/map/explain", body)
            assert answer.status == status, answer
            assert answer.headers["Content-Type"] == "application/problem+json"

    run(work())


# --- filters ---


@pytest.mark.parametrize(
    "text",
    [
        "depth >= 3",
        "S_INTERSECTS(area, BBOX(0, 0, 1, 1)) AND depth BETWEEN 1 AND 5",
        "NOT (S_WITHIN(area, POINT(1 2)) OR kind IN ('a', 'it''s')) AND name LIKE 'Via %'",
        "CASEI(name) = CASEI('Siena') OR x IS NULL OR at > TIMESTAMP('2026-05-01T00:00:00Z')",
        "relation(area, BBOX(0, 0, 1, 1), 'meets', 'covers') AND open = TRUE",
    ],
)
def test_filters_go_to_json_and_back(tmp_path, text):
    async def work():
        async with site(tmp_path) as here:
            first = (await here.ask("POST", "/map/filter", {"text": text})).body
            assert (first["valid"], first["problem"]) == (True, None)
            assert parse(first["text"]) == parse(text) == parse(first["json"])
            again = (await here.ask("POST", "/map/filter", {"json": first["json"]})).body
            assert again == first
            rows = first["filters"]
            joined = " OR ".join("(" + " AND ".join(one["text"] for one in row) + ")" for row in rows)
            assert parse(joined) == parse(text)
            spatial = [one for row in rows for one in row if one["shape"] is not None]
            assert {one["shape"] for one in spatial} == set(range(len(first["shapes"])))
            for one in spatial:
                assert one["value"] == first["shapes"][one["shape"]]["geometry"]

    run(work())


def test_a_form_has_operators_and_values(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            text = (
                "a BETWEEN 1 AND 2 AND b IN ('x', 'y') AND NOT c LIKE 'z%' AND d IS NOT NULL AND CASEI(e) <> CASEI('Q')"
            )
            (row,) = (await here.ask("POST", "/map/filter", {"text": text})).body["filters"]
            shown = {one["attribute"]: (one["operator"], one["value"], one["casei"]) for one in row}
            assert shown == {
                "a": ("between", [1, 2], False),
                "b": ("in", ["x", "y"], False),
                "c": ("not like", "z%", False),
                "d": ("not is null", None, False),
                "e": ("<>", "Q", True),
            }

    run(work())


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ({"text": "depth > > 3"}, {"line": 1, "column": 9}),
        ({"text": "depth > 3 AND\n  S_INTERSECTS(a, POLYGON((0 0, 1 1, 1 0, 0 1, 0 0)))"}, {"line": 2}),
        ({"text": ""}, {"line": 1, "column": 1}),
        ({"json": {"op": "and", "args": [{"property": "a"}, {"op": "s_covers", "args": []}]}}, {"path": "/args/1/op"}),
        ({"text": "a = $b"}, {}),
        ({"text": "<img src=x onerror=alert(1)>"}, {"line": 1}),
    ],
)
def test_a_bad_filter_is_answered_with_the_place_of_the_fault(tmp_path, asked, place):
    async def work():
        async with site(tmp_path) as here:
            answer = await here.ask("POST", "/map/filter", asked)
            assert answer.status == 200
            found = answer.body
            assert (found["valid"], found["text"], found["json"], found["shapes"]) == (False, None, None, [])
            assert found["problem"]["detail"]
            assert {name: found["problem"].get(name) for name in place} == place

    run(work())


def test_requests_without_one_filter_are_refused(tmp_path):
    async def work():
        async with site(tmp_path, limits_filter_bytes=1_000) as here:
            for bad in ({}, {"text": "a > 1", "json": {}}, {"text": 5}):
                assert is_problem(await here.ask("POST", "/map/filter", bad), 400, "bad-body")
            assert (await here.ask("POST", "/map/filter", {"text": "a > 1" + " " * 1_000})).status == 413

    run(work())


# --- public screens ---


def test_a_public_screen_sees_geometry_and_changes_nothing(tmp_path):
    async def work():
        async with site(tmp_path, map_public="default") as here:
            await here.subscribe("a", "ann", "S_INTERSECTS(geometry, BBOX(0, 0, 1, 1)) AND secret = 7")
            settings = (await here.ask("GET", "/map/settings", key=None)).body
            assert (settings["read_only"], settings["needs_key"], settings["shows"]) == (True, False, [])
            assert settings["bounds"] == [0, 0, 1, 1]
            async with watching(here, key=None) as watch:
                await here.ask("POST", "/messages", feature(0.5, 0.5, secret=7), message_id="private-1")
                (live,) = await watch.messages(1)
            (shown,) = (await here.ask("GET", "/map/messages", key=None)).body["messages"]
            assert shown == live
            assert (shown["attributes"], shown["id"], shown["matched"]) == ({}, None, ["a"])
            (found,) = (await here.ask("GET", "/map/subscriptions", key=None)).body["subscriptions"]
            assert (found["filter"], found["conditions"], found["subscriber"]) == (None, None, None)
            assert len(found["shapes"]) == 1
            detail = (await here.ask("GET", "/map/subscriptions/a", key=None)).body
            assert (detail["lag"], detail["last"]) == (None, [shown])
            assert is_problem(
                await here.ask("POST", "/map/explain", {"key": "a", "sequence": 1}, key=None), 403, "forbidden"
            )
            changes = [
                ("PUT", "/subscriptions/b", {"subscriber": "x", "filter": "a > 1"}),
                ("DELETE", "/subscriptions/a", None),
                ("PATCH", "/subscriptions/a", {"paused": True}),
                ("POST", "/messages", {"n": 1}),
                ("POST", "/map/token", None),
                ("GET", "/subscriptions", None),
                ("GET", "/subscribers", None),
                ("GET", "/subscribers/ann/events", None),
            ]
            for method, path, value in changes:
                answer = await here.ask(method, path, value, key=None)
                assert is_problem(answer, 401, "unauthorized"), path
                assert "read-only" in answer.body["detail"]
            assert (await here.ask("GET", "/map/messages", key="wrong")).status == 401
            assert (await here.ask("GET", "/map/messages")).body["messages"][0]["attributes"] == {"secret": 7}
            assert (await here.ask("GET", "/map/messages")).body["messages"][0]["id"] == "private-1"

    run(work())


def test_a_public_screen_is_shown_what_settings_say(tmp_path):
    async def work():
        shown = "filters,attributes"
        async with site(tmp_path, map_public="default", map_public_shows=shown) as here:
            await here.subscribe("a", "ann", "S_INTERSECTS(geometry, BBOX(0, 0, 1, 1)) AND depth = 7")
            await here.publish(feature(0.5, 0.5, depth=7))
            (found,) = (await here.ask("GET", "/map/subscriptions", key=None)).body["subscriptions"]
            assert (found["conditions"], found["subscriber"]) == ("depth = 7", None)
            answer = await here.ask("POST", "/map/explain", {"key": "a", "sequence": 1}, key=None)
            assert (answer.status, answer.body["matches"], answer.body["subscriber"]) == (200, True, None)
            assert answer.body["verdict"] == "'a' matches."

    run(work())


def test_only_the_public_tenant_is_public(tmp_path):
    async def work():
        async with site(tmp_path, map_public="plaza") as here:
            await here.publish({"n": 1})
            assert (await here.ask("GET", "/map/messages", key=None)).body["messages"] == []
            assert (await here.ask("GET", "/map/settings", key=None)).body["tenant"] == "plaza"
            assert (await here.ask("GET", "/map/settings")).body["tenant"] == "default"

    run(work())


# --- tiles ---


def read_varint(data, place):
    number = shift = 0
    while True:
        byte = data[place]
        number |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return number, place


def members(data):
    """Yield the number and value of the members of a Protocol Buffers message."""
    place = 0
    while place < len(data):
        tag, place = read_varint(data, place)
        if tag & 7 == 2:
            size, place = read_varint(data, place)
            yield tag >> 3, data[place : place + size]
            place += size
        else:
            value, place = read_varint(data, place)
            yield tag >> 3, value


def numbers(data):
    place, found = 0, []
    while place < len(data):
        number, place = read_varint(data, place)
        found.append(number)
    return found


def rings(commands):
    """Return the paths of a feature by the rules of the specification."""
    x = y = place = 0
    found = []
    while place < len(commands):
        command, count = commands[place] & 7, commands[place] >> 3
        place += 1
        if command == 7:
            continue
        for _ in range(count):
            x += (commands[place] >> 1) ^ -(commands[place] & 1)
            y += (commands[place + 1] >> 1) ^ -(commands[place + 1] & 1)
            place += 2
            if command == 1:
                found.append([])
            found[-1].append((x, y))
    return found


def features(tile):
    """Return the features of a tile: members by name, kind, and rings; read by the specification alone."""
    if not tile:
        return []
    ((_, layer),) = members(tile)
    parts = list(members(layer))
    assert [value for number, value in parts if number == 1] == [b"subscriptions"]
    assert [value for number, value in parts if number in (5, 15)] == [2, 4096] or [
        value for number, value in parts if number in (5, 15)
    ] == [4096, 2]
    names = [value.decode() for number, value in parts if number == 3]
    values = []
    for number, value in parts:
        if number == 4:
            ((kind, one),) = members(value)
            values.append(one.decode() if kind == 1 else bool(one) if kind == 7 else one)
    found = []
    for number, value in parts:
        if number == 2:
            own = dict(members(value))
            tags = numbers(own[2])
            told = {names[a]: values[b] for a, b in zip(tags[::2], tags[1::2], strict=True)}
            found.append((told, own[3], rings(numbers(own[4]))))
    return found


async def tile(here, path):
    answer = await here.ask("GET", f"/map/tiles/subscriptions/{path}")
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "application/vnd.mapbox-vector-tile"
    return features(answer.body)


def test_tiles_have_the_shapes_of_subscriptions(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            hole = "POLYGON((-90 -60, 90 -60, 90 60, -90 60, -90 -60), (-10 -10, -10 10, 10 10, 10 -10, -10 -10))"
            await here.subscribe("a", "ann", f"S_INTERSECTS(g, {hole}) AND x > 1")
            await here.subscribe("b", "ann", "S_WITHIN(g, POINT(0 0))", paused=True)
            found = {told["key"]: (told, kind, paths) for told, kind, paths in await tile(here, "0/0/0")}
            assert set(found) == {"a", "b"}
            told, kind, paths = found["a"]
            assert (told["relation"], told["paused"], told["tracked"], told["count"]) == (
                "S_INTERSECTS",
                False,
                False,
                1,
            )
            assert kind == 3
            outer, inner = paths
            assert {x for x, _ in outer} == {1024, 3072}
            assert sum(a[0] * b[1] - a[1] * b[0] for a, b in zip(outer, outer[1:] + outer[:1], strict=True)) > 0
            assert sum(a[0] * b[1] - a[1] * b[0] for a, b in zip(inner, inner[1:] + inner[:1], strict=True)) < 0
            told, kind, paths = found["b"]
            assert (kind, paths, told["paused"]) == (1, [[(2048, 2048)]], True)
            assert await tile(here, "3/0/0") == []
            await here.ask("DELETE", "/subscriptions/a")
            await here.subscribe("c", "ann", "S_INTERSECTS(g, BBOX(0, 0, 90, 60))")
            assert {told["key"] for told, _, _ in await tile(here, "0/0/0")} == {"b", "c"}

    run(work())


def test_small_shapes_are_counted_by_cells_and_none_is_lost(tmp_path):
    chance = random.Random(5)
    boxes = []
    for _ in range(3_000):
        x, y, size = chance.uniform(-170, 170), chance.uniform(-80, 80), 10 ** chance.uniform(-3, 1)
        boxes.append((x, y, x + size, min(y + size, 85)))

    async def work():
        async with site(tmp_path) as here:
            rows = "\n".join(
                json.dumps({"key": f"k{number}", "filter": f"S_INTERSECTS(g, BBOX{box})"})
                for number, box in enumerate(boxes)
            )
            answer = await here.ask("POST", "/subscriptions", data=rows, kind="application/x-ndjson")
            assert answer.body["count"] == len(boxes)
            found = await tile(here, "0/0/0")
            assert sum(told["count"] for told, _, _ in found) == len(boxes)
            assert 100 < sum("key" in told for told, _, _ in found) < len(boxes)
            # A deep tile has exactly the shapes that Shapely finds there, each by itself.
            width = 360 / 2**6
            edge = shapely.box(-180 + 33 * width, -90, -180 + 34 * width, 90)
            keys = set()
            for row in range(2**6):
                keys |= {told["key"] for told, _, _ in await tile(here, f"6/33/{row}") if "key" in told}
            large = {f"k{number}" for number, box in enumerate(boxes)
                     if box[2] - box[0] > 0.1 and shapely.box(*box).intersects(edge)}  # fmt: skip
            assert large <= keys

    run(work())


def test_tiles_of_plain_coordinates_lie_on_the_plane(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "S_INTERSECTS(g, BBOX(1000, 2000, 1100, 2050))")
            ((told, _, paths),) = await tile(here, "0/0/0?plane=1050,2025,200")
            assert told["key"] == "a"
            assert set(paths[0]) == {(1024, 1536), (3072, 1536), (3072, 2560), (1024, 2560)}

    run(work())


class ManySubscriptions:
    """Stands for a store with many subscriptions, without the minutes that it takes to fill one."""

    def __init__(self, count):
        side = math.isqrt(count)
        angles = [2 * math.pi * step / 16 for step in (*range(16), 0)]
        self._views = []
        for number in range(count):
            x, y, size = number % side * 0.3 - 40, number // side * 0.3 - 40, 0.05 + number % 7 * 0.03
            ring = ", ".join(f"{x + size * math.cos(one):.6f} {y + size * math.sin(one):.6f}" for one in angles)
            filter = f"S_INTERSECTS(area, POLYGON(({ring}))) AND severity >= {number % 5}"
            self._views.append(SubscriptionView(f"k{number}", Definition(number, "ann", 1, 0), filter))

    def all_subscriptions(self, tenant):
        yield self._views


@pytest.mark.slow
def test_tiles_of_many_subscriptions_are_made_quickly():
    count = 100_000
    kept = ManySubscriptions(count)
    index = TileIndex("t", lambda: kept, FilterShapeReader())
    assert len(index) == count  # reads all filters
    for place in ((0, 0, 0), (2, 2, 1), (4, 8, 7), (5, 16, 15), (6, 33, 30), (7, 64, 63), (8, 130, 125)):
        start = time.perf_counter()
        found = features(index.tile(*place))
        assert found
        assert time.perf_counter() - start < 2.0, place  # a fraction of that on a machine of one's own
    assert sum(told["count"] for told, _, _ in features(index.tile(0, 0, 0))) == count
