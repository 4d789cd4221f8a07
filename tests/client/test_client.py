"""Both clients against a real server: every method, and errors with their members."""

import asyncio
import gc
import json
import threading
import time
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
import shapely

import contrada as ct
from console import python, wait_for
from contrada.client import AsyncClient, Client, Match, MatchReset, ProblemError, UnreachableError
from server_process import free_port

BROKEN = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}}
SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"


@pytest.fixture
def client(server):
    with Client(server.url, server.key) as found:
        yield found


@pytest.fixture
def name(request):
    """A name that no other test uses, with characters that paths must encode."""
    return f"via roma/{request.node.name}?#%é"


def test_a_message_reaches_its_subscriber(client, name):
    made = client.subscribe(name, name, "depth > 2")
    receipt = client.publish({"depth": 3, "at": name})
    assert receipt.first == receipt.last == receipt.sequence >= made.applies_from
    assert (receipt.count, receipt.duplicates, receipt.rejected) == (1, [], [])
    with client.matches(name) as matches:
        found = next(matches)
    number = found.id.partition(".")[2]
    assert found == Match(f"{receipt.sequence}.{number}", receipt.sequence, name, {"depth": 3, "at": name})


def test_messages_are_mappings_geometries_lists_or_bytes(client, name):
    client.subscribe(name, name, f"S_INTERSECTS(geometry, {SQUARE}) AND at = '{name}'")
    point = shapely.Point(1, 1)
    feature = {"type": "Feature", "geometry": point, "properties": {"at": name}}
    client.publish(feature)
    receipt = client.publish([feature, {"depth": 1}, BROKEN, feature])
    assert (receipt.count, [row.row for row in receipt.rejected]) == (3, [2])
    event = {"specversion": "1.0", "id": "7", "source": name, "type": "x", "data": {**feature, "geometry": point}}
    client.publish([event], content_type=None)
    as_text = json.dumps({**feature, "geometry": point.__geo_interface__}).encode()
    client.publish(as_text, content_type="application/geo+json")
    assert client.publish(iter([])).count == 0
    found = list(islice(client.matches(name), 5))
    assert [match.message.get("type") for match in found] == ["Feature", "Feature", "Feature", "x", "Feature"]
    for bad in ("text", 5, {"a": object()}):
        with pytest.raises(ct.ContradaError):
            client.publish(bad)
    with pytest.raises(ct.ContradaError, match="content_type"):
        client.publish(b"{}")


def test_ids_are_recognised_over_calls(client, name):
    first = client.publish({"n": 1}, id=name[-20:].replace("é", "e"))
    again = client.publish({"n": 2}, id=name[-20:].replace("é", "e"))
    assert (again.count, again.sequence) == (0, first.sequence)
    event = {"specversion": "1.0", "id": "1", "source": name, "type": "x"}
    first = client.publish(event)
    assert client.publish([{"n": 3}, event]).duplicates[0].sequence == first.sequence
    assert client.publish({"n": 1}).sequence < client.publish({"n": 1}).sequence  # no id: every call is new


def test_subscriptions_are_read_listed_changed_and_removed(client, name):
    keys = [f"{name}{number}" for number in range(7)]
    for key in keys:
        client.subscribe(key, name, {"op": ">", "args": [{"property": "depth"}, 2]}, ttl=60)
    assert client.get(keys[0]).filter == {"op": ">", "args": [{"property": "depth"}, 2]}
    assert [one.key for one in client.list(subscriber=name, page=3)] == keys
    assert [one.key for one in client.list(prefix=keys[3])] == keys[3:4]
    assert client.pause(keys[0]).paused
    assert not client.resume(keys[0]).paused
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    assert client.subscribe(keys[0], name, ct.parse("depth > 3"), expires=later, paused=True).expires == later
    with pytest.raises(ProblemError) as caught:
        client.subscribe(keys[0], name, "depth > 1", new=True)
    assert caught.value.status == 412
    assert client.unsubscribe(keys[0]) is not None
    assert client.unsubscribe(keys[0], missing_ok=True) is None
    with pytest.raises(ProblemError) as caught:
        client.unsubscribe(keys[0])
    assert caught.value.status == 404
    assert name in list(client.subscribers())


