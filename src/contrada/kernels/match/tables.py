"""Layouts of the tables of addresses that match kernels read: items, trees, residual constraints, scalars, counting."""

from contrada.kernels.runtime.layout import NUMBER, AddressLayout, Field

# The regions or points of a column (index/items.py). Points have no rings.
ITEMS = AddressLayout(
    [
        Field("xy", "f8", 2, "vertices of all rings, or points"),
        Field("ring_offsets", "i8", 0, "first vertex of each ring"),
        Field("region_offsets", "i4", 0, "first ring of each region"),
        Field("ring_flags", "u1", 0, "whether a ring is a hole, and whether it touches another ring"),
        Field("bounds", "f8", 4, "box of each item"),
        Field("boxes", "f8", 4, "edge indexes of large items; relation kernels take them as writable", True),
        Field("large", "i4", 0, "items that have an edge index"),
        Field("bases", "i8", 0, "where the edge index of each large item begins"),
        Field("ring_count", NUMBER, 0, "largest number of rings of an item"),
    ]
)

# The edge tree of one large item (index/edge_trees.py).
EDGE_TREE = AddressLayout(
    [
        Field("nodes", "f8", 12, "a box and two slabs for each node", True),
        Field("edges", "i8", 0, "edges in the order of the leaves", True),
    ]
)

# A packed tree of spatial constraints (index/packed.py).
TREE = ITEMS.followed_by(
    Field("nodes", "f8", 4, "box around the items below each node, level by level"),
    Field("node_masks", "u1", 0, "relations that the constraints below each node ask for"),
    Field("union", "u1", 0, "relations that the constraints on each item ask for"),
    Field("offsets", "i4", 0, "first entry of each item"),
    Field("masks", "u1", 0, "relations that each entry asks for"),
    Field("rows", "i4", 0, "row that each entry reports"),
    Field("disjoint_before", "i4", 0, "by run of items: first row in `disjoint_rows`"),
    Field("disjoint_rows", "i4", 0, "rows of the entries that ask for `disjoint`"),
    Field("contains_before", "i4", 0, "by run of items: first row in `contains_rows`"),
    Field("contains_rows", "i4", 0, "rows of the entries that ask for `contains`"),
    Field("disjoint_map", "u1", 0, "a bit for each row, set if it asks for `disjoint`; empty if rows are listed"),
    Field("is_points", NUMBER, 0, "1 if the items are points"),
    Field("trees", "i8", EDGE_TREE.size, "by large item: addresses and lengths of its edge tree, 0 if it has none"),
    Field("spent", "i8", 0, "by large item: comparisons so far; then 1 if an item needs an edge tree", True),
)

# What one thread writes to while it matches messages against a tree (index/packed.py).
TREE_SCRATCH = AddressLayout(
    [
        Field("stack", "i8", 2, "nodes that wait to be visited: level and number", True),
        Field("candidates", "i4", 0, "items that boxes do not decide", True),
        Field("out", "i4", 0, "rows that match, in no order; empty if there is a bit map", True),
        Field("bitmap", "u1", 0, "a bit for each row, set if it matches; empty if rows are listed", True),
        Field("words", "u8", 0, "the bytes of `bitmap`, eight at a time"),
        Field("first_row", NUMBER, 0, "row of the first bit"),
        Field("marked", "i8", 0, "rows that match, sorted; empty if the marks of one message stay in `bitmap`", True),
        Field("ends", "i8", 0, "by message: end of its rows", True),
        Field("gate", "i8", 0, "where finished kernels wait for a writer (runtime/gil_gate.py)"),
    ]
)

# A packed tree of distance constraints (index/near.py). Points have no rings, regions and boxes.
NEAR = AddressLayout(
    [
        Field("xy", "f8", 2, "vertices of all rings, or points"),
        Field("ring_offsets", "i8", 0, "first vertex of each ring"),
        Field("region_offsets", "i4", 0, "first ring of each region; empty if the items are points"),
        Field("bounds", "f8", 4, "box of each region"),
        Field("boxes", "f8", 4, "edge indexes of large regions", True),
        Field("chains", "i8", 0, "where the edge index of each region begins"),
        Field("nodes", "f8", 9, "by node: its box grown by distances, its box, the least distance below it"),
        Field("node_masks", "u1", 0, "outcomes that the constraints below each node ask for"),
        Field("grown", "f8", 4, "box of each item grown by its distance, rounded outward"),
        Field("distances", "f8", 0, "distance of each constraint"),
        Field("masks", "u1", 0, "outcomes that each constraint asks for"),
        Field("rows", "i4", 0, "row that each constraint reports"),
        Field("enclosed_before", "i4", 0, "by run of items: first row in `enclosed_rows`"),
        Field("enclosed_rows", "i4", 0, "rows of the constraints that hold of messages wholly within reach"),
        Field("beyond_before", "i4", 0, "by run of items: first row in `beyond_rows`"),
        Field("beyond_rows", "i4", 0, "rows of the constraints that hold of messages beyond reach"),
    ]
)

# A packed tree of distance constraints in metres (index/metres.py).
METRES = NEAR.followed_by(
    Field("places", "f8", 4, "metres from the centre along three axes, and a chord that is surely within; of points"),
)

