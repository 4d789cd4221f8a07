"""Every route of the service over HTTP, good answers and errors."""

from __future__ import annotations

import asyncio
import io
import json
import re

import geopandas
import shapely

from contrada.service.access.keys import SCOPES
from contrada.service.http.routes import TABLE
from serving import ADMIN, events, feature, is_problem, run, site

CAP = """<?xml version="1.0" encoding="UTF-8"?>
<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>A-1</identifier><sender>x@example.org</sender>
<sent>2026-05-01T12:00:00+00:00</sent><status>Actual</status><msgType>Alert</msgType><scope>Public</scope>
<info><category>Met</category><event>Flood</event><urgency>Immediate</urgency><severity>Severe</severity>
<certainty>Observed</certainty><area><areaDesc>Siena</areaDesc><polygon>43,11 43,12 44,12 43,11</polygon></area>
</info></alert>"""


# --- publishing ---


def test_single_messages_are_answered_with_their_sequence(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            assert (await here.publish({"depth": 1}))[:2] == (201, {"sequence": 1})
            again = {"message_id": "a-7"}
            first = await here.ask("POST", "/messages", {"depth": 2}, **again)
            assert first[:2] == (201, {"sequence": 2})
            second = await here.ask("POST", "/messages", {"depth": 2}, **again)
            assert second[:2] == (200, {"sequence": 2, "duplicate": True})

    run(work())


def test_batches_are_answered_with_bounds_and_bad_rows(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            lines = '{"id": 1, "a": 1}\n{"bad\n{"id": 2}\n{"id": 1, "a": 1}\n'
            answer = await here.ask("POST", "/messages", data=lines, kind="application/x-ndjson")
            assert answer.status == 201
            reason = answer.body["rejected"][0].pop("reason")
            assert reason
            assert answer.body == {
                "first": 1, "last": 2, "count": 2, "duplicates": [{"row": 3, "sequence": 1}], "rejected": [{"row": 1}],
                "lost": [],
            }  # fmt: skip
            collection = {"type": "FeatureCollection", "features": [feature(1, 1)]}
            answer = await here.ask("POST", "/messages", collection, kind="application/geo+json")
            assert (answer.body["first"], answer.body["count"]) == (3, 1)
            answer = await here.ask("POST", "/messages", [{"a": 1}, {"a": 2}])
            assert (answer.body["first"], answer.body["last"]) == (4, 5)
            answer = await here.ask("POST", "/messages", {"type": "FeatureCollection", "features": []})
            assert (answer.status, answer.body["first"], answer.body["count"]) == (200, None, 0)

    run(work())


def test_a_feature_that_quotes_a_collection_is_one_message(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            answer = await here.publish(feature(1, 1, kind="FeatureCollection"))
            assert answer[:2] == (201, {"sequence": 1})

    run(work())


def test_rejected_messages_are_422(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            bad = await here.ask("POST", "/messages", data="{")
            assert is_problem(bad, 422, "rejected")
            bow = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}
            answer = await here.publish({"type": "Feature", "properties": {}, "geometry": bow})
            assert is_problem(answer, 422, "rejected")
            assert answer.body["rejected"][0]["row"] == 0
            answer = await here.ask("POST", "/messages", data='{"x\n[]\n', kind="application/x-ndjson")
            assert is_problem(answer, 422, "rejected")
            assert [row["row"] for row in answer.body["rejected"]] == [0, 1]

    run(work())


def test_cap_and_cloudevents_are_published(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("f", "ann", "event = 'Flood'")
            await here.subscribe("c", "ann", "ce.type = 'level'")
            assert (await here.ask("POST", "/messages", data=CAP, kind="application/cap+xml"))[:2] == (
                201, {"sequence": 1},
            )  # fmt: skip
            event = {"specversion": "1.0", "id": "9", "source": "/s", "type": "level", "data": {"depth": 1}}
            answer = await here.ask("POST", "/messages", event, kind="application/cloudevents+json")
            assert answer[:2] == (201, {"sequence": 2})
            binary = {"ce_specversion": "1.0", "ce_id": "10", "ce_source": "/s", "ce_type": "level"}
            answer = await here.ask("POST", "/messages", {"depth": 2}, **binary)
            assert answer[:2] == (201, {"sequence": 3})
            assert [event["sequence"] for event in await events(here, "ann")] == [1, 2, 3]

    run(work())


def test_bodies_beyond_the_limit_are_413_and_others_415(tmp_path):
    async def work():
        async with site(tmp_path, limits_body_bytes=1_000) as here:
            long = json.dumps({"text": "x" * 2_000})
            assert is_problem(await here.ask("POST", "/messages", data=long), 413, "too-large")

            async def parts():
                for _ in range(100):
                    yield b" " * 100

            async with here.session.post(
                here.url + "/messages", data=parts(), headers={"Authorization": f"Bearer {ADMIN}"}
            ) as answer:
                assert answer.status == 413
            assert is_problem(
                await here.ask("POST", "/messages", data="a", kind="text/csv"), 415, "unsupported-media-type"
            )
            packed = await here.ask("POST", "/messages", data="{}", Content_Encoding="gzip")
            assert is_problem(packed, 415, "unsupported-media-type")
            assert (await here.publish({"depth": 1})).status == 201

    run(work())


# --- access ---


def test_routes_need_the_scope_that_the_table_names(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            keys = {}  # by the one scope that they lack
            for scope in SCOPES:
                others = [one for one in SCOPES if one != scope]
                made = await here.ask("POST", "/keys", {"name": f"all but {scope}", "scopes": others})
                keys[scope] = made.body["key"]
            for endpoint in TABLE:
                path = re.sub(r"{\w+}", "x", endpoint.path)
                if endpoint.scope is None:
                    assert (await here.ask(endpoint.method, path, key=None)).status in (200, 404), path
                    continue
                assert is_problem(await here.ask(endpoint.method, path, key=None), 401, "unauthorized")
                assert is_problem(await here.ask(endpoint.method, path, key="wrong"), 401, "unauthorized")
                answer = await here.ask(endpoint.method, path, key=keys[endpoint.scope])
                assert is_problem(answer, 403, "forbidden")
                assert answer.body["scope"] == endpoint.scope, path

    run(work())


def test_keys_are_made_listed_and_revoked(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            asked = {"name": "station", "scopes": ["publish"], "tenant": "acme"}
            made = await here.ask("POST", "/keys", asked)
            assert made.status == 201
            secret = made.body["key"]
            assert (await here.publish({"depth": 1}, key=secret)).status == 201
            listed = await here.ask("GET", "/keys")
            assert {key["name"] for key in listed.body["keys"]} == {"station", "configured admin"}
            assert secret not in json.dumps(listed.body)
            assert is_problem(await here.ask("POST", "/keys", asked), 409, "key-in-use")
            assert (await here.ask("DELETE", "/keys/acme/station")).status == 204
            assert is_problem(await here.publish({"depth": 1}, key=secret), 401, "unauthorized")
            assert is_problem(await here.ask("DELETE", "/keys/acme/station"), 404, "not-found")
            assert is_problem(await here.ask("DELETE", "/keys/default/configured%20admin"), 409, "conflict")

    run(work())


def test_tenants_see_nothing_of_each_other(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            keys = {}
            for tenant in ("acme", "blue"):
                asked = {"name": "all", "scopes": ["publish", "subscribe"], "tenant": tenant}
                keys[tenant] = (await here.ask("POST", "/keys", asked)).body["key"]
                body = {"subscriber": "ann", "filter": "depth > 0"}
                assert (await here.ask("PUT", "/subscriptions/k", body, key=keys[tenant])).status == 201
            await here.publish({"depth": 1, "of": "acme"}, key=keys["acme"])
            await here.publish({"depth": 2, "of": "blue"}, key=keys["blue"])
            for tenant in keys:
                found = await events(here, "ann", key=keys[tenant])
                assert [event["message"]["of"] for event in found] == [tenant]
                trial = await here.ask("POST", "/dry-run", {"filter": "depth > 0"}, key=keys[tenant])
                assert (trial.body["count"], trial.body["examined"]) == (1, 1)
            assert (await here.ask("DELETE", "/subscriptions/k", key=keys["acme"])).status == 200
            assert (await here.ask("GET", "/subscriptions/k", key=keys["blue"])).status == 200
            token = (await here.ask("POST", "/subscribers/ann/token", key=keys["acme"])).body["token"]
            found = await events(here, "ann", f"?wait=0&from=1&token={token}", key=keys["blue"])
            assert [event["message"]["of"] for event in found] == ["acme"]

    run(work())


def test_requests_beyond_the_rate_are_429(tmp_path):
    async def work():
        async with site(tmp_path, limits_requests_per_second=0.001, limits_burst=2) as here:
            statuses = [(await here.publish({"depth": 1})).status for _ in range(3)]
            assert statuses == [201, 201, 429]
            answer = await here.publish({"depth": 1})
            assert is_problem(answer, 429, "too-many-requests")
            assert int(answer.headers["Retry-After"]) >= 1

    run(work())


# --- subscriptions ---


def test_subscriptions_are_put_got_listed_and_deleted(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            made = await here.subscribe("a%2Fb", "ann", "depth > 1")
            assert (made.status, made.body["key"], made.body["applies_from"]) == (201, "a/b", 1)
            await here.publish({"depth": 2})
            replaced = await here.subscribe("a%2Fb", "ann", "depth > 2")
            assert (replaced.status, replaced.body["applies_from"]) == (200, 2)
            as_json = {"op": ">", "args": [{"property": "depth"}, 3]}
            assert (await here.ask("PUT", "/subscriptions/c", {"subscriber": "bob", "filter": as_json})).status == 201
            got = await here.ask("GET", "/subscriptions/a%2Fb")
            assert (got.body["filter"], got.body["subscriber"]) == ("depth > 2", "ann")
            first = await here.ask("GET", "/subscriptions?limit=1")
            assert [one["key"] for one in first.body["subscriptions"]] == ["a/b"]
            (link,) = first.body["links"]
            second = await here.ask("GET", link["href"])
            assert [(one["key"], one["filter"]) for one in second.body["subscriptions"]] == [("c", as_json)]
            assert [
                one["key"] for one in (await here.ask("GET", "/subscriptions?subscriber=bob")).body["subscriptions"]
            ] == ["c"]
            assert (await here.ask("GET", "/subscriptions?prefix=a/")).body["subscriptions"][0]["key"] == "a/b"
            deleted = await here.ask("DELETE", "/subscriptions/a%2Fb")
            assert deleted[:2] == (200, {"applies_until": 1})
            assert is_problem(await here.ask("GET", "/subscriptions/a%2Fb"), 404, "unknown-key")
            assert is_problem(await here.ask("DELETE", "/subscriptions/a%2Fb"), 404, "unknown-key")

    run(work())


def test_if_none_match_puts_only_new_keys(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            body = {"subscriber": "ann", "filter": "depth > 1"}
            assert (await here.ask("PUT", "/subscriptions/k", body, If_None_Match="*")).status == 201
            assert is_problem(
                await here.ask("PUT", "/subscriptions/k", body, If_None_Match="*"), 412, "precondition-failed"
            )

    run(work())


BAD_SUBSCRIPTIONS = [
    ({"subscriber": "ann", "filter": "depth >"}, 400, "bad-filter", {"line": 1, "column": 8}),
    ({"subscriber": "ann", "filter": {"op": "nope", "args": []}}, 400, "bad-filter", {"path": "/op"}),
    ({"subscriber": "ann"}, 400, "bad-body", {}),
    ({"subscriber": "ann", "filter": "depth > 1", "filters": 1}, 400, "bad-body", {}),
    ({"subscriber": "", "filter": "depth > 1"}, 400, "bad-body", {"path": "/subscriber"}),
    ({"subscriber": "a\nb", "filter": "depth > 1"}, 400, "bad-parameter", {"attribute": "subscriber"}),
    ({"subscriber": "ann", "filter": "depth > 1", "on": "enter"}, 400, "bad-body", {"path": "/on"}),
    ({"subscriber": "ann", "filter": "depth > 1", "ttl": -1}, 400, "bad-body", {"path": "/ttl"}),
    ({"subscriber": "ann", "filter": "depth > 1", "expires": "2020-01-01T00:00:00Z"}, 400, "bad-parameter", {}),
    ({"subscriber": "ann", "filter": "depth > 1" + " " * 500}, 413, "too-large", {}),
    ({"subscriber": "ann", "filter": "S_INTERSECTS(a, POLYGON((0 0, 2 2, 2 0, 0 2, 0 0)))"}, 400, "bad-region", {}),
]


def test_bad_subscriptions_are_refused(tmp_path):
    async def work():
        async with site(tmp_path, limits_filter_bytes=300) as here:
            for body, status, name, members in BAD_SUBSCRIPTIONS:
                answer = await here.ask("PUT", "/subscriptions/k", body)
                if name == "bad-region":  # the filter or the region is at fault, and the vertex is named
                    assert answer.status == 400
                    assert "1" in answer.body["detail"]
                else:
                    assert is_problem(answer, status, name)
                assert members.items() <= answer.body.items(), answer.body
                assert (await here.ask("GET", "/subscriptions")).body["subscriptions"] == []

    run(work())


def test_paused_subscriptions_match_nothing(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("k", "ann", "depth > 1")
            await here.publish({"depth": 2})
            assert (await here.ask("POST", "/subscriptions/k/pause")).body["paused"] is True
            await here.publish({"depth": 3})
            resumed = await here.ask("POST", "/subscriptions/k/resume")
            assert (resumed.body["paused"], resumed.body["applies_from"]) == (False, 3)
            await here.publish({"depth": 4})
            assert (await here.ask("PATCH", "/subscriptions/k", {"paused": True})).body["paused"] is True
            await here.publish({"depth": 5})
            assert [event["message"]["depth"] for event in await events(here, "ann")] == [2, 4]
            assert is_problem(await here.ask("POST", "/subscriptions/no/pause"), 404, "unknown-key")

    run(work())


def test_subscriptions_expire(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("k", "ann", "depth > 1", ttl=0.2)
            await asyncio.sleep(0.3)
            await here.publish({"depth": 2})
            assert await events(here, "ann") == []
            assert is_problem(await here.ask("GET", "/subscriptions/k"), 404, "unknown-key")

    run(work())


def test_bulk_uploads_keep_good_rows(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            lines = [
                {"key": "a", "subscriber": "ann", "filter": "depth > 1"},
                {"key": "b", "filter": "depth >"},
                {"key": 7, "filter": "depth > 2", "note": "ignored"},
                {"filter": "depth > 1"},
                {"key": "c\x00", "filter": "depth > 1"},
            ]
            answer = await here.ask(
                "POST", "/subscriptions", data="\n".join(map(json.dumps, lines)) + "\n{x", kind="application/x-ndjson"
            )
            assert (answer.status, answer.body["count"], answer.body["applies_from"]) == (200, 2, 1)
            assert [row["row"] for row in answer.body["rejected"]] == [1, 3, 4, 5]
            assert [one["key"] for one in (await here.ask("GET", "/subscriptions")).body["subscriptions"]] == ["7", "a"]
            await here.publish({"depth": 3})
            assert [event["key"] for event in await events(here, "7")] == ["7"]

    run(work())


def test_geoparquet_rows_become_subscriptions_of_a_template(tmp_path):
    boxes = [shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3), shapely.box(5, 5, 6, 6)]
    frame = geopandas.GeoDataFrame({"key": ["a", "b", "c"], "subscriber": ["ann", "ann", "bob"], "level": [1, 2, 3]},
                                   geometry=boxes, crs="EPSG:4326")  # fmt: skip
    data = io.BytesIO()
    frame.to_parquet(data)

    async def work():
        async with site(tmp_path) as here:
            template = "S_INTERSECTS(geometry,%20$geometry)%20AND%20depth%20%3E=%20$level"
            kind = "application/vnd.apache.parquet"
            answer = await here.ask("POST", f"/subscriptions?template={template}", data=data.getvalue(), kind=kind)
            assert (answer.status, answer.body["count"], answer.body["rejected"]) == (200, 3, [])
            await here.publish(feature(1.5, 1.5, depth=1), feature(1.5, 1.5, depth=2), feature(5.5, 5.5, depth=9))
            assert [(event["sequence"], event["key"]) for event in await events(here, "ann")] == [
                (1, "a"), (2, "a"), (2, "b"),
            ]  # fmt: skip
            assert [event["key"] for event in await events(here, "bob")] == ["c"]
            assert is_problem(
                await here.ask("POST", "/subscriptions", data=data.getvalue(), kind=kind), 400, "bad-parameter"
            )
            answer = await here.ask("POST", f"/subscriptions?template={template}", data=b"no parquet", kind=kind)
            assert (answer.status, answer.body["count"]) == (422, 0)

    run(work())


def test_explain_says_why(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("k", "ann", "depth > 2 AND kind = 'flood'")
            answer = await here.ask("POST", "/subscriptions/k/explain", {"depth": 1, "kind": "flood"})
            assert answer.status == 200
            assert answer.body["matches"] is False
            truths = [one["truth"] for one in answer.body["explanation"]["filters"][0]["constraints"]]
            assert sorted(truths) == [False, True]
            assert (await here.ask("POST", "/subscriptions/k/explain", {"depth": 3, "kind": "flood"})).body["matches"]
            assert is_problem(await here.ask("POST", "/subscriptions/no/explain", {}), 404, "unknown-key")
            assert is_problem(await here.ask("POST", "/subscriptions/k/explain", data="{"), 400, "bad-body")

    run(work())


def test_dry_runs_match_the_recent_past(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.publish(*({"depth": depth} for depth in range(1, 31)))
            await here.ask("POST", "/messages", data=CAP, kind="application/cap+xml")
            answer = await here.ask("POST", "/dry-run", {"filter": "depth > 10", "limit": 2})
            assert answer.status == 200
            found = answer.body
            assert (found["count"], found["examined"], found["from"], found["to"]) == (20, 31, 1, 31)
            assert [one["message"]["depth"] for one in found["sample"]] == [29, 30]
            assert found["complete"] is True
            later = await here.ask("POST", "/dry-run", {"filter": "depth > 10", "from": 21})
            assert (later.body["count"], later.body["examined"]) == (10, 11)
            square = "S_INTERSECTS(area, POLYGON((11 43, 12 43, 12 44, 11 44, 11 43)))"
            alerts = await here.ask(
                "POST", "/dry-run", {"filter": f"{square} AND sent > TIMESTAMP('2026-01-01T00:00:00Z')"}
            )
            assert [one["sequence"] for one in alerts.body["sample"]] == [31]
            assert is_problem(await here.ask("POST", "/dry-run", {"filter": "depth >"}), 400, "bad-filter")
            past = await here.ask("POST", "/dry-run", {"filter": "depth > 1", "since": "2100-01-01T00:00:00Z"})
            assert past.body["count"] == 0

    run(work())


# --- subscribers ---


def test_subscribers_show_how_far_they_are(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("k", "ann", "depth > 1")
            await here.subscribe("l", "bob", "depth > 1")
            await here.publish({"depth": 2}, {"depth": 3})
            listed = await here.ask("GET", "/subscribers?limit=1")
            assert listed.body["subscribers"] == ["ann"]
            assert (await here.ask("GET", listed.body["links"][0]["href"])).body["subscribers"] == ["bob"]
            before = (await here.ask("GET", "/subscribers/ann")).body
            assert (before["acknowledged"], before["lag"], before["oldest_undelivered"]) == (None, 2, 1)
            assert before["oldest_undelivered_age"] >= 0
            assert (await here.ask("POST", "/subscribers/ann/ack", {"id": "1.1"})).status == 204
            after = (await here.ask("GET", "/subscribers/ann")).body
            assert (after["acknowledged"], after["lag"], after["oldest_undelivered"]) == ("1.1", 1, 2)
            assert [event["id"] for event in await events(here, "ann", "?wait=0")] == ["2.1"]
            assert is_problem(await here.ask("GET", "/subscribers/no"), 404, "not-found")
            assert is_problem(await here.ask("POST", "/subscribers/ann/ack", {"id": "9.1"}), 400, "bad-parameter")
            assert is_problem(await here.ask("POST", "/subscribers/ann/ack", {"id": "x"}), 400, "bad-parameter")

    run(work())


# --- operations ---


def test_health_readiness_and_documents(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            assert (await here.ask("GET", "/health", key=None))[:2] == (200, {"status": "ok"})
            assert (await here.ask("GET", "/ready", key=None))[:2] == (200, {"status": "ready"})
            document = (await here.ask("GET", "/openapi.json", key=None)).body
            listed = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
            assert listed == {(one.method, one.path) for one in TABLE}
            references = re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(document))
            assert set(references) <= set(document["components"]["schemas"])
            assert (await here.ask("GET", "/asyncapi.json", key=None)).body["asyncapi"] == "3.0.0"
            assert b"/subscriptions/{key}" in (await here.ask("GET", "/docs", key=None)).body
            assert (await here.ask("GET", "/problems/gone", key=None)).body["status"] == 410
            assert is_problem(await here.ask("GET", "/nothing"), 404, "not-found")
            assert is_problem(await here.ask("DELETE", "/messages"), 405, "method-not-allowed")
            assert is_problem(await here.ask("GET", "/subscriptions/%ff"), 400, "bad-request")

    run(work())


def test_metrics_count_what_happened(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("k", "ann", "depth > 1")
            await here.publish({"depth": 1}, {"depth": 2}, {"depth": 3})
            await here.ask("POST", "/messages", data="{")
            open_text = (await here.ask("GET", "/metrics", key=None)).body.decode()
            assert "subscriber=" not in open_text
            text = (await here.ask("GET", "/metrics")).body.decode()
            values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
            wanted = {
                "contrada_messages_total": 3, "contrada_rejected_total": 1, "contrada_matches_total": 2,
                "contrada_events_total": 0, "contrada_subscriptions": 1, "contrada_publish_seconds_count": 2,
                'contrada_match_seconds_bucket{le="+Inf"}': 2, "contrada_match_seconds_count": 2,
                'contrada_subscriber_lag_messages{subscriber="ann",tenant="default"}': 3,
            }  # fmt: skip
            assert {name: float(values[name]) for name in wanted} == wanted

    run(work())


def test_metrics_leave_out_a_subscriber_that_has_just_gone(tmp_path, monkeypatch):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("k", "ann", "depth > 1")
            monkeypatch.setattr(
                here.server.context.service, "latest_lags", lambda count: [("default", "bob"), ("default", "ann")]
            )
            answer = await here.ask("GET", "/metrics")
            assert answer.status == 200
            assert b'subscriber="ann"' in answer.body
            assert b'subscriber="bob"' not in answer.body

    run(work())


def test_only_configured_origins_are_allowed(tmp_path):
    async def work():
        origin = {"Origin": "https://map.example"}
        async with site(tmp_path / "a") as here:
            assert "Access-Control-Allow-Origin" not in (await here.ask("GET", "/health", **origin)).headers
        async with site(tmp_path / "b", cors_origins=["https://map.example"]) as here:
            assert (await here.ask("GET", "/health", **origin)).headers["Access-Control-Allow-Origin"] == origin[
                "Origin"
            ]
            other = await here.ask("GET", "/health", Origin="https://evil.example")
            assert "Access-Control-Allow-Origin" not in other.headers

    run(work())
