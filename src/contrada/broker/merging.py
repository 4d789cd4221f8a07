"""Merger: approximate merging of the subscriptions that a broker forwards to one neighbour.

Members of one merged filter differ in the region of their only spatial constraint and in its relations, and in nothing
else. A message that satisfies a member has a value that intersects the member's region, so it satisfies S_INTERSECTS
with any larger region: no merged filter holds back a message that a member asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.arguments import checks_methods
from contrada.broker.change import LinkChange
from contrada.broker.clustering.box_grid import BoxGrid, Floats, Integers, joint_boxes, lie_within
from contrada.broker.clustering.clusters import ClusterMembers, Clusters, Pairs, union_areas
from contrada.broker.clustering.outlines import are_within, column_of, covering_regions, unions_of
from contrada.errors import ArgumentError, KeyInUseError, UnknownKeyError
from contrada.geometry import Region, RegionArray, Relation, RelationSet
from contrada.geometry.crs import Crs
from contrada.model import Constraint, Filter, Predicate

Shape = Literal["box", "region"]
Grouped = tuple[int, Region]  # number of a group, and a member's region

MOST_MEMBERS = 1024  # of two clusters that are merged; members that lie in a merged region come in any number
MOST_MEASURED = 32  # members of two clusters whose union is measured; for more, a bound is used
MAX_REACH = 0.25  # clusters are compared if the gap between their boxes is at most this part of both widths
NEAR, MOST_NEAR = 16, 256  # clusters compared with one, for each of four cells and each size; more if one of few
MANY_PAIRS = 1 << 18  # of clusters that are compared in one round, for each of four cells and each size
BEST = 2  # pairs measured exactly, for each cluster
MAX_ROUNDS = 64  # of merging pairs in one settle
FEW = 16  # boxes or groups that are kept although no cluster has them
QUERIES = 1024  # clusters whose neighbours are sought at once


class Kin(NamedTuple):
    """What members of one filter have in common: all but the region and its relations."""

    attribute: str
    crs: Crs | None
    others: frozenset[Constraint]


class MemberGroup(NamedTuple):
    """Members that may be merged with each other: their number, and the constraints of the first one."""

    number: int
    kin: Kin
    template: tuple[Constraint, ...]

    def asking(self, region: Region) -> Predicate:
        """Return the predicate of a merged filter."""
        wide = Constraint(self.kin.attribute, RelationSet.S_INTERSECTS, region)
        return Predicate([Filter(wide if isinstance(c.operator, RelationSet) else c for c in self.template)])


def spatial_constraint(predicate: Predicate) -> Constraint | None:
    """Return the constraint of a predicate that may be merged, None for a predicate that may not.

    It is the only spatial constraint of the only filter, asks for a region and excludes the relation disjoint.

    >>> from contrada import parse
    >>> spatial_constraint(parse("S_WITHIN(area, BBOX(0, 0, 1, 1)) AND size > 3")).attribute
    'area'
    >>> spatial_constraint(parse("S_DISJOINT(area, BBOX(0, 0, 1, 1))")) is None
    True
    """
    if len(predicate) != 1:
        return None
    found = [part for part in predicate.filters[0] if isinstance(part.operator, RelationSet)]
    if len(found) != 1 or not isinstance(found[0].value, Region):
        return None
    relations = found[0].relations
    return found[0] if relations and Relation.DISJOINT not in relations else None


def region_of(predicate: Predicate) -> Region:
    """Return the region of a predicate that may be merged."""
    spatial = spatial_constraint(predicate)
    assert spatial is not None
    region: Region = spatial.value
    return region


@checks_methods("__init__", "add", "remove")
class Merger:
    """Merges subscriptions of one link, so that the neighbour gets fewer and larger ones.

    The extra share of a merged filter is 1 - (area of the union of its members' regions) / (area of its region), and is
    at most `share`. Its region is the box around the members' regions, or with the shape "region" a simplified union
    of them. `add` and `remove` collect; `settle` returns what to forward and to withdraw. After each `settle` a single
    forwarded filter covers each member, and each forwarded filter has a member.

    A predicate may be merged if it has one filter, and this has one spatial constraint, on a region, that excludes the
    relation disjoint. Merged ones agree in their other constraints, in the attribute and in the CRS. All others are
    forwarded as they are.

    Filters are merged if at least one of them has not been forwarded yet. A merged filter is replaced if members that
    left leave too large an extra share, so members that come and go cause fewer messages than without merging only
    where many regions overlap; the neighbour never has more filters than members.

    >>> from itertools import count
    >>> from contrada import parse
    >>> merger = Merger(0.2, new_id=count(100).__next__)
    >>> merger.add(1, parse("S_WITHIN(area, BBOX(0, 0, 4, 4)) AND size > 3"))
    >>> merger.add(2, parse("S_INTERSECTS(area, BBOX(3, 0, 8, 4)) AND size > 3"))
    >>> for id, predicate in merger.settle().forward:
    ...     print(id, predicate)
    100 S_INTERSECTS(area, POLYGON ((0 0, 8 0, 8 4, 0 4, 0 0))) AND size > 3
    >>> merger.add(3, parse("S_INTERSECTS(area, BBOX(1, 1, 2, 2)) AND size > 3"))
    >>> merger.settle()
    LinkChange(forward=(), withdraw=())
    >>> merger.remove(1)  # the others ask for 21/32 of the merged box
    >>> change = merger.settle()
    >>> sorted(id for id, predicate in change.forward), change.withdraw
    ([2, 3], (100,))
    """

    def __init__(
        self, share: float, shape: Shape = "box", *, new_id: Callable[[], int], most_members: int = MOST_MEMBERS
    ) -> None:
        if not 0 <= share < 1:
            raise ArgumentError(f"share: need a number of at least 0 and below 1, got {share!r:.40}")
        if shape not in ("box", "region"):
            raise ArgumentError(f"shape: need 'box' or 'region', got {shape!r:.40}")
        self.share, self.shape = float(share), shape
        self._new_id, self._most_members = new_id, most_members
        self._least = 1 - self.share  # least part of a merged region that its members ask for
        self._reach = min(share / self._least, MAX_REACH) if shape == "box" else 0.0
        self._predicates: dict[int, Predicate] = {}
        self._new: dict[int, None] = {}  # members that came since the last settle
        self._gone: dict[int, Predicate] = {}  # members that left since the last settle
        self._plain: dict[int, int] = {}  # ids under which members that cannot be merged were forwarded
        self._members, self._clusters = ClusterMembers(), Clusters()
        self._groups: dict[Kin, MemberGroup] = {}
        self._numbered: dict[int, MemberGroup] = {}
        self._next_group, self._most_groups = 0, FEW  # groups without members are dropped beyond `_most_groups`
        self._near, self._homes = BoxGrid(), BoxGrid()  # all clusters; merged ones
        self._forwarded: dict[int, Predicate] = {}

    def __len__(self) -> int:
        return len(self._predicates)

    @property
    def forwarded(self) -> Mapping[int, Predicate]:
        """Predicates that the neighbour has since the last `settle`, by id."""
        return MappingProxyType(self._forwarded)

    def add(self, id: int, predicate: Predicate) -> None:
        """Add a member; raise KeyInUseError if there is one with this id."""
        if id in self._predicates:
            raise KeyInUseError(f"a member with the id {id!r} already exists")
        self._predicates[id] = predicate
        if id in self._gone and self._gone[id] == predicate:
            del self._gone[id]
        else:
            self._new[id] = None

    def remove(self, id: int) -> None:
        """Remove a member; raise UnknownKeyError if there is none with this id."""
        if id not in self._predicates:
            raise UnknownKeyError(f"no member has the id {id!r}")
        predicate = self._predicates.pop(id)
        if id in self._new:
            del self._new[id]
        else:
            self._gone[id] = predicate

    def settle(self) -> LinkChange:
        """Return what to forward and then to withdraw, so that a forwarded filter covers each member."""
        loose, withdrawn = self._leave()
        grouped, forward = self._split_off_plain()
        rows, more = self._merge(self._place(loose, grouped))
        withdrawn += more
        forward += [self._announce(row) for row in rows]
        self._forwarded.update(forward)
        for id in withdrawn:
            del self._forwarded[id]
        self._tidy(np.array(rows, np.int64))
        return LinkChange(tuple(forward), tuple(withdrawn))

    def members(self, id: int) -> tuple[int, ...]:
        """Return the ids of the members for which the neighbour has filter `id`; none if it has no such filter."""
        clusters = self._clusters
        plain = [member for member, told in self._plain.items() if told == id]
        rows = [row for row, told in clusters.ids.items() if told == id]
        return tuple(plain + [self._members.ids[member] for row in rows for member in clusters.members[row]])

    # Members that leave

    def _leave(self) -> tuple[list[int], list[int]]:
        """Remove members that are gone; return members of filters that have too large an extra share, and old ids."""
        members, clusters = self._members, self._clusters
        withdrawn = [self._plain.pop(id) for id in self._gone if id in self._plain]
        gone = [members.rows.pop(id) for id in self._gone if id in members.rows]
        self._gone = {}
        for row in gone:
            clusters.members[int(members.clusters[row])].remove(row)
        np.subtract.at(clusters.asked, members.clusters[gone], members.areas[gone])
        members.give_back(gone)
        touched = np.unique(members.clusters[gone])
        clusters.counts[touched] = [len(clusters.members[row]) for row in touched.tolist()]
        doubtful = touched[(clusters.counts[touched] > 0) & ~self._is_tight(touched)]
        clusters.asked[doubtful] = self._union_areas([clusters.members[row] for row in doubtful.tolist()])
        ended = touched[(clusters.counts[touched] == 0) | ~self._is_tight(touched)].tolist()
        loose = [member for row in ended for member in clusters.members[row]]
        return loose, withdrawn + clusters.drop(ended)

    def _is_tight(self, rows: Integers) -> NDArray[np.bool_]:
        """Return whether the extra shares of clusters are known to be small enough."""
        return np.asarray(self._clusters.asked[rows] >= self._least * self._clusters.areas[rows])

    def _union_areas(self, lists: Sequence[Sequence[int]]) -> Floats:
        return union_areas(self._members, lists, self._member_region)

    def _member_region(self, member: int) -> Region:
        return region_of(self._predicates[self._members.ids[member]])

    # Members that come

    def _split_off_plain(self) -> tuple[dict[int, Grouped], list[tuple[int, Predicate]]]:
        """Return groups of new members that may be merged, and ids and predicates to forward for all others."""
        grouped, forward = dict[int, Grouped](), list[tuple[int, Predicate]]()
        for id in self._new:
            predicate = self._predicates[id]
            found = self._group_of(predicate)
            if found is not None:
                grouped[id] = found
                continue
            self._plain[id] = self._free_id(id)
            forward.append((self._plain[id], predicate))
        self._new = {}
        return grouped, forward

    def _free_id(self, id: int) -> int:
        """Return the id under which to forward a member: a new one while the neighbour has another one with its id."""
        return self._new_id() if id in self._forwarded else id

    def _group_of(self, predicate: Predicate) -> Grouped | None:
        """Return the number of the group and the region of a predicate; None for one that may not be merged."""
        spatial = spatial_constraint(predicate)
        if spatial is None:
            return None
        template = predicate.filters[0].constraints
        try:
            others = frozenset(part for part in template if part is not spatial)
        except TypeError:  # a value of a registered type that has no hash
            return None
        kin = Kin(spatial.attribute, spatial.value.crs, others)
        group = self._groups.get(kin)
        if group is None:
            group = MemberGroup(self._next_group, kin, template)
            self._groups[kin] = self._numbered[group.number] = group
            self._next_group += 1
        return group.number, spatial.value

    def _place(self, loose: list[int], grouped: Mapping[int, Grouped]) -> Integers:
        """Put members into merged filters that cover them, all others into new clusters; return the rows of these."""
        members, clusters = self._members, self._clusters
        new = members.add(list(grouped), [region for _, region in grouped.values()])
        numbers = np.array([number for number, _ in grouped.values()], np.int64)
        rows = np.concatenate([np.array(loose, np.int64), new])
        groups = np.concatenate([clusters.groups[members.clusters[loose]], numbers])
        homes = np.full(len(rows), -1)
        for first in range(0, len(rows) if len(self._homes) else 0, QUERIES):
            some = slice(first, first + QUERIES)
            homes[some] = self._find_homes(rows[some], groups[some])
        for row, home in zip(rows[homes >= 0].tolist(), homes[homes >= 0].tolist(), strict=True):
            clusters.members[home].append(row)
            clusters.counts[home] += 1
        members.clusters[rows] = homes
        rows, groups = rows[homes < 0], groups[homes < 0]
        boxes, areas = members.boxes[rows], members.areas[rows]
        made = clusters.add(boxes, areas, areas, groups, [[row] for row in rows.tolist()])
        clusters.is_boxy[made], clusters.is_merged[made] = members.are_boxes(rows), False
        members.clusters[rows] = made
        self._near.add(made, self._reaching(boxes), groups)
        return made

    def _find_homes(self, members: Integers, groups: Integers) -> Integers:
        """Return for each member the row of the smallest merged filter that covers it, -1 without one."""
        clusters, boxes = self._clusters, self._members.boxes[members]
        queries, rows = self._homes.near(boxes, groups)
        is_home = clusters.is_live[rows] & clusters.is_merged[rows] & (clusters.groups[rows] == groups[queries])
        is_home &= lie_within(boxes[queries], clusters.boxes[rows])
        queries, rows = queries[is_home], rows[is_home]
        if self.shape == "region":
            inner = [self._member_region(member) for member in members[queries].tolist()]
            is_home = self._are_within(inner, rows)
            queries, rows = queries[is_home], rows[is_home]
        order = np.lexsort((rows, clusters.areas[rows], queries))
        found, firsts = np.unique(queries[order], return_index=True)
        homes = np.full(len(members), -1)
        homes[found] = rows[order][firsts]
        return homes

    def _are_within(self, inner: Sequence[Region], outer: Integers) -> NDArray[np.bool_]:
        if not inner:
            return np.empty(0, np.bool_)
        return are_within(column_of(inner), column_of([self._region(row) for row in outer.tolist()]))

    def _region(self, row: int) -> Region:
        """Return the region of the filter of a cluster."""
        clusters = self._clusters
        if row in clusters.regions:
            return clusters.regions[row]
        if clusters.is_merged[row]:
            return Region.box(*clusters.boxes[row].tolist(), crs=self._numbered[int(clusters.groups[row])].kin.crs)
        return self._member_region(clusters.members[row][0])

    def _reaching(self, boxes: Floats) -> Floats:
        """Return boxes enlarged such that those with a small gap meet."""
        sizes = self._reach * (boxes[:, 2:] - boxes[:, :2])
        return np.hstack([boxes[:, :2] - sizes, boxes[:, 2:] + sizes])

    # Merging

    def _merge(self, rows: Integers) -> tuple[list[int], list[int]]:
        """Merge new clusters with each other and with others; return the rows of new clusters, and ids to withdraw."""
        clusters = self._clusters
        withdrawn: list[int] = []
        made = [rows]
        for _ in range(MAX_ROUNDS):
            if not len(rows):
                break
            one, other = self._near_pairs(rows, min(max(NEAR, MANY_PAIRS // len(rows)), MOST_NEAR))
            withdrawn += self._absorb(one, other)
            is_left = clusters.is_live[one] & clusters.is_live[other]
            pairs = self._measured(*self._best(one[is_left], other[is_left]))
            rows, more = self._join(pairs, pairs.matching())
            withdrawn += more
            made.append(rows)
        rows = np.unique(np.concatenate(made))
        rows = rows[clusters.is_live[rows]]
        withdrawn += self._absorb(*self._near_pairs(rows[clusters.is_merged[rows]], 2 * MOST_NEAR))
        return [row for row in rows.tolist() if clusters.is_live[row] and row not in clusters.ids], withdrawn

    def _near_pairs(self, rows: Integers, most: int) -> tuple[Integers, Integers]:
        """Return pairs of a cluster in `rows` and another one of its group that is near it: some, if there are many."""
        clusters = self._clusters
        found = [(rows[:0], rows[:0])]
        step = max(1, QUERIES * NEAR // most)
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            queries, other = self._near.near(self._reaching(clusters.boxes[some]), clusters.groups[some], most)
            one = some[queries]
            is_pair = (one != other) & clusters.is_live[other] & (clusters.groups[one] == clusters.groups[other])
            one, other = one[is_pair], other[is_pair]
            ours, theirs = clusters.boxes[one], clusters.boxes[other]
            gaps = np.maximum(ours[:, :2], theirs[:, :2]) - np.minimum(ours[:, 2:], theirs[:, 2:])
            room = self._reach * ((ours[:, 2:] - ours[:, :2]) + (theirs[:, 2:] - theirs[:, :2]))
            meets = (gaps[:, 0] <= room[:, 0]) & (gaps[:, 1] <= room[:, 1])
            found.append((one[meets], other[meets]))
        return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])

    def _absorb(self, one: Integers, other: Integers) -> list[int]:
        """Move the members of clusters that lie in a merged filter of a pair to this filter; return ids to withdraw."""
        clusters = self._clusters
        inner, outer = np.concatenate([one, other]), np.concatenate([other, one])
        areas = clusters.areas[inner], clusters.areas[outer]
        is_inner = clusters.is_merged[outer] & ((areas[0] < areas[1]) | (areas[0] == areas[1]) & (inner < outer))
        is_inner &= lie_within(clusters.boxes[inner], clusters.boxes[outer])
        inner, outer = inner[is_inner], outer[is_inner]
        if self.shape == "region":
            is_inner = self._are_within([self._region(row) for row in inner.tolist()], outer)
            inner, outer = inner[is_inner], outer[is_inner]
        # The largest filter lies in no other filter of the pairs, so it stays.
        order = np.lexsort((-outer, -clusters.areas[outer], inner))
        inner, firsts = np.unique(inner[order], return_index=True)
        outer = outer[order][firsts]
        for row, home in zip(inner.tolist(), outer.tolist(), strict=True):
            moved = clusters.members[row]
            clusters.members[home] += moved
            clusters.counts[home] += len(moved)
            self._members.clusters[moved] = home
        clusters.is_boxy[outer] &= clusters.is_boxy[inner]
        np.maximum.at(clusters.asked, outer, clusters.asked[inner])
        return clusters.drop(inner.tolist())

    def _best(self, one: Integers, other: Integers) -> tuple[Integers, Integers]:
        """Return a few pairs for each cluster in `one`, those that may have the smallest extra shares."""
        clusters = self._clusters
        areas, least, most = clusters.bounds(one, other)
        is_good = clusters.counts[one] + clusters.counts[other] <= self._most_members
        if self.shape == "box":
            is_good &= most >= self._least * areas
        one, other, score = one[is_good], other[is_good], ((least + most) / areas)[is_good]
        order = np.lexsort((other, -score, one))
        one, other = one[order], other[order]
        is_first = np.append(True, (np.diff(one) != 0) | (np.diff(other) != 0))[: len(one)]
        one, other = one[is_first], other[is_first]
        is_best = np.arange(len(one)) - np.searchsorted(one, one) < BEST
        pairs = np.unique(np.sort(np.stack([one[is_best], other[is_best]], axis=1), axis=1), axis=0)
        return pairs[:, 0], pairs[:, 1]

    def _measured(self, first: Integers, second: Integers) -> Pairs:
        """Return the pairs that may be merged."""
        return self._boxed(first, second) if self.shape == "box" else self._united(first, second)

    def _boxed(self, first: Integers, second: Integers) -> Pairs:
        """Return the pairs whose joint box has a small enough extra share."""
        clusters = self._clusters
        areas, asked, _ = clusters.bounds(first, second)
        is_boxy = clusters.is_boxy[first] & clusters.is_boxy[second]
        is_few = clusters.counts[first] + clusters.counts[second] <= MOST_MEASURED
        exact = np.flatnonzero(is_few & (is_boxy | (asked < self._least * areas)))
        both = zip(first[exact].tolist(), second[exact].tolist(), strict=True)
        asked[exact] = self._union_areas([clusters.members[one] + clusters.members[other] for one, other in both])
        good = np.flatnonzero(asked >= self._least * areas)
        first, second = first[good], second[good]
        boxes = joint_boxes(clusters.boxes[first], clusters.boxes[second])
        return Pairs(first, second, boxes, areas[good], asked[good])

    def _united(self, first: Integers, second: Integers) -> Pairs:
        """Return the pairs whose simplified union has a small enough extra share."""
        clusters = self._clusters
        if not len(first):
            return Pairs(first, second, np.empty((0, 4)), np.empty(0), np.empty(0))
        one, other = (column_of([self._region(row) for row in rows.tolist()]) for rows in (first, second))
        unions = unions_of(one.to_shapely(), other.to_shapely())
        overlaps = clusters.areas[first] + clusters.areas[second] - shapely.area(unions)
        together = clusters.asked[first] + clusters.asked[second] - np.nan_to_num(overlaps, nan=np.inf)
        asked = np.maximum(np.maximum(clusters.asked[first], clusters.asked[second]), together)
        merged = covering_regions(one, other, unions, asked / self._least)
        found = [(k, column) for k, column in enumerate(merged) if column is not None]
        good = np.array([k for k, _ in found], np.int64)
        kins = [self._numbered[number].kin for number in clusters.groups[first[good]].tolist()]
        regions = [RegionArray(column.arrays, kin.crs)[0] for (_, column), kin in zip(found, kins, strict=True)]
        boxes = np.array([column.bounds[0] for _, column in found]).reshape(-1, 4)
        areas = np.array([column.areas[0] for _, column in found], np.float64)
        return Pairs(first[good], second[good], boxes, areas, asked[good], regions)

    def _join(self, pairs: Pairs, chosen: list[int]) -> tuple[Integers, list[int]]:
        """Merge the chosen pairs; return the rows of new clusters, and ids to withdraw."""
        clusters = self._clusters
        first, second = pairs.first[chosen], pairs.second[chosen]
        both = list(zip(first.tolist(), second.tolist(), strict=True))
        joined = [clusters.members[one] + clusters.members[other] for one, other in both]
        is_boxy, groups = clusters.is_boxy[first] & clusters.is_boxy[second], clusters.groups[first]
        withdrawn = clusters.drop([row for pair in both for row in pair])
        rows = clusters.add(pairs.boxes[chosen], pairs.areas[chosen], pairs.asked[chosen], groups, joined)
        clusters.is_merged[rows], clusters.is_boxy[rows] = True, is_boxy
        for row, k, members in zip(rows.tolist(), chosen, joined, strict=True):
            self._members.clusters[members] = row
            if pairs.regions:
                clusters.regions[row] = pairs.regions[k]
        self._near.add(rows, self._reaching(pairs.boxes[chosen]), groups)
        live = np.flatnonzero(clusters.is_live)
        if len(self._near) > 2 * len(live) + FEW:  # mostly boxes of dropped clusters
            self._near = BoxGrid()
            self._near.add(live, self._reaching(clusters.boxes[live]), clusters.groups[live])
        return rows, withdrawn

    def _announce(self, row: int) -> tuple[int, Predicate]:
        """Return the id and the predicate under which to forward a new cluster."""
        clusters = self._clusters
        if clusters.is_merged[row]:
            id = self._new_id()
            predicate = self._numbered[int(clusters.groups[row])].asking(self._region(row))
        else:
            member: int = self._members.ids[clusters.members[row][0]]
            id, predicate = self._free_id(member), self._predicates[member]
        clusters.ids[row] = id
        return id, predicate

    def _tidy(self, rows: Integers) -> None:
        """Add new merged filters to the grid of homes; drop boxes and groups of dropped clusters if they are many."""
        clusters = self._clusters
        merged = rows[clusters.is_merged[rows]]
        self._homes.add(merged, clusters.boxes[merged], clusters.groups[merged])
        merged = np.flatnonzero(clusters.is_live & clusters.is_merged)
        if len(self._homes) > 2 * len(merged) + FEW:
            self._homes = BoxGrid()
            self._homes.add(merged, clusters.boxes[merged], clusters.groups[merged])
        if len(self._groups) > self._most_groups:
            live = set(clusters.groups[clusters.is_live].tolist())
            self._groups = {kin: group for kin, group in self._groups.items() if group.number in live}
            self._numbered = {group.number: group for group in self._groups.values()}
            self._most_groups = 2 * len(live) + FEW
