"""The core of the broker: commands a second in a network, one hop of a batch, unsubscribing what covers many, memory.

    python -m benchmarks.network [--quick] [--only commands,hop,unsubscribe,memory] [--seed 7] [--write]

Brokers run in one process, without sockets and disk: effects that persist are made and dropped. The regions are
buildings where CONTRADA_DATA has them, boxes of their size elsewhere. Writes build/bench/network.json.
"""

import random
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import contrada as ct
from benchmarks.command import run_sections
from benchmarks.network.memory import grown
from benchmarks.network.work import COMMANDS_PER_TICK, WORKLOADS, Tree, messages, subscriptions
from benchmarks.report import Report, Row
from benchmarks.timing import say, take_turns
from contrada.broker import Deliver, LinkOptions, Send

COMMANDS = "Subscriptions entering a tree of 31 brokers, by processor time of the whole process"
HOP = "One hop of a batch of 100 messages"
UNSUBSCRIBE = "Unsubscribing a subscription that covers 1,000 others"
MEMORY = "Memory of a broker, beyond coordinates"
BROKERS, SUBSCRIPTIONS, BATCH, COVERED = 31, 100_000, 100, 1_000
LEAST_COMMANDS, MOST_HOP, MOST_UNSUBSCRIBE, MOST_ENTRY, MOST_INDEX = 5_000, 1.3, 0.1, 400, 1_000
WARM_UP = 1_000


def commands(report: Report) -> Iterator[Row]:
    """Measure commands a second, each counted at each broker that it reaches."""
    count = 500 if report.quick else SUBSCRIPTIONS
    for workload in WORKLOADS:
        rng = random.Random(report.seed)
        filters: list[Any] = list(subscriptions(report, count + WARM_UP, workload))
        tree = Tree(BROKERS, LinkOptions(withdraw=True))
        for k, what in enumerate(filters[count:]):
            tree.subscribe(rng.randrange(BROKERS), f"w{k}", what)
        tree.commands = 0
        start = time.process_time()
        for k in range(count):
            what, filters[k] = filters[k], None  # brokers keep what they need
            tree.subscribe(rng.randrange(BROKERS), f"k{k}", what)
            if k % COMMANDS_PER_TICK == 0:
                tree.tick()
            if k % 10_000 == 0:
                say(f"{workload}: {k:,} of {count:,}")
        seconds = time.process_time() - start
        work = f"{count:,} mixed subscriptions, {workload}: {tree.commands:,} commands"
        yield Row.alone(COMMANDS, work, tree.commands / seconds, "/s", seconds, at_least=LEAST_COMMANDS)
        yield Row.alone(COMMANDS, f"{workload}: entries of all tables", sum(map(len, tree.brokers)), "")


def hop(report: Report) -> Iterator[Row]:
    """Measure a broker that delivers a batch and passes it on, beside `match_many` on the same subscriptions."""
    count = 10_000 if report.quick else SUBSCRIPTIONS
    tree, table = Tree(2, LinkOptions(withdraw=True)), ct.ForwardingTable()
    for k, what in enumerate(subscriptions(report, count, "apart")):
        tree.subscribe(k % 2, f"k{k}", what)
    broker = tree.brokers[0]
    for k, predicate in enumerate(broker.predicates()):
        table.subscribe(k % 2, predicate)
    table.pack()
    batch, repeats = messages(report, BATCH), 50 if report.quick else 400
    ids = iter([[f"m{number}.{k}" for k in range(BATCH)] for number in range(repeats + 1)])

    def ours() -> int:
        effects = broker.publish(batch, next(ids))
        assert any(isinstance(effect, Send) for effect in effects), "something is passed on"
        return sum(len(keys) for effect in effects if isinstance(effect, Deliver) for keys in effect.keys)

    match = partial(table.match_many, batch, by="subscription")
    contenders: dict[str, Any] = {"ours": ours, "match_many": match, "match_many, threads=1": partial(match, threads=1)}
    found = take_turns(contenders, repeats)
    mine = found.pop("ours")
    work = f"{count:,} subscriptions: match, deliver {mine.answer:,} matches, pass on"
    for name, (seconds, _) in found.items():
        ratio = mine.seconds / seconds  # the bar holds for both, and so for the quicker one
        yield Row(HOP, work, name, mine.seconds, seconds, ratio, "times the time", at_most=MOST_HOP)


def unsubscribe(report: Report) -> Iterator[Row]:
    """Measure one broker with one neighbour, to which 1,000 subscriptions are forwarded in place of one."""
    around = 2_000 if report.quick else SUBSCRIPTIONS
    tree = Tree(2, LinkOptions(withdraw=True))
    for k, what in enumerate(subscriptions(report, around, "apart")):
        tree.subscribe(0, f"k{k}", what)
    times = []
    for _ in range(3 if report.quick else 9):
        wide = ct.Region.box(500, 500, 600, 600)
        tree.subscribe(0, "wide", ct.Filter([ct.Constraint("area", ct.RelationSet.S_INTERSECTS, wide)]))
        for k in range(COVERED):
            x, y = 501 + 3 * (k % 32), 501 + 3 * (k // 32)
            inner = ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.Region.box(x, y, x + 2, y + 2))
            tree.subscribe(0, f"inner {k}", ct.Filter([inner, ct.Constraint("severity", ">=", k % 10)]))
        broker = tree.brokers[0]
        start = time.perf_counter()
        effects = broker.unsubscribe("wide")
        times.append(time.perf_counter() - start)
        assert len(effects) > COVERED, "all are forwarded"
        tree.take(0, effects)
        for k in range(COVERED):
            tree.unsubscribe(0, f"inner {k}")
    seconds = sorted(times)[len(times) // 2]
    work = f"{COVERED:,} to forward, {around:,} subscriptions around"
    yield Row.alone(UNSUBSCRIBE, work, 1e3 * seconds, "ms", seconds, at_most=1e3 * MOST_UNSUBSCRIBE)


def memory(report: Report) -> Iterator[Row]:
    """Measure how much a process of its own grows by the table of a broker, and by the index of one neighbour."""
    count = 3_000 if report.quick else SUBSCRIPTIONS
    for name, most in (("table", MOST_ENTRY), ("covering index", MOST_INDEX)):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            each = pool.submit(grown, name, report.seed, count).result()
        yield Row.alone(MEMORY, f"{name}, {count:,} entries", each, "bytes per entry", at_most=most)


SECTIONS = {"commands": commands, "hop": hop, "unsubscribe": unsubscribe, "memory": memory}

if __name__ == "__main__":
    run_sections("network", __doc__, SECTIONS)
