"""Read batches of messages, from lists of mappings or Arrow tables with one column per attribute, into columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from contrada.errors import ContradaError, CrsError, FormatError
from contrada.formats.tables.rows import attributes_of, table_of, values_of
from contrada.geometry import Circle, Line, Point, Region, Rejection
from contrada.geometry.arrow.mixed import (
    SpatialRows,
    is_null,
    is_spatial,
    mixed_on_globe,
)
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.faults import FaultCode
from contrada.geometry.globe import Globe
from contrada.geometry.line_relating import AnyValue
from contrada.matching.batch import Batch, Integers, SpatialColumn, spatial_of_objects
from contrada.matching.column_encoding import ColumnEncoder
from contrada.matching.encoding import MessageEncoder
from contrada.matching.store.level import Slot
from contrada.model.types import has_types, types_accepting

CRS_ERROR_PREFIX = "subscriptions and message"  # start of the error for a CRS that differs
Checked = tuple[Mapping[str, Any], Mapping[Slot, Any]]  # a message, and its regions, points and added types by slot
Reader = Callable[[Any], Checked]
Read = tuple[Batch, list[Rejection]]


def batch_of_list(messages: Any, read: Reader, encoder: MessageEncoder, main: str | None = None) -> Read:
    """Return the good messages of a list, and the rejections; `read` checks a message.

    The batch is ordered by the regions and points of attribute `main`.
    """
    if isinstance(messages, Mapping | str | bytes) or not isinstance(messages, Iterable):
        hint = "; for one message use match" if isinstance(messages, Mapping) else ""
        raise FormatError(f"match_many: need a list of messages or an Arrow table, got {type(messages).__name__}{hint}")
    rows: list[int] = []
    good: list[Mapping[str, Any]] = []
    bad: list[Rejection] = []
    spatial: dict[str, dict[int, AnyValue]] = defaultdict(dict)
    custom: dict[Slot, dict[int, Any]] = defaultdict(dict)
    for row, message in enumerate(messages):
        try:
            plain, objects = read(message)
        except ContradaError as error:
            bad.append(Rejection(row, str(error), FaultCode.VALUE))
            continue
        for slot, value in objects.items():
            if isinstance(value, Region | Point | Circle | Line):
                spatial[slot[0]][len(rows)] = value
            else:
                custom[slot][row] = value
        rows.append(row)
        good.append(plain)
    columns = {name: spatial_of_objects(values, len(rows)) for name, values in spatial.items()}
    order = _order(columns, main, len(rows))
    columns = {name: column.chosen(order) for name, column in columns.items()}
    scalars = encoder.encode(map(good.__getitem__, order.tolist())) if encoder.asked else None
    return Batch(np.array(rows, np.int64)[order], columns, custom, scalars), bad


def _order(spatial: Mapping[str, SpatialColumn], main: str | None, size: int) -> Integers:
    """Return messages 0 to `size` in the order for a batch."""
    column = None if main is None else spatial.get(main)
    return np.arange(size) if column is None else column.order()


def batch_of_table(
    table: Any,
    crs: Mapping[str, Crs | None],
    encoder: MessageEncoder,
    main: str | None = None,
    globes: Mapping[str, Globe] = MappingProxyType({}),
) -> Read:
    """Return the good rows of a table, column by column, and the rejections sorted by row.

    The table has one column per attribute. `crs` are the systems of the attributes that subscriptions ask for regions
    and points of, `globes` how the values of attributes are wrapped. The batch is ordered by the regions and points of
    attribute `main`.
    """
    size = table.num_rows
    encoded = ColumnEncoder(encoder, size)
    bad: dict[int, Rejection] = {}
    spatial: dict[str, SpatialColumn] = {}
    custom: dict[Slot, dict[int, Any]] = {}
    for name in table.column_names:
        if name not in crs and name not in encoder.asked:
            continue  # nobody asks, so it is not read, and cannot be bad
        column = table.column(name)
        if is_spatial(column):
            parts, rejected = checked_column(table, name, crs.get(name), globes.get(name))
            spatial[name] = SpatialColumn.of_parts(parts, size)
            if name in encoded.presences:
                encoded.add_presence(name, spatial[name].presence)
        else:
            rejected = encoded.add(name, column)
            if has_types():
                custom |= _custom_values(name, column)
        for item in rejected:
            bad.setdefault(item.row, item)
    rows = _order(spatial, main, size)
    if bad:  # one bad attribute rejects the whole message
        rows = rows[~np.isin(rows, list(bad))]
    spatial = {name: column.chosen(rows) for name, column in spatial.items()}
    batch = Batch(rows, spatial, custom, encoded.encoded(rows) if encoder.asked else None)
    return batch, [bad[row] for row in sorted(bad)]


def _custom_values(name: str, column: Any) -> dict[Slot, dict[int, Any]]:
    """Return the values of a column that added types accept, by slot and row."""
    found: dict[Slot, dict[int, Any]] = defaultdict(dict)
    for row, value in enumerate(values_of(column)):
        if value is not None and not isinstance(value, Rejection):
            for kind in types_accepting(value):
                found[name, kind][row] = value
    return found


def is_arrow(messages: Any) -> bool:
    """Return True if `messages` has an Arrow interface: a table, record batch or data frame."""
    return hasattr(messages, "__arrow_c_stream__") or hasattr(messages, "__arrow_c_array__")


def as_table(messages: Any, asked: Collection[str]) -> Any:
    """Return `messages`, which has an Arrow interface, as an Arrow table with one column per attribute."""
    return attributes_of(table_of(messages), asked)


def checked_column(
    table: Any, name: str, crs: Crs | None, globe: Globe | None = None, circles: bool = True
) -> tuple[list[SpatialRows], list[Rejection]]:
    """Return the values of geometry column `name` in the CRS `crs`, and the rejections; nulls are not rejected.

    `globe` says how the values are wrapped.
    """
    mixed = mixed_on_globe(table.column(name), globe, circles=circles)
    good: list[SpatialRows] = []
    bad = [item for item in mixed.rejected if not is_null(item)]
    for part in mixed.with_circles:
        try:
            common_crs(crs, part.column.crs)
            good.append(part)
        except CrsError as error:
            bad += [Rejection(row, f"{CRS_ERROR_PREFIX}: {error}", FaultCode.OTHER_CRS) for row in part.rows.tolist()]
    return good, [item._replace(reason=f"attribute {name!r}: {item.reason}") for item in bad]