def test_bulk_uploads_keep_good_rows(client, name):
    rows = [{"key": f"{name}1", "filter": "a > 1"}, {"key": f"{name}2", "filter": "a >"}]
    result = client.bulk(rows)
    assert (result.count, [(row.row, row.key) for row in result.rejected]) == (1, [(1, f"{name}2")])
    assert client.bulk(rows[1:]).count == 0
    features = [
        {"type": "Feature", "geometry": shapely.box(0, 0, 1, 1).__geo_interface__, "properties": {"key": f"{name}3"}}
    ]
    body = json.dumps({"type": "FeatureCollection", "features": features}).encode()
    template = "S_INTERSECTS(geometry, $geometry)"
    assert client.bulk(body, content_type="application/geo+json", template=template).count == 1
    assert client.get(f"{name}3").filter.startswith("S_INTERSECTS")


def test_explanations_and_dry_runs(client, name):
    client.subscribe(name, name, "depth > 2")
    assert client.explain(name, {"depth": 3}).matches
    assert not client.explain(name, {"depth": 1}).matches
    first = client.publish([{"depth": 9, "at": name}] * 3).first
    found = client.dry_run(f"depth > 8 AND at = '{name}'", start=first, limit=2)
    assert (found.count, [one.sequence for one in found.sample]) == (3, [first + 1, first + 2])
    assert client.dry_run("depth > 8", since=datetime.now(UTC) + timedelta(hours=1)).count == 0


def test_places_to_start_at_and_acknowledgements(client, name):
    client.subscribe(name, name, f"at = '{name}'")
    first = client.publish([{"at": name, "n": n} for n in range(5)]).first

    def numbers(count, **place):
        with client.matches(name, **place) as matches:
            return [match.message["n"] for match in islice(matches, count)]

    assert numbers(5) == [0, 1, 2, 3, 4]
    assert numbers(2, start=first + 3) == [3, 4]
    assert numbers(1, start="oldest") == [0]
    assert numbers(1, since=datetime(2024, 1, 1, tzinfo=UTC)) == [0]
    with client.matches(name) as matches:
        next(matches), next(matches)
        matches.ack()
        assert client.subscriber(name).acknowledged == matches.last_id
    assert numbers(1) == [2]
    client.ack(name, next(client.matches(name, start=first + 3)).id)
    assert numbers(1) == [4]
    assert numbers(1, after=f"{first + 1}.4294967295") == [2]
    with pytest.raises(ct.ContradaError, match="one of"):
        client.matches(name, "1.1", start="now")
    with pytest.raises(ProblemError) as caught:
        next(client.matches(name, "x"))
    assert caught.value.status == 400


def test_now_stays_the_same_place_over_connections(client, name):
    client.subscribe(name, name, f"at = '{name}'")
    client.publish({"at": name, "n": 0})
    with client.matches(name, start="now") as matches:
        reading = threading.Thread(target=lambda: found.append(next(matches)))
        found = []
        reading.start()
        while not client.subscriber(name).readers:
            time.sleep(0.02)
        client.publish({"at": name, "n": 1})
        reading.join()
    assert [match.message["n"] for match in found] == [1]


def test_errors_carry_what_the_server_says(client, server, name):
    with pytest.raises(ProblemError) as caught:
        client.subscribe(name, name, "depth >\n >")
    error = caught.value
    assert (error.status, error.title, error.members["line"]) == (400, "Bad filter", 2)
    assert error.detail in str(error)
    with pytest.raises(ProblemError) as caught:
        client.publish([BROKEN] * 2)
    assert (caught.value.status, len(caught.value.members["rejected"])) == (422, 2)
    with Client(server.url, "wrong") as stranger, pytest.raises(ProblemError) as caught:
        stranger.publish({})
    assert caught.value.status == 401
    with Client(server.url, "wrong") as stranger, pytest.raises(ProblemError):
        next(stranger.matches(name))


