"""Prefetching: what a loop will need a few steps later is asked for now, so that memory answers while it works.

A table of a million filters is larger than any cache, and the filters that a message reaches lie anywhere in it:
without this most of the time goes into waiting for one of them after another.
"""

from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

AHEAD = 8  # steps


def _interpreted(array, row):
    return None


@intrinsic
def _compiled(typing_context, array, row):
    """Ask for a row of an array; one that is not there does no harm."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        made = context.make_array(kind)(context, builder, arguments[0])
        step = cgutils.unpack_tuple(builder, made.strides, kind.ndim)[0]
        address = builder.add(builder.ptrtoint(made.data, cgutils.intp_t), builder.mul(arguments[1], step))
        pointer = builder.inttoptr(address, cgutils.voidptr_t)
        i32 = cgutils.int32_t
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [cgutils.voidptr_t],
            cgutils.ir.FunctionType(cgutils.ir.VoidType(), [cgutils.voidptr_t, i32, i32, i32]),
        )
        builder.call(function, [pointer, i32(0), i32(3), i32(1)])  # to read, into all caches, data
        return context.get_dummy_value()

    return types.none(array, types.int64), generate


prefetch = _interpreted if config.DISABLE_JIT else _compiled
