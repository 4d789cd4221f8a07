"""Linked servers: messages reach subscriptions at other brokers as they were published, once, whatever breaks."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack

import pytest

from link_proxy import LinkProxy
from linked import broker, got, link_url, links_of, network, until, until_settled
from serving import ADMIN, events, feature, is_problem, run

ALERT = """<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>A1</identifier><sender>s@example.org</sender>
<sent>2024-05-01T12:00:00+00:00</sent><status>Actual</status><msgType>Alert</msgType><scope>Public</scope>
<info><category>Met</category><event>Flood</event><urgency>Immediate</urgency><severity>Severe</severity>
<certainty>Observed</certainty><area><areaDesc>here</areaDesc>
<polygon>0,0 0,4 4,4 4,0 0,0</polygon></area></info></alert>"""


def test_messages_cross_links_as_they_were_published(tmp_path):
    async def work():
        async with broker(tmp_path, "north") as north, broker(tmp_path, "south", north) as south:
            await south.subscribe("floods", "ann", "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4)) AND depth >= 3")
            await south.subscribe("alerts", "ann", "event = 'Flood' AND S_INTERSECTS(area, BBOX(1, 1, 2, 2))")
            await north.subscribe("events", "bob", "\"ce.type\" = 'reading'")
            await until_settled(north, south)
            assert {name: link["takes"] for name, link in (await links_of(north)).items()} == {"south": 2}
            text = '{"type":"Feature", "properties":{"depth":4.50},"geometry":{"type":"Point","coordinates":[1,1]}}'
            assert (await north.ask("POST", "/messages", data=text)).status == 201
            await north.publish(feature(9, 9, depth=9), feature(2, 2, depth=2), feature(3, 3, depth=3, id=7))
            assert (await north.ask("POST", "/messages", data=ALERT, kind="application/cap+xml")).status == 201
            event = {"specversion": "1.0", "id": "7", "source": "/a", "type": "reading", "data": {"depth": 1}}
            await south.ask("POST", "/messages", event, kind="application/cloudevents+json")
            first, second, third = await got(south, "ann", 3)
            assert (first, second["properties"]) == (json.loads(text), {"depth": 3, "id": 7})
            assert third["properties"]["event"] == "Flood"
            assert await got(north, "bob", 1) == [event]
            found = await events(south, "ann")
            assert [one["key"] for one in found] == ["floods", "floods", "alerts"]
            assert sorted(one["sequence"] for one in found) == [one["sequence"] for one in found]
            batch = "application/cloudevents-batch+json"
            found = (await north.ask("GET", "/subscribers/bob/events?from=1&wait=0", Accept=batch)).body
            assert len(found) == 1

    run(work())


def test_tracked_objects_are_followed_across_links_and_no_more_when_nobody_tracks(tmp_path):
    async def work():
        async with (
            broker(tmp_path, "north") as north, broker(tmp_path, "middle", north) as middle,
            broker(tmp_path, "south", middle) as south,
        ):  # fmt: skip
            box = "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4)) AND speed > 1"
            tracked = {"track": "id", "on": ["enter", "exit", "change"]}
            assert (await south.subscribe("box", "ann", box, **tracked)).status == 201
            await until_settled(north, middle, south)
            moves = [(9, 9), (1, 1), (2, 2), (4, 2), (7, 7), (3, 3)]
            for number, (x, y) in enumerate(moves):
                await (north, middle, south)[number % 3].publish(feature(x, y, id="bus", speed=5))
                await until_settled(north, middle, south)
            await north.publish(feature(3, 3, id="bus", speed=0), feature(1, 1, speed=9))  # too slow; no object
            await until_settled(north, middle, south)
            found = await events(south, "ann")
            kinds = [(one["track"]["kind"], one["track"]["before"], one["track"]["after"]) for one in found]
            assert kinds == [
                ("enter", "disjoint", "inside"), ("change", "inside", "meets"), ("exit", "meets", "disjoint"),
                ("enter", "disjoint", "inside"), ("exit", "inside", "inside"),
            ]  # fmt: skip
            assert (await south.ask("DELETE", "/subscriptions/box")).status < 300
            await until_settled(north, middle, south)
            before = south.server.context.service.newest
            await north.publish(feature(1, 1, id="bus", speed=5))
            await until_settled(north, middle, south)
            assert south.server.context.service.newest == before
            assert (await links_of(north))["middle"]["takes"] == 0

    run(work())


MESSAGES = [
    {"depth": 4}, {"depth": 4.5, "name": "Arno"}, {"depth": "4"}, {"depth": 2**60}, {"depth": 10**30}, {"depth": None},
    {"depth": [1]}, {"depth": True}, {"name": "\ud800"}, {"\ud800": 1}, {"name": "\0"}, {}, feature(1, 1, depth=4),
    {"type": "Feature", "properties": {"depth": 9}, "geometry": {
        "type": "MultiPolygon", "coordinates": [[[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]],
                                                 [[1, 1], [3, 1], [3, 3], [1, 3], [1, 1]]]]}},
    {"type": "Feature", "properties": {}, "geometry": None},
]  # fmt: skip
FILTERS = [
    "depth >= 4", "depth = '4'", "depth IS NOT NULL", "name IS NOT NULL", "depth > 1000000", "depth = TRUE",
    "S_INTERSECTS(geometry, BBOX(1, 1, 2, 2))", "S_CONTAINS(geometry, BBOX(0, 0, 1, 1))", "name LIKE 'A%'",
    "NOT (depth >= 4)",
]  # fmt: skip


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "together"])
def test_messages_of_every_kind_match_over_links_as_they_do_at_one_broker(tmp_path, together):
    async def work():
        async with (
            broker(tmp_path, "alone") as alone, broker(tmp_path, "north") as north,
            broker(tmp_path, "middle", north) as middle, broker(tmp_path, "south", middle) as south,
        ):  # fmt: skip
            for here in (alone, south):
                for number, filter in enumerate(FILTERS):
                    await here.subscribe(f"s{number}", "ann", filter)
            await until_settled(north, middle, south)
            answers = []
            for here in (alone, north):
                texts = [json.dumps(message) for message in MESSAGES]
                bodies = ["\n".join(texts)] if together else texts
                kind = "application/x-ndjson" if together else "application/json"
                found = [await here.ask("POST", "/messages", data=body, kind=kind) for body in bodies]
                answers.append([(answer.status, answer.body.get("rejected")) for answer in found])
            assert answers[0] == answers[1]
            await until_settled(north, middle, south)
            expected = await events(alone, "ann", "?wait=0&from=oldest&limit=1000")
            assert len(expected) > 10
            found = await events(south, "ann", "?wait=0&from=oldest&limit=1000")
            both = [[(event["key"], json.dumps(event["message"])) for event in one] for one in (found, expected)]
            # Messages of one request whose attributes have different types travel apart.
            assert sorted(both[0]) == sorted(both[1])
            assert together or both[0] == both[1]

    run(work())


def test_objects_that_are_published_at_a_neighbour_are_followed_beside_plain_matches(tmp_path):
    async def work():
        async with broker(tmp_path, "north") as north, broker(tmp_path, "south", north) as south:
            asked = {"subscriber": "ann", "filter": "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4))"}
            for here in (north, south):
                tracked = asked | {"track": "bus", "on": ["enter", "exit"]}
                assert (await here.ask("PUT", "/subscriptions/depot", tracked)).status == 201
            await south.ask("PUT", "/subscriptions/all", asked)
            await until_settled(north, south)
            await north.publish(*(feature(x, 1, bus="b7") for x in (1, 2, 9)))
            await until_settled(north, south)
            found = await events(north, "ann", "?wait=0&from=oldest")
            assert [(one["key"], one["track"]["kind"]) for one in found] == [("depot", "enter"), ("depot", "exit")]
            found = await events(south, "ann", "?wait=0&from=oldest")
            assert [one["key"] for one in found] == ["depot", "all", "all", "depot"]
            assert [one["track"]["kind"] for one in found if "track" in one] == ["enter", "exit"]

    run(work())


def test_the_same_message_at_two_brokers_is_one(tmp_path):
    async def work():
        async with AsyncExitStack() as opened:
            sites = [await opened.enter_async_context(broker(tmp_path, "a"))]
            for name in "bcd":
                sites.append(await opened.enter_async_context(broker(tmp_path, name, sites[-1])))
            for here, name in zip(sites, "abcd", strict=True):
                await here.subscribe("all", name, "depth > 0")
            await until_settled(*sites)
            assert (await network(sites[0]))["tenants"][0]["brokers"] == ["a", "b", "c", "d"]
            for here in (sites[0], sites[3], sites[0]):
                await here.ask("POST", "/messages", {"depth": 1}, Message_Id="reading-1")
                await until_settled(*sites)
            await sites[1].publish({"depth": 2})
            for here, name in zip(sites, "abcd", strict=True):
                assert await got(here, name, 2) == [{"depth": 1}, {"depth": 2}]

    run(work())


def test_covering_holds_subscriptions_back(tmp_path):
    async def work():
        async with broker(tmp_path, "north") as north, broker(tmp_path, "south", north) as south:
            await south.subscribe("wide", "ann", "depth >= 1")
            for depth in range(2, 7):
                await south.subscribe(f"deep-{depth}", "bob", f"depth >= {depth}")
            await until_settled(north, south)
            link = (await links_of(south))["north"]
            assert (link["forwards"], link["suppresses"]) == (1, 5)
            await south.ask("DELETE", "/subscriptions/wide")
            await until_settled(north, south)
            assert (await links_of(north))["south"]["takes"] == 1
            await north.publish({"depth": 1}, {"depth": 4})
            assert len(await got(south, "bob", 3)) == 3

    run(work())


def test_what_is_published_while_a_link_is_cut_arrives_later(tmp_path, store_flags):
    async def work():
        async with (
            broker(tmp_path, "north", **store_flags("north")) as north, LinkProxy(north.server.port) as proxy,
            broker(tmp_path, "south", proxy.url, **store_flags("south")) as south,
        ):  # fmt: skip
            await south.subscribe("all", "ann", "depth > 0")
            await north.subscribe("all", "bob", "depth > 0")
            await until_settled(north, south)
            expected = []
            for round in range(1, 6):
                proxy.cut()
                await until(lambda: _is_down(north, "south"))
                await north.publish({"depth": round})
                await south.publish({"depth": round + 10})
                proxy.heal()
                expected += [{"depth": round}, {"depth": round + 10}]
                await got(south, "ann", 2 * round)
            await until_settled(north, south)
            by_depth = sorted(expected, key=lambda message: message["depth"])
            for here, name in ((south, "ann"), (north, "bob")):
                assert sorted(await got(here, name, 10), key=lambda message: message["depth"]) == by_depth
            (call,) = (await network(south))["calls"]
            assert (call["state"], call["neighbour"]) == ("connected", "north")
            assert call["attempts"] > 5

    run(work())


async def _is_down(here, neighbour):
    return (await links_of(here))[neighbour]["phase"] == "down"


def test_a_broker_that_restarts_goes_on_where_it_was(tmp_path, store_flags):
    async def work():
        async with broker(tmp_path, "north", **store_flags("north")) as north:
            async with broker(tmp_path, "south", north, **store_flags("south")) as south:
                await south.subscribe("all", "ann", "depth > 0")
                await until_settled(north, south)
            await north.publish({"depth": 1}, {"depth": 2})
            assert (await links_of(north))["south"]["unacknowledged"] == 1
            async with broker(tmp_path, "south", north, **store_flags("south")) as south:
                assert await got(south, "ann", 2) == [{"depth": 1}, {"depth": 2}]
                await until_settled(north, south)
        async with broker(tmp_path, "south", "ws://127.0.0.1:9", **store_flags("south")) as south:  # nobody is there
            assert (await links_of(south))["north"]["phase"] == "down"
            await south.publish({"depth": 3})
            assert len(await got(south, "ann", 3)) == 3

    run(work())


def test_a_broker_that_comes_back_empty_hears_what_others_want_before_it_takes_messages(tmp_path):
    async def work():
        async with broker(tmp_path, "south") as south:
            url = link_url(south)
            async with broker(tmp_path / "old", "north", url) as north:
                await south.subscribe("all", "ann", "depth > 0")
                await until_settled(north, south)
            async with LinkProxy(south.server.port) as proxy:
                proxy.cut()
                flags = {"links_expected": "south"}
                async with broker(tmp_path / "new", "north", proxy.url, **flags) as north:
                    assert is_problem(await north.publish({"depth": 1}), 503, "unavailable")
                    assert (await network(north))["tenants"][0]["waits_for"] == ["south"]
                    proxy.heal()
                    await until(lambda: _is_published(north, {"depth": 2}))
                    assert await got(south, "ann", 1) == [{"depth": 2}]

    run(work())


async def _is_published(here, message):
    return (await here.publish(message)).status == 201


def test_a_broker_waits_only_so_long_for_neighbours(tmp_path):
    async def work():
        async with broker(tmp_path, "north", links_expected="south", links_patience=0.2) as north:
            await north.subscribe("all", "ann", "depth > 0")
            await until(lambda: _is_published(north, {"depth": 2}))
            assert await got(north, "ann", 1) == [{"depth": 2}]

    run(work())


def test_too_much_for_a_neighbour_that_is_away_drops_the_oldest_and_counts_it(tmp_path):
    async def work():
        async with (
            broker(tmp_path, "north", links_backlog_bytes=100_000) as north, LinkProxy(north.server.port) as proxy,
            broker(tmp_path, "south", proxy.url) as south,
        ):  # fmt: skip
            await south.subscribe("all", "ann", "depth > 0")
            await until_settled(north, south)
            proxy.cut()
            await until(lambda: _is_down(north, "south"))
            for depth in range(1, 41):
                await north.publish({"depth": depth, "text": "x" * 5_000})
            link = (await links_of(north))["south"]
            assert 0 < link["unacknowledged_bytes"] <= 100_000
            assert 20 <= link["dropped"] <= 39
            proxy.heal()
            await until_settled(north, south)
            depths = [message["depth"] for message in await got(south, "ann", 40 - link["dropped"])]
            assert depths == list(range(link["dropped"] + 1, 41))
            metrics = (await north.ask("GET", "/metrics")).body.decode()
            assert f"contrada_link_dropped_total {link['dropped']:.1f}" in metrics
            await north.publish({"depth": 41})
            assert (await got(south, "ann", 41 - link["dropped"]))[-1] == {"depth": 41}

    run(work())


def test_brokers_that_call_each_other_have_one_connection(tmp_path):
    async def work():
        async with broker(tmp_path, "a") as first:
            url = link_url(first)
            async with broker(tmp_path, "b", url) as second:
                await second.subscribe("all", "ann", "depth > 0")
                await until_settled(first, second)
                port = second.server.port
            async with (
                LinkProxy(port) as proxy, broker(tmp_path / "x", "a", proxy.url) as first,
                LinkProxy(first.server.port) as back, broker(tmp_path, "b", back.url) as second,
            ):  # fmt: skip
                proxy.target = second.server.port
                await until_settled(first, second)

                async def is_told():
                    link = (await links_of(first)).get("b")
                    return link is not None and link["takes"] == 1

                await until(is_told)  # a broker that begins anew has to hear what its neighbour wants
                for depth in range(1, 20):
                    await first.publish({"depth": depth})
                    await asyncio.sleep(0.02)
                assert len(await got(second, "ann", 19)) == 19
                assert [len(here.server.context.links) for here in (first, second)] == [1, 1]

    run(work())


def test_a_cycle_is_refused_with_its_path(tmp_path):
    async def work():
        async with broker(tmp_path, "a") as a, broker(tmp_path, "b", a) as b, broker(tmp_path, "c", b) as c:
            await until_settled(a, b, c)
            async with broker(tmp_path, "d", c, a, key=ADMIN) as d:

                async def reasons():
                    found = [call["reason"] or "" for one in (a, b, c, d) for call in (await network(one))["calls"]]
                    return [reason for reason in found if "cycle" in reason]

                assert await until(reasons)
                await d.subscribe("all", "ann", "depth > 0")
                await b.publish({"depth": 1})

    run(work())


def test_a_tenant_has_links_of_its_own(tmp_path):
    async def work():
        async with broker(tmp_path, "north") as north:
            made = await north.ask("POST", "/keys", {"name": "l", "scopes": ["link"], "tenant": "acme"})
            key = made.body["key"]
            own = (await north.ask("POST", "/keys", {"name": "p", "scopes": ["publish"], "tenant": "acme"})).body["key"]
            async with broker(tmp_path, "south", north, key=key) as south:
                await south.subscribe("all", "ann", "depth > 0")
                await until(lambda: links_of(north, "acme"))
                assert not await links_of(north)
                await until(lambda: _takes(north, "acme", "south"))
                await north.publish({"depth": 1})  # of the tenant default
                await north.publish({"depth": 2}, key=own)
                assert await got(south, "ann", 1) == [{"depth": 2}]
                assert is_problem(await south.ask("GET", "/network", key=own), 401, "unauthorized")
                assert is_problem(await north.ask("GET", "/network", key=own), 403, "forbidden")

    run(work())


async def _takes(here, tenant, neighbour):
    return (await links_of(here, tenant))[neighbour]["takes"]


@pytest.mark.parametrize("fault", ["wrong key", "no scope", "revoked"])
def test_a_broker_without_a_key_is_refused(tmp_path, fault):
    async def work():
        async with broker(tmp_path, "north") as north:
            scopes = ["publish", "subscribe"] if fault == "no scope" else ["link"]
            made = await north.ask("POST", "/keys", {"name": "south", "scopes": scopes})
            key = "ctr_wrong" if fault == "wrong key" else made.body["key"]
            async with broker(tmp_path, "south", north, key=key) as south:
                if fault == "revoked":
                    await until(lambda: links_of(north))
                    assert (await north.ask("DELETE", "/keys/default/south")).status == 204

                async def reason():
                    (call,) = (await network(south))["calls"]
                    return call["reason"] if "the key is unknown" in (call["reason"] or "") else None

                assert "lacks the scope link" in await until(reason)
                assert not len(north.server.context.links)

    run(work())


def test_a_neighbour_can_be_given_up(tmp_path):
    async def work():
        async with broker(tmp_path, "north") as north:
            async with broker(tmp_path, "south", north) as south:
                await south.subscribe("all", "ann", "depth > 0")
                await until_settled(north, south)
            await north.publish({"depth": 1})
            assert (await north.ask("DELETE", "/network/default/south")).status == 204
            assert is_problem(await north.ask("DELETE", "/network/default/south"), 404, "not-found")
            assert is_problem(await north.ask("DELETE", "/network/other/south"), 404, "not-found")
            assert (await network(north))["tenants"] == []
            async with broker(tmp_path, "south", north) as south:
                await until_settled(north, south)
                await north.publish({"depth": 2})
                assert await got(south, "ann", 1) == [{"depth": 2}]

    run(work())
