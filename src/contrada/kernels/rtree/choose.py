"""Choose where in a tree of boxes a new box goes, the largest of several boxes, and the boxes that a message meets.

Boxes are rows of 2 d numbers as in kernels/rtree/split.py: the lows of all axes and then the highs, any of which may be
unbounded. They are scaled and made finite as there, so that areas are finite. The order of the boxes decides ties.
"""

import numpy as np

from contrada.jit import allocating_kernel, entry, kernel
from contrada.kernels.rtree.split import area_of, common_area, copy_box, enlarge_box, fill_finite, joint_area, margin_of


@allocating_kernel
def finite_with(boxes, box):
    """Return the boxes with `box` appended, scaled and made finite together."""
    count = len(boxes)
    together = np.empty((count + 1, boxes.shape[1]))
    together[:count] = boxes
    together[count] = box
    out = np.empty_like(together)
    fill_finite(together, out)
    return out


@entry("f8[2] f8[1]")
def choose_enlargement(boxes, box):
    """Return the box that grows least in area to include `box`; ties by smallest area (Guttman's ChooseLeaf)."""
    work = finite_with(boxes, box)
    last = len(boxes)
    best = 0
    least = np.inf
    smallest = np.inf
    for i in range(last):
        area = area_of(work, i)
        growth = joint_area(work, i, work, last) - area
        if growth < least or (growth == least and area < smallest):
            best = i
            least = growth
            smallest = area
    return best


@kernel
def overlap_growth(work, i, grown):
    """Return the growth of the overlap of box i with the others if it grows to the box in `grown`."""
    total = 0.0
    for j in range(len(work) - 1):
        if j != i:
            total += common_area(grown, 0, work, j) - common_area(work, i, work, j)
    return total


@entry("f8[2] f8[1]")
def choose_overlap(boxes, box):
    """Return the box whose overlap with the others grows least to include `box`; ties by area growth, then area."""
    work = finite_with(boxes, box)
    last = len(boxes)
    grown = np.empty((1, work.shape[1]))
    best = 0
    least = np.inf
    least_growth = np.inf
    smallest = np.inf
    for i in range(last):
        copy_box(work, i, grown, 0)
        enlarge_box(grown, 0, work, last)
        overlap = overlap_growth(work, i, grown)
        area = area_of(work, i)
        growth = area_of(grown, 0) - area
        is_better = growth < least_growth or (growth == least_growth and area < smallest)
        if overlap < least or (overlap == least and is_better):
            best = i
            least = overlap
            least_growth = growth
            smallest = area
    return best


@entry("f8[2]")
def largest_box(boxes):
    """Return the box of largest area; ties by largest margin, then the first."""
    work = np.empty(boxes.shape)
    fill_finite(boxes, work)
    best = 0
    for i in range(1, len(boxes)):
        area = area_of(work, i)
        most = area_of(work, best)
        if area > most or (area == most and margin_of(work, i) > margin_of(work, best)):
            best = i
    return best


@entry("f8[2]")
def order_by_distance(boxes):
    """Return the boxes by the distance of their centres from the centre of all, nearest first (R*'s ReInsert)."""
    work = np.empty(boxes.shape)
    fill_finite(boxes, work)
    axes = boxes.shape[1] // 2
    around = np.empty((1, boxes.shape[1]))
    copy_box(work, 0, around, 0)
    for i in range(1, len(boxes)):
        enlarge_box(around, 0, work, i)
    distances = np.zeros(len(boxes))
    for i in range(len(boxes)):
        for axis in range(axes):
            off = work[i, axis] + work[i, axis + axes] - around[0, axis] - around[0, axis + axes]
            distances[i] += off * off
    return np.argsort(distances, kind="mergesort")


@entry("f8[2] i8[1] f8[1] i8[1]!")
def met_owners(boxes, owners, box, found):
    """Write the owners of boxes that meet `box` to `found`, each once; return their number. Owners are adjacent."""
    axes = len(box) // 2
    count = 0
    for i in range(len(boxes)):
        if count > 0 and found[count - 1] == owners[i]:
            continue
        is_met = True
        for axis in range(axes):
            if boxes[i, axis] > box[axis + axes] or box[axis] > boxes[i, axis + axes]:
                is_met = False
                break
        if is_met:
            found[count] = owners[i]
            count += 1
    return count
