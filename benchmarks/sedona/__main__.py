"""Our matching on Spark against Apache Sedona's spatial join, over the same files, and what Sedona plans where.

`python -m benchmarks.sedona` runs everything, `--quick` a small version; `--write` puts the tables into
benchmarks/results. Sedona runs in a process and an environment of its own, build/peers/sedona, which the first run
makes (mvn and pip fetch it). Starting the sessions is not part of any number.
"""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import count
from typing import Any, cast

import pyarrow as pa

import contrada as ct
from benchmarks.command import run_sections
from benchmarks.report import Report, Row, Shown
from benchmarks.sedona.plans import SPELLINGS, Spelled, operator_of
from benchmarks.sedona.setup import Peer
from benchmarks.sedona.work import HEADINGS, PARTS, PLANNED, Bench, Files, cells, digest, pairs_of, settled, write
from benchmarks.spark import jobs
from benchmarks.spark.jobs import TEMPLATE
from benchmarks.timing import measured, race, say, take_turns, time_cold

JOIN, TRIED = "Sedona: S_INTERSECTS as a join", "Sedona: its plans for the join, one turn each"
NESTED = "Sedona: relations that it plans as a nested loop"
INTERSECTS = "ST_Intersects(a, b)"
# What a user may choose: who is broadcast, or how both are cut and on which side trees are built.
CANDIDATES: dict[str, dict[str, str]] = {
    "BroadcastIndexJoin, messages": {"broadcast": "messages"},
    "BroadcastIndexJoin, subscriptions": {"broadcast": "subscriptions"},
    "RangeJoin, kdbtree": {"gridtype": "kdbtree"},
    "RangeJoin, kdbtree of subscriptions": {"gridtype": "kdbtree", "spatitionside": "right"},
    "RangeJoin, kdbtree, trees of subscriptions": {"gridtype": "kdbtree", "indexbuildside": "right"},
    "RangeJoin, kdbtree, 32 partitions": {"gridtype": "kdbtree", "numpartition": "32"},
    "RangeJoin, quadtree": {"gridtype": "quadtree"},
}
BAR, FEW_BAR = 3, 1.5
SLOWER = 4  # times: plans that are slower than the quickest by so much, in their first turn too, are stopped
FIRST = "BroadcastIndexJoin, messages"
# Both jobs run by turns for so long before the turns that count: Java compiles what has run often, and Sedona's side
# has run for longer by then, with the plans that were tried.
WARM_SECONDS = 30.0
MESSAGES = 10_000
FEW = 500  # messages that every plan is tried with; the two quickest are tried with all


def against_join(name: str, messages: int, bench: Bench) -> Iterator[Row]:
    """Measure one set: with everything prepared, from files, and written as pairs."""
    work, files, few = _work(name, messages, bench)
    yield from _prepared(work, files, few, bench)
    yield from _from_files(work, files, few, bench)


def _work(name: str, messages: int, bench: Bench) -> tuple[str, Files, Files | None]:
    """Return the work on a set in words, its files, and those with few messages if there are more."""
    polygons = bench.polygon_set(name)
    many, some = (60, 30) if bench.report.quick else (messages, FEW)
    asked = jobs.messages(polygons, many, bench.report.seed)
    files = bench.files(f"{name}-{many}", polygons, asked)
    few = bench.files(f"{name}-few", polygons, asked.slice(0, some)) if many > some else None
    return f"{many:,} messages, {name} ({len(polygons.wkb):,})", files, few


def _prepared(work: str, files: Files, few: Files | None, bench: Bench) -> Iterator[Row]:
    """Tables compiled and messages cached on our side, both geometries parsed and cached on theirs, its best plan."""
    frame = bench.read(files.messages).repartition(PARTS).persist()
    frame.count()
    plans = {plan: bench.compiled(files, TEMPLATE, plan) for plan in ("broadcast", "partitioned")}
    best = yield from _quickest(f"{work}, prepared", files, few, bench, is_cached=True)
    join = partial(bench.peer.ask, condition=INTERSECTS, plan=CANDIDATES[best])
    calls: dict[str, Callable[[], Any]] = {plan: partial(digest, frame, one) for plan, one in plans.items()}
    found = take_turns(calls | {"sedona": partial(join, "digest")}, turns(bench))
    kept = {side: bench.directory / f"pairs-{side}" for side in ("ours", "sedona")}
    write_ours = partial(write, frame, plans["broadcast"], kept["ours"])
    written = race(write_ours, partial(join, "write", path=str(kept["sedona"])), turns(bench))
    ours, theirs = pairs_of(kept["ours"]), pairs_of(kept["sedona"])
    different, wrong = settled(files, ours, theirs, ct.RelationSet.S_INTERSECTS)
    check_digests(found, len(ours), len(theirs))
    counts = {"compared": files.compared, "different": different, "wrong": wrong}
    row = partial(Row.versus, JOIN, against=f"{peer_name(bench)}, {best}", bar=BAR, **counts)
    for plan in plans:
        yield row(f"{work}, prepared: count and hash, {plan}", ours=found[plan], theirs=found["sedona"])
    yield row(f"{work}, prepared: {len(ours):,} pairs written", ours=written[0], theirs=written[1])
    frame.unpersist()


