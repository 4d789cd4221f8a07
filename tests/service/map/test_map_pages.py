"""What the map shows of subscriptions and messages, page by page, against a model of its own."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
import shapely

from contrada.service.http.routes import TABLE
from serving import feature, is_problem, run, site

HOSTILE = "<img src=x onerror=alert(1)>&\"'</script>"
CAP = """<?xml version="1.0" encoding="UTF-8"?>
<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>A-1</identifier><sender>x@example.org</sender>
<sent>2026-05-01T12:00:00+00:00</sent><status>Actual</status><msgType>Alert</msgType><scope>Public</scope>
<info><category>Met</category><event>Flood</event><urgency>Immediate</urgency><severity>Severe</severity>
<certainty>Observed</certainty><area><areaDesc>Siena</areaDesc><polygon>43,11 43,12 44,12 43,11</polygon></area>
</info></alert>"""


def box_text(xmin, ymin, xmax, ymax):
    return f"POLYGON(({xmin} {ymin}, {xmax} {ymin}, {xmax} {ymax}, {xmin} {ymax}, {xmin} {ymin}))"


def polygon(*box):
    return json.loads(shapely.to_geojson(shapely.box(*box)))


async def get(here, path, **more):
    answer = await here.ask("GET", f"/map/{path}", **more)
    assert answer.status == 200, answer
    return answer.body


def test_subscriptions_have_their_shapes_and_conditions(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "S_INTERSECTS(area, BBOX(0, 0, 2, 1)) AND depth >= 3")
            await here.subscribe("b", "bob", f"NOT S_WITHIN(area, {box_text(5, 5, 6, 7)}) OR kind = 'it''s'")
            await here.subscribe("c", "bob", "depth > 1", paused=True)
            either = {
                "op": "relation",
                "args": [{"property": "at"}, {"type": "Point", "coordinates": [1, 2]}, "meets", "equals"],
            }
            await here.ask("PUT", "/subscriptions/d", {"subscriber": "eve", "filter": either})
            found = await get(here, "subscriptions")
            assert found["next"] is None
            a, b, c, d = found["subscriptions"]
            assert (a["key"], a["subscriber"], a["conditions"], a["bounds"]) == ("a", "ann", "depth >= 3", [0, 0, 2, 1])
            assert a["filter"] == "S_INTERSECTS(area, BBOX(0, 0, 2, 1)) AND depth >= 3"
            (shape,) = a["shapes"]
            assert (shape["attribute"], shape["relation"], shape["negated"]) == ("area", "S_INTERSECTS", False)
            assert "disjoint" not in shape["relations"]
            assert len(shape["relations"]) == 7
            assert shapely.equals(shapely.from_geojson(json.dumps(shape["geometry"])), shapely.box(0, 0, 2, 1))
            (shape,) = b["shapes"]
            assert (shape["relation"], shape["negated"]) == ("S_WITHIN", True)
            assert set(shape["relations"]) == {"disjoint", "meets", "overlaps", "contains", "covers"}
            assert b["conditions"] == "TRUE OR (kind = 'it''s')"
            assert (c["shapes"], c["bounds"], c["paused"], c["conditions"]) == ([], None, True, "depth > 1")
            (shape,) = d["shapes"]
            assert (shape["relation"], shape["relations"]) == ("RELATION", ["meets", "equals"])
            assert shape["geometry"] == {"type": "Point", "coordinates": [1, 2]}
            assert d["filter"] == either

    run(work())


def test_pages_of_subscriptions_follow_one_another(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            keys = sorted(f"key {number:02d}" for number in range(7))
            lines = "\n".join(json.dumps({"key": key, "filter": "S_INTERSECTS(a, BBOX(0,0,1,1))"}) for key in keys)
            await here.ask("POST", "/subscriptions", data=lines, kind="application/x-ndjson")
            found, after = [], ""
            while after is not None:
                page = await get(here, f"subscriptions?limit=3&after={quote(after)}")
                found += [one["key"] for one in page["subscriptions"]]
                after = page["next"]
            assert found == keys

    run(work())


def test_tracked_subscriptions_tell_what_they_track(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            on = ["enter", "exit", {"dwell": "5m"}]
            await here.subscribe("depot", "eve", "S_WITHIN(geometry, BBOX(0, 0, 1, 1))", track="bus", on=on)
            (found,) = (await get(here, "subscriptions"))["subscriptions"]
            assert (found["track"], found["on"]) == ("bus", on)
            await here.publish({"bus": "b7", "geometry": {"type": "Point", "coordinates": [0.5, 0.5]}})
            (message,) = (await get(here, "messages"))["messages"]
            (told,) = message["transitions"]
            assert (told["key"], told["id"], told["kind"], told["before"], told["after"]) == (
                "depot", "b7", "enter", None, "inside",
            )  # fmt: skip
            assert (message["matched"], message["matches"], message["own"]) == ([], 0, False)
            inside = await get(here, "tracks")
            assert inside["count"] == 1
            (one,) = inside["inside"]
            assert (one["attribute"], one["id"], one["key"]) == ("bus", "b7", "depot")
            await here.ask("DELETE", "/subscriptions/depot")
            own = (await get(here, "messages"))["messages"][-1]
            assert own["own"] is True
            assert [(one["kind"], one["reason"]) for one in own["transitions"]] == [("exit", "unsubscribed")]
            assert (await get(here, "tracks"))["count"] == 0

    run(work())


def test_messages_match_what_shapely_says(tmp_path, store_flags):
    chance = random.Random(3)

    def random_box(size):
        x, y = chance.uniform(0, 10), chance.uniform(0, 10)
        return (x, y, x + chance.uniform(0.1, size), y + chance.uniform(0.1, size))

    regions = {f"s{number:02d}": random_box(4) for number in range(30)}
    areas = [random_box(3) for _ in range(40)]

    async def work():
        async with site(tmp_path, **store_flags("a")) as here:
            for key, box in regions.items():
                await here.subscribe(key, "ann", f"S_INTERSECTS(area, {box_text(*box)})")
            await here.publish(*({"area": polygon(*box), "n": number} for number, box in enumerate(areas)))
            page = await get(here, "messages?limit=100")
            assert page["complete"] is True
            assert [one["attributes"] for one in page["messages"]] == [{"n": number} for number in range(len(areas))]
            total = 0
            for one, box in zip(page["messages"], areas, strict=True):
                expected = [key for key, own in regions.items() if shapely.box(*own).intersects(shapely.box(*box))]
                assert (one["matched"], one["matches"]) == (expected, len(expected))
                total += len(expected)
                (shape,) = one["shapes"]
                assert (shape["attribute"], shape["geometry"]) == ("area", polygon(*box))
            counts = await get(here, "counts?step=3600")
            assert (sum(counts["messages"]), sum(counts["matches"])) == (len(areas), total)
            assert counts["complete"] is True
            hits = [number for number, box in enumerate(areas)
                    if shapely.box(*regions["s05"]).intersects(shapely.box(*box))]  # fmt: skip
            detail = await get(here, "subscriptions/s05?matches=5")
            assert [one["attributes"]["n"] for one in detail["last"]] == hits[::-1][:5]
            assert (detail["complete"], detail["lag"]) == (True, len(areas))
            await here.subscribe("late", "ann", "n > 0")
            assert (await get(here, "subscriptions/late"))["lag"] == 0  # what came before it does not count
            await here.publish({"n": 1})
            assert (await get(here, "subscriptions/late"))["lag"] == 1

    run(work())


def test_all_keys_that_a_message_matched_come_in_pages(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            keys = [f"k{number:03d}" for number in range(130)]
            rows = "\n".join(json.dumps({"key": key, "filter": "n > 0"}) for key in keys)
            await here.ask("POST", "/subscriptions", data=rows, kind="application/x-ndjson")
            await here.subscribe("fence", "eve", "S_WITHIN(geometry, BBOX(0, 0, 1, 1))", track="bus")
            await here.publish(feature(0.5, 0.5, n=1, bus="b7"))
            (message,) = (await get(here, "messages"))["messages"]
            assert (message["matched"], message["matches"]) == (keys[:100], 130)
            found, after = [], 0
            while after is not None:
                page = await get(here, f"messages/1/matched?after={after}&limit=50")
                assert page["count"] == 130
                found += page["matched"]
                after = page["next"]
            assert found == keys
            assert (await get(here, "messages/1/matched?after=500"))["matched"] == []
            for bad, status in (("2", 404), ("x", 400), ("-1", 400), ("1?after=x", 400)):
                path, _, query = bad.partition("?")
                assert (await here.ask("GET", f"/map/messages/{path}/matched?{query}")).status == status

    run(work())


def test_pages_of_messages_go_forward_and_backward(tmp_path, store_flags):
    async def work():
        async with site(tmp_path, **store_flags("a")) as here:
            await here.publish(*({"n": number} for number in range(1, 11)))
            latest = await get(here, "messages?limit=4")
            assert [one["sequence"] for one in latest["messages"]] == [7, 8, 9, 10]
            assert (latest["next"], latest["previous"]) == (None, 7)
            earlier = await get(here, f"messages?limit=4&before={latest['previous']}")
            assert [one["sequence"] for one in earlier["messages"]] == [3, 4, 5, 6]
            first = await get(here, "messages?after=0&limit=4")
            assert [one["sequence"] for one in first["messages"]] == [1, 2, 3, 4]
            assert first["next"] == 4
            found, after = [], 0
            while after is not None:
                page = await get(here, f"messages?after={after}&limit=3")
                found += [one["sequence"] for one in page["messages"]]
                after = page["next"]
            assert found == list(range(1, 11))
            assert (await get(here, "messages?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z"))["messages"] == []
            assert len((await get(here, "messages?from=2020-01-01T00:00:00Z"))["messages"]) == 10
            assert (await get(here, "messages?after=10"))["messages"] == []
            assert (await get(here, "messages?after=99"))["messages"] == []

    run(work())


def test_counts_have_the_steps_that_are_asked_for(tmp_path):
    clock = [1_700_000_000.0]

    async def work():
        async with site(tmp_path, options={"clock": lambda: clock[0]}) as here:
            await here.subscribe("a", "ann", "n > 2")
            await here.subscribe("b", "ann", "n > 3")
            for number in range(1, 6):
                await here.publish({"n": number})
                clock[0] += 10
            found = await get(here, "counts?from=1700000000&to=1700000060&step=20")
            assert (found["messages"], found["matches"]) == ([2, 2, 1], [0, 3, 2])
            start = datetime.fromtimestamp(1_700_000_000, UTC).isoformat().replace("+00:00", "Z")
            assert (found["from"], found["step"]) == (start, 20)
            found = await get(here, "counts?from=1700000015&to=1700000035&step=10")
            assert found["messages"] == [1, 1]
            for bad in ("step=0", "from=5&to=4", "step=0.001", "from=x", "step=-1", "to=later"):
                assert is_problem(await here.ask("GET", f"/map/counts?{bad}"), 400, "bad-parameter")

    run(work())


def test_messages_of_every_format_show_their_attributes(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.publish(feature(1, 2, wind={"speed": 12}, gone=None))
            cloud = {
                "specversion": "1.0",
                "id": "7",
                "source": "/buoy",
                "type": "wave",
                "data": feature(3, 4, height=2),
            }
            await here.ask("POST", "/messages", cloud, kind="application/cloudevents+json")
            await here.ask("POST", "/messages", data=CAP, kind="application/cap+xml")
            await here.publish(
                {
                    "big": 1 << 70,
                    "text": "x" * 5000,
                    "list": [1, [2]],
                    "far": {"type": "Point", "coordinates": [10**30, 0]},
                }
            )
            plain, event, alert, large = (await get(here, "messages"))["messages"]
            assert plain["attributes"] == {"wind.speed": 12}
            assert plain["shapes"] == [{"attribute": "geometry", "geometry": {"type": "Point", "coordinates": [1, 2]}}]
            assert event["attributes"]["ce.source"] == "/buoy"
            assert event["attributes"]["height"] == 2
            assert [shape["attribute"] for shape in event["shapes"]] == ["geometry"]
            assert [shape["attribute"] for shape in alert["shapes"]] == ["area"]
            assert large["attributes"]["big"] == str(1 << 70)
            assert len(large["attributes"]["text"]) == 2000
            assert large["attributes"]["list"] == [1, [2]]

    run(work())


def test_html_in_keys_attributes_and_filters_comes_back_as_it_is(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            filter = f"\"{HOSTILE.replace(chr(34), chr(34) * 2)}\" = '{HOSTILE.replace(chr(39), chr(39) * 2)}'"
            made = await here.ask(
                "PUT", f"/subscriptions/{quote(HOSTILE, safe='')}", {"subscriber": HOSTILE, "filter": filter}
            )
            assert made.status == 201, made
            await here.publish({HOSTILE: HOSTILE})
            found = await get(here, f"subscriptions/{quote(HOSTILE, safe='')}")
            assert (found["key"], found["subscriber"], found["filter"]) == (HOSTILE, HOSTILE, filter)
            assert found["last"][0]["attributes"] == {HOSTILE: HOSTILE}
            (message,) = (await get(here, "messages"))["messages"]
            assert message["matched"] == [HOSTILE]
            answer = await here.ask("POST", "/map/explain", {"key": HOSTILE, "sequence": 1})
            assert answer.body["matches"] is True
            assert answer.body["filters"][0]["constraints"][0]["value"] == HOSTILE
            for path in ("/map/messages", "/map/subscriptions", "/map/settings"):
                answer = await here.ask("GET", path)
                assert answer.headers["Content-Type"] == "application/json"

    run(work())


def test_large_shapes_are_simplified_only_if_the_client_asks(tmp_path):
    ring = shapely.Point(0, 0).buffer(10, quad_segs=100)

    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("round", "ann", f"S_INTERSECTS(area, {ring.wkt})")
            await here.publish({"area": json.loads(shapely.to_geojson(ring))})
            for path, member in (("subscriptions", "subscriptions"), ("messages", "messages")):
                (whole,) = (await get(here, path))[member]
                (rough,) = (await get(here, f"{path}?simplify=0.5"))[member]
                sizes = [len(one["shapes"][0]["geometry"]["coordinates"][0]) for one in (whole, rough)]
                assert sizes[0] == len(ring.exterior.coords)
                assert 4 <= sizes[1] < 40
            answer = await here.ask("POST", "/map/explain?simplify=0.5", {"key": "round", "sequence": 1})
            spatial = answer.body["filters"][0]["constraints"][0]["spatial"]
            assert len(spatial["asked"]["coordinates"][0]) == sizes[0] == len(spatial["found"]["coordinates"][0])

    run(work())


def test_settings_tell_where_everything_is(tmp_path):
    async def work():
        flags = {"map_title": HOSTILE, "map_tiles": "https://tiles.example/{z}/{x}/{y}.png", "map_attribution": "© us"}
        async with site(tmp_path, **flags) as here:
            empty = await get(here, "settings")
            assert (empty["bounds"], empty["plain"], empty["subscriptions"]) == (None, False, 0)
            assert (empty["title"], empty["tiles"]["attribution"]) == (HOSTILE, "© us")
            assert (empty["needs_key"], empty["read_only"], empty["tenant"]) == (False, False, "default")
            nobody = await get(here, "settings", key=None)
            assert (nobody["needs_key"], nobody["read_only"], nobody["tenant"], nobody["scopes"]) == (
                True,
                True,
                None,
                [],
            )
            wrong = await get(here, "settings", key="wrong")
            assert wrong["needs_key"] is True
        async with site(tmp_path) as here:
            assert (await get(here, "settings"))["bounds"] is None  # which is not kept
            await here.subscribe("a", "ann", "S_WITHIN(area, BBOX(1, 2, 3, 4))", track="bus")
            await here.publish({"area": {"type": "Point", "coordinates": [10, 20]}})
            found = await get(here, "settings")
            assert (found["bounds"], found["plain"], found["plane"]) == ([1, 2, 10, 20], False, None)
            assert (found["subscriptions"], found["newest"], found["tracks"]) == (1, 1, ["bus"])

    run(work())


def test_coordinates_beyond_the_world_are_plain(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "S_WITHIN(area, BBOX(685000, 4797000, 686000, 4798500))")
            found = await get(here, "settings")
            assert found["plain"] is True
            plane = found["plane"]
            assert (plane["x"], plane["y"], plane["span"]) == (685500, 4797750, 4096)
        async with site(tmp_path, map_coordinates="degrees") as here:
            assert (await get(here, "settings"))["plain"] is False

    run(work())


@pytest.mark.parametrize(
    ("path", "status", "name"),
    [
        ("subscriptions?limit=0", 400, "bad-parameter"),
        ("subscriptions?limit=1001", 400, "bad-parameter"),
        ("subscriptions?simplify=-1", 400, "bad-parameter"),
        ("subscriptions?simplify=nan", 400, "bad-parameter"),
        ("subscriptions/nothing", 404, "unknown-key"),
        ("subscriptions/%00", 400, "bad-parameter"),
        ("messages?after=-1", 400, "bad-parameter"),
        ("messages?before=x", 400, "bad-parameter"),
        ("messages?from=yesterday", 400, "bad-parameter"),
        ("tiles/subscriptions/0/1/0", 400, "bad-parameter"),
        ("tiles/subscriptions/99/0/0", 400, "bad-parameter"),
        ("tiles/subscriptions/a/0/0", 400, "bad-parameter"),
        ("tiles/subscriptions/0/0/0?plane=1,2", 400, "bad-parameter"),
        ("tiles/subscriptions/0/0/0?plane=1,2,0", 400, "bad-parameter"),
        ("events?after=x", 400, "bad-parameter"),
        ("events?token=x", 401, "unauthorized"),
        ("nothing", 404, "not-found"),
    ],
)
def test_bad_requests_are_problems(tmp_path, path, status, name):
    async def work():
        async with site(tmp_path) as here:
            assert is_problem(await here.ask("GET", f"/map/{path}"), status, name)

    run(work())


def test_the_map_can_be_off(tmp_path):
    async def work():
        async with site(tmp_path, map_enabled="false", map_public="default") as here:
            for endpoint in TABLE:
                if endpoint.path.startswith("/map/"):
                    path = (
                        endpoint.path.replace("{key}", "a").replace("{z}/{x}/{y}", "0/0/0").replace("{sequence}", "1")
                    )
                    value = {} if endpoint.body is not None else None
                    assert (await here.ask(endpoint.method, path, value)).status == 404, path

    run(work())
