"""Tuning: the sizes at which a table changes how it stores and matches subscriptions."""

from __future__ import annotations

from typing import NamedTuple


class Tuning(NamedTuple):
    """Sizes that decide how fast a table is; answers do not depend on them.

    >>> from contrada import ForwardingTable
    >>> table = ForwardingTable(tuning=Tuning(buffer_filters=16))
    """

    buffer_filters: int = 1024  # in the buffer before it is packed
    small_filters: int = 8192  # in the small level before it is packed
    buffer_capacity: int = 256  # constraints that fit before an array of the buffer is reallocated
    buffer_vertices_per_region: int = 12  # most regions have fewer vertices
    min_column_names: int = 1024  # shorter columns are stored name by name
    shortcut_min_filters: int = 1024  # of the base level; smaller tables are matched directly
    shortcut_min_filters_per_subscriber: int = 32  # on average
    shortcut_learn_from_messages: int = 64  # before filters are chosen
    shortcut_refresh_after_messages: int = 64  # since the last update
    relearn_after_messages: int = 2048  # then after 4,096, 8,192, ...: compare what messages reach with the estimate


DEFAULT_TUNING = Tuning()
