"""Sections that measure a peer by turns with ours: Tile38, and PostGIS with a trigger and NOTIFY."""

import socket
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

import uvloop

from benchmarks.broker.postgis import PostGis
from benchmarks.broker.process import ServerProcess
from benchmarks.broker.runs import Bench, Load, load
from benchmarks.broker.tile38 import Tile38
from benchmarks.report import Row
from benchmarks.timing import say

TILE38 = "Tile38 by turns with ours"
POSTGIS = "PostGIS, trigger and NOTIFY, by turns with ours"
BATCH = 100
AGAINST_TILE38 = {"polygons": {1: 0.6, BATCH: 1.5}, "points": {1: 0.4, BATCH: 0.8}}
AGAINST_POSTGIS = {"many": 50.0, "one": 2.0}
POSTGIS_MESSAGES = {"many": 200, "one": 4_000}  # of a turn: with 1,000 listeners it takes about 50 messages/s


def tile38(bench: Bench) -> Iterator[Row]:
    """Measure Tile38 by turns with ours; it synchronises its log once a second, ours before each answer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    peer = Tile38(bench.state.parent / "tile38", port, bench.workload)
    try:
        say(f"Tile38: loaded in {uvloop.run(peer.load()):.1f} s")
        theirs = peer.memory()
        yield Row.alone(TILE38, "memory of Tile38 after the load", theirs, "MB")
        ratio = bench.after_load()[1] / theirs
        yield Row(TILE38, "memory of ours after the load", "Tile38", None, None, ratio, "times its memory", at_most=1)
        makers = {"polygons": bench.workload.polygons, "points": bench.workload.points}
        found: dict[str, list[Load]] = {}
        for _ in range(1 if bench.report.quick else 3):
            for name, make in makers.items():
                found.setdefault(name, []).append(uvloop.run(peer.publish(make(2 * bench.messages))))
                for size in (1, BATCH):
                    messages = make(bench.messages * (1 if size == 1 else 3))
                    found.setdefault(f"{name} {size}", []).append(bench.load(messages, size))
        yield from _against_tile38(makers, found)
    finally:
        peer.stop()


def _against_tile38(names: Iterable[str], found: Mapping[str, list[Load]]) -> Iterator[Row]:
    for name in names:
        theirs = rate(found[name])
        how = f"{name}, Tile38, commands pipelined"
        yield Row(TILE38, how, "", None, None, theirs, "messages/s", **counts(found[name]))
        for size, least in AGAINST_TILE38[name].items():
            ours = rate(found[f"{name} {size}"])
            how = f"{name}, {'single' if size == 1 else f'newline JSON x {size}'}, {ours:,.0f}/s"
            yield Row(TILE38, how, "Tile38", 1 / ours, 1 / theirs, ours / theirs, "times its rate", at_least=least)


def postgis(bench: Bench) -> Iterator[Row]:
    """Measure PostGIS by turns with ours, single polygons, with a consumer for each owner and with one for all."""
    workload, peer = bench.workload, PostGis(bench.workload)
    say(f"PostgreSQL {peer.version}: loaded in {peer.load_seconds:.1f} s")
    bench.report.peer_versions["PostgreSQL"] = peer.version
    lone = ServerProcess(bench.state.parent / "lone")  # the same subscriptions, all of one owner
    try:
        say(f"ours for one consumer: loaded in {lone.load(workload, 1):.1f} s")
        sides = {"many": (bench.server, workload.owners), "one": (lone, 1)}
        found: dict[str, list[Load]] = {}
        for _ in range(1 if bench.report.quick else 3):
            for name, (server, owners) in sides.items():
                sent = POSTGIS_MESSAGES[name] // (10 if bench.report.quick else 1)
                found.setdefault(f"PostGIS {name}", []).append(
                    uvloop.run(peer.publish(workload.polygons(sent), owners))
                )
                ours = load(server, owners, workload.polygons(bench.messages), 1)
                found.setdefault(name, []).append(uvloop.run(ours))
                say(f"{owners:,} consumers: PostGIS {found[f'PostGIS {name}'][-1]}, ours {found[name][-1]}")
        for name, (_, owners) in sides.items():
            yield from _against_postgis(owners, found[name], found[f"PostGIS {name}"], AGAINST_POSTGIS[name])
    finally:
        lone.stop()
        peer.stop()


def _against_postgis(owners: int, ours: list[Load], theirs: list[Load], least: float) -> Iterator[Row]:
    who = f"{owners:,} consumer{'s' if owners > 1 else ''}"
    mine, other = rate(ours), rate(theirs)
    for name, value, loads in (("PostGIS", other, theirs), ("ours", mine, ours)):
        how = f"single polygons, {who}, {name}, {loads[0].mean:.2f} matches"
        yield Row(POSTGIS, how, "", None, None, value, "messages/s", **counts(loads))
    yield Row(
        POSTGIS, f"single polygons, {who}", "PostGIS", 1 / mine, 1 / other, mine / other, "times its rate",
        at_least=least,
    )  # fmt: skip


def rate(loads: Iterable[Load]) -> float:
    """Return the median messages per second of several runs."""
    return statistics.median(one.rate for one in loads)


def counts(loads: Sequence[Load]) -> dict[str, int]:
    """Return how many events were compared and differ, over several runs."""
    return {"compared": sum(one.compared for one in loads), "different": sum(one.different for one in loads)}