def _from_files(work: str, files: Files, few: Files | None, bench: Bench) -> Iterator[Row]:
    """Measure the whole job: reading, parsing, compiling or building trees, matching; our plan is that of `auto`."""
    best = yield from _quickest(f"{work}, from files", files, few, bench, is_cached=False)
    turn = count()

    def match_ours() -> list[int]:
        rows = bench.new_rows(files, next(turn))
        return digest(bench.read(files.messages), rows, template=TEMPLATE, artifacts=bench.artifacts)

    def join_theirs() -> list[int]:
        loaded(bench, files, is_cached=False)  # opening files belongs to both jobs
        return cast(list[int], bench.peer.ask("digest", condition=INTERSECTS, plan=CANDIDATES[best]))

    start = time.perf_counter()
    while time.perf_counter() - start < (0 if bench.report.quick else WARM_SECONDS):
        match_ours()
        join_theirs()
    ours, theirs = race(match_ours, join_theirs, turns(bench))
    is_same = ours.answer == theirs.answer  # if not, the rows above say who is right
    answers = {"compared": files.compared, "different": 0} if is_same else {}
    whole = f"{work}, from files: count and hash"
    yield Row.versus(JOIN, whole, f"{peer_name(bench)}, {best}", ours, theirs, BAR, **answers)


def _quickest(work: str, files: Files, few: Files | None, bench: Bench, is_cached: bool) -> Generator[Row, None, str]:
    """Measure Sedona's quickest plan, of the two that were with few messages, loaded; rows tell of a turn of each.

    The first turn of a plan warms up; a plan that fails is told of as well, and one that is stopped because a turn
    takes SLOWER times as long as the quickest so far.
    """
    tried = [FIRST, "RangeJoin, kdbtree"] if bench.report.quick else list(CANDIDATES)
    for turn, some in enumerate((few, files) if few is not None else (files,)):
        loaded(bench, some, is_cached)
        of = f"{some.asked.num_rows:,} of {work}"
        seconds: dict[str, float] = {}
        for plan in tried:
            limit = SLOWER * min(seconds.values()) if seconds else None
            ask = partial(bench.peer.ask, "digest", condition=INTERSECTS, plan=CANDIDATES[plan], limit=limit)
            try:
                seconds[plan] = measured(ask).seconds if turn == 0 else time_cold(ask)
            except RuntimeError as error:
                why = f"stopped after {limit:.1f} s" if limit and "cancelled" in str(error) else str(error)
                bench.report.skipped.append(f"{of}: {plan}: {why}")
            else:
                yield Row(TRIED, of, plan, None, seconds[plan], seconds[plan], "s")
        tried = sorted(seconds, key=seconds.__getitem__)[:2]
    return tried[0]


def check_digests(found: dict[str, Any], ours: int, theirs: int) -> None:
    """Both plans of ours give one answer, and as many pairs as were written by each side."""
    if found["broadcast"].answer != found["partitioned"].answer:
        raise RuntimeError(f"our plans differ: {found['broadcast'].answer} and {found['partitioned'].answer}")
    counted = found["broadcast"].answer[0], found["sedona"].answer[0]
    if counted != (ours, theirs):
        raise RuntimeError(f"{counted} pairs were counted and {(ours, theirs)} written, by us and by Sedona")


def against_join_of_few(
    measure: Callable[[str, Files, Files | None, Bench], Iterator[Row]], bars: dict[str, float], bench: Bench
) -> Iterator[Row]:
    """Yield both sets with few messages: what comes before the matching is most of such a job."""
    for name in ("LA", "SoCal"):
        for row in measure(*_work(name, FEW, bench), bench):
            bar = None if row.at_least is None else bars.get(name)
            yield replace(row, section=f"{row.section}, few messages", at_least=bar)


