"""The service delivers what was published, to whom it concerns, in order, over restarts and failing disks."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import ContradaError, KeyInUseError, LanguageError, LimitError, UnknownKeyError
from contrada.service.core import NewSubscription
from contrada.service.cursors import Position
from contrada.service.feeds import Event, Reset
from contrada.service.intake import Post
from contrada.service.service import Retention, Service, ServiceLimits
from contrada.service.store.message_store import StoreError
from contrada.service.store.sqlite import SqliteStore
from effort import examples
from serving import run

NOON = 1_700_000_000_000


def feature(x: int, y: int, severity: int | str | None = None, **more: Any) -> dict[str, Any]:
    properties = {} if severity is None else {"severity": severity}
    return {
        "type": "Feature", "properties": properties, "geometry": {"type": "Point", "coordinates": [x, y]}, **more,
    }  # fmt: skip


def post(*messages: dict[str, Any]) -> Post:
    if len(messages) == 1:
        return Post("json", json.dumps(messages[0]).encode())
    return Post("ndjson", b"\n".join(json.dumps(message).encode() for message in messages))


def box(x: int, y: int, width: int, height: int) -> str:
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
    return "S_INTERSECTS(geometry, POLYGON((" + ", ".join(f"{a} {b}" for a, b in corners) + ")))"


async def started(store: SqliteStore, **options: Any) -> Service:
    service = Service(store, **options)
    await service.start()
    return service


async def everything(service: Service, tenant: str, subscriber: str, start: int = 1) -> list[tuple[str, str]]:
    """Return ids and keys of all events of a subscriber from a message on."""
    reader = await service.reader(tenant, subscriber, Position.after_message(start - 1))
    found: list[tuple[str, str]] = []
    try:
        while events := await reader.read(limit=3, wait=False):
            assert not isinstance(events, Reset)
            found += [(event.position.id, event.key) for event in events]
        return found
    finally:
        reader.close()


def test_a_message_reaches_each_subscription_that_it_satisfies(tmp_path):
    async def work() -> None:
        service = await started(SqliteStore(tmp_path))
        assert (await service.put("t", "high", NewSubscription("ann", "severity >= 3"))).applies_from == 1
        await service.put("t", "here", NewSubscription("ann", box(0, 0, 4, 4)))
        await service.put("t", "all", NewSubscription("bob", "severity >= 0"))
        published = await service.publish("t", post(feature(1, 1, 5), feature(9, 9, 1), feature(4, 4)))
        assert (published.first, published.last, published.rejected) == (1, 3, ())
        assert await everything(service, "t", "ann") == [("1.1", "high"), ("1.2", "here"), ("3.2", "here")]
        assert await everything(service, "t", "bob") == [("1.3", "all"), ("2.3", "all")]
        assert await everything(service, "u", "ann") == []  # another tenant
        late = await service.put("t", "late", NewSubscription("bob", "severity >= 0"))
        assert late.applies_from == 4
        await service.stop()

    run(work())


def test_bad_messages_cost_nothing_else(tmp_path):
    async def work() -> None:
        service = await started(SqliteStore(tmp_path))
        await service.put("t", "all", NewSubscription("ann", "severity >= 0"))
        bad = {"type": "Feature", "properties": {"severity": 1}, "geometry": {
            "type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}}  # fmt: skip
        answer = await service.publish("t", post(feature(1, 1, 1), bad, feature(2, 2, 2)))
        assert (answer.first, answer.last, [item.row for item in answer.rejected]) == (1, 2, [1])
        assert "self-intersect" in answer.rejected[0].reason or "cross" in answer.rejected[0].reason
        alone = await service.publish("t", post(bad))
        assert (alone.first, alone.last, len(alone.rejected)) == (0, 0, 1)
        assert [id for id, _ in await everything(service, "t", "ann")] == ["1.1", "2.1"]
        await service.stop()

    run(work())


def test_a_message_with_an_id_is_taken_once_and_its_sequence_is_told_again(tmp_path):
    async def work() -> None:
        service = await started(SqliteStore(tmp_path))
        await service.put("t", "all", NewSubscription("ann", "severity >= 0"))
        event = {"specversion": "1.0", "id": "7", "source": "/a", "type": "x", "data": {"severity": 1}}
        answers = await asyncio.gather(*[service.publish("t", post(event)) for _ in range(3)])
        assert [(answer.first, answer.duplicates) for answer in answers] == [(1, ()), (0, ((0, 1),)), (0, ((0, 1),))]
        assert (await service.publish("u", post(event))).first == 2  # ids of tenants are their own
        await service.stop()
        service = await started(SqliteStore(tmp_path))
        assert (await service.publish("t", post(event, {**event, "id": "8"}))).duplicates == ((0, 1),)
        moved = await service.publish("t", post(feature(1, 1, 1, id="bus"), feature(1, 2, 1, id="bus")))
        assert (moved.first, moved.last) == (4, 5)  # the same thing at another place is another message
        assert (await service.publish("t", post(feature(1, 1, 1, id="bus")))).duplicates == ((0, 4),)
        assert len(await everything(service, "t", "ann")) == 4
        await service.stop()

    run(work())


def test_bad_subscriptions_are_refused_and_change_nothing(tmp_path):
    async def work() -> None:
        service = await started(SqliteStore(tmp_path), limits=ServiceLimits(subscriptions=1))
        for filter in ("severity >=", {"op": "nothing"}):
            with pytest.raises(ContradaError):
                await service.put("t", "k", NewSubscription("ann", filter))
            with pytest.raises(ContradaError):
                await service.put("t", "k", NewSubscription("ann", filter, is_paused=True))
        with pytest.raises(UnknownKeyError):
            await service.subscription("t", "k")
        with pytest.raises(UnknownKeyError):
            await service.delete("t", "k")
        await service.put("t", "k", NewSubscription("ann", "severity >= 3"))
        with pytest.raises(KeyInUseError):
            await service.put("t", "k", NewSubscription("ann", "severity >= 4"), is_new=True)
        with pytest.raises(LanguageError):
            await service.put("t", "k", NewSubscription("ann", "severity >="))
        with pytest.raises(LimitError):
            await service.put("t", "l", NewSubscription("ann", "severity >= 3"))
        assert (await service.subscription("t", "k")).filter == "severity >= 3"
        answers = await service.put_many(
            "t", [("l", NewSubscription("ann", "a = 1")), ("k", NewSubscription("ann", "a = 1"))]
        )
        assert isinstance(answers[0], LimitError)
        assert not isinstance(answers[1], ContradaError)
        await service.stop()

    run(work())


def test_time_removes_subscriptions_even_if_the_clock_is_set_back(tmp_path):
    async def work() -> None:
        now = [NOON]
        service = await started(SqliteStore(tmp_path), clock=lambda: now[0])
        await service.put("t", "k", NewSubscription("ann", "severity >= 0", expires=NOON + 1000))
        await service.publish("t", post(feature(0, 0, 1)))
        now[0] += 1000
        await service.publish("t", post(feature(0, 0, 1)))
        now[0] -= 500_000
        await service.publish("t", post(feature(0, 0, 1)))
        assert [id for id, _ in await everything(service, "t", "ann")] == ["1.1"]
        assert len(service) == 0
        assert (await service.position_at(NOON + 1000)).sequence == 1
        await service.stop()

    run(work())


def test_what_retention_removes_is_counted_and_readers_are_told(tmp_path):
    async def work() -> None:
        now = [NOON]
        service = await started(SqliteStore(tmp_path), clock=lambda: now[0], retention=Retention(age=10_000))
        await service.put("t", "k", NewSubscription("ann", "severity >= 0"))
        await service.put("t", "other", NewSubscription("bob", "severity >= 100"))
        for _ in range(3):
            await service.publish("t", post(feature(0, 0, 1)))
            now[0] += 4_000
        await service.acknowledge("t", "ann", Position.of_id("1.1"))
        now[0] += 5_000
        await service.tick()
        assert (service.oldest, service.newest) == (3, 3)
        assert service.cursor("t", "ann").dropped == 1  # the second message; the first was acknowledged
        reader = await service.reader("t", "ann", None)
        assert await reader.read() == Reset(3)
        events = await reader.read()
        assert isinstance(events, list)
        assert [event.sequence for event in events] == [3]
        reader.close()
        reader = await service.reader("t", "bob", None)  # nothing of it is gone
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(), 0.02)
        reader.close()
        await service.stop()

    run(work())


def test_a_reader_is_reset_once_while_retention_commits(tmp_path):
    async def work() -> None:
        reached, go_on = threading.Event(), threading.Event()
        go_on.set()

        def before_commit() -> None:
            reached.set()
            assert go_on.wait(10)

        service = await started(SqliteStore(tmp_path, before_commit=before_commit), retention=Retention(bytes=1))
        await service.put("t", "k", NewSubscription("ann", "severity >= 0"))
        await service.publish("t", post(*(feature(0, 0, 1) for _ in range(3))))
        reached.clear()
        go_on.clear()
        ticking = asyncio.create_task(service.tick())
        await asyncio.to_thread(reached.wait, 10)
        reader = await service.reader("t", "ann", Position.after_message(0))
        assert await reader.read() == Reset(3)
        events = await reader.read()
        assert isinstance(events, list)
        assert [event.sequence for event in events] == [3]
        go_on.set()
        await ticking
        assert await reader.read(wait=False) == []
        reader.close()
        await service.stop()

    run(work())


def test_bytes_bound_the_log_but_the_last_message_stays(tmp_path):
    async def work() -> None:
        service = await started(SqliteStore(tmp_path), retention=Retention(bytes=1))
        await service.publish("t", post(feature(0, 0), feature(1, 1), feature(2, 2)))
        await service.tick()
        assert (service.oldest, service.newest) == (3, 3)
        await service.stop()
        service = await started(SqliteStore(tmp_path))
        assert (await service.publish("t", post(feature(0, 0)))).first == 4
        await service.stop()

    run(work())


def test_subscribers_of_whom_nothing_is_kept_are_forgotten_and_come_back_whole(tmp_path):
    async def work() -> None:
        store = SqliteStore(tmp_path)
        service = await started(store, retention=Retention(bytes=1))
        numbers = set()
        for turn in range(3):
            for name in ("ann", "bob"):
                found = await service.put("t", f"{name} {turn}", NewSubscription(name, "severity >= 1"))
                numbers.add(found.number)
            following = await service.reader("t", "bob", Position.after_message(service.newest))
            await service.publish("t", post(feature(0, 0, 3)))
            for name in ("ann", "bob"):
                newest = f"{service.newest}.{2 * turn + 1 + (name == 'bob')}"
                assert await everything(service, "t", name, service.newest) == [(newest, f"{name} {turn}")]
                await service.delete("t", f"{name} {turn}")
            for _ in range(3):
                await service.publish("t", post(feature(0, 0, 3)))
                await service.tick()
            # The last number of all is kept so that none comes back; a reader keeps its subscriber.
            assert service.subscribers("t") == [("t", "bob")]
            following.close()
        assert numbers == {1, 2, 3, 4, 5, 6}
        await service.put("t", "other", NewSubscription("cid", "severity >= 9"))
        for _ in range(3):
            await service.publish("t", post(feature(0, 0, 3)))
            await service.tick()
        assert service.subscribers() == [("t", "cid")]
        (await service.reader("t", "eve", None)).close()
        assert service.subscribers() == [("t", "cid")]
        await service.stop()

    run(work())


def test_a_page_of_events_is_bounded_by_bytes_and_no_event_is_left_out(tmp_path):
    sizes = [10, 2_000, 10, 3_000, 10, 10, 5_000]

    async def pages(service: Service) -> list[list[str]]:
        reader, found = await service.reader("t", "ann", Position(0, 0)), []
        while events := await reader.read(wait=False, most=4_000):
            assert not isinstance(events, Reset)
            found.append([event.position.id for event in events])
        reader.close()
        return found

    async def work() -> None:
        expected = [["1.1", "2.1", "3.1"], ["4.1", "5.1", "6.1"], ["7.1"]]
        service = await started(SqliteStore(tmp_path))
        await service.put("t", "k", NewSubscription("ann", "severity >= 1"))
        for size in sizes:
            await service.publish("t", post({"severity": 1, "text": "x" * size}))
        assert await pages(service) == expected  # bodies from memory
        await service.stop()
        service = await started(SqliteStore(tmp_path))
        assert await pages(service) == expected  # bodies from the store
        await service.publish("t", post({"severity": 1, "text": ""}))
        assert await pages(service) == [*expected, ["8.1"]]
        await service.stop()

    run(work())


def test_a_reader_far_behind_reads_the_store_and_then_follows(tmp_path):
    async def work() -> None:
        service = await started(SqliteStore(tmp_path))
        await service.put("t", "k", NewSubscription("ann", "severity >= 1"))
        await service.put("t", "l", NewSubscription("ann", "severity >= 2"))
        slow = await service.reader("t", "ann", None)
        count = 5_000  # several pages, and more than a tail holds
        for start in range(0, count, 500):
            await service.publish("t", post(*[feature(0, 0, number % 3) for number in range(start, start + 500)]))
        expected = [
            f"{number + 1}.{subscription}" for number in range(count) for subscription in (1, 2)
            if number % 3 >= subscription
        ]  # fmt: skip
        found: list[str] = []
        while len(found) < len(expected):
            events = await slow.read(limit=100)
            assert isinstance(events, list)
            found += [event.position.id for event in events]
        assert found == expected
        waiting = asyncio.create_task(slow.read())
        await service.publish("t", post(feature(0, 0, 2)))
        events = await waiting
        assert isinstance(events, list)
        assert [event.position.id for event in events] == [f"{count + 1}.1", f"{count + 1}.2"]
        slow.close()
        await service.stop()

    run(work())


@pytest.mark.parametrize("subscriptions", [1, 2_000])
def test_places_within_one_message_with_many_events(tmp_path, subscriptions):
    async def work() -> None:
        service = await started(SqliteStore(tmp_path))
        await service.put_many("t", [(f"k{k}", NewSubscription("ann", "severity >= 1")) for k in range(subscriptions)])
        reader = await service.reader("t", "ann", None)
        await service.publish("t", post(feature(0, 0, 1)))
        await service.publish("t", post(feature(0, 0, 1)))
        found: list[Event] = []
        while len(found) < 2 * subscriptions:
            events = await reader.read(limit=97)
            assert isinstance(events, list)
            found += events
        assert [event.position for event in found] == [
            (sequence, number) for sequence in (1, 2) for number in range(1, subscriptions + 1)
        ]
        reader.close()
        await service.stop()

    run(work())


class FailingDisk:
    """Lets commits fail on demand."""

    def __init__(self) -> None:
        self.is_full = False

    def __call__(self) -> None:
        if self.is_full:
            raise OSError("no space left on device")


def test_a_full_disk_refuses_loses_nothing_and_recovers(tmp_path):
    async def work() -> None:
        disk = FailingDisk()
        service = await started(SqliteStore(tmp_path, before_commit=disk))
        await service.put("t", "k", NewSubscription("ann", "severity >= 1"))
        event = {"specversion": "1.0", "id": "7", "source": "/a", "type": "x", "data": {"severity": 1}}
        disk.is_full = True
        for _ in range(2):
            with pytest.raises(StoreError, match="no space left"):
                await service.publish("t", post(event))
            with pytest.raises(StoreError):
                await service.put("t", "l", NewSubscription("ann", "severity >= 1"))
            with pytest.raises(StoreError):
                await service.delete("t", "k")
        assert service.fault is not None
        disk.is_full = False
        assert (await service.publish("t", post(event))).first == 1
        assert service.fault is None
        assert await everything(service, "t", "ann") == [("1.1", "k")]
        assert [view.key for view in await service.subscriptions("t")] == ["k"]
        await service.stop()

    run(work())


def test_a_subscription_is_shown_as_it_is_stored_while_a_change_of_it_fails(tmp_path):
    async def work() -> None:
        disk = FailingDisk()
        service = await started(SqliteStore(tmp_path, before_commit=disk))
        await service.put("t", "k", NewSubscription("ann", "severity >= 1"))
        await service.publish("t", post(feature(0, 0, 1)))
        before = await service.subscription("t", "k")
        disk.is_full = True
        for change in (service.put("t", "k", NewSubscription("ann", "severity >= 2")), service.delete("t", "k")):
            with pytest.raises(StoreError):
                await change
            assert await service.subscription("t", "k") == before
        disk.is_full = False
        applies = (await service.put("t", "k", NewSubscription("ann", "severity >= 2"))).applies_from
        after = await service.subscription("t", "k")
        assert (after.definition.applies_from, after != before) == (applies, True)
        await service.stop()

    run(work())


def test_lists_are_paged_by_key_and_filtered(tmp_path):
    async def work() -> None:
        service = await started(SqliteStore(tmp_path))
        asked = [(f"key {k:03}", NewSubscription(f"s{k % 3}", f"severity >= {k}")) for k in range(250)]
        await service.put_many("t", asked)
        await service.put("u", "key 000", NewSubscription("s0", "severity >= 0"))
        found, after = [], ""
        while page := await service.subscriptions("t", after=after, limit=60):
            found += page
            after = page[-1].key
        assert [(view.key, view.filter) for view in found] == [(key, asking.filter) for key, asking in asked]
        mine = await service.subscriptions("t", subscriber="s1", prefix="key 1", limit=5)
        assert [view.key for view in mine] == [key for key, asking in asked if asking.subscriber == "s1"][33:38]
        await service.stop()

    run(work())


# --- random scripts against a plain model ---

COORDINATES = st.integers(0, 6)
MESSAGES = st.builds(
    lambda x, y, severity, id: feature(x, y, severity, **({} if id is None else {"id": id})),
    COORDINATES, COORDINATES, st.one_of(st.none(), st.integers(0, 4), st.just("high")), st.none() | st.integers(0, 3),
)  # fmt: skip
FILTERS = st.one_of(
    st.integers(0, 4).map(lambda least: (f"severity >= {least}", ("severity", least))),
    st.tuples(COORDINATES, COORDINATES, st.integers(1, 4), st.integers(1, 4)).map(lambda b: (box(*b), ("box", b))),
)
TENANTS, KEYS, SUBSCRIBERS = st.sampled_from("tu"), st.sampled_from("klm"), st.sampled_from(["ann", "bob"])
STEPS = st.one_of(
    st.tuples(
        st.just("publish"), TENANTS, st.lists(st.lists(MESSAGES, min_size=1, max_size=3), min_size=1, max_size=4)
    ),
    st.tuples(st.just("put"), TENANTS, KEYS, SUBSCRIBERS, FILTERS, st.booleans()),
    st.tuples(st.just("delete"), TENANTS, KEYS),
    st.tuples(st.just("fail"), TENANTS, KEYS, FILTERS),
    st.tuples(st.just("save")),
    st.tuples(st.just("restart"), st.sampled_from(["kept", "removed", "damaged"])),
)


def holds(condition: tuple[str, Any], message: dict[str, Any]) -> bool:
    kind, what = condition
    if kind == "severity":
        severity = message["properties"].get("severity")
        return isinstance(severity, int) and severity >= what
    x, y, width, height = what
    return bool(shapely.box(x, y, x + width, y + height).intersects(shapely.Point(message["geometry"]["coordinates"])))


class Expected:
    """What a service should do, as simply as possible."""

    def __init__(self) -> None:
        self.sequence = 0
        self.live: dict[tuple[str, str], tuple[str, tuple[str, Any], bool]] = {}
        self.events: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self.ids: dict[tuple[str, str], int] = {}

    def publish(self, tenant: str, message: dict[str, Any]) -> int:
        """Return the sequence number, minus that of an equal earlier message."""
        body = json.dumps(message)
        if "id" in message:
            known = self.ids.get((tenant, body))
            if known is not None:
                return -known
        self.sequence += 1
        if "id" in message:
            self.ids[tenant, body] = self.sequence
        for (owner, key), (subscriber, condition, is_paused) in self.live.items():
            if owner == tenant and not is_paused and holds(condition, message):
                self.events.setdefault((tenant, subscriber), []).append((self.sequence, key))
        return self.sequence


@given(st.lists(STEPS, max_size=14))
def test_random_scripts_do_what_a_plain_model_does(tmp_path_factory, steps):
    run(_follow(tmp_path_factory.mktemp("state"), steps))


async def _follow(directory: Path, steps: list[Any]) -> None:
    disk = FailingDisk()

    def store() -> SqliteStore:
        return SqliteStore(directory, before_commit=disk)

    service, model = await started(store(), tables=directory / "tables"), Expected()
    followers = [await _followed(service, tenant, name) for tenant in "tu" for name in ("ann", "bob")]
    for step in steps:
        if step[0] == "publish":
            _, tenant, posts = step
            answers = await asyncio.gather(*[service.publish(tenant, post(*messages)) for messages in posts])
            for messages, answer in zip(posts, answers, strict=True):
                outcomes = [model.publish(tenant, message) for message in messages]
                new = [outcome for outcome in outcomes if outcome > 0]
                assert (answer.first, answer.last) == ((new[0], new[-1]) if new else (0, 0))
                assert answer.duplicates == tuple((row, -one) for row, one in enumerate(outcomes) if one < 0)
        elif step[0] == "put":
            _, tenant, key, subscriber, (text, condition), is_paused = step
            answer = await service.put(tenant, key, NewSubscription(subscriber, text, is_paused=is_paused))
            assert answer.applies_from == model.sequence + 1
            model.live[tenant, key] = subscriber, condition, is_paused
        elif step[0] == "delete":
            if model.live.pop(step[1:], None) is not None:
                await service.delete(*step[1:])
            else:
                with pytest.raises(UnknownKeyError):
                    await service.delete(*step[1:])
        elif step[0] == "fail":
            _, tenant, key, (text, _) = step
            disk.is_full = True
            await _refused(lambda: service.publish(tenant, post(feature(1, 1, 4))))  # noqa: B023
            await _refused(lambda: service.put(tenant, key, NewSubscription("eve", text)))  # noqa: B023
            disk.is_full = False
        elif step[0] == "save":
            await service.save_tables(is_last=True)
        else:
            for follower in followers:
                await follower.stop()
            await service.stop()
            _treat_tables(directory / "tables", step[1])
            service = await started(store(), tables=directory / "tables")
            for follower in followers:
                await follower.go_on(service)
    await asyncio.sleep(0)
    for follower in followers:
        expected = sorted(model.events.get((follower.tenant, follower.subscriber), []))
        found = await everything(service, follower.tenant, follower.subscriber)
        assert sorted((int(id.partition(".")[0]), key) for id, key in found) == expected
        assert [Position.of_id(id) for id, _ in found] == sorted({Position.of_id(id) for id, _ in found})
        await follower.finish(len(found))
        assert follower.ids == [id for id, _ in found]
    await service.stop()


def _treat_tables(directory: Path, how: str) -> None:
    """Leave the saved tables, remove them, or damage a file of each."""
    for table in sorted(directory.glob("*")):
        if how == "removed":
            shutil.rmtree(table)
        elif how == "damaged":
            files = sorted(path for path in table.rglob("*") if path.is_file() and path.stat().st_size)
            file = files[len(table.name) % len(files)]
            file.write_bytes(file.read_bytes()[:-1])


async def _refused(work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    with pytest.raises(StoreError):
        await work()


class Follower:
    """Reads events as they come, and resumes from its last id after a restart."""

    def __init__(self, tenant: str, subscriber: str) -> None:
        self.tenant, self.subscriber = tenant, subscriber
        self.ids: list[str] = []

    async def go_on(self, service: Service) -> None:
        place = Position.of_id(self.ids[-1]) if self.ids else Position(0, 0)
        self._reader = await service.reader(self.tenant, self.subscriber, place)
        self._task = asyncio.create_task(self.follow())

    async def follow(self) -> None:
        while True:
            events = await self._reader.read(limit=2)
            assert isinstance(events, list)
            self.ids += [event.position.id for event in events]

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._reader.close()

    async def finish(self, count: int) -> None:
        for _ in range(200):
            if len(self.ids) >= count:
                break
            await asyncio.sleep(0.005)
        await self.stop()


async def _followed(service: Service, tenant: str, subscriber: str) -> Follower:
    follower = Follower(tenant, subscriber)
    await follower.go_on(service)
    return follower


def test_a_sink_gets_events_as_they_come_until_it_refuses_and_none_is_lost_or_out_of_order(tmp_path):
    async def work() -> None:
        service = await started(SqliteStore(tmp_path))
        await service.put("t", "high", NewSubscription("ann", "severity >= 3"))
        await service.put("t", "all", NewSubscription("ann", "severity >= 0"))
        await service.publish("t", post(feature(1, 1, 5)))
        reader = await service.reader("t", "ann", Position.after_message(0))
        pushed: list[str] = []

        def take_four(events: list[Event]) -> bool:
            is_taken = len(pushed) + len(events) <= 4
            pushed.extend(event.position.id for event in events if is_taken)
            return is_taken

        await reader.push(take_four)  # the first message waits for `read`
        assert [event.position.id for event in await reader.read()] == ["1.1", "1.2"]
        assert await reader.read(wait=False) == []
        pushing = asyncio.create_task(reader.push(take_four))
        await asyncio.sleep(0)
        for batch in ((5, 1), (2,), (4, 1), (0, 0)):  # the third has too many events, the fourth must not overtake it
            await service.publish("t", post(*(feature(1, 1, severity) for severity in batch)))
        await asyncio.wait_for(pushing, 5)
        assert pushed == ["2.1", "2.2", "3.2", "4.2"]
        assert [event.position.id for event in await reader.read()] == ["5.1", "5.2", "6.2", "7.2", "8.2"]
        assert service.delivered == 11
        reader.close()
        await service.stop()

    run(work())


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(1, 3), st.lists(st.booleans(), min_size=2, max_size=2)), max_size=12))
def test_readers_of_one_subscriber_get_all_events_whoever_of_them_is_slow(tmp_path_factory, rounds):
    """Each round publishes some messages; the sink of a reader takes nothing in the rounds in which it is slow."""

    async def work() -> None:
        service = await started(SqliteStore(tmp_path_factory.mktemp("readers")))
        await service.put("t", "high", NewSubscription("ann", "severity >= 1"))
        await service.put("t", "all", NewSubscription("ann", "severity >= 0"))
        slow = [False, False]

        async def consume(which: int, got: list[str]) -> None:
            def take(events: list[Event]) -> bool:
                if not slow[which]:
                    got.extend(event.position.id for event in events)
                return not slow[which]

            reader = await service.reader("t", "ann", Position.after_message(0))
            try:
                while True:
                    await reader.push(take)
                    events = await reader.read(limit=2)
                    assert not isinstance(events, Reset)
                    got.extend(event.position.id for event in events)
            finally:
                reader.close()

        received: list[list[str]] = [[], []]
        tasks = [asyncio.create_task(consume(which, got)) for which, got in enumerate(received)]
        last = 0
        for count, slow[:] in rounds:
            messages = [feature(1, 1, (last + k) % 2) for k in range(count)]
            last = (await service.publish("t", post(*messages))).last
        expected = [f"{n}.{k}" for n in range(1, last + 1) for k in ((2,) if (n - 1) % 2 == 0 else (1, 2))]
        for _ in range(500):
            if all(len(got) >= len(expected) for got in received):
                break
            await asyncio.sleep(0.002)
        assert received == [expected, expected]
        assert service.delivered == 2 * len(expected)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await service.stop()

    run(work())
