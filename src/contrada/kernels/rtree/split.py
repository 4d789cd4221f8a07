"""Split an overfull node: divide its boxes into two groups of at least `minimum`, in three ways.

- quadratic [Guttman 1984]: the seeds are the pair that wastes most area together; then, each time, the box with the
  strongest preference for one group is assigned.
- linear [Guttman 1984]: the seeds are the highest low side and the lowest high side of the axis where these two are
  furthest apart relative to the width of all boxes; then the others in their order.
- R* [Beckmann, Kriegel, Schneider, Seeger 1990]: the axis whose distributions have the least sum of margins, and there
  the distribution of least overlap, then of least area.

Boxes are rows of 2 d numbers, the lows of all axes and then the highs. Every choice is deterministic: the order of the
boxes decides ties. Numbers are multiplied by a power of two so that no product overflows, which changes no decision. An
unbounded side is placed outside all finite sides of its axis, at a distance equal to their extent.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from contrada.codes import LINEAR, QUADRATIC, RSTAR
from contrada.jit import allocating_kernel, entry, kernel

UNASSIGNED = np.uint8(2)


class SplitWork(NamedTuple):
    """Scratch space to split k boxes of d axes."""

    boxes: Any  # (k, 2 d): finite and scaled
    groups: Any  # (2, 2 d): boxes around the two groups
    firsts: Any  # (k, 2 d): box around the first boxes of an order
    lasts: Any  # (k, 2 d): box around the last boxes of an order
    order: Any
    assignment: Any  # the result: 0 or 1 for every box


@allocating_kernel
def make_split_work(count, axes):
    """Allocate scratch space to split `count` boxes of `axes` axes."""
    return SplitWork(
        np.empty((count, 2 * axes)),
        np.empty((2, 2 * axes)),
        np.empty((count, 2 * axes)),
        np.empty((count, 2 * axes)),
        np.empty(count, np.int64),
        np.empty(count, np.uint8),
    )


@kernel
def power_of_two(boxes):
    """Return the factor that makes no finite number greater than 1."""
    most = 0.0
    for i in range(boxes.shape[0]):
        for c in range(boxes.shape[1]):
            if math.isfinite(boxes[i, c]):
                most = max(most, abs(boxes[i, c]))
    _, exponent = math.frexp(most)
    return math.ldexp(1.0, min(-exponent, 1000))


@kernel
def fill_finite(boxes, out):
    """Write the scaled boxes to `out`, with unbounded sides made finite."""
    scale = power_of_two(boxes)
    axes = boxes.shape[1] // 2
    for axis in range(axes):
        low = np.inf
        high = -np.inf
        for i in range(boxes.shape[0]):
            for c in (axis, axis + axes):
                out[i, c] = boxes[i, c] * scale
                if math.isfinite(out[i, c]):
                    low = min(low, out[i, c])
                    high = max(high, out[i, c])
        if low > high:
            low = high = 0.0
        reach = high - low if high > low else 1.0
        for i in range(boxes.shape[0]):
            for c in (axis, axis + axes):
                out[i, c] = min(max(out[i, c], low - reach), high + reach)


@kernel
def area_of(boxes, i):
    """Return the area (volume) of box i."""
    axes = boxes.shape[1] // 2
    area = 1.0
    for axis in range(axes):
        area *= boxes[i, axis + axes] - boxes[i, axis]
    return area


@kernel
def joint_area(a, i, b, j):
    """Return the area of the box around box i of a and box j of b."""
    axes = a.shape[1] // 2
    area = 1.0
    for axis in range(axes):
        area *= max(a[i, axis + axes], b[j, axis + axes]) - min(a[i, axis], b[j, axis])
    return area


@kernel
def common_area(a, i, b, j):
    """Return the area that box i of a and box j of b share."""
    axes = a.shape[1] // 2
    area = 1.0
    for axis in range(axes):
        area *= max(0.0, min(a[i, axis + axes], b[j, axis + axes]) - max(a[i, axis], b[j, axis]))
    return area


@kernel
def margin_of(boxes, i):
    """Return the sum of the sides of box i."""
    axes = boxes.shape[1] // 2
    margin = 0.0
    for axis in range(axes):
        margin += boxes[i, axis + axes] - boxes[i, axis]
    return margin


@kernel
def copy_box(a, i, out, j):
    """Set out[j] = a[i]."""
    for c in range(a.shape[1]):
        out[j, c] = a[i, c]


@kernel
def enlarge_box(out, j, a, i):
    """Enlarge box j of `out` to include box i of a."""
    axes = a.shape[1] // 2
    for axis in range(axes):
        out[j, axis] = min(out[j, axis], a[i, axis])
        out[j, axis + axes] = max(out[j, axis + axes], a[i, axis + axes])


@kernel
def quadratic_seeds(boxes):
    """Return the two boxes that waste most area in one box."""
    first, second = 0, 1
    most = -np.inf
    for i in range(len(boxes)):
        for j in range(i + 1, len(boxes)):
            waste = joint_area(boxes, i, boxes, j) - area_of(boxes, i) - area_of(boxes, j)
            if waste > most:
                most = waste
                first, second = i, j
    return first, second


@kernel
def extremes(boxes, axis):
    """Return the box of the highest low side on an axis, another of the lowest high side, and the width of all."""
    axes = boxes.shape[1] // 2
    highest_low = 0
    low = boxes[0, axis]
    high = boxes[0, axis + axes]
    for i in range(len(boxes)):
        if boxes[i, axis] > boxes[highest_low, axis]:
            highest_low = i
        low = min(low, boxes[i, axis])
        high = max(high, boxes[i, axis + axes])
    lowest_high = 1 if highest_low == 0 else 0
    for i in range(len(boxes)):
        if i != highest_low and boxes[i, axis + axes] < boxes[lowest_high, axis + axes]:
            lowest_high = i
    return highest_low, lowest_high, high - low


@kernel
def linear_seeds(boxes):
    """Return the two boxes furthest apart on some axis, relative to the width of all boxes there."""
    axes = boxes.shape[1] // 2
    first, second = 0, 1
    most = -np.inf
    for axis in range(axes):
        highest_low, lowest_high, width = extremes(boxes, axis)
        if width > 0:
            apart = (boxes[highest_low, axis] - boxes[lowest_high, axis + axes]) / width
            if apart > most:
                most = apart
                first, second = lowest_high, highest_low
    return first, second


@kernel
def enlargement(work, group, i):
    """Return the area that a group gains by box i."""
    return joint_area(work.groups, group, work.boxes, i) - area_of(work.groups, group)


@kernel
def most_decided(work):
    """Return the unassigned box with the strongest preference for one group (PickNext)."""
    chosen = -1
    most = -np.inf
    for i in range(len(work.boxes)):
        if work.assignment[i] == UNASSIGNED:
            preference = abs(enlargement(work, 0, i) - enlargement(work, 1, i))
            if preference > most:
                most = preference
                chosen = i
    return chosen


@kernel
def next_unassigned(work):
    """Return the first box without a group."""
    for i in range(len(work.boxes)):
        if work.assignment[i] == UNASSIGNED:
            return i
    return -1


@kernel
def preferred_group(work, i, size0, size1):
    """Return the group for box i: least enlargement, then smallest area, then fewest boxes, then the first."""
    gain0 = enlargement(work, 0, i)
    gain1 = enlargement(work, 1, i)
    if gain0 != gain1:
        return 0 if gain0 < gain1 else 1
    area0 = area_of(work.groups, 0)
    area1 = area_of(work.groups, 1)
    if area0 != area1:
        return 0 if area0 < area1 else 1
    return 0 if size0 <= size1 else 1


@kernel
def fill_guttman(work, minimum, is_linear):
    """Write Guttman's split of work.boxes, linear or quadratic, to work.assignment."""
    first, second = linear_seeds(work.boxes) if is_linear else quadratic_seeds(work.boxes)
    left = len(work.boxes) - 2
    size0, size1 = 1, 1
    work.assignment[:] = UNASSIGNED
    work.assignment[first] = 0
    work.assignment[second] = 1
    copy_box(work.boxes, first, work.groups, 0)
    copy_box(work.boxes, second, work.groups, 1)
    while left > 0:
        i = next_unassigned(work) if is_linear or min(size0, size1) + left == minimum else most_decided(work)
        if size0 + left == minimum:
            group = 0
        elif size1 + left == minimum:
            group = 1
        else:
            group = preferred_group(work, i, size0, size1)
        work.assignment[i] = group
        enlarge_box(work.groups, group, work.boxes, i)
        if group == 0:
            size0 += 1
        else:
            size1 += 1
        left -= 1


