"""Compiled kernels: arrays in, arrays out.

Importing this package imports no Numba. The first use of a name, as in `kernels.relate_pairs(...)`, imports the
module that holds it and compiles the kernel or loads it from the cache.
"""

from importlib import import_module
from typing import Any

_MODULES = {
    "box_relations": "boxes",
    "relate_pairs": "relate",
    "relate_chosen": "chosen",
    "relate_points": "point_relations",
    "build_chains": "chains",
    "build_edge_tree": "edge_tree",
    "count_wkb": "wkb",
    "scan_wkb": "wkb",
    "fill_wkb": "wkb",
    "write_wkb": "wkb",
    "validate_regions": "validate",
    "read_polygon": "validate",
    "measure_regions": "rings",
    "relate_sampled_pairs": "sample",
    "hilbert_keys": "packed",
    "build_nodes": "packed",
    "build_lists": "packed",
    "build_node_masks": "packed",
    "list_marks": "packed",
    "match_regions": "match",
    "match_points": "match",
    "match_scalars": "scalars",
    "rank_messages": "scalars",
    "scan_raw": "raw",
    "shut_gate": "gate",
    "count_bytes": "counting",
    "count_integers": "counting",
    "gather_regions": "packing",
    "mark_firsts": "packing",
    "split_quadratic": "split",
    "split_linear": "split",
    "split_rstar": "split",
    "choose_enlargement": "choose",
    "choose_overlap": "choose",
    "largest_box": "choose",
    "order_by_distance": "choose",
    "met_owners": "choose",
    "merged_boxes": "merge",
    "insert_constraint": "crtree",
    "delete_constraint": "crtree",
    "search_constraints": "crtree",
    "add_candidate": "candidates",
    "drop_candidate": "candidates",
    "find_candidates": "candidates",
    "scan_add": "cover_scan",
    "scan_drop": "cover_scan",
    "scan_search": "cover_scan",
    "scan_replay": "cover_scan",
    "kd_add": "kd_tree_search",
    "kd_drop": "kd_tree_search",
    "kd_search": "kd_tree_search",
    "kd_replay": "kd_tree_search",
    "z_add": "z_curve_search",
    "z_drop": "z_curve_search",
    "z_search": "z_curve_search",
    "z_replay": "z_curve_search",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    compiled = getattr(import_module(f"{__name__}.{module}"), name).ready()
    globals()[name] = compiled
    return compiled