def planned(bench: Bench) -> Iterator[Row | Shown]:
    """Measure every relation in Sedona's SQL: its plan, and a job so small that a nested loop ends."""
    polygons = bench.polygon_set("SoCal")
    many = 4 if bench.report.quick else 10
    made = jobs.messages(polygons, many, bench.report.seed)["area"].to_pylist()
    # Messages that are polygons of the set, too: equal to one, and beside others.
    areas = made + polygons.wkb[:: len(polygons.wkb) // many][:many].cast(pa.binary()).to_pylist()
    asked = pa.table({"message_id": pa.array(range(len(areas)), pa.int64()), "area": pa.array(areas, pa.binary())})
    files = bench.files("relations", polygons, asked)
    frame = bench.read(files.messages).persist()
    frame.count()
    loaded(bench, files, is_cached=True)
    found = [one for relation in SPELLINGS for one in spelled(relation, files, frame, bench)]
    frame.unpersist()
    work = f"{len(areas)} messages, SoCal ({len(polygons.wkb):,}), prepared"
    for one in found:
        if one.is_nested:
            counts = {"compared": files.compared, "different": one.different, "wrong": one.wrong}
            against = f"{one.condition.split('(')[0]}, {one.hinted}"
            yield Row.versus(NESTED, f"{work}: {one.relation}, count and hash", against, one.ours, one.theirs, **counts)
    yield Shown(PLANNED, HEADINGS, [cells(one) for one in found])


def spelled(relation: str, files: Files, frame: Any, bench: Bench) -> Iterator[Spelled]:
    """Yield each spelling: both plans, the time with the hint against ours, and whether the pairs are the same.

    The pairs are written first, which warms up; the time is that of one turn after it.
    """
    hint = {"broadcast": "messages"}
    wanted = ct.RelationSet(ct.Relation[relation.upper().replace("-", "_")])
    compiled = bench.compiled(files, f"relation(area, $geometry, '{relation}')")
    kept = {side: bench.directory / f"relation-{side}" for side in ("ours", "sedona")}
    write(frame, compiled, kept["ours"])
    ours, pairs = time_cold(partial(digest, frame, compiled)), pairs_of(kept["ours"])
    for condition in SPELLINGS[relation]:
        ask = partial(bench.peer.ask, condition=condition)
        plain, hinted = (operator_of(ask("explain", plan=plan)) for plan in ({}, hint))
        ask("write", plan=hint, path=str(kept["sedona"]))
        theirs = time_cold(partial(ask, "digest", plan=hint))
        different = settled(files, pairs, pairs_of(kept["sedona"]), wanted)
        say(f"{relation}: {condition}: {plain}, {hinted}, {ours:.2f} s and {theirs:.2f} s")
        yield Spelled(relation, condition, plain, hinted, ours, theirs, len(pairs), *different)


def loaded(bench: Bench, files: Files, is_cached: bool) -> None:
    """The files as tables on Sedona's side."""
    paths = {"messages": str(files.messages), "subscriptions": str(files.subscriptions)}
    bench.peer.ask("load", **paths, is_cached=is_cached)


def turns(bench: Bench) -> int:
    """Return how often each side is asked."""
    return 1 if bench.report.quick else 5


def peer_name(bench: Bench) -> str:
    """Return Sedona with its number."""
    return f"Sedona {bench.peer.versions['apache-sedona']}"


SECTIONS = {
    "socal": partial(against_join, "SoCal", MESSAGES), "la": partial(against_join, "LA", MESSAGES),
    "few": partial(against_join_of_few, _from_files, {"LA": FEW_BAR}),
    "few-prepared": partial(against_join_of_few, _prepared, {}), "plans": planned,
}  # fmt: skip


@contextmanager
def opened(report: Report) -> Iterator[Bench]:
    """Yield both sessions, for all sections."""
    directory = jobs.work_directory()
    peer = Peer(directory / "sedona")
    report.skipped += peer.passed_over
    report.peer_versions |= {"pyspark": version("pyspark"), "apache-sedona": peer.versions["apache-sedona"],
                             "pyspark with it": peer.versions["pyspark"]}  # fmt: skip
    try:
        with jobs.session() as spark:
            yield Bench(spark, directory, report, peer)
    finally:
        peer.close()


if __name__ == "__main__":
    run_sections("sedona", __doc__, SECTIONS, opened=opened)
