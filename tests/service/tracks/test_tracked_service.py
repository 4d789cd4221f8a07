"""Tracked subscriptions: subscribers hear when objects enter and leave, over restarts, in order and each once."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import pytest

from contrada.errors import ContradaError
from contrada.service.core import Core, NewSubscription
from contrada.service.cursors import Position
from contrada.service.feeds import Event, Reset
from contrada.service.intake import Post
from contrada.service.service import Retention, Service, ServiceLimits
from contrada.service.store.message_store import MessageStore, StoreChange
from contrada.service.store.sqlite import SqliteStore
from contrada.service.tracks.asking import DwellAsked, TrackAsked
from contrada.service.tracks.groups import GroupKey
from effort import slow
from oracles.track_model import Fence, ModelFix, TrackModel
from serving import run

NOON = 1_700_000_000_000
BUS = TrackAsked("bus")
HERE = Fence(0, 0, 4, 4)
IN, OUT = ModelFix("b1", 2, 2), ModelFix("b1", 9, 9)


def post(*fixes: ModelFix) -> Post:
    bodies = [json.dumps(fix.feature()).encode() for fix in fixes]
    return Post("json", bodies[0]) if len(bodies) == 1 else Post("ndjson", b"\n".join(bodies))


def asked(fence: Fence = HERE, track: TrackAsked | None = BUS, subscriber: str = "ann", **more: Any) -> NewSubscription:
    return NewSubscription(subscriber, fence.filter, track=track, **more)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now


async def started(store: MessageStore, clock: Clock | None = None, **options: Any) -> Service:
    service = Service(store, clock=clock or Clock(), **options)
    await service.start()
    return service


async def events_of(service: Service, subscriber: str = "ann", position: Position | None = None) -> list[Event]:
    """Return all events of a subscriber after a place, read in small parts."""
    reader = await service.reader("t", subscriber, position or Position.after_message(0))
    found: list[Event] = []
    try:
        while events := await reader.read(limit=2, wait=False):
            assert not isinstance(events, Reset)
            found += events
        return found
    finally:
        reader.close()


def told(events: list[Event]) -> list[tuple[str, str, str]]:
    """Return id, kind and reason of events; "match" for plain ones."""
    tracks = [json.loads(event.track) if event.track else {"kind": "match"} for event in events]
    return [
        (one.position.id, track["kind"], track.get("reason", "")) for one, track in zip(events, tracks, strict=True)
    ]


def test_a_subscriber_hears_of_changes_and_not_of_every_position(place):
    async def work() -> None:
        service = await started(place.open())
        await service.put("t", "fence", asked())
        await service.put("t", "all", asked(track=None, subscriber="bob"))
        await service.publish("t", post(IN, IN, OUT, ModelFix("b2", 9, 9), OUT))
        await service.publish("t", post(IN))
        assert told(await events_of(service)) == [("1.1", "enter", ""), ("3.1", "exit", ""), ("6.1", "enter", "")]
        assert told(await events_of(service, "bob")) == [
            ("1.2", "match", ""),
            ("2.2", "match", ""),
            ("6.2", "match", ""),
        ]
        (first, *_) = await events_of(service)
        assert json.loads(first.track) == {
            "id": "b1", "kind": "enter", "before": None, "after": "inside", "time": "2023-11-14T22:13:20.000Z",
        }  # fmt: skip
        assert json.loads(first.body) == IN.feature()
        assert service.tracks[:2] == (2, 1)
        await service.stop()

    run(work())


def test_events_survive_a_restart_and_tracks_go_on(place):
    async def work() -> None:
        clock = Clock()
        service = await started(place.open(), clock)
        await service.put("t", "fence", asked())
        await service.publish("t", post(IN, ModelFix("b2", 1, 1)))
        await service.stop()
        service = await started(place.open(), clock)
        assert service.tracks[:2] == (2, 2)
        await service.publish("t", post(IN, OUT))
        assert told(await events_of(service)) == [("1.1", "enter", ""), ("2.1", "enter", ""), ("4.1", "exit", "")]
        await service.stop()

    run(work())


def test_time_makes_events_of_its_own(tmp_path):
    async def work() -> None:
        clock = Clock()
        service = await started(SqliteStore(tmp_path), clock, limits=ServiceLimits(track_expiry=3_600_000))
        track = TrackAsked("bus", on=("enter", DwellAsked("5m"), "exit"))
        await service.put("t", "fence", asked(track=track, expires=NOON + 10_000_000))
        await service.publish("t", post(IN))
        clock.now += 299_000
        await service.tick()
        assert len(await events_of(service)) == 1
        clock.now += 2_000
        await service.tick()
        found = await events_of(service)
        assert told(found)[1:] == [("2.1", "dwell", "time")]
        assert json.loads(found[1].body) == {"bus": "b1"}
        clock.now += 3_600_000  # the track expires
        await service.tick()
        assert told(await events_of(service))[2:] == [("3.1", "exit", "expired")]
        assert service.tracks[:2] == (0, 0)
        await service.publish("t", post(IN))
        clock.now = NOON + 10_000_000  # the subscription expires
        await service.tick()
        assert told(await events_of(service))[3:] == [
            ("4.1", "enter", ""), ("5.1", "dwell", "time"), ("5.1.1", "exit", "expired"),
        ]  # fmt: skip
        assert len(service) == 0
        await service.stop()

    run(work())


def test_objects_leave_a_subscription_that_ends(tmp_path):
    async def work() -> None:
        service = await started(SqliteStore(tmp_path))
        await service.put("t", "fence", asked())
        await service.publish("t", post(IN))
        await service.put("t", "fence", asked())  # the same again: nothing changes
        await service.put("t", "fence", asked(Fence(1, 1, 4, 4)))
        await service.publish("t", post(IN))
        await service.set_paused("t", "fence", True)
        await service.publish("t", post(IN))
        await service.set_paused("t", "fence", False)
        await service.publish("t", post(IN))
        await service.put("t", "fence", asked(track=TrackAsked("bus", time="at")))  # of another group
        await service.put("t", "fence", asked(track=None))
        await service.publish("t", post(IN))
        await service.put("t", "fence", asked())
        await service.publish("t", post(IN))
        assert await service.delete("t", "fence") == 10
        assert told(await events_of(service)) == [
            ("1.1", "enter", ""), ("2.1", "exit", "replaced"), ("3.1", "enter", ""), ("4.1", "exit", "unsubscribed"),
            ("6.1", "enter", ""), ("7.1", "exit", "replaced"), ("8.1", "match", ""), ("9.1", "enter", ""),
            ("10.1", "exit", "unsubscribed"),
        ]  # fmt: skip
        assert service.tracks[:2] == (0, 0)
        await service.stop()

    run(work())


def test_two_events_of_one_message_and_subscription_have_places_of_their_own(place):
    async def work() -> None:
        clock = Clock()
        service = await started(place.open(), clock)
        track = TrackAsked("bus", on=("enter", DwellAsked("5m"), "exit"), time="at")
        await service.put("t", "fence", asked(track=track))
        await service.put("t", "later", asked(track=track))

        def fix(x: int, minutes: int) -> Post:
            message = ModelFix("b1", x, 2).feature()
            message["properties"]["at"] = NOON + 60_000 * minutes
            return Post("json", json.dumps(message).encode())

        await service.publish("t", fix(2, 0))
        reader = await service.reader("t", "ann", Position.after_message(1))
        await service.publish("t", fix(9, 10))  # it stayed for 5 minutes at least, and is outside now
        wanted = [("2.1", "dwell", ""), ("2.2", "dwell", ""), ("2.1.1", "exit", ""), ("2.2.1", "exit", "")]
        pushed = await reader.read()
        assert isinstance(pushed, list)
        assert [one[:2] for one in told(pushed)] == [one[:2] for one in wanted]
        reader.close()
        for count in range(5):  # a consumer that has the first ones gets the others
            position = Position.of_id(wanted[count - 1][0]) if count else Position.after_message(1)
            left = await events_of(service, position=position)
            assert [one[:2] for one in told(left)] == [one[:2] for one in wanted[count:]]
        await service.acknowledge("t", "ann", Position.of_id("2.1.1"))
        await service.stop()
        service = await started(place.open(), clock)
        reader = await service.reader("t", "ann", None)
        (left,) = await reader.read(wait=False)
        assert left.position.id == "2.2.1"
        reader.close()
        await service.stop()

    run(work())


def test_retention_counts_events_of_tracked_objects(tmp_path):
    async def work() -> None:
        clock = Clock()
        service = await started(SqliteStore(tmp_path), clock, retention=Retention(age=10_000))
        await service.put("t", "fence", asked())
        await service.publish("t", post(IN, OUT))
        clock.now += 20_000
        await service.publish("t", post(IN))
        await service.tick()
        assert service.cursor("t", "ann").dropped == 2
        reader = await service.reader("t", "ann", None)
        assert await reader.read() == Reset(3)
        (event,) = await reader.read()
        assert json.loads(event.track)["kind"] == "enter"
        reader.close()
        await service.stop()

    run(work())


def test_bad_tracked_subscriptions_change_nothing(tmp_path):
    async def work() -> None:
        service = await started(SqliteStore(tmp_path))
        await service.put("t", "fence", asked())
        await service.publish("t", post(IN))
        for filter in ("speed > 3", "S_INTERSECTS(geometry, BBOX(0,0,1,1)) AND S_INTERSECTS(area, BBOX(0,0,1,1))"):
            for is_paused in (False, True):
                with pytest.raises(ContradaError):
                    await service.put("t", "fence", NewSubscription("ann", filter, is_paused=is_paused, track=BUS))
        await service.publish("t", post(IN, OUT))
        assert told(await events_of(service)) == [("1.1", "enter", ""), ("3.1", "exit", "")]
        await service.stop()

    run(work())


@pytest.mark.parametrize("seed", [0, 1, slow(2), slow(3)])
def test_random_tracks_equal_the_model_over_restarts(place, seed):
    async def work() -> None:
        random, model, clock = Random(seed), TrackModel(), Clock()
        wanted: list[tuple[int, str, str | int, str]] = []
        limits = ServiceLimits(track_log=1)
        service = await started(place.open(), clock, limits=limits)
        sequence = 0
        for step in range(60):
            clock.now += 500
            choice = random.random()
            key = random.choice(("a", "b", "c"))
            if choice < 0.15 or not model.fences:
                least = random.choice((None, 3))
                fence = Fence(random.randrange(8), random.randrange(8), random.randrange(1, 5), 3, least)
                left = model.put(key, fence)
                await service.put("t", key, asked(fence))
            elif choice < 0.2:
                left = model.delete(key)
                if service.definition("t", key) is not None:
                    await service.delete("t", key)
            else:
                left = set()
                fixes = [
                    ModelFix(
                        *(random.choice(("b1", "b2", 3, 4, None)), random.randrange(10), random.randrange(10)),
                        random.choice((1, 5, 2.5, "fast")),  # values of different types are matched in different tables
                    )
                    for _ in range(random.choice((1, 1, 2, 30)))
                ]
                await service.publish("t", post(*fixes))
                for fix in fixes:
                    sequence += 1
                    wanted += [(sequence, *event) for event in model.fix(fix)]
            wanted += [(0, *event) for event in left]
            sequence += len({object for _, object, _ in left})
            await service.save_tracks()
            if step % 20 == 19:
                await service.stop()
                service = await started(place.open(), clock, limits=limits)
            assert service.tracks.pairs == model.inside()
        found = [(event, json.loads(event.track)) for event in await events_of(service)]
        own = [(one.sequence, one.key, track["id"], track["kind"]) for one, track in found if "reason" not in track]
        assert sorted(own, key=repr) == sorted((one for one in wanted if one[0]), key=repr)
        assert [sequence for sequence, *_ in own] == sorted(sequence for sequence, *_ in own)
        ended = [(one.key, track["id"], track["kind"]) for one, track in found if "reason" in track]
        assert sorted(ended, key=repr) == sorted((one[1:] for one in wanted if not one[0]), key=repr)
        assert service.newest == sequence
        await service.stop()

    run(work())


def test_snapshots_bound_what_is_logged(tmp_path):
    async def work() -> None:
        store = SqliteStore(tmp_path)
        service = await started(store, limits=ServiceLimits(track_log=1))
        await service.put("t", "fence", asked())
        for number in range(400):
            await service.publish("t", post(ModelFix(number % 7, number % 9, 2)))
            if number % 50 == 49:
                await service.save_tracks()
                await service.tick()
        assert len(store.names("track-delta")) < 300
        assert len(store.names("track-group")) == 1
        before = service.tracks
        await service.stop()
        service = await started(SqliteStore(tmp_path))
        assert service.tracks[:2] == before[:2]
        await service.delete("t", "fence")
        await service.tick()
        kinds = ("track-group", "track-snapshot", "track-delta")
        assert [await service.records(kind) for kind in kinds] == [[], [], []]
        await service.stop()

    run(work())


async def publish_until_due(service: Service) -> None:
    """Publish until a snapshot is due. The service saves none meanwhile."""
    for number in range(10_000):
        await service.publish("t", post(*(ModelFix(fix % 7, (fix + number) % 9, 2) for fix in range(20))))
        if await service.do(lambda core, change: core.trackers.due()):
            return
    raise AssertionError("no snapshot is due")


def test_snapshots_that_are_saved_at_the_same_time_do_not_remove_each_other(tmp_path):
    async def work() -> None:
        limits = ServiceLimits(track_log=1)
        service = await started(SqliteStore(tmp_path), limits=limits)
        await service.put("t", "fence", asked())
        await publish_until_due(service)
        await asyncio.gather(*(service.save_tracks() for _ in range(3)))
        before = service.tracks
        await service.stop()
        service = await started(SqliteStore(tmp_path), limits=limits)
        assert service.tracks[:2] == before[:2] != (0, 0)
        await service.stop()

    run(work())


def test_what_is_left_of_a_snapshot_from_before_a_restart_does_not_harm_the_next_one(tmp_path):
    async def work() -> None:
        limits = ServiceLimits(track_log=1)
        service = await started(SqliteStore(tmp_path), limits=limits)
        await service.put("t", "fence", asked())
        await publish_until_due(service)

        def begin(core: Core, change: StoreChange) -> None:  # written, but not completed
            begun = core.trackers.begin_snapshot(GroupKey("t", "bus", None, "geometry", "ignore"), change)
            assert begun is not None
            change.records += begun.records()

        await service.do(begin)
        before = service.tracks
        await service.stop()
        for _ in range(2):
            service = await started(SqliteStore(tmp_path), limits=limits)
            assert service.tracks[:2] == before[:2] != (0, 0)
            await service.save_tracks()
            await service.tick()
            await service.save_tracks()
            await service.stop()

    run(work())


def test_a_changed_expiry_counts_after_a_restart(tmp_path):
    async def work() -> None:
        clock = Clock()
        service = await started(SqliteStore(tmp_path), clock, limits=ServiceLimits(track_expiry=1_000_000))
        await service.put("t", "fence", asked())
        await service.publish("t", post(IN))
        await service.stop()
        service = await started(SqliteStore(tmp_path), clock, limits=ServiceLimits(track_expiry=5_000))
        clock.now += 6_000
        await service.tick()
        assert told(await events_of(service)) == [("1.1", "enter", ""), ("2.1", "exit", "expired")]
        await service.stop()

    run(work())


def test_a_store_that_fails_loses_and_repeats_no_event(tmp_path):
    async def work() -> None:
        is_full = [False]

        def before_commit() -> None:
            if is_full[0]:
                raise OSError(28, "No space left on device")

        service = await started(SqliteStore(tmp_path, before_commit=before_commit))
        await service.put("t", "fence", asked())
        await service.publish("t", post(IN))
        is_full[0] = True
        for fixes in ((OUT,), (OUT, IN, OUT)):
            with pytest.raises(ContradaError):
                await service.publish("t", post(*fixes))
        with pytest.raises(ContradaError):
            await service.delete("t", "fence")
        is_full[0] = False
        await service.publish("t", post(IN, OUT))
        assert told(await events_of(service)) == [("1.1", "enter", ""), ("3.1", "exit", "")]
        await service.stop()

    run(work())
