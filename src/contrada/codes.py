"""Numbers that kernels and Python share: codes, flags, places in records, and sizes.

Kernels keep these numbers in their machine code, so this file is part of the key of the kernel cache (jit.py). Most are
Python integers. Numbers that kernels pass to each other are NumPy integers, because Numba compiles a function again for
every Python literal that it receives.
"""

import numpy as np

# Relations of two regions (geometry/relation.py), and their bits in a mask.
DISJOINT, MEETS, OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY = (np.int64(k) for k in range(8))
DISJOINT_BIT, CONTAINS_BIT = 1 << int(DISJOINT), 1 << int(CONTAINS)

# OGC's relations where a line takes part (geometry/line_relation.py).
LINE_DISJOINT, LINE_TOUCHES, LINE_OVERLAPS, LINE_EQUALS, LINE_WITHIN, LINE_CONTAINS, LINE_CROSSES = (
    np.int64(k) for k in range(7)
)
LINE_DISJOINT_BIT = 1 << int(LINE_DISJOINT)

# Outcomes of a distance constraint: all of the message's shape is within the distance, some of it, none; and the sets
# that constraints ask for. Only the points within a distance of a point, a disc, enclose a shape.
ENCLOSED, REACHED, BEYOND_REACH = (np.int64(k) for k in range(3))
ENCLOSED_BIT, REACHED_BIT, BEYOND_BIT = (1 << k for k in range(3))
WITHIN_MASK = ENCLOSED_BIT | REACHED_BIT
ELSEWHERE = np.int64(3)  # in place of an outcome: a shape leaves the longitudes and latitudes, so no constraint holds

# Faults that reading and validation report; geometry/faults.py turns them into sentences.
(
    GOOD,
    MISSING,
    EMPTY,
    WRONG_TYPE,
    MALFORMED,
    NOT_FINITE,
    MAGNITUDE,
    FEW_VERTICES,
    ZERO_AREA,
    SELF_INTERSECTION,
    HOLE_OUTSIDE,
    HOLE_CROSSES,
    HOLES_OVERLAP,
    DISCONNECTED,
    PARTS_OVERLAP,
    SHARED_EDGE,
    NESTED,
) = (np.int64(k) for k in range(17))

# Regions.
# Ring flags: a hole; another ring of the same region passes through a point of this ring; no ring, but part of a line.
HOLE, TOUCHING, LINE = 1, 2, 4
PLAIN_SIZE = 21  # bytes of a WKB point without Z, M or SRID
EWKB_SRID = 0x20000000  # bit in the geometry type of EWKB: an SRID follows
MIN_MAGNITUDE, MAX_MAGNITUDE = 1e-120, 1e120  # of coordinates; beyond, the orientation test overflows or loses bits
MAX_SCANNED_VERTICES = 64  # regions with more vertices have an edge index, smaller ones are scanned
FANOUT_SHIFT = 3
FANOUT = 1 << FANOUT_SHIFT  # of edge indexes
NO_INDEX = np.int64(-1)  # in place of the position of an edge index
OF_LINES = np.int64(-3)  # less the position of a line's edge index, which so is below NO_INDEX: for distances only
TREE_REQUESTED = np.int64(-1)  # in place of the comparisons with an item: it needs an edge tree

# Packed trees of constraints.
FAN_SHIFT = 4
FAN = 1 << FAN_SHIFT  # children of a node
MAX_LEVELS = 16

# Forms of values: presence of a value; text, reversed text and patterns, each plus its folding. Kinds of scalars are
# less than PRESENT.
PRESENT, TEXT, BACKWARDS, PATTERN = 3, 8, 16, 24
INTERVAL, SET, LIKE = 0, 2, 4  # kinds of tests
NOT = 1  # added to a kind for its negation; unknown if the value is unknown
ANY_ONE_BYTE, ANY_RUN_BYTE = np.uint8(0xFE), np.uint8(0xFF)  # wildcards in patterns; neither byte occurs in UTF-8
MAX_GRAM_BYTES = 4  # longest gram
HEAD_BYTES = 8  # of a text constant, in one number

# Raw records (index/raw.py): columns, kinds of interval ends, and where ASKED holds the kinds of both ends.
FILTER, PLACE, ASKED, LOW, LOW_REST, HIGH, HIGH_REST = range(7)
UNBOUNDED, CLOSED, OPEN = range(3)
LOW_SHIFT, HIGH_SHIFT = 8, 16

