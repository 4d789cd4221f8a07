"""Distances in metres at the server: subscribed, matched across the date line, explained, and carried over links."""

from __future__ import annotations

import json

from linked import broker, got, until_settled
from serving import events, is_problem, run, site

FILTER = "within_distance(area, POINT(179.999 0), 500, 'm') AND depth >= 2"


def at(x, y):
    return {"type": "Point", "coordinates": [x, y]}


def test_messages_are_matched_and_explained(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("near", "ann", FILTER)
            await here.subscribe("far", "ann", "beyond_distance(area, POINT(0 89), 300000, 'm')")
            for place in (at(-179.999, 0), at(-179.9, 0), at(180, 89)):
                assert (await here.publish({"area": place, "depth": 2})).status == 201
            found = [(one["sequence"], one["key"]) for one in await events(here, "ann")]
            assert found == [(1, "near"), (1, "far"), (2, "far")]
            told = (await here.ask("POST", "/map/explain", {"key": "near", "sequence": 2})).body
            asked = [one["asked"] for part in told["filters"] for one in part["constraints"]]
            assert "within_distance(area, POINT (179.999 0), 500, 'm')" in asked
            bad = await here.ask(
                "PUT", "/subscriptions/odd", {"subscriber": "ann", "filter": FILTER.replace("'m'", "'ft'")}
            )
            assert is_problem(bad, 400, "bad-filter")
            assert "unit: need 'm'" in json.dumps(bad.body)

    run(work())


def test_metres_cross_links(tmp_path):
    async def work():
        async with broker(tmp_path, "north") as north, broker(tmp_path, "south", north) as south:
            await south.subscribe("near", "ann", FILTER)
            await until_settled(north, south)
            await north.publish({"area": at(-179.999, 0), "depth": 2})
            await north.publish({"area": at(-179.9, 0), "depth": 2})
            await north.publish({"area": at(539.999, 0), "depth": 3})
            assert [one["depth"] for one in await got(south, "ann", 2)] == [2, 3]

    run(work())
