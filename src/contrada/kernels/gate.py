"""The gate: a kernel that has done its work waits in front of it while a writer holds the interpreter.

Kernels run without Python's global lock, and want it back at the end. A thread that finds it taken goes to sleep, and
to be woken takes several times as long as most questions and updates do. So writers shut the gate for the microseconds
of an update, and kernels watch it; they never watch for long, and what they return does not depend on it.
"""

from numba import config, types
from numba.extending import intrinsic

from contrada.jit import kernel

SPINS = 60_000  # looks at a shut gate, at most: about 50 microseconds
AFTERWARDS = 1_500  # further ones, until the writer has let the interpreter go


def _interpreted(gate):
    return gate[0]


@intrinsic
def _loaded(typing_context, gate):
    """What another thread has written to the first number of an array."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(array.data, "acquire", 8)

    return types.int64(gate), generate


load = _interpreted if config.DISABLE_JIT else _loaded


@kernel
def wait_at(gate):
    """Wait while the gate is shut, but not for long."""
    if load(gate) == 0:
        return
    for _ in range(SPINS):
        if load(gate) == 0:
            break
    for _ in range(AFTERWARDS):
        load(gate)
