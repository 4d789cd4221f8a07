"""Load the kernels that publishing and subscribing use, before the first request needs them."""

from __future__ import annotations

from contrada import kernels
from contrada.broker.broker import Broker
from contrada.service.intake import BodyReader, Post

SQUARE = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
FILTERS = (
    f"S_INTERSECTS(geometry, {SQUARE})",
    f"S_WITHIN(geometry, {SQUARE}) AND severity >= 3",
    "severity >= 3 AND kind IN ('flood', 'storm')",
    "kind LIKE 'fl%' OR depth BETWEEN 1.5 AND 2.5",
)
POINT = (
    b'{"type":"Feature","properties":{"severity":3,"kind":"flood","depth":2.0},'
    b'"geometry":{"type":"Point","coordinates":[1,1]}}'
)
POLYGON = (
    b'{"type":"Feature","properties":{"severity":4,"kind":"storm"},'
    b'"geometry":{"type":"Polygon","coordinates":[[[1,1],[3,1],[3,3],[1,1]]]}}'
)
# A few small calls do not compile a kernel, and some kernels are only for large regions, many subscriptions or many
# messages: each is loaded by name.
SERVING_KERNELS = (
    "scan_wkb", "count_wkb", "fill_wkb", "fill_points", "write_wkb", "validate_regions", "read_polygon",
    "build_chains", "build_edge_tree", "box_relations", "relate_rows", "relate_points",
    "hilbert_keys", "build_nodes", "build_lists", "build_node_masks", "list_marks", "gather_regions", "mark_firsts",
    "finds_nothing", "match_regions", "match_points", "match_scalars", "rank_messages", "scan_raw", "shut_gate",
    "z_order", "fill_boxes", "fill_ordered_bits", "fill_integer_bits", "fill_values",
    "fill_fixes", "fill_time", "fill_removal", "fill_changes", "list_near", "meet_segments",
)  # fmt: skip


def warm_kernels() -> None:
    """Load all kernels of a server; then subscribe and publish on a broker of its own, alone and in batches."""
    for name in SERVING_KERNELS:
        kernels.compiled_kernel(name)
        getattr(kernels, name)  # the package keeps what it has handed out
    broker, reader = Broker("warm", 1), BodyReader()
    for number in range(64):
        broker.subscribe("warm", number, FILTERS[number % len(FILTERS)])
    for bodies in ([POINT], [POLYGON], [POINT] * 100, [POLYGON] * 100, [POINT, POLYGON] * 50):
        posts = [Post("json", body) for body in bodies]
        for part in (reader.read_singly(posts) or reader.read(posts)).parts:
            broker.match(part.table)