# What one thread writes to while it matches messages against such a tree (index/near.py).
NEAR_SCRATCH = AddressLayout(
    [
        Field("stack", "i8", 2, "nodes that wait to be visited: level and number", True),
        Field("out", "i4", 0, "rows that match, in no order", True),
        Field("ends", "i8", 0, "by message: end of its rows", True),
        Field("gate", "i8", 0, "where finished kernels wait for a writer (runtime/gil_gate.py)"),
    ]
)

# Spatial constraints that are checked after a filter is reached (matching/residual.py).
RESIDUAL = ITEMS.followed_by(
    Field("masks", "u1", 0, "relations that each constraint asks for"),
    Field("offsets", "i4", 0, "first constraint of each filter"),
    Field("first", NUMBER, 0, "the filter that `offsets` begins with"),
)

# Scalar constraints of a level (index/scalars.py).
SCALARS = AddressLayout(
    [
        Field("slot_of", "i4", 0, "by place: its slot, -1 for places that no constraint is about"),
        Field("forms", "u1", 0, "form of each slot"),
        Field("const_base", "i8", 0, "by slot: its first constant"),
        Field("keys", "i8", 0, "key of each constant"),
        Field("rests", "i8", 0, "rest of each constant; empty if all are 0"),
        Field("text_base", "i8", 0, "by slot: its first text constant or pattern"),
        Field("text_offsets", "i8", 0, "first byte of each text"),
        Field("blob", "u1", 0, "bytes of all texts"),
        Field("heads", "u8", 0, "first eight bytes of each text, as a number in the order of texts"),
        Field("offsets", "i4", 0, "first record of each filter"),
        Field("records", "i4", 3, "slot and question, then an interval of ranks or the number of a set or pattern"),
        Field("set_offsets", "i4", 0, "first member of each set"),
        Field("set_ranks", "i4", 0, "ranks of the members, sorted"),
        Field("entries", "u8", 2, "the filter, and bounds of two more records (index/entries.py)"),
        Field("equal_base", "i8", 0, "by slot: first position in `equal_offsets`"),
        Field("equal_offsets", "i4", 0, "first entry of each constant or pattern"),
        Field("others", "i8", 0, "by slot: five numbers (codes.py); then the first entry by its region alone"),
        Field("spans", "i4", 0, "intervals of the entries by interval, two numbers each"),
        Field("blocks", "i4", 4, "least and largest lower and upper ends of 16 spans each, and of 16 blocks each"),
        Field("gram_base", "i8", 0, "by slot: its first gram"),
        Field("gram_codes", "i8", 0, "bytes and length of each gram"),
        Field("gram_offsets", "i4", 0, "first pattern of each gram"),
        Field("gram_patterns", "i4", 0, "patterns that need a gram"),
        Field("boxes", "f4", 64, "around regions, in groups of 16 (index/entries.py); empty without regions"),
        Field("numbers", "i4", 0, "filter at each place; places are in the order of the filters' regions"),
        Field("local_of", "i4", 0, "place of each filter"),
    ]
)

# What one thread writes to while it matches scalars (index/scalars.py).
SCRATCH = AddressLayout(
    [
        Field("ranks", "i4", 0, "by slot: rank of the message's value", True),
        Field("satisfied", "u1", 0, "by text: 1 if the message's text matches the pattern", True),
        Field("found", "i4", 0, "patterns that match", True),
        Field("words", "u8", 0, "by slot: the rank in the form that entries are compared with", True),
        Field("gate", "i8", 0, "where finished kernels wait for a writer (runtime/gil_gate.py)"),
    ]
)

# Distinct constraints of a table, for the counting algorithm (papers/spatial/counted.py).
COUNTED = AddressLayout(
    [
        Field("base", "i8", 0, "by slot: its first constant or pattern"),
        Field("true_offsets", "i4", 0, "by constant: first leaf that holds if the value equals it"),
        Field("true", "i4", 0, "leaves that hold if a value equals their constant"),
        Field("false_offsets", "i4", 0, "by constant: first leaf that holds unless the value equals it"),
        Field("false", "i4", 0, "leaves that hold unless a value equals their constant"),
        Field("parts", "i8", 0, "by slot: eight numbers (papers/spatial/counted.py)"),
        Field("spans", "i4", 0, "intervals of leaves, two numbers each"),
        Field("blocks", "i4", 4, "least and largest lower and upper ends of 16 spans each, and of 16 blocks each"),
        Field("unlike", "i4", 0, "patterns of the leaves that ask for text unlike a pattern"),
        Field("offsets", "i4", 0, "first filter of each leaf"),
        Field("filters", "i4", 0, "filters of the leaves"),
        Field("subscribers", "i4", 0, "their subscribers; empty if each has one filter"),
    ]
)

LAYOUTS = {
    "items": ITEMS, "edge tree": EDGE_TREE, "tree": TREE, "tree scratch": TREE_SCRATCH, "near": NEAR,
    "metres": METRES, "near scratch": NEAR_SCRATCH, "residual": RESIDUAL,
    "scalars": SCALARS, "scratch": SCRATCH, "counted": COUNTED,
}  # fmt: skip