@kernel
def fill_order(boxes, by, then, order):
    """Write the boxes sorted by column `by`, then by column `then`, then by position to `order`."""
    for i in range(len(boxes)):
        at = i
        while at > 0 and (
            boxes[order[at - 1], by] > boxes[i, by]
            or (boxes[order[at - 1], by] == boxes[i, by] and boxes[order[at - 1], then] > boxes[i, then])
        ):
            order[at] = order[at - 1]
            at -= 1
        order[at] = i


@kernel
def fill_distributions(work, axis, is_high):
    """Sort the boxes by a side; firsts[k] is the box around those up to k, lasts[k] around those from k on."""
    axes = work.boxes.shape[1] // 2
    if is_high:
        fill_order(work.boxes, axis + axes, axis, work.order)
    else:
        fill_order(work.boxes, axis, axis + axes, work.order)
    last = len(work.boxes) - 1
    copy_box(work.boxes, work.order[0], work.firsts, 0)
    copy_box(work.boxes, work.order[last], work.lasts, last)
    for k in range(1, last + 1):
        copy_box(work.firsts, k - 1, work.firsts, k)
        enlarge_box(work.firsts, k, work.boxes, work.order[k])
        copy_box(work.lasts, last - k + 1, work.lasts, last - k)
        enlarge_box(work.lasts, last - k, work.boxes, work.order[last - k])


