"""Sinks and sources of a whole server over its HTTP interface, with topics in memory."""

import asyncio

from contrada.service.deliveries.outcomes import TAKEN, Outcome
from serving import is_problem, run, site
from topics import GivingTopic, TakingTopic
from webhook_receivers import until

CONFIG = """
[webhooks]
retry_first = 0.001
retry_most = 0.01
[[sinks]]
name = "out"
url = "kafka://nowhere/out"
subscriber = "ann"
attempts = 2
[[sources]]
name = "in"
url = "mqtt://nowhere/in"
"""


def topic_site(tmp_path, taking, giving):
    file = tmp_path / "contrada.toml"
    file.write_text(CONFIG)
    options = {"sink": lambda table: taking, "source": lambda table: giving}
    return site(tmp_path / "state", config=file, options=options)


async def shown(here, path, is_done):
    """Return the only sink or source once something holds for it."""
    for _ in range(2_000):
        (found,) = (await here.ask("GET", path)).body[path[1:]]
        if is_done(found):
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(found)


def metrics_of(text):
    lines = (line for line in text.decode().splitlines() if line.startswith(("contrada_sink", "contrada_source")))
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_a_record_passes_through_and_both_show_how_far_they_are(tmp_path):
    async def work():
        taking, giving = TakingTopic(), GivingTopic()
        giving.lag = 4
        async with topic_site(tmp_path, taking, giving) as here:
            await here.subscribe("deep", "ann", "depth > 1")
            giving.give(b'{"depth": 1}', b'{"depth": 2}', b"{")
            await until(lambda: taking.ids == ["2.1"])
            sink = await shown(here, "/sinks", lambda one: one["state"] == "idle" and one["acknowledged"])
            assert sink == {
                "name": "out", "url": "kafka://nowhere/out", "tenant": "default", "subscriber": "ann", "state": "idle",
                "acknowledged": "2.1", "lag": 0, "dropped": 0, "dead_letters": 0,
            }  # fmt: skip
            source = await shown(here, "/sources", lambda one: one["dead_letters"])
            assert source == {
                "name": "in", "url": "mqtt://nowhere/in", "tenant": "default", "state": "reading", "lag": 4,
                "places": {"a/0": 2}, "dead_letters": 1,
            }  # fmt: skip
            values = metrics_of((await here.ask("GET", "/metrics", key=None)).body)
            assert values == {
                "contrada_sink_sent_total": 1, "contrada_sink_failed_total": 0, "contrada_sink_retried_total": 0,
                "contrada_sink_dead_total": 0, "contrada_sink_discarded_total": 0,
                'contrada_sink_lag_messages{sink="out"}': 0, 'contrada_sink_failing{sink="out"}': 0,
                "contrada_source_records_total": 3, "contrada_source_messages_total": 2,
                "contrada_source_repeated_total": 0, "contrada_source_dead_total": 1,
                "contrada_source_discarded_total": 0, "contrada_source_failed_total": 0,
                'contrada_source_lag_records{source="in"}': 4, 'contrada_source_failing{source="in"}': 0,
            }  # fmt: skip

    run(work())


def test_events_that_a_sink_gave_up_are_listed_and_sent_again(tmp_path):
    async def work():
        taking = TakingTopic(lambda records, count: Outcome(0, "away"))
        async with topic_site(tmp_path, taking, GivingTopic()) as here:
            await here.subscribe("deep", "ann", "depth > 1")
            await here.publish({"depth": 2}, {"depth": 3})
            await shown(here, "/sinks", lambda one: one["dead_letters"] == 2)
            page = (await here.ask("GET", "/sinks/out/dead-letters?limit=1")).body
            assert [letter["id"] for letter in page["dead_letters"]] == ["1.1"]
            assert page["links"] == [{"rel": "next", "href": "/sinks/out/dead-letters?after=1.1&limit=1"}]
            (letter,) = (await here.ask("GET", page["links"][0]["href"])).body["dead_letters"]
            assert (letter["id"], letter["reason"], letter["attempts"]) == ("2.1", "away", 2)
            assert letter["message"] == {"depth": 3}
            answer = await here.ask("POST", "/sinks/out/dead-letters/replay")
            assert answer.body == {"sent": 0, "left": 2, "failed": "away"}
            taking.judge = lambda records, count: Outcome(TAKEN)
            assert (await here.ask("POST", "/sinks/out/dead-letters/2.1/replay")).body == {"sent": 1, "left": 1}
            assert (await here.ask("POST", "/sinks/out/dead-letters/replay")).body == {"sent": 1, "left": 0}
            assert taking.ids == ["2.1", "1.1"]
            for path in ("/sinks/out/dead-letters?after=x", "/sources/in/dead-letters?after=x"):
                assert is_problem(await here.ask("GET", path), 400, "bad-parameter")
            for path in ("/sinks/out/dead-letters/x/replay", "/sources/in/dead-letters/x/replay"):
                assert is_problem(await here.ask("POST", path), 400, "bad-parameter")
            for path in ("/sinks/out/dead-letters/9.9/replay", "/sources/in/dead-letters/9/replay"):
                assert is_problem(await here.ask("POST", path), 404, "unknown-key")

    run(work())


def test_records_that_were_refused_are_listed_and_published_again(tmp_path):
    async def work():
        giving = GivingTopic()
        async with topic_site(tmp_path, TakingTopic(), giving) as here:
            giving.give(b"{", b"\xff", b'{"n": 1}')
            await shown(here, "/sources", lambda one: one["dead_letters"] == 2)
            page = (await here.ask("GET", "/sources/in/dead-letters")).body["dead_letters"]
            assert [(one["id"], one["place"], one.get("text"), one.get("base64")) for one in page] == [
                ("1", "a/0@0", "{", None),
                ("2", "a/0@1", None, "/w=="),
            ]
            answer = await here.ask("POST", "/sources/in/dead-letters/replay")
            assert (answer.body["sent"], answer.body["left"]) == (0, 2)
            assert answer.body["failed"]

    run(work())


def test_only_administrators_see_them(tmp_path):
    async def work():
        async with topic_site(tmp_path, TakingTopic(), GivingTopic()) as here:
            made = await here.ask("POST", "/keys", {"name": "k", "scopes": ["publish", "subscribe"]})
            for path in ("/sinks", "/sources", "/sinks/out/dead-letters", "/sources/in/dead-letters"):
                assert is_problem(await here.ask("GET", path, key=made.body["key"]), 403, "forbidden")

    run(work())


def test_a_topic_that_fails_shows_why_and_stops_nothing(tmp_path):
    async def work():
        giving = GivingTopic()
        giving.faults = dict.fromkeys(range(1, 100), OSError("no route"))
        async with topic_site(tmp_path, TakingTopic(), giving) as here:
            source = await shown(here, "/sources", lambda one: one["state"] == "failing")
            assert source["failing"]["reason"] == "no route"
            assert (await here.publish({"n": 1})).status == 201

    run(work())
