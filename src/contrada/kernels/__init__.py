"""Compiled kernels: functions from arrays to arrays.

Importing this package imports no Numba. The first use of a name, as in `kernels.relate_rows(...)`, imports the module
that holds it and compiles the kernel or loads it from the cache. Kernels that a first `relate` needs are not compiled
for a few small calls, but interpreted.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from contrada.interpreting import interpret
from contrada.jit import EntryPoint

_MODULES = {
    "box_relations": "relate.boxes",
    "relate_rows": "relate.rows",
    "relate_points": "relate.points",
    "relate_lines_to_regions": "relate.line_matrix",
    "relate_lines": "relate.line_matrix",
    "locate_on_lines": "relate.line_matrix",
    "near_rows": "relate.distance",
    "match_near": "match.near",
    "relate_circles": "relate.circles",
    "list_meeting": "match.meeting",
    "metres_rows": "globe.rows",
    "grow_by_metres": "globe.bounds",
    "fill_places": "globe.bounds",
    "match_metres": "match.metres",
    "list_box_pairs": "match.box_pairs",
    "build_chains": "relate.chains",
    "build_edge_tree": "relate.edge_tree",
    "count_wkb": "read.wkb",
    "scan_wkb": "read.wkb",
    "fill_wkb": "read.wkb",
    "fill_points": "read.wkb",
    "write_wkb": "read.wkb",
    "validate_regions": "read.validate",
    "read_polygon": "read.validate",
    "measure_regions": "relate.rings",
    "relate_sampled_pairs": "relate.sample",
    "hilbert_keys": "match.packed_tree",
    "build_nodes": "match.packed_tree",
    "build_lists": "match.packed_tree",
    "build_node_masks": "match.packed_tree",
    "list_marks": "match.packed_tree",
    "finds_nothing": "match.search",
    "match_regions": "match.spatial",
    "match_points": "match.spatial",
    "match_scalars": "match.scalars",
    "rank_messages": "match.scalars",
    "z_order": "match.columns",
    "fill_boxes": "match.columns",
    "fill_ordered_bits": "match.columns",
    "fill_integer_bits": "match.columns",
    "fill_values": "match.columns",
    "scan_raw": "match.raw",
    "shut_gate": "runtime.gil_gate",
    "count_bytes": "match.counting",
    "count_integers": "match.counting",
    "gather_regions": "match.gather",
    "mark_firsts": "match.gather",
    "split_quadratic": "rtree.split",
    "split_linear": "rtree.split",
    "split_rstar": "rtree.split",
    "choose_enlargement": "rtree.choose",
    "choose_overlap": "rtree.choose",
    "largest_box": "rtree.choose",
    "order_by_distance": "rtree.choose",
    "met_owners": "rtree.choose",
    "merged_boxes": "rtree.merge",
    "insert_constraint": "rtree.crtree",
    "delete_constraint": "rtree.crtree",
    "search_constraints": "rtree.crtree",
    "add_candidate": "cover.candidates",
    "drop_candidate": "cover.candidates",
    "find_candidates": "cover.candidates",
    "scan_add": "cover.scan",
    "scan_drop": "cover.scan",
    "scan_search": "cover.scan",
    "scan_replay": "cover.scan",
    "kd_add": "cover.kd_tree_search",
    "kd_drop": "cover.kd_tree_search",
    "kd_search": "cover.kd_tree_search",
    "kd_replay": "cover.kd_tree_search",
    "z_add": "cover.z_curve_search",
    "z_drop": "cover.z_curve_search",
    "z_search": "cover.z_curve_search",
    "z_replay": "cover.z_curve_search",
    "fill_fixes": "track.steps",
    "fill_time": "track.steps",
    "fill_removal": "track.steps",
    "fill_changes": "track.steps",
    "list_near": "track.near",
    "meet_segments": "track.segments",
}

NAMES = tuple(_MODULES)


def __getattr__(name: str) -> Any:
    usable = _entry_point(name).usable()
    if not isinstance(usable, EntryPoint):
        globals()[name] = usable
    return usable


def _entry_point(name: str) -> EntryPoint:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: EntryPoint = getattr(import_module(f"{__name__}.{module}"), name)
    return found


def compiled_kernel(name: str) -> Callable[..., Any]:
    """Return a kernel from the cache, or compile it."""
    return _entry_point(name).ready()


def interpreted_kernel(name: str) -> Callable[..., Any]:
    """Return a kernel as plain Python."""
    function = _entry_point(name).py_func
    return lambda *arguments: interpret(function, arguments)
