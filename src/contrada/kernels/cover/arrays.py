"""Arrays of the covering indexes and of the relation graph: their names and types, for kernels and for Python alike."""

from typing import Annotated, Any, NamedTuple


class ScanArrays(NamedTuple):
    """Live points, packed: place p is at p % width of block p // width."""

    points: Annotated[Any, "f8[2]!"]
    arrivals: Annotated[Any, "i8[1]!"]
    coordinates: Annotated[Any, "f8[3]!"]
    rows: Annotated[Any, "i4[2]!"]
    places: Annotated[Any, "i4[1]!"]
    alive: Annotated[Any, "i8[1]!"]
    state: Annotated[Any, "i8[1]!"]


class KdTreeArrays(NamedTuple):
    """Nodes: dimension, discriminator, children, parent, depth, size. Blocks: ranks, rows, size, next, leaf."""

    points: Annotated[Any, "f8[2]!"]
    arrivals: Annotated[Any, "i8[1]!"]
    dimensions: Annotated[Any, "i4[1]!"]
    splits: Annotated[Any, "f8[1]!"]
    children: Annotated[Any, "i4[2]!"]
    parents: Annotated[Any, "i4[1]!"]
    depths: Annotated[Any, "i4[1]!"]
    sizes: Annotated[Any, "i4[1]!"]
    signatures: Annotated[Any, "u8[3]!"]
    rows: Annotated[Any, "i4[2]!"]
    counts: Annotated[Any, "i4[1]!"]
    nexts: Annotated[Any, "i4[1]!"]
    leaves: Annotated[Any, "i4[1]!"]
    blocks: Annotated[Any, "i4[1]!"]  # block of each row
    places: Annotated[Any, "i4[1]!"]  # position of each row in its block
    state: Annotated[Any, "i8[1]!"]
    stack: Annotated[Any, "i4[1]!"]  # nodes still to be searched, and their `insides`
    insides: Annotated[Any, "u8[1]!"]
    alive: Annotated[Any, "u8[1]!"]  # points of a bucket that are not ruled out yet
    thresholds: Annotated[Any, "f8[2]!"]
    ranks: Annotated[Any, "u1[2]!"]  # by row
    query_ranks: Annotated[Any, "u1[2]!"]
    order: Annotated[Any, "i8[1]!"]  # dimensions of a query in the order of comparison
    moving: Annotated[Any, "i8[1]!"]  # room for rows to move, and for coordinates to find a median of
    values: Annotated[Any, "f8[1]!"]


class ZCurveArrays(NamedTuple):
    """Blocks: keys, rows, sizes, and the turn of each; directory: the blocks in order."""

    points: Annotated[Any, "f8[2]!"]
    arrivals: Annotated[Any, "i8[1]!"]
    lows: Annotated[Any, "f8[1]!"]
    scales: Annotated[Any, "f8[1]!"]
    directory: Annotated[Any, "i4[1]!"]
    keys: Annotated[Any, "u8[3]!"]
    rows: Annotated[Any, "i4[2]!"]
    counts: Annotated[Any, "i4[1]!"]  # by block; free blocks are linked by -2 - next
    turns: Annotated[Any, "i4[1]!"]
    blocks: Annotated[Any, "i4[1]!"]  # block of each row
    query: Annotated[Any, "u8[3]!"]  # (1, 1, words): the key of a query
    wholes: Annotated[Any, "u8[1]!"]  # (d,): the cell of the query
    cells: Annotated[Any, "i8[2]!"]  # (n, 3): ring buffer of cells to visit: begin, end and depth
    insides: Annotated[Any, "u8[1]!"]  # bits of dimensions in which a cell is larger than the query
    state: Annotated[Any, "i8[1]!"]


class CandidateArrays(NamedTuple):
    """Nodes: dimension, discriminator, children or leaf, depth, bounds. Leaves: size, next leaf of a chain, rows."""

    dimensions: Annotated[Any, "i4[1]!"]
    splits: Annotated[Any, "f8[1]!"]
    children: Annotated[Any, "i4[2]!"]
    depths: Annotated[Any, "i4[1]!"]
    tops: Annotated[Any, "f8[2]!"]
    bottoms: Annotated[Any, "f8[2]!"]
    counts: Annotated[Any, "i4[1]!"]
    nexts: Annotated[Any, "i4[1]!"]
    points: Annotated[Any, "f8[3]!"]
    ids: Annotated[Any, "i4[2]!"]
    masks: Annotated[Any, "u1[2]!"]
    boxes: Annotated[Any, "f8[3]!"]  # empty if points end with the box
    state: Annotated[Any, "i8[1]!"]


class GraphArrays(NamedTuple):
    """Edges between rows, and the rows that were forwarded."""

    parents: Annotated[Any, "i4[2]!"]
    nexts: Annotated[Any, "i8[2]!"]
    prevs: Annotated[Any, "i8[2]!"]
    heads: Annotated[Any, "i8[1]!"]
    forwarded: Annotated[Any, "u1[1]!"]
    orphans: Annotated[Any, "i8[1]!"]  # room for rows that lost all parents
    covers: Annotated[Any, "i8[1]!"]  # room for k rows
    counters: Annotated[Any, "i8[1]!"]
