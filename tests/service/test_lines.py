"""Lines at the server: published one by one and in batches, matched, explained, and carried over links."""

from __future__ import annotations

import json

from linked import broker, got, until_settled
from serving import events, is_problem, run, site

FILTER = "S_CROSSES(area, LINESTRING (0 0, 4 4)) AND depth >= 2"


def line(*vertices):
    return {"type": "LineString", "coordinates": list(vertices)}


def test_lines_are_published_matched_and_explained(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("cross", "ann", FILTER)
            await here.subscribe("town", "ann", "S_INTERSECTS(area, BBOX(3, 3, 9, 9))")
            for end in ([4, 0], [0, 1]):
                assert (await here.publish({"area": line([0, 4], end), "depth": 2})).status == 201
            box = {"type": "Polygon", "coordinates": [[[2, 0], [6, 0], [6, 8], [2, 8], [2, 0]]]}
            many = "".join(
                json.dumps({"area": each, "depth": 3}) + "\n"
                for each in (line([0, 4], [4, 0]), line([0, 0], [0, 0]), box, line([5, 5], [6, 6]), None)
            )
            answer = await here.ask("POST", "/messages", data=many, kind="application/x-ndjson")
            assert [item["row"] for item in answer.body["rejected"]] == [1]
            assert "two distinct vertices" in answer.body["rejected"][0]["reason"]
            assert is_problem(await here.publish({"area": line([0, 0])}), 422, "rejected")
            found = [(one["sequence"], one["key"]) for one in await events(here, "ann")]
            assert found == [(1, "cross"), (3, "cross"), (4, "cross"), (4, "town"), (5, "town")]
            told = (await here.ask("POST", "/map/explain", {"key": "cross", "sequence": 1})).body
            (part,) = told["filters"]
            assert "crosses" in {one["relation"] for one in part["constraints"]}

    run(work())


def test_lines_cross_links_one_by_one_and_in_batches(tmp_path):
    async def work():
        async with broker(tmp_path, "north") as north, broker(tmp_path, "south", north) as south:
            await south.subscribe("cross", "ann", FILTER)
            await until_settled(north, south)
            await north.publish({"area": line([0, 4], [4, 0]), "depth": 2})
            await north.publish({"area": line([0, 4], [0, 5]), "depth": 2})
            lines = "".join(json.dumps({"area": line([k, 4], [4, 0]), "depth": k}) + "\n" for k in range(4))
            await north.ask("POST", "/messages", data=lines, kind="application/x-ndjson")
            await until_settled(north, south)
            assert len(await got(south, "ann", 3)) == 3

    run(work())
