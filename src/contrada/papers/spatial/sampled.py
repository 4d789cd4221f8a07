"""Algorithm 1 of [SPATIAL]: approximate the relation of two simple polygons from samples of their boundaries."""

from __future__ import annotations

import math
from typing import overload

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.arguments import checks_arguments
from contrada.errors import ArgumentError, RegionError
from contrada.geometry.column import RegionArray
from contrada.geometry.crs import common_crs
from contrada.geometry.region import Region
from contrada.geometry.relate import broadcast_length
from contrada.geometry.relation import Relation

Regions = Region | RegionArray
Codes = NDArray[np.uint8]


@overload
def relate_sampled(a: Region, b: Region, density: float, halo: bool = True, extra: bool = False) -> Relation: ...
@overload
def relate_sampled(a: RegionArray, b: Regions, density: float, halo: bool = True, extra: bool = False) -> Codes: ...
@overload
def relate_sampled(a: Regions, b: RegionArray, density: float, halo: bool = True, extra: bool = False) -> Codes: ...
@checks_arguments
def relate_sampled(a: Regions, b: Regions, density: float, halo: bool = True, extra: bool = False) -> Relation | Codes:
    """Return the relation of `a` to `b` as Algorithm 1 of [SPATIAL] approximates it; `relate` is exact, and faster.

    Boundaries are sampled at `density` points per unit of length: on a boundary of length l all n end points and
    l * density - n others, or with `extra` l * density others. With `halo` a sample meets the other boundary if it is
    closer to it than half its shortest gap to its neighbours. Regions are simple polygons; columns broadcast as in
    `relate`. Takes O(l * density * n) per pair.

    >>> relate_sampled(Region.box(0, 0, 4, 4), Region.box(2, 2, 6, 6), density=1.0)
    <Relation.OVERLAPS: 2>
    """
    first, second = _column(a), _column(b)
    common_crs(first.crs, second.crs)
    out = np.empty(broadcast_length(first, second), np.uint8)
    fill_sampled(first, second, density, halo, extra, False, out)
    return Relation(int(out[0])) if isinstance(a, Region) and isinstance(b, Region) else out


def fill_sampled(
    a: RegionArray, b: RegionArray, density: float, halo: bool, extra: bool, boxes_first: bool, out: Codes
) -> None:
    """Fill `out` with relation codes; `boxes_first` compares boxes before sampling, which the paper does not do."""
    if not (math.isfinite(density) and density >= 0):
        raise RegionError(f"density: need a finite number of at least 0, got {density}")
    for column in (a, b):
        if not column.is_simple.all():
            row = int(np.argmin(column.is_simple))
            problem = f"region {row} has holes or several parts; relate_sampled needs simple polygons, use relate"
            raise RegionError(problem, row=row)
    columns = [(c.arrays.xy, c.arrays.ring_offsets, c.arrays.region_offsets, c.bounds) for c in (a, b)]
    flags = (bool(halo), bool(extra), boxes_first)
    if not kernels.relate_sampled_pairs(*columns[0], *columns[1], float(density), *flags, out):
        raise RegionError(f"density {density} makes more than 2**31 samples of one boundary")


def _column(value: object) -> RegionArray:
    if isinstance(value, Region):
        return value._column
    if isinstance(value, RegionArray):
        return value
    raise ArgumentError(f"relate_sampled: need a Region or RegionArray, got {type(value).__name__}")
