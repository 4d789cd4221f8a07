"""Tracked objects through every door: HTTP, SSE, long poll, WebSocket, webhooks and the client."""

from __future__ import annotations

import asyncio
import io
import json

import geopandas
import pytest
import shapely
from aiohttp import web

from contrada.client import AsyncClient, TrackInfo
from serving import ADMIN, events, feature, is_problem, run, site, take, talk
from webhook_receivers import receiving, until

FILTER = "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4))"
TRACKED = {"track": "bus", "on": ["enter", "exit", {"dwell": "5m"}]}
IN, OUT = feature(2, 2, bus="b1"), feature(9, 9, bus="b1")
ENTERED = {"id": "b1", "kind": "enter", "before": None, "after": "inside"}
LEFT = {"id": "b1", "kind": "exit", "before": "inside", "after": "disjoint"}
LOCAL = {"webhooks_allow_private": True, "webhooks_retry_first": 0.001, "webhooks_retry_most": 0.01}


def timeless(track):
    """Return a member `track` without its time."""
    assert track["time"].endswith("Z")
    return {name: value for name, value in track.items() if name != "time"}


def test_a_subscription_shows_what_it_asks_of_objects(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            more = {"exit_buffer": 0.5, "exit_after": "30s", "time": "at", "first": "silent", "late": "arrival"}
            answer = await here.subscribe("a", "ann", FILTER, **TRACKED, **more)
            assert answer.status == 201
            for shown in (answer, await here.ask("GET", "/subscriptions/a")):
                assert {name: shown.body[name] for name in (*TRACKED, *more)} == TRACKED | more
            listed = (await here.ask("GET", "/subscriptions")).body["subscriptions"]
            assert listed == [answer.body]
            await here.ask("POST", "/subscriptions/a/pause")
            shown = (await here.ask("POST", "/subscriptions/a/resume")).body
            assert {name: shown[name] for name in (*TRACKED, *more)} == TRACKED | more
            plain = (await here.subscribe("b", "ann", FILTER, on="match")).body
            assert plain["on"] == "match"
            assert "track" not in plain
            assert (await here.subscribe("c", "ann", FILTER, track="bus")).body["on"] == ["enter", "exit"]

    run(work())


BAD = [
    ({"on": ["enter"]}, 400, "bad-parameter", "on"),
    ({"track": "bus", "on": "match"}, 400, "bad-parameter", "track"),
    ({"exit_buffer": 1.0}, 400, "bad-parameter", "exit_buffer"),
    ({"track": "bus", "on": [{"dwell": "soon"}]}, 400, "bad-parameter", "on"),
    ({"track": "bus", "on": [{"dwell": "5m"}, {"dwell": "6m"}]}, 400, "bad-parameter", "on"),
    ({"track": "bus", "exit_after": "-3s"}, 400, "bad-parameter", "exit_after"),
    ({"track": "bus", "exit_after": 0}, 400, "bad-parameter", "exit_after"),
    ({"track": "bus", "on": []}, 400, "bad-body", None),
    ({"track": "bus", "on": ["leave"]}, 400, "bad-body", None),
    ({"track": "", "on": ["enter"]}, 400, "bad-body", None),
    ({"track": "bus", "exit_buffer": -1}, 400, "bad-body", None),
    ({"track": "bus", "late": "never"}, 400, "bad-body", None),
]


def test_bad_members_are_problems_that_name_them(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            for members, status, name, attribute in BAD:
                answer = await here.subscribe("a", "ann", FILTER, **members)
                assert is_problem(answer, status, name), members
                assert answer.body.get("attribute") == attribute, answer.body
            for filter in ("depth > 3", f"{FILTER} AND S_INTERSECTS(area, BBOX(0, 0, 1, 1))"):
                answer = await here.subscribe("a", "ann", filter, **TRACKED)
                assert is_problem(answer, 400, "bad-filter")
                assert "spatial" in answer.body["detail"]
            assert (await here.ask("GET", "/subscriptions/a")).status == 404

    run(work())


def test_events_by_poll_stream_and_socket(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", FILTER, **TRACKED)
            await here.publish(IN)
            async with here.stream("ann", "?from=1") as stream, talk(here) as one:
                await one.say("receive", subscriber="ann", **{"from": 1})
                streamed = await take(stream, 1)
                heard = await one.hear()
                await here.publish(IN, OUT)  # now both are pushed to
                streamed += await take(stream, 1)
                heard += await one.hear()
            polled = await events(here, "ann")
            assert [(one["id"], one["message"], timeless(one["track"])) for one in polled] == [
                ("1.1", IN, ENTERED), ("3.1", OUT, LEFT),
            ]  # fmt: skip
            assert streamed == polled
            assert heard == [{"op": "event", "subscriber": "ann", **one} for one in polled]
            clouds = await events(here, "ann", "?wait=0&from=1&format=cloudevents")
            assert [one["type"] for one in clouds] == ["org.contrada.track"] * 2
            assert clouds[1]["data"] == {"track": polled[1]["track"], "message": OUT}

    run(work())


def test_webhooks_and_dead_letters_have_the_track(tmp_path):
    async def busy(request, count):
        return web.Response(status=503)

    async def work():
        async with receiving() as receiver, site(tmp_path, **LOCAL, webhooks_attempts=2) as here:
            await here.subscribe("a", "ann", FILTER, **TRACKED)
            for name, format in (("plain", "plain"), ("cloud", "cloudevents"), ("busy", "plain")):
                secret = {} if not receiver.secrets else {"secret": receiver.secrets[0]}
                made = await here.ask(
                    "PUT", f"/subscribers/ann/webhooks/{name}", {"url": receiver.url(name), "format": format, **secret}
                )
                receiver.secrets = (made.body.get("secret") or receiver.secrets[0],)
            receiver.answers["busy"] = busy
            await here.publish(IN, OUT)
            await until(lambda: len(receiver.got["plain"]) == len(receiver.got["cloud"]) == 2)
            sent = receiver.got["plain"][1].json
            assert (sent["id"], timeless(sent["track"]), sent["message"]) == ("2.1", LEFT, OUT)
            cloud = receiver.got["cloud"][1].json
            assert (cloud["type"], cloud["data"]) == ("contrada.track", {"track": sent["track"], "message": OUT})
            path = "/subscribers/ann/webhooks/busy/dead-letters"
            letters = []
            for _ in range(1_000):
                letters = (await here.ask("GET", path)).body["dead_letters"]
                if len(letters) == 2:
                    break
                await asyncio.sleep(0.01)
            assert [timeless(one["track"]) for one in letters] == [ENTERED, LEFT]
            del receiver.answers["busy"]
            count = len(receiver.got["busy"])
            assert (await here.ask("POST", f"{path}/2.1/replay")).body["sent"] == 1
            assert receiver.got["busy"][count].json == sent

    run(work())


def test_the_client_has_typed_events(tmp_path):
    async def work():
        async with site(tmp_path) as here, AsyncClient(here.url, ADMIN) as client:
            made = await client.subscribe("a", "ann", FILTER, track="bus", on=["enter", {"dwell": "5m"}, "exit"])
            assert (made.track, made.on) == ("bus", ["enter", {"dwell": "5m"}, "exit"])
            await client.publish([IN, OUT, feature(1, 1)])
            async with client.matches("ann", start=1) as stream:
                found = [await anext(stream) for _ in range(2)]
            assert all(isinstance(one.track, TrackInfo) for one in found)
            assert [(one.track.id, one.track.kind, one.track.after) for one in found] == [
                ("b1", "enter", "inside"), ("b1", "exit", "disjoint"),
            ]  # fmt: skip
            tried = await client.dry_run(FILTER, start=1, track="bus", on=["exit"])
            assert (tried.count, tried.examined) == (1, 3)
            assert (tried.sample[0].sequence, tried.sample[0].track.kind) == (2, "exit")
            assert (await client.dry_run(FILTER, start=1)).count == 2
            for is_inside, last in ((False, OUT), (True, IN)):
                await client.publish(last)
                explained = await client.explain("a", IN)
                assert explained.matches
                assert (explained.track["id"], explained.track["inside"]) == ("b1", is_inside)
            assert (await client.explain("a", feature(1, 1))).track == {"id": None, "inside": False, "since": None}

    run(work())


def test_bulk_uploads_of_fences(tmp_path):
    async def work():
        async with site(tmp_path) as here, AsyncClient(here.url, ADMIN) as client:
            frame = geopandas.GeoDataFrame(
                {"key": ["f1", "f2"]}, geometry=[shapely.box(0, 0, 4, 4), shapely.box(1, 1, 9, 9)], crs=4326
            )
            data = io.BytesIO()
            frame.to_parquet(data)
            answer = await client.bulk(
                data.getvalue(), content_type="application/vnd.apache.parquet",
                template="S_INTERSECTS(geometry, $geometry)",
                track="bus", on=["exit", {"dwell": 300}], exit_after=0.001,
            )  # fmt: skip
            assert (answer.count, answer.rejected) == (2, [])
            shown = await client.get("f1")
            assert (shown.track, shown.on, shown.exit_after) == ("bus", ["exit", {"dwell": "300s"}], "0.001s")
            lines = [
                {"key": "g", "subscriber": "bob", "filter": FILTER},
                {"key": "h", "subscriber": "bob", "filter": FILTER, "track": "id", "on": ["enter"]},
                {"key": "i", "subscriber": "bob", "filter": "depth > 1"},
            ]
            answer = await client.bulk(lines, track="bus")
            assert [(row.row, row.key) for row in answer.rejected] == [(2, "i")]
            assert [((await client.get(key)).track, (await client.get(key)).on) for key in "gh"] == [
                ("bus", ["enter", "exit"]), ("id", ["enter"]),
            ]  # fmt: skip
            bad = await here.ask(
                "POST", "/subscriptions?on=enter&exit_buffer=x", data="{}", kind="application/x-ndjson"
            )
            assert is_problem(bad, 400, "bad-parameter")

    run(work())


def test_metrics_count_tracks(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", FILTER, **TRACKED, time="at")
            fixes = [feature(2, 2, bus=bus, at=at) for bus, at in (("b1", 5), ("b2", 7), ("b3", "soon"))]
            await here.publish(*fixes, feature(1, 1))
            await here.publish(feature(2, 2, bus="b1", at=4))
            text = (await here.ask("GET", "/metrics")).body.decode()
            found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
            names = ("tracked_objects", "tracked_pairs", "late_fixes_total", "unread_fixes_total")
            assert [float(found[f"contrada_{name}"]) for name in names] == [2, 2, 1, 1]

    run(work())


def test_documents_describe_tracks(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            schemas = (await here.ask("GET", "/openapi.json")).body["components"]["schemas"]
            assert {"on", "track", "exit_after", "late"} <= schemas["SubscriptionRequest"]["properties"].keys()
            frames = (await here.ask("GET", "/asyncapi.json")).body["components"]["schemas"]
            assert frames["TrackMember"]["properties"]["kind"]["enum"] == ["change", "cross", "dwell", "enter", "exit"]

    run(work())


@pytest.mark.parametrize("count", [3])
def test_every_subscriber_reads_the_same_whatever_the_way(tmp_path, count):
    """Events that are pushed, and those read from the store after a restart, are the same texts."""

    async def work():
        fixes = [feature(x, 2, bus=f"b{bus}") for x in (1, 9, 3) for bus in range(count)]
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", FILTER, track="bus", on=["enter", "exit", "change"])
            await here.subscribe("b", "ann", FILTER)
            async with here.stream("ann", "?from=now") as stream:
                for fix in fixes:
                    await here.publish(fix)
                stored = await events(here, "ann", "?wait=0&from=1&limit=1000")
                pushed = await take(stream, len(stored))
        async with site(tmp_path) as here:
            again = await events(here, "ann", "?wait=0&from=1&limit=1000")
        assert json.dumps(pushed) == json.dumps(stored) == json.dumps(again)
        places = [tuple(map(int, [one["id"].split(".")[0], (one["id"] + ".0").split(".")[2]])) for one in again]
        assert places == sorted(places)

    run(work())


ALERT = """<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>{id}</identifier>
<sender>x@example.org</sender>
<sent>2026-05-01T12:0{minute}:00+00:00</sent><status>Actual</status><msgType>{kind}</msgType><scope>Public</scope>
{references}
<info><category>Met</category><event>Flood</event><urgency>Immediate</urgency><severity>Severe</severity>
<certainty>Observed</certainty><area><areaDesc>Siena</areaDesc><polygon>43,11 43,12 44,12 43,11</polygon></area>
</info></alert>"""


def test_an_updated_alert_does_not_alert_again(tmp_path):
    def alert(number, kind):
        past = f"<references>x@example.org,A-{number - 1},2026-05-01T12:0{number - 1}:00+00:00</references>"
        return ALERT.format(id=f"A-{number}", minute=number, kind=kind, references=past if number else "")

    async def work():
        async with site(tmp_path) as here:
            await here.subscribe(
                "a", "ann", "S_INTERSECTS(area, BBOX(11, 43, 12, 44))", track="thread", on=["enter", "exit"]
            )
            for number, kind in enumerate(("Alert", "Update", "Update", "Cancel")):
                answer = await here.ask("POST", "/messages", data=alert(number, kind), kind="application/cap+xml")
                assert answer.status == 201
            found = await events(here, "ann")
            assert [(one["id"], one["track"]["kind"], one["track"].get("reason")) for one in found] == [
                ("1.1", "enter", None), ("4.1", "exit", "ended"),
            ]  # fmt: skip

    run(work())
