"""Members and clusters in columns: a cluster is the members that one forwarded filter stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.broker.clustering.box_grid import Floats, Integers, box_areas, common_boxes, joint_boxes
from contrada.broker.clustering.unions import areas_of, box_unions
from contrada.geometry import Region

ROUNDING = 1e-12  # relative error of an area


class ColumnRows:
    """Numbers of rows of columns that grow; numbers of dropped rows are used again."""

    columns: tuple[str, ...]

    def __init__(self) -> None:
        self._free: list[int] = []
        self._size = 0

    def take(self, count: int) -> Integers:
        """Return the numbers of new rows."""
        if len(self._free) < count:
            size = max(16, 2 * self._size, self._size + count)
            for name in self.columns:
                old = getattr(self, name)
                new = np.zeros((size, *old.shape[1:]), old.dtype)
                new[: self._size] = old
                setattr(self, name, new)
            self._free = [*range(size - 1, self._size - 1, -1), *self._free]
            self._size = size
        taken = self._free[len(self._free) - count :]
        del self._free[len(self._free) - count :]
        return np.array(taken[::-1], np.int64)

    def give_back(self, rows: Sequence[int]) -> None:
        """Drop rows."""
        self._free += rows


class ClusterMembers(ColumnRows):
    """Members that may be merged: ids, boxes, areas, and the rows of their clusters."""

    columns = ("boxes", "areas", "clusters", "ids")

    def __init__(self) -> None:
        super().__init__()
        self.boxes = np.empty((0, 4))
        self.areas = np.empty(0)
        self.clusters = np.empty(0, np.int64)
        self.ids = np.empty(0, object)
        self.rows: dict[int, int] = {}  # by id

    def add(self, ids: Sequence[int], regions: Sequence[Region]) -> Integers:
        """Add members without a cluster, and return their rows."""
        rows = self.take(len(ids))
        self.boxes[rows] = np.array([region.bounds for region in regions]).reshape(-1, 4)
        self.areas[rows] = areas_of(regions)
        self.ids[rows] = ids
        self.rows.update(zip(ids, rows.tolist(), strict=True))
        return rows

    def are_boxes(self, rows: Integers) -> NDArray[np.bool_]:
        """Return whether the regions of members fill their boxes."""
        return np.asarray(self.areas[rows] >= box_areas(self.boxes[rows]) * (1 - ROUNDING))


class Clusters(ColumnRows):
    """Clusters with the boxes and areas of their filters' regions; `asked` is what the members ask for of that area.

    The area of the union of the members' regions is at least `asked`: all is on the safe side if it is too small.
    """

    columns = ("boxes", "areas", "asked", "groups", "counts", "is_live", "is_boxy", "is_merged")

    def __init__(self) -> None:
        super().__init__()
        self.boxes = np.empty((0, 4))
        self.areas, self.asked = np.empty(0), np.empty(0)
        self.groups, self.counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self.is_live, self.is_boxy = np.empty(0, np.bool_), np.empty(0, np.bool_)  # all members are boxes
        self.is_merged = np.empty(0, np.bool_)  # the filter is not that of its only member
        self.members: dict[int, list[int]] = {}  # rows of members, by row
        self.ids: dict[int, int] = {}  # of filters that were forwarded, by row
        self.regions: dict[int, Region] = {}  # of merged filters that are no boxes, by row

    def add(self, boxes: Floats, areas: Floats, asked: Floats, groups: Integers, members: list[list[int]]) -> Integers:
        """Add clusters and return their rows."""
        rows = self.take(len(boxes))
        self.boxes[rows], self.areas[rows], self.asked[rows], self.groups[rows] = boxes, areas, asked, groups
        self.counts[rows] = [len(found) for found in members]
        self.is_live[rows] = True
        self.members.update(zip(rows.tolist(), members, strict=True))
        return rows

    def drop(self, rows: Sequence[int]) -> list[int]:
        """Remove clusters, and return the ids of those that were forwarded."""
        self.is_live[rows] = False
        self.give_back(rows)
        for row in rows:
            del self.members[row]
            self.regions.pop(row, None)
        return [self.ids.pop(row) for row in rows if row in self.ids]

    def bounds(self, one: Integers, other: Integers) -> tuple[Floats, Floats, Floats]:
        """Return areas of joint boxes of pairs, and the least and the most that both together may ask for of them."""
        boxes, asked = (self.boxes[one], self.boxes[other]), (self.asked[one], self.asked[other])
        areas = box_areas(joint_boxes(*boxes))
        together = asked[0] + asked[1]
        least = np.maximum(np.maximum(*asked), together - box_areas(common_boxes(*boxes)))
        return areas, least, np.minimum(together, areas)


class Pairs(NamedTuple):
    """Pairs of clusters that may be merged, with the box, the area and the asked area of the merged region."""

    first: Integers
    second: Integers
    boxes: Floats
    areas: Floats
    asked: Floats
    regions: Sequence[Region] = ()  # none for boxes

    def matching(self) -> list[int]:
        """Return positions of pairs without a common cluster; a pair with a smaller extra share goes first."""
        order = np.lexsort((self.second, self.first, -self.asked / self.areas))
        used: set[int] = set()
        chosen = []
        for k, one, other in zip(order.tolist(), self.first[order].tolist(), self.second[order].tolist(), strict=True):
            if one not in used and other not in used:
                used.add(one)
                used.add(other)
                chosen.append(k)
        return chosen


def flat(lists: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    """Return all numbers in one array, and the lengths of the lists.

    >>> [array.tolist() for array in flat([[7], [], [8, 9]])]
    [[7, 8, 9], [1, 0, 2]]
    """
    return np.array(list(chain.from_iterable(lists)), np.int64), np.array([len(one) for one in lists], np.int64)


def union_areas(members: ClusterMembers, lists: Sequence[Sequence[int]], regions_of: Callable[[int], Region]) -> Floats:
    """Return the area of the union of the regions of each list of members; it may be too small if GEOS fails."""
    rows, sizes = flat(lists)
    owners = np.repeat(np.arange(len(lists)), sizes)
    is_boxy = np.bincount(owners, ~members.are_boxes(rows), minlength=len(lists)) == 0
    areas = np.empty(len(lists))
    areas[is_boxy] = box_unions(members.boxes[rows[is_boxy[owners]]], sizes[is_boxy])
    for k in np.flatnonzero(~is_boxy).tolist():
        try:
            areas[k] = shapely.union_all([regions_of(row).to_shapely() for row in lists[k]]).area
        except shapely.errors.GEOSException:
            areas[k] = members.areas[lists[k]].max()
    return areas
