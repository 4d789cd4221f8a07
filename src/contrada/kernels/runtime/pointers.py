"""Pass arrays by address: many arrays that do not move reach a kernel as one array of numbers.

Receiving an array costs a kernel about 50 nanoseconds per call, so a tree of twenty arrays is passed to per-message
kernels as a table of addresses and lengths. The owner of the table keeps the arrays alive while it is in use.
"""

import ctypes

import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

C_TYPES = {
    "f8": ctypes.c_double,
    "i8": ctypes.c_int64,
    "u8": ctypes.c_uint64,
    "i4": ctypes.c_int32,
    "u1": ctypes.c_uint8,
}
NUMBA_TYPES = {"f8": types.float64, "i8": types.int64, "u8": types.uint64, "i4": types.int32, "u1": types.uint8}


def _interpreted(name, columns):
    """Return a viewer for interpreted code."""

    def view(address, rows):
        count = int(rows) * max(columns, 1)
        flat = np.frombuffer((C_TYPES[name] * count).from_address(int(address)), C_TYPES[name], count)
        return flat.reshape(-1, columns) if columns else flat

    return view


def _viewer(name, columns=0, readonly=True):
    """Return a function from an address and a number of rows to the array there: `columns` columns, or flat if 0."""
    if config.DISABLE_JIT:
        return _interpreted(name, columns)
    scalar = NUMBA_TYPES[name]
    kind = types.Array(scalar, 2 if columns else 1, "C", readonly=readonly)

    @intrinsic
    def view(typing_context, address, rows):
        def generate(context, builder, signature, arguments):
            array = make_array(kind)(context, builder)
            itemsize = context.get_abi_sizeof(context.get_data_type(scalar))
            further = [columns] if columns else []
            strides = [itemsize * columns, itemsize] if columns else [itemsize]
            populate_array(
                array,
                data=builder.inttoptr(arguments[0], array.data.type),
                shape=[arguments[1], *(cgutils.intp_t(size) for size in further)],
                strides=[cgutils.intp_t(step) for step in strides],
                itemsize=cgutils.intp_t(itemsize),
                meminfo=None,
            )
            return array._getvalue()

        return kind(types.int64, types.int64), generate

    return view


vertices_at = _viewer("f8", 2)
boxes_at = _viewer("f8", 4)
chains_at = _viewer("f8", 4, readonly=False)  # kernels take edge indexes as writable arrays
records_at = _viewer("i4", 3)
blocks_at = _viewer("i4", 4)
entries_at = _viewer("u8", 2)
longs_at = _viewer("i8")
counters_at = _viewer("i8", readonly=False)
places_at = _viewer("i8", 2)
tree_nodes_at = _viewer("f8", 12, readonly=False)  # writable in kernels/relate/edge_tree.py
ints_at = _viewer("i4")
bytes_at = _viewer("u1")
