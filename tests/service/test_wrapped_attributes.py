"""A server that wraps attributes at the date line: subscriptions and messages meet, and a state keeps its setting."""

import json

import pytest
import shapely

from contrada.errors import ContradaError
from contrada.service.settings import SettingsError, load_settings
from serving import events, is_problem, run, site

CAP = """<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>A</identifier><sender>s</sender>
<sent>2026-05-01T12:00:00+00:00</sent><status>Actual</status><msgType>Alert</msgType><scope>Public</scope><info>
<category>Met</category><event>e</event><urgency>Past</urgency><severity>Minor</severity><certainty>Likely</certainty>
<area><areaDesc>a</areaDesc><polygon>3,185 3,186 4,186 3,185</polygon></area></info></alert>"""
WRAP = {"wrap": "area=longitude,geometry=longitude"}
BOX = "BBOX(170, 0, 190, 9)"
EAST, WEST, FAR = (shapely.geometry.mapping(shapely.box(x, 1, x + 1, 2)) for x in (-175, 185, 30))


def test_subscriptions_and_messages_meet_on_either_side(tmp_path):
    async def work():
        async with site(tmp_path, **WRAP) as here:
            for key, filter in (("a", f"S_INTERSECTS(area, {BOX})"), ("g", f"S_INTERSECTS(geometry, {BOX})")):
                body = {"subscriber": key, "filter": filter}
                assert (await here.ask("PUT", f"/subscriptions/{key}", body)).status == 201
            for shape in (EAST, WEST, FAR):
                assert (await here.publish({"area": shape})).status == 201
                assert (await here.publish({"type": "Feature", "properties": {}, "geometry": shape})).status == 201
            lines = "".join(json.dumps({"area": shape}) + "\n" for shape in (EAST, WEST, FAR))
            answer = await here.ask("POST", "/messages", data=lines, kind="application/x-ndjson")
            assert (answer.body["count"], answer.body["rejected"]) == (3, [])
            assert (await here.ask("POST", "/messages", data=CAP, kind="application/cap+xml")).status == 201
            point = {"type": "Point", "coordinates": [190, 5]}
            assert (await here.publish({"area": point})).status == 201
            sequences = {key: [one["sequence"] for one in await events(here, key)] for key in ("a", "g")}
            assert sequences == {"a": [1, 3, 7, 8, 10, 11], "g": [2, 4]}
            wide = shapely.geometry.mapping(shapely.box(0, 0, 400, 9))
            refused = await here.publish({"area": wide})
            assert is_problem(refused, 422, "rejected")
            assert "attribute 'area': wrap: longitudes" in json.dumps(refused.body)
            explained = await here.ask("POST", "/subscriptions/a/explain", {"area": WEST})
            assert explained.body["matches"]
            assert explained.body["explanation"]["written"] == f"S_INTERSECTS(area, {BOX})"
            tried = await here.ask(
                "POST", "/dry-run", {"filter": "S_INTERSECTS(area, BBOX(-190, 0, -170, 9))", "from": 1}
            )
            assert tried.body["count"] == 6
            body = {"subscriber": "t", "filter": f"S_INTERSECTS(area, {BOX})", "track": "bus", "on": ["cross"]}
            answer = await here.ask("PUT", "/subscriptions/t", body)
            assert answer.status == 400
            assert "wrapped at the date line" in json.dumps(answer.body)

    run(work())


@pytest.mark.parametrize("flags", [{}, {"wrap": "area=shorter"}])
def test_a_state_keeps_the_setting_of_its_subscriptions(tmp_path, flags):
    async def put(**flags):
        async with site(tmp_path, **flags) as here:
            body = {"subscriber": "a", "filter": f"S_INTERSECTS(area, {BOX})"}
            assert (await here.ask("PUT", "/subscriptions/a", body)).status in (200, 201)
            assert (await here.publish({"area": EAST})).status == 201
            return [one["sequence"] for one in await events(here, "a")]

    async def start(**flags):
        async with site(tmp_path, **flags):
            pass

    run(start())
    run(start(**WRAP))  # without subscriptions the setting may change

    async def work():
        assert await put(**WRAP) == [1]
        assert await put(**WRAP) == [1, 2]
        # The last start: in this process nothing closes the store of a server that could not start.
        with pytest.raises(ContradaError, match=r"server\.wrap: the subscriptions of this state were put with area"):
            await start(**flags)

    run(work())


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"wrap": "area=latitude"}, "'longitude' or 'shorter'"),
        ({"wrap": "area"}, "server.wrap"),
        ({"wrap": "area=longitude", "link": "wss://north.example"}, "no links"),
        ({"wrap": "area=longitude", "log": "nats://host:4222"}, "no shared log"),
    ],
)
def test_bad_settings_are_refused(flags, reason):
    with pytest.raises(SettingsError, match=reason):
        load_settings(None, {}, flags)
