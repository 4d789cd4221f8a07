"""The gate: a kernel that has done its work waits in front of it while a writer holds the interpreter.

Kernels run without Python's global lock, and want it back at the end. A thread that finds it taken goes to sleep, and
to be woken takes several times as long as most questions and updates do. So writers wait until a reader is inside a
long kernel, shut the gate for the microseconds of an update, and the kernel watches it; nobody watches for long, and
what kernels return does not depend on it.
"""

from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from contrada.jit import entry, kernel

INSIDE = 8  # where the number of long kernels at work stands: not in the cache line of the gate, which is place 0
SPINS = 120_000  # looks at a shut gate, at most: about 100 microseconds
AFTERWARDS = 1_500  # further ones, until the writer has let the interpreter go


def _load_interpreted(gate, place):
    return gate[place]


def _add_interpreted(gate, amount):
    return None


@intrinsic
def _load(typing_context, gate, place):
    """What another thread has written to a place of an array."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(builder.gep(array.data, [arguments[1]]), "acquire", 8)

    return types.int64(gate, types.int64), generate


@intrinsic
def _add(typing_context, gate, amount):
    """Add to the number of kernels at work, at once with others; the array may be read-only otherwise."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [cgutils.intp_t(INSIDE)])
        builder.atomic_rmw("add", place, arguments[1], "acq_rel")
        return context.get_dummy_value()

    return types.none(gate, types.int64), generate


load, add = (_load_interpreted, _add_interpreted) if config.DISABLE_JIT else (_load, _add)


@kernel
def wait_at(gate):
    """Wait while the gate is shut, but not for long."""
    if load(gate, 0) == 0:
        return
    for _ in range(SPINS):
        if load(gate, 0) == 0:
            break
    for _ in range(AFTERWARDS):
        load(gate, 0)


@kernel
def enter(gate):
    """Let writers know that a kernel is at work that takes longer than an update."""
    add(gate, 1)


@kernel
def leave(gate):
    """Wait at the gate, after `enter`."""
    wait_at(gate)
    add(gate, -1)


@entry("i8[1]! i8 i8")
def shut_gate(gate, least, most):
    """Shut the gate as soon as a long kernel is at work, after so many looks at least and at most."""
    for k in range(most):
        if load(gate, INSIDE) > 0 and k >= least:
            break
    gate[0] = 1