@kernel
def rstar_axis(work, minimum):
    """Return the axis of least margin over all distributions, by low and by high sides (ChooseSplitAxis)."""
    best = 0
    least = np.inf
    for axis in range(work.boxes.shape[1] // 2):
        total = 0.0
        for is_high in (False, True):
            fill_distributions(work, axis, is_high)
            for k in range(minimum, len(work.boxes) - minimum + 1):
                total += margin_of(work.firsts, k - 1) + margin_of(work.lasts, k)
        if total < least:
            least = total
            best = axis
    return best


@kernel
def fill_rstar(work, minimum):
    """Write the R* split of work.boxes to work.assignment."""
    axis = rstar_axis(work, minimum)
    best_high = False
    best = minimum
    least_common = np.inf
    least_area = np.inf
    for is_high in (False, True):
        fill_distributions(work, axis, is_high)
        for k in range(minimum, len(work.boxes) - minimum + 1):
            common = common_area(work.firsts, k - 1, work.lasts, k)
            area = area_of(work.firsts, k - 1) + area_of(work.lasts, k)
            if common < least_common or (common == least_common and area < least_area):
                least_common = common
                least_area = area
                best_high = is_high
                best = k
    fill_distributions(work, axis, best_high)
    for k in range(len(work.boxes)):
        work.assignment[work.order[k]] = 0 if k < best else 1


@kernel
def fill_split(boxes, minimum, method, work):
    """Write the group, 0 or 1, of every box to work.assignment; needs 2 * minimum boxes and minimum >= 1."""
    fill_finite(boxes, work.boxes)
    if method == RSTAR:
        fill_rstar(work, minimum)
    else:
        fill_guttman(work, minimum, method == LINEAR)


@entry("f8[2] i8")
def split_quadratic(boxes, minimum):
    """Return the group, 0 or 1, of every box by Guttman's quadratic split."""
    work = make_split_work(len(boxes), boxes.shape[1] // 2)
    fill_split(boxes, minimum, QUADRATIC, work)
    return work.assignment


@entry("f8[2] i8")
def split_linear(boxes, minimum):
    """Return the group, 0 or 1, of every box by Guttman's linear split."""
    work = make_split_work(len(boxes), boxes.shape[1] // 2)
    fill_split(boxes, minimum, LINEAR, work)
    return work.assignment


@entry("f8[2] i8")
def split_rstar(boxes, minimum):
    """Return the group, 0 or 1, of every box by the R* split."""
    work = make_split_work(len(boxes), boxes.shape[1] // 2)
    fill_split(boxes, minimum, RSTAR, work)
    return work.assignment
