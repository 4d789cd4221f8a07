"""Forks a process again and again while other threads update; a child that cannot go on prints why, or hangs.

    python fork_children.py FORKS [WHAT...]

WHAT goes on beside updates: packing, questions, compiling; and `covering` asks a covering index too.
"""

import faulthandler
import os
import signal
import sys
import threading
import traceback

import contrada as ct
from contrada.jit import EntryPoint
from contrada.kernels.runtime.gil_gate import shut_gate
from contrada.matching.store.tuning import Tuning

CHILD_SECONDS = 60
MATCHING = {"severity": 5, "area": ct.Region.box(1, 1, 2, 2)}


def updates(table):
    """Subscribe and unsubscribe without pause."""
    for number in range(10**9):
        table.subscribe(number % 7, f"severity >= {number % 9} AND S_INTERSECTS(area, BBOX(0, 0, 3, 3))", key=number)
        if number >= 50:
            table.unsubscribe(number - 50)


def packing(table):
    """Pack without pause, while threads pack in the background too."""
    while True:
        table.pack()


def questions(table):
    """Match without pause."""
    while True:
        table.match(MATCHING)


def compiling(table):
    """Load kernels without pause."""
    kept = []  # a compiled function that goes is freed outside of our lock
    while True:
        kept.append(loaded_anew())


def loaded_anew():
    """A compiled function from the cache, not the one that was loaded before."""
    return EntryPoint(shut_gate.py_func, shut_gate.signature, shut_gate.checked, 0).ready()


def child(table, index, what):
    """Do everything that a table can do."""
    faulthandler.dump_traceback_later(CHILD_SECONDS - 5)  # where it hangs, before the alarm ends it
    signal.alarm(CHILD_SECONDS)
    before = len(table)
    assert before == len(list(table))
    table.check()
    for number in range(60):
        table.subscribe("child", f"severity >= {number % 5}", key=f"child {number}")
    assert "child" in table.match(MATCHING)
    table.wait_for_compaction()
    table.pack()
    table.check()
    assert len(table) == before + 60
    assert table.match_many([MATCHING] * 64, by="subscription", threads=2).offsets[-1] >= 64
    table.unsubscribe("child 1")
    assert len(list(table)) == before + 59
    if "covering" in what:
        assert index.subscribe("child", "severity >= 1").forward
        assert "child" in index.forwarded
    other = ct.ForwardingTable()
    other.subscribe("new", "severity >= 1")
    assert other.match(MATCHING) == {"new"}
    if "compiling" in what:
        assert loaded_anew() is not shut_gate.ready()


def main():
    forks, what = int(sys.argv[1]), sys.argv[2:]
    table = ct.ForwardingTable(tuning=Tuning(buffer_filters=32))  # so that threads pack all the time
    index = ct.CoveringIndex()
    for number in range(200):
        table.subscribe(number, f"severity >= {number % 9}", key=f"first {number}")
    table.match(MATCHING)
    table.pack()
    if "covering" in what:
        index.subscribe("first", "severity >= 3")
    further = {"packing": packing, "questions": questions, "compiling": compiling}
    for work in [updates, *(further[one] for one in what if one in further)]:
        threading.Thread(target=work, args=(table,), daemon=True).start()
    for _ in range(forks):
        pid = os.fork()
        if pid == 0:
            try:
                child(table, index, what)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if status:
            print(f"child ended with {status} (14: it hung)")
            os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
