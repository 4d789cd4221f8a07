"""How much a process grows for each entry of a table or an index."""

import ctypes
import gc
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

import contrada as ct
from benchmarks.cover.mixed import buildings
from benchmarks.network.work import BUILDINGS, filters_on
from benchmarks.report import Report
from contrada.broker.entries import Entries, Entry

BYTES_PER_VERTEX, WARM_UP = 16, 1_000
M_MMAP_THRESHOLD = -3  # of mallopt: larger arrays get memory of their own, which can be given back when they are freed
Filled = tuple[object, int]  # what is kept, and the number of its vertices


def grown(name: str, seed: int, count: int) -> float:
    """Return how many bytes beyond coordinates this process grows for each entry."""
    fill: Callable[[Iterable[ct.Filter]], Filled] = _fill_table if name == "table" else _fill_index
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 20)
    read = buildings(Report(seed, False), BUILDINGS)
    shapes = [read(10 * place).to_wkb() for place in range(BUILDINGS // 10)]  # before memory is looked at
    del read

    def building(place: int) -> ct.Region:
        return ct.Region.from_wkb(shapes[place // 10])

    fill(filters_on(building, seed, WARM_UP, "apart"))
    before = resident()
    kept, vertices = fill(filters_on(building, seed, count, "apart"))
    each = (resident() - before - BYTES_PER_VERTEX * vertices) / count
    del kept
    return each


def _fill_table(filters: Iterable[ct.Filter]) -> Filled:
    entries, rows, vertices = Entries(), {}, 0
    for k, what in enumerate(filters):
        vertices += _vertices(what)
        rows[k << 20] = entries.add(Entry(k, k, k, 0), ct.Predicate([what]))
    entries.pack()  # so that no thread is packing while memory is looked at
    return (entries, rows), vertices


def _fill_index(filters: Iterable[ct.Filter]) -> Filled:
    index, vertices = ct.CoveringIndex(withdraw=True), 0
    for k, what in enumerate(filters):
        vertices += _vertices(what)
        index.subscribe(k, what)
    return index, vertices


def _vertices(what: ct.Filter) -> int:
    return len(what.constraints[0].value.to_wkb()) // BYTES_PER_VERTEX


def resident() -> int:
    """Return the bytes of memory that this process has, after everything free was given back."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
