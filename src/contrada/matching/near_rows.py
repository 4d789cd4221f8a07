"""Find the rows of a template that a few messages can satisfy, by bounding boxes, before anything is indexed.

For a one-off join of few messages with many rows most rows are far from all messages: they are checked, but neither
bound nor packed. The other rows become an ordinary table, which decides about the whole filter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.doors import door
from contrada.errors import ContradaError, FilterError
from contrada.formats.message_values import read_message
from contrada.formats.spatial import Spatial
from contrada.formats.tables.subscription_rows import row_faults, rows_without
from contrada.formats.templates import pattern_columns
from contrada.formats.wrapping import column_globes, wrapped_predicate
from contrada.geometry import Circle, Line, Point, Region
from contrada.geometry.arrow.mixed import ValueRows, mixed_on_globe
from contrada.geometry.globe import Globe
from contrada.geometry.line_column import LineArray
from contrada.geometry.metres import NO_PLACE, bad_places, check_degrees, strips_grown_by_metres
from contrada.halving import in_halves
from contrada.index.items import boxes_of
from contrada.index.near import grown_boxes
from contrada.matching.batch_reading import as_table, is_arrow
from contrada.matching.template import distances_of, sifted_distances
from contrada.matching.template_scalars import bind_scalar
from contrada.model import Column, Constraint, Predicate
from contrada.model.reach import DistanceOperator

SAMPLE_ROWS = 2048  # if more than half of so many rows are near messages, all rows count as near
MAX_EDGES = 512  # per axis: with more messages cells are larger and more rows than necessary count as near


def can_prune(template: Predicate) -> bool:
    """Return True if every filter of a template has a region or point that a message must meet.

    >>> from contrada.cql2 import parse
    >>> can_prune(parse("S_INTERSECTS(area, $geometry) AND size > 3")), can_prune(parse("S_DISJOINT(area, $geometry)"))
    (True, False)
    """
    constraints = [constraint for part in template for constraint in part]
    has_types = any(one.kind is not None and isinstance(one.operator, str) for one in constraints)
    return not has_types and all(any(one.is_local for one in part) for part in template)


class CoveredCells:
    """The area that boxes cover, on a grid whose lines are sides of boxes; the lines are cells of their own.

    >>> covered = CoveredCells(np.array([[0.0, 0.0, 1.0, 1.0], [5.0, 5.0, 6.0, 6.0]]))
    >>> covered.meet(np.array([[1.0, 1.0, 2.0, 2.0], [2.0, 2.0, 4.0, 4.0], [2.0, 5.0, 9.0, 5.0]])).tolist()
    [True, False, True]
    """

    def __init__(self, boxes: NDArray[np.float64], max_edges: int = MAX_EDGES) -> None:
        self._edges = [_grid_lines(boxes[:, axis::2], max_edges) for axis in (0, 1)]
        left, bottom, right, top = self._cells(boxes)
        changes = np.zeros([2 * len(edges) + 2 for edges in self._edges], np.int32)
        for x, y, change in ((left, bottom, 1), (right, bottom, -1), (left, top, -1), (right, top, 1)):
            np.add.at(changes, (x, y), change)
        np.cumsum(changes, axis=0, out=changes)
        is_covered = np.cumsum(changes, axis=1, out=changes) > 0
        # Number of covered cells to the left of and below each cell.
        self._before = np.zeros([size + 1 for size in is_covered.shape], np.int32)
        inner = self._before[1:, 1:]
        np.cumsum(np.cumsum(is_covered, axis=0, dtype=np.int32), axis=1, out=inner)

    def _cells(self, boxes: NDArray[np.float64]) -> list[NDArray[np.int64]]:
        """Return the first column and row of cells of each box, and the ends of its columns and rows."""
        first = [_places(boxes[:, axis], edges) for axis, edges in enumerate(self._edges)]
        last = [_places(boxes[:, 2 + axis], edges) for axis, edges in enumerate(self._edges)]
        return [*first, last[0] + 1, last[1] + 1]

    def meet(self, boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which of other boxes may meet one of the boxes; every box that does is among them."""
        left, bottom, right, top = self._cells(boxes)
        before = self._before
        counts = before[right, top] - before[left, top] - before[right, bottom] + before[left, bottom]
        return np.asarray(counts > 0)