def test_keys_and_tokens(client, server):
    made = client.create_key("reader", ["subscribe"], tenant="north")
    assert made.key
    listed = client.keys()
    assert [key.key for key in listed if key.name == "reader"] == [None]
    with Client(server.url, made.key) as reader:
        reader.subscribe("own", "ann", "a > 1")
        assert reader.token("ann").url.startswith("/subscribers/ann/events?token=")
        with pytest.raises(ProblemError) as caught:
            reader.publish({})
        assert caught.value.status == 403
        client.revoke_key("north", "reader")
        with pytest.raises(ProblemError) as caught:
            reader.get("own")
    assert caught.value.status == 401


def test_a_reset_is_told(client, server, name):
    client.subscribe(name, name, f"at = '{name}'")
    client.publish({"at": name})
    ahead = "999999999.1"  # as after the server lost its state
    with client.matches(name, ahead) as matches:
        with pytest.raises(ct.client.ResetError) as caught:
            next(matches)
        assert caught.value.oldest == 1
        assert next(matches).message == {"at": name}
    with client.matches(name, ahead, on_reset="yield") as matches:
        assert [type(item) for item in islice(matches, 2)] == [MatchReset, Match]


def test_the_asynchronous_client_serves_many_at_once(server, name):
    async def run():
        async with AsyncClient(server.url, server.key) as client:
            await client.ready()
            await asyncio.gather(
                *(client.subscribe(f"{name}{n}", f"{name}{n}", f"n = {n} AND at = '{name}'") for n in range(8))
            )
            await asyncio.gather(*(client.publish({"n": n, "at": name}) for n in range(8)))
            return [await anext(client.matches(f"{name}{n}")) for n in range(8)]

    assert [match.message["n"] for match in asyncio.run(run())] == list(range(8))


def test_waiting_for_a_match_may_be_given_up(server, name):
    async def run():
        async with AsyncClient(server.url, server.key) as client:
            await client.subscribe(name, name, f"at = '{name}'")
            async with client.matches(name) as matches:
                for n in range(3):
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(anext(matches), 0.05)
                    await client.publish({"at": name, "n": n})
                    assert (await anext(matches)).message["n"] == n

    asyncio.run(run())


def test_an_absent_server_is_an_error_after_a_while():
    with Client(f"http://127.0.0.1:{free_port()}", "key", patience=0.3) as client:
        with pytest.raises(UnreachableError):
            client.publish({})
        with pytest.raises(UnreachableError):
            next(client.matches("ann", patience=0.3))
    with pytest.raises(ct.ContradaError, match="http"):
        Client("localhost:8080")


def test_an_iteration_that_is_left_closes_its_connection(client, name):
    client.subscribe(name, name, f"at = '{name}'")
    client.publish({"at": name})
    for match in client.matches(name):
        assert match.key == name
        break
    del match
    gc.collect()
    wait_for(lambda: not client.subscriber(name).readers, 20)


def test_a_client_that_nobody_closes_ends_with_the_program(server, name):
    code = f"""
from contrada.client import Client
client = Client({server.url!r}, {server.key!r})
client.subscribe({name!r}, {name!r}, "n = 1")
client.publish({{"n": 1}})
print(next(Client({server.url!r}, {server.key!r}).matches({name!r})).message)
"""
    run = python("-W", "error", "-c", code)
    assert (run.stdout, run.stderr) == ("{'n': 1}\n", "")


def test_importing_the_client_is_light():
    code = "import sys, contrada.client; print(*sys.modules)"
    loaded = set(python("-c", code).stdout.split())
    assert not {"numba", "starlette", "uvicorn", "pyarrow", "contrada.service"} & loaded
