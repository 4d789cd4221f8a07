"""Circles at the server: published, matched, explained, shown on the map, and carried over links."""

from __future__ import annotations

import json

import pytest
import shapely

from linked import broker, got, until_settled
from serving import events, is_problem, run, site

FILTER = "S_INTERSECTS(area, BBOX(3, 4, 9, 9)) AND depth >= 2"


def circle(x, y, radius):
    return {"type": "Circle", "coordinates": [x, y], "radius": radius}


def test_circles_are_published_matched_and_explained(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("near", "ann", FILTER)
            await here.subscribe("far", "ann", "beyond_distance(area, POINT(20 0), 15)")
            for radius in (5, 4.5):
                assert (await here.publish({"area": circle(0, 0, radius), "depth": 2})).status == 201
            many = "".join(
                json.dumps({"area": each, "depth": 3}) + "\n"
                for each in (circle(1, 0, 5), circle(0, 0, -1), {"type": "Point", "coordinates": [3, 4]}, None)
            )
            answer = await here.ask("POST", "/messages", data=many, kind="application/x-ndjson")
            assert [item["row"] for item in answer.body["rejected"]] == [1]
            assert "radius" in answer.body["rejected"][0]["reason"]
            assert is_problem(await here.publish({"area": {"type": "Circle", "coordinates": [0, 0]}}), 422, "rejected")
            found = [(one["sequence"], one["key"]) for one in await events(here, "ann")]
            assert found == [(1, "near"), (2, "far"), (3, "near"), (4, "near"), (4, "far")]
            told = (await here.ask("POST", "/map/explain", {"key": "near", "sequence": 1})).body
            (part,) = told["filters"]
            spatial = next(one for one in part["constraints"] if one["spatial"] is not None)
            assert (spatial["relation"], spatial["truth"]) == ("meets", True)
            drawn = shapely.from_geojson(json.dumps(spatial["spatial"]["found"]))
            assert drawn.bounds == pytest.approx((-5, -5, 5, 5))

    run(work())


def test_the_map_draws_circles(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.publish({"area": circle(100, 50, 25), "depth": 2})
            await here.publish({"area": circle(100, 50, 0)})
            pages = (await here.ask("GET", "/map/messages")).body
            shapes = [one["shapes"][0]["geometry"] for one in pages["messages"]]
            drawn = sorted((shapely.from_geojson(json.dumps(each)) for each in shapes), key=lambda each: each.area)
            assert drawn[0] == shapely.Point(100, 50)
            assert drawn[1].bounds == pytest.approx((75, 25, 125, 75))

    run(work())


def test_circles_cross_links_one_by_one_and_in_batches(tmp_path):
    async def work():
        async with broker(tmp_path, "north") as north, broker(tmp_path, "south", north) as south:
            await south.subscribe("near", "ann", FILTER)
            await until_settled(north, south)
            await north.publish({"area": circle(0, 0, 5), "depth": 2})
            await north.publish({"area": circle(0, 0, 4), "depth": 2})
            lines = "".join(json.dumps({"area": circle(k, 0, 5), "depth": k}) + "\n" for k in range(40))
            assert (await north.ask("POST", "/messages", data=lines, kind="application/x-ndjson")).status == 201
            first, *others = await got(south, "ann", 12)
            assert first == {"area": circle(0, 0, 5), "depth": 2}
            assert [one["depth"] for one in others] == list(range(2, 13))

    run(work())