# Packed records and entries (index/ranking.py, index/entries.py).
ASKS_SHIFT, SLOT_MASK = 24, (1 << 24) - 1  # first number of a record: the kind of test, the slot
ABSENT = np.int32(-1)  # rank of a missing value
SHIFTED_RANK_LIMIT, MAX_LANE = 0x7FFE, 0x7FFF  # shifted ranks are less than the first, lanes at most the second
FILTER_MASK = np.uint64(0xFFFFFFFF)  # bits of the filter in the first word of an entry
SLOT_SHIFTS = np.uint64(32), np.uint64(40)  # above the filter: slots of two records, one byte each
BLOCK_SHIFT = 4
BLOCK = 1 << BLOCK_SHIFT  # entries that share a box, intervals that share a block, and blocks that share one
# Numbers of a slot in `others`: first entry by interval, first entry by presence, their end; first block, first span.
BY_INTERVAL_FROM, BY_PRESENCE_FROM, BY_PRESENCE_TO, FIRST_BLOCK, FIRST_SPAN = range(5)
OTHERS_PER_SLOT = 5

# Region of a message: a number, or one of these.
A_POINT, NOTHING = -2, -1

# R-trees: methods to split a node; places in the state of a CR-tree (the root, nodes ever used, the first free node).
QUADRATIC, LINEAR, RSTAR = range(3)
CR_ROOT, CR_USED, CR_FREE = range(3)
MAX_CR_HEIGHT = 32  # levels for 2**31 constraints, two per node

# Indexes of points: places in the states of a k-d tree and of a Z-curve, and sizes.
(
    KD_ROOT,
    KD_NODES_USED,
    KD_NODES_FREE,
    KD_BLOCKS_USED,
    KD_BLOCKS_FREE,
    KD_OVERFLOW,  # size limits of a bucket
    KD_UNDERFLOW,
    KD_LIVE,  # points
    KD_ROOM,  # points that may still be added before ranks are recomputed
    KD_ADDED,  # points added since the tree was rebuilt
) = range(10)
Z_BLOCKS_LISTED, Z_BLOCKS_USED, Z_BLOCKS_FREE, Z_LIVE, Z_ROOM, Z_LEVELS, Z_SMALL = range(7)
RANK_LEVELS = 64  # number of ranks; there is one threshold less
MIN_RANKED_POINTS = 64  # below, ranks do not pay off
MIN_UNIVERSE_POINTS = 64  # below, the universe is not refitted

# What of the matrix of two shapes is asked for: all entries, whether they have a common point, their relation of OGC.
ASKS_MATRIX, ASKS_MEETING, ASKS_RELATION = range(3)

# Counters of a replay: queries, nodes visited and comparisons, each for subscribing and for unsubscribing; rows
# forwarded for either, rows withdrawn; rows in the log, commands run.
QUERIES_S, QUERIES_U, NODES_S, NODES_U, COMPARISONS_S, COMPARISONS_U = range(6)
FORWARDED_S, FORWARDED_U, WITHDRAWN, SENT, DONE = range(6, 11)
TALLY_LENGTH = 11

# Tracked objects (kernels/track): kinds of events and their bits, reasons, and places in the state.
ENTER, EXIT, CHANGE, CROSS, DWELL = range(5)
ENTER_BIT, EXIT_BIT, CHANGE_BIT, CROSS_BIT, DWELL_BIT = (1 << k for k in range(5))
BY_FIX, BY_TIME, BY_EXPIRY, BY_END, BY_UNSUBSCRIBING, BY_REPLACING, BY_SUBSCRIPTION_EXPIRY = range(7)
TAIL, PAIRS, FIXES, LATE, NEXT_DUE, EVENTS, CHANGES = range(7)
TRACK_STATE_LENGTH = 7
DWELT, GONE = 1, 128  # flags of a pair
NO_BLOCK = 255  # class of an object that is inside of nothing
BLOCK_CLASSES = 31
NEVER = -(2**63)  # in place of a time
FOREVER = 2**63 - 1
# In place of a relation: that of the fix before, that of this fix, none.
OF_LAST_FIX, OF_THIS_FIX, NO_RELATION = 253, 254, 255