def _places(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the cells of coordinates on one axis: edge k is the cell 2 * k + 1, and 2 * k lies before it."""
    places = np.searchsorted(edges, values)
    is_on_edge = edges[np.minimum(places, len(edges) - 1)] == values
    return np.asarray(2 * places + is_on_edge, np.int64)


def _grid_lines(sides: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    lines = np.unique(sides)
    return lines if len(lines) <= most else lines[np.linspace(0, len(lines) - 1, most).astype(np.int64)]


class MessageBoxes:
    """Where the regions and points of messages lie, by attribute."""

    def __init__(self, boxes: Mapping[str, NDArray[np.float64]]) -> None:
        self._covered = {name: CoveredCells(own) for name, own in boxes.items() if len(own)}

    @classmethod
    def of_table(
        cls, messages: Any, attributes: Collection[str], globes: Mapping[str, Globe] = MappingProxyType({})
    ) -> MessageBoxes:
        """Return the boxes of some attributes of an Arrow table of messages; bad values have none."""
        return cls.of_batches([messages], attributes, globes)

    @classmethod
    def of_batches(
        cls, batches: Iterable[Any], attributes: Collection[str], globes: Mapping[str, Globe] = MappingProxyType({})
    ) -> MessageBoxes:
        """Return the boxes of some attributes of lists and Arrow tables of messages; bad messages have none.

        `globes` says by attribute how regions and points are wrapped.
        """
        found: dict[str, list[NDArray[np.float64]]] = {name: [] for name in attributes}
        spatial = Spatial(globes=globes)
        for batch in batches:
            boxes_by_name = _table_boxes if is_arrow(batch) else _list_boxes
            own = boxes_by_name(batch, attributes, spatial)
            for name, boxes in own:
                found[name].append(boxes)
        return cls({name: _joined(boxes) for name, boxes in found.items()})

    def meet(self, attribute: str, boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which boxes may meet the region or point that a message has at an attribute."""
        covered = self._covered.get(attribute)
        return np.zeros(len(boxes), bool) if covered is None else covered.meet(boxes)


def _table_boxes(
    messages: Any, attributes: Collection[str], spatial: Spatial
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    table = as_table(messages, attributes)
    for name in table.column_names:
        if name in attributes:
            mixed = mixed_on_globe(table.column(name), spatial.globes.get(name), circles=True)
            yield name, _joined(boxes_of(part.column) for part in mixed.with_circles)


def _list_boxes(
    messages: Any, attributes: Collection[str], spatial: Spatial
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    for message in messages:
        with suppress(ContradaError):  # a bad message matches nothing
            values = read_message(message, attributes.__contains__, spatial)
            for name in attributes:
                if isinstance(value := values.get(name), Region | Point | Circle | Line):
                    yield name, boxes_of(value._column)


def _joined(boxes: Any) -> NDArray[np.float64]:
    return np.concatenate([*boxes, np.empty((0, 4))])


class SiftedRows(NamedTuple):
    """The rows of a template, sifted: why some are bad, the good ones, and those to match: at least all near a message.

    `kinds` are the kinds of geometry of each column, such as "RegionArray in EPSG:4326", which decide together with
    other rows who is good; so do numbers of more than 103 bits (`has_long`).
    """

    reasons: dict[int, str]
    good: NDArray[np.int64]
    near: NDArray[np.int64]
    kinds: dict[str, list[str]]
    has_long: bool
    read: dict[str, list[ValueRows]]  # regions and points of geometry columns


def sift_rows(
    rows: Any,
    template: Predicate,
    messages: MessageBoxes,
    errors: tuple[type[Exception], ...] = (ContradaError,),
    globes: Mapping[str, Globe] = MappingProxyType({}),
) -> SiftedRows:
    """Check rows for a template, and find the good ones that may lie near a message.

    `rows` are those of `asked_columns`. Reasons are those of `TableBuilder`; without `errors`, a scalar that cannot be
    compared raises, as in `subscribe_many`. `globes` says by attribute how regions and points are wrapped. Raises
    CrsError if a column has several coordinate reference systems, and FilterError if a column of regions or points is
    of another type.
    """
    read: dict[str, list[ValueRows]] = {}
    template, wrapped = wrapped_predicate(template, globes), column_globes(template, globes)
    reasons = row_faults(rows, {}, pattern_columns(template), read, wrapped)
    for column in (one.value for part in template for one in part if one.is_local):
        if isinstance(column, Column) and column.name not in read:
            raise FilterError(f"column {column.name!r} has no regions or points")
    for name, place in _far_places(template, read):
        reasons.setdefault(place, f"column {name!r}: {NO_PLACE}")
    good = rows_without(rows.num_rows, reasons)
    has_long = False
    nearby = [one.operator for part in template for one in part if isinstance(one.operator, DistanceOperator)]
    for operator in nearby:
        _, bad = sifted_distances(operator, rows.take(good))
        reasons |= {int(good[place]): reason for place, reason in bad.items()}
        good = rows_without(rows.num_rows, reasons)
    scalars = [one for part in template for one in part if one.kind is None]
    if any(constraint.columns for constraint in scalars):
        some = rows.take(good) if reasons else rows
        for part in in_halves(
            len(good), lambda start, stop: _check_scalars(scalars, some.slice(start, stop - start)), errors
        ):
            if part.error is not None:
                reasons[int(good[part.start])] = str(part.error)
            has_long |= bool(part.result)
        good = rows_without(rows.num_rows, reasons)
    kinds = {name: sorted(map(_kind, parts)) for name, parts in read.items()}
    boxes = {name: _boxes_by_row(parts, rows.num_rows) for name, parts in read.items()}
    for operator in nearby:
        if isinstance(operator.distance, Column):
            own = np.full(rows.num_rows, np.nan)
            own[good] = distances_of(operator, rows.take(good))
            boxes[f"distance {operator.distance.name}"] = own
    near = _near_rows(good, template, messages, boxes)
    return SiftedRows(reasons, good, near, kinds, has_long, read)


def _far_places(template: Predicate, read: Mapping[str, list[ValueRows]]) -> Iterator[tuple[str, int]]:
    """Yield the columns and rows of shapes that have no distance in metres; raise CrsError for a wrong CRS."""
    for constraint in (one for part in template for one in part):
        operator, value = constraint.operator, constraint.value
        if isinstance(operator, DistanceOperator) and operator.unit is not None and isinstance(value, Column):
            for part in read.get(value.name, ()):
                if isinstance(part.column, LineArray):
                    continue  # lines have no distance in metres, which binding says
                check_degrees(part.column.crs)
                for row in part.rows[bad_places(part.column)].tolist():
                    yield value.name, row


def _near_rows(
    good: NDArray[np.int64], template: Predicate, messages: MessageBoxes, boxes: Mapping[str, NDArray[np.float64]]
) -> NDArray[np.int64]:
    """Return the rows near a message, or all of them where finding and copying these would take longer."""
    sample = good[:: max(1, len(good) // SAMPLE_ROWS)]
    if 2 * np.count_nonzero(_are_near(sample, template, messages, boxes)) > len(sample):
        return good
    return good[_are_near(good, template, messages, boxes)]


def _are_near(
    rows: NDArray[np.int64], template: Predicate, messages: MessageBoxes, boxes: Mapping[str, NDArray[np.float64]]
) -> NDArray[np.bool_]:
    own = {name: some[rows] for name, some in boxes.items()}
    are_near = np.zeros(len(rows), bool)
    for filter in template:
        meets = np.ones(len(rows), bool)
        for constraint in filter:
            if constraint.is_local:
                meets &= messages.meet(constraint.attribute, _boxes(constraint, own))
        are_near |= meets
    return are_near


@door(FilterError)
def _check_scalars(constraints: list[Constraint], rows: Any) -> bool:
    """Bind scalar constraints, which raises for a bad row; return whether there are numbers of more than 103 bits."""
    long: list[Constraint] = []
    for constraint in constraints:
        bind_scalar(constraint, rows, long)
    return bool(long)


def _kind(part: ValueRows) -> str:
    kind = type(part.column).__name__
    return kind if part.column.crs is None else f"{kind} in {part.column.crs}"


def _boxes_by_row(parts: list[ValueRows], count: int) -> NDArray[np.float64]:
    boxes = np.full((count, 4), np.nan)
    for part in parts:
        boxes[part.rows] = boxes_of(part.column)
    return boxes


def _boxes(constraint: Constraint, columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the box of a constraint's value, grown by its distance, for every row, or one box for all rows."""
    value, operator = constraint.value, constraint.operator
    boxes = columns[value.name] if isinstance(value, Column) else boxes_of(value._column)
    if not isinstance(operator, DistanceOperator):
        return boxes
    distance = operator.distance
    by = columns[f"distance {distance.name}"] if isinstance(distance, Column) else np.full(1, distance)
    grown = grown_boxes if operator.unit is None else strips_grown_by_metres
    return grown(*(np.broadcast_to(part, (max(len(boxes), len(by)), *part.shape[1:])) for part in (boxes, by)))
