"""A server that starts, stops, cannot write or whose clock is set back, as its clients see it."""

import asyncio
import errno
import os
import threading
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest

from contrada.errors import ContradaError
from contrada.service.store.sqlite import SqliteStore
from served import Served
from serving import ADMIN, events, is_problem, run, site, take


class HookedDisk:
    """A disk whose commits fail with an error while there is one."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def before_commit(self) -> None:
        if self.error is not None:
            raise self.error

    @property
    def options(self):
        """What makes a server write to it."""
        return {"store": lambda asked: SqliteStore(asked.server.state, before_commit=self.before_commit)}


def metric(text: bytes, name: str) -> float:
    return next(float(line.split()[-1]) for line in text.decode().splitlines() if line.startswith(f"{name} "))


# --- start and stop ---


def test_a_server_is_ready_after_its_kernels_are_loaded(tmp_path):
    opened, loaded = threading.Event(), threading.Event()

    def store(asked):
        opened.wait(60)
        return SqliteStore(asked.server.state)

    async def refused(here, stage):
        """Everything is refused with the stage of the start; the process lives."""
        for method, path in (("GET", "/ready"), ("POST", "/messages"), ("GET", "/subscribers/ann/events")):
            answer = await here.ask(method, path)
            assert is_problem(answer, 503, "not-ready")
            assert stage in answer.body["detail"]
            assert answer.headers["Retry-After"] == "1"
        assert is_problem(await here.subscribe("a", "ann", "depth > 0"), 503, "not-ready")
        assert (await here.ask("GET", "/health")).status == 200
        assert (await here.ask("GET", "/metrics")).status == 200

    async def work():
        try:
            async with site(
                tmp_path, options={"store": store, "warm": lambda: loaded.wait(60)}, is_waiting=False
            ) as here:
                await refused(here, "opening the store")
                opened.set()
                while here.server.context.stage == "opening the store":
                    await asyncio.sleep(0.01)
                await refused(here, "loading kernels")
                loaded.set()
                while (await here.ask("GET", "/ready")).status != 200:
                    await asyncio.sleep(0.01)
                assert (await here.publish({"depth": 1})).body == {"sequence": 1}
        finally:
            opened.set()
            loaded.set()

    run(work())


@pytest.mark.slow
def test_a_process_that_starts_answers_503_before_200(tmp_path):
    server, seen = Served(tmp_path / "state"), []
    server.start()
    try:
        end = time.monotonic() + 120
        while 200 not in seen and time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"{server.url}/ready", timeout=5) as answer:
                    seen.append(answer.status)
            except urllib.error.HTTPError as error:
                seen.append(error.code)
            except OSError:
                time.sleep(0.005)
    finally:
        server.end()
    assert seen[0] == 503
    assert seen == sorted(seen, reverse=True)
    assert set(seen) == {503, 200}


def test_a_server_that_stops_refuses_what_comes_then(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.publish({"depth": 1})
            await here.server.context.end_streams()  # the first step of a stop
            for answer in (await here.publish({"depth": 2}), await here.subscribe("a", "ann", "depth > 0")):
                assert is_problem(answer, 503, "not-ready")
                assert "stopping" in answer.body["detail"]
            assert is_problem(await here.ask("GET", "/ready"), 503, "not-ready")
        async with site(tmp_path) as here:
            assert (await here.publish({"depth": 2})).body == {"sequence": 2}

    run(work())


# --- the disk ---


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_while_nothing_can_be_written_changes_are_503_and_reading_goes_on(tmp_path, number):
    async def work():
        disk = HookedDisk()
        async with site(tmp_path, options=disk.options) as here:
            await here.subscribe("a", "ann", "depth > 0")
            await here.publish({"depth": 1})
            async with here.stream("ann") as stream:
                await take(stream, 1)
                disk.error = OSError(number, os.strerror(number))
                changes = [
                    ("POST", "/messages", {"depth": 2}),
                    ("PUT", "/subscriptions/b", {"subscriber": "ann", "filter": "depth > 0"}),
                    ("DELETE", "/subscriptions/a", None),
                    ("POST", "/subscribers/ann/ack", {"id": "1.1"}),
                    ("POST", "/keys", {"name": "late", "scopes": ["publish"]}),
                ]
                for method, path, body in changes:
                    answer = await here.ask(method, path, body)
                    assert is_problem(answer, 503, "storage-failed")
                    assert answer.headers["Retry-After"] == "5"
                    assert str(tmp_path) not in answer.body["detail"]
                assert is_problem(await here.ask("GET", "/ready"), 503, "storage-failed")
                assert metric((await here.ask("GET", "/metrics")).body, "contrada_store_fault") == 1
                assert [event["id"] for event in await events(here, "ann")] == ["1.1"]
                disk.error = None
                # No restart: numbers have no gap, and what was refused has left nothing.
                assert (await here.publish({"depth": 3})).body == {"sequence": 2}
                assert [event["id"] for event in await take(stream, 1)] == ["2.1"]
            assert (await here.ask("GET", "/ready")).status == 200
            assert metric((await here.ask("GET", "/metrics")).body, "contrada_store_fault") == 0
            assert (await here.ask("GET", "/subscriptions/b")).status == 404
            assert [key["name"] for key in (await here.ask("GET", "/keys")).body["keys"]] == ["configured admin"]
            assert (await here.subscribe("b", "bob", "depth > 0")).body["applies_from"] == 3

    run(work())


def test_a_fault_of_the_engine_is_answered_and_the_engine_goes_on(tmp_path):
    async def work():
        disk = HookedDisk()
        async with site(tmp_path, options=disk.options) as here:
            await here.publish({"depth": 1})
            disk.error = RuntimeError("a secret of the server")
            answer = await here.publish({"depth": 2})
            assert is_problem(answer, 500, "internal-error")
            assert "secret" not in str(answer.body)
            disk.error = None
            assert (await here.publish({"depth": 2})).body == {"sequence": 2}

    run(work())


def test_a_full_disk_is_503_until_there_is_room(tmp_path, small_disk):
    async def work():
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(1 << 20))
        async with site(small_disk / "state") as here:
            await here.subscribe("a", "ann", "depth > 0")
            taken = 0
            while (answer := await here.publish({"depth": 1, "text": "x" * 100_000})).status == 201:
                taken += 1
            assert is_problem(answer, 503, "storage-failed")
            assert taken > 3
            assert is_problem(await here.ask("GET", "/ready"), 503, "storage-failed")
            ballast.unlink()
            assert (await here.publish({"depth": 2})).body == {"sequence": taken + 1}
            assert (await here.ask("GET", "/ready")).status == 200
            found = await events(here, "ann", "?wait=0&from=1&limit=1000")
            assert [event["sequence"] for event in found] == list(range(1, taken + 2))

    run(work())


def test_a_read_only_directory_is_an_error_at_start(tmp_path, read_only):
    async def start(state):
        async with site(state):
            pass

    place = tmp_path / "place"
    run(start(place / "state"))
    with read_only(place):
        for state in (place / "state", place / "new"):
            with pytest.raises(ContradaError, match=f"{state}"):
                run(start(state))


# --- the clock ---


class Wall:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def after(self, seconds: float) -> str:
        """Return a time so many seconds after now."""
        return (datetime.fromtimestamp(self.now, UTC) + timedelta(seconds=seconds)).isoformat()


def test_a_clock_that_is_set_back_loses_nothing_and_keeps_order(tmp_path):
    async def times(here):
        trial = await here.ask("POST", "/dry-run", {"filter": "depth > 0", "limit": 100})
        return [(one["sequence"], one["at"]) for one in trial.body["sample"]]

    async def work():
        wall = Wall()
        noon = wall.after(0)
        async with site(tmp_path, options={"clock": wall}, retention_age=600) as here:
            await here.subscribe("before", "ann", "depth > 0", ttl=300)
            await here.publish({"depth": 1})
            token = (await here.ask("POST", "/subscribers/ann/token")).body["token"]
            key = {"name": "short", "scopes": ["publish"], "expires": wall.after(300)}
            secret = (await here.ask("POST", "/keys", key)).body["key"]
            wall.now -= 3_600
            await here.subscribe("after", "ann", "depth > 0", ttl=300)  # not over at once
            await here.publish({"depth": 2})
            await here.server.context.service.tick()  # retention: nothing is old
            found = await times(here)
            assert [sequence for sequence, _ in found] == [1, 2]
            assert found == sorted(found, key=lambda one: one[1])
            assert [event["id"] for event in await events(here, "ann")] == ["1.1", "2.1", "2.2"]
            assert [event["id"] for event in await events(here, "ann", f"?token={token}&wait=0", key=None)]
            assert [one["sequence"] for one in await events(here, "ann", f"?wait=0&since={noon.replace('+', '%2B')}")]
            assert (await here.publish({"depth": 3}, key=secret)).status == 201
            assert (await here.ask("GET", "/subscribers/ann")).body["oldest_undelivered_age"] < 60
        async with site(tmp_path, options={"clock": wall}, retention_age=600) as here:  # and over a restart
            made = await here.subscribe("later", "ann", "depth > 0", ttl=300)
            assert made.body["expires"] > noon
            assert (await here.publish({"depth": 4})).body == {"sequence": 4}
            found = await times(here)
            assert found == sorted(found, key=lambda one: one[1])
            wall.now += 3_600 + 400  # right again, and later: what was to end ends
            await here.publish({"depth": 5})
            listed = (await here.ask("GET", "/subscriptions")).body["subscriptions"]
            assert [one["key"] for one in listed] == []
            assert is_problem(await here.publish({"depth": 1}, key=secret), 401, "unauthorized")
            wall.now += 601
            await here.publish({"depth": 6})
            await here.server.context.service.tick()
            assert here.server.context.service.oldest == 6
            assert (await here.ask("GET", "/subscribers/ann", key=ADMIN)).body["dropped"] > 0

    run(work())


def test_stream_tokens_end_although_the_clock_is_set_back(tmp_path):
    async def work():
        wall = Wall()
        async with site(tmp_path, options={"clock": wall}, access_stream_token_seconds=0.1) as here:
            token = (await here.ask("POST", "/subscribers/ann/token")).body["token"]
            wall.now -= 3_600
            await asyncio.sleep(0.11)
            answer = await here.ask("GET", f"/subscribers/ann/events?wait=0&token={token}", key=None)
            assert is_problem(answer, 401, "unauthorized")

    run(work())
