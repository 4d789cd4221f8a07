"""Prefetch memory that a loop needs a few steps later, so that it arrives while the loop works.

A table of a million filters is larger than any cache, and a message reaches filters all over it: without prefetching
most of the time is spent waiting for one filter after another.
"""

from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

PREFETCH_STEPS = 8  # steps between a prefetch and its use


def _interpreted(array, row):
    return None


@intrinsic
def _compiled(typing_context, array, row):
    """Prefetch a row of an array; a row beyond the end does no harm."""

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
        builder.call(function, [pointer, i32(0), i32(3), i32(1)])  # for reading, into all caches, data
        return context.get_dummy_value()

    return types.none(array, types.int64), generate


prefetch = _interpreted if config.DISABLE_JIT else _compiled
