"""Read arrays by address: many arrays that do not move reach a kernel as one array of numbers.

Receiving an array costs a kernel about 50 nanoseconds per call, so a tree of twenty arrays is passed to per-message
kernels as a table of addresses and lengths. The owner of the table keeps the arrays alive while it is in use. Places
and types come from the table's layout (layout.py), so a kernel cannot take one array for another.
"""

from collections import namedtuple

import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from contrada.kernels.runtime.layout import NUMBER


class _FieldReader:
    """Reads an array or a number, the field `name` of a layout."""

    def __init__(self, layout, name):
        self.at = layout.at(name)
        self.field = layout.fields[name]

    def type(self):
        if self.field.type == NUMBER:
            return types.int64
        scalar = from_dtype(np.dtype(self.field.type))
        return types.Array(scalar, 2 if self.field.columns else 1, "C", readonly=not self.field.is_writable)

    def generate(self, context, builder, numbers):
        """Return the code that reads the field, given a pointer to the numbers of a table."""
        first, second = (builder.load(builder.gep(numbers, [cgutils.intp_t(self.at + k)])) for k in range(2))
        if self.field.type == NUMBER:
            return first
        array = make_array(self.type())(context, builder)
        itemsize = np.dtype(self.field.type).itemsize
        further = [self.field.columns] if self.field.columns else []
        populate_array(
            array,
            data=builder.inttoptr(first, array.data.type),
            shape=[second, *map(cgutils.intp_t, further)],
            strides=[*(cgutils.intp_t(itemsize * size) for size in further), cgutils.intp_t(itemsize)],
            itemsize=cgutils.intp_t(itemsize),
            meminfo=None,
        )
        return array._getvalue()

    def interpret(self, table):
        """Read the field in interpreted code."""
        if self.field.type == NUMBER:
            return table[self.at]
        scalar, columns = np.ctypeslib.as_ctypes_type(self.field.type), self.field.columns
        count = int(table[self.at + 1]) * max(columns, 1)
        flat = np.frombuffer((scalar * count).from_address(int(table[self.at])), scalar, count)
        return flat.reshape(-1, columns) if columns else flat


class _RecordReader:
    """Reads a named tuple, field by field."""

    def __init__(self, layout, record, sources):
        self.record = record
        self.parts = []
        for name in record._fields:
            source = sources.get(name, name)
            is_field = isinstance(source, str)
            self.parts.append(_FieldReader(layout, source) if is_field else _RecordReader(layout, *source))

    def type(self):
        return types.BaseTuple.from_types([part.type() for part in self.parts], self.record)

    def generate(self, context, builder, numbers):
        values = [part.generate(context, builder, numbers) for part in self.parts]
        return context.make_tuple(builder, self.type(), values)

    def interpret(self, table):
        return self.record(*(part.interpret(table) for part in self.parts))


def reader(layout, record, sources=()):
    """Return a kernel that reads a named tuple from a table: each of its fields is the layout's field of that name.

    If `record` is the name of a class, the class is made and has all fields of the layout. `sources` maps fields of the
    named tuple to other names in the layout. A field that is itself a named tuple is mapped to a pair: the class and
    its own sources.
    """
    if isinstance(record, str):
        record = namedtuple(record, layout.fields)
    parts = _RecordReader(layout, record, dict(sources))
    if config.DISABLE_JIT:
        return parts.interpret

    @intrinsic
    def read(typing_context, table):
        def generate(context, builder, signature, arguments):
            return parts.generate(context, builder, make_array(table)(context, builder, arguments[0]).data)

        return parts.type()(table), generate

    return read
