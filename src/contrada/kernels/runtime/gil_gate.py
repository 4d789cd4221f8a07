"""Gate before the GIL: a finished kernel waits here while a writer holds the interpreter.

Kernels run without Python's global interpreter lock, and need it back at the end. A thread that finds the lock taken
goes to sleep, and waking it takes several times as long as most queries and updates. So a writer waits until a reader
is inside a long kernel and shuts the gate for the microseconds of an update, while the kernel polls the gate. The wait
is bounded, and the results of kernels do not depend on the gate.
"""

from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from contrada.jit import entry, kernel

RUNNING_PLACE = 8  # place of the number of running long kernels: not in the cache line of the gate, which is place 0
MAX_POLLS = 120_000  # polls of a shut gate: about 100 microseconds
POLLS_AFTER_OPENING = 1_500  # polls after the gate opens, until the writer has released the interpreter


def _load_interpreted(gate, place):
    return gate[place]


def _add_interpreted(gate, amount):
    return None


@intrinsic
def _load(typing_context, gate, place):
    """Load a number that another thread may have written."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(builder.gep(array.data, [arguments[1]]), "acquire", 8)

    return types.int64(gate, types.int64), generate


@intrinsic
def _add(typing_context, gate, amount):
    """Add to the number of long kernels running, atomically; the array may be read-only otherwise."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [cgutils.intp_t(RUNNING_PLACE)])
        builder.atomic_rmw("add", place, arguments[1], "acq_rel")
        return context.get_dummy_value()

    return types.none(gate, types.int64), generate


load, add = (_load_interpreted, _add_interpreted) if config.DISABLE_JIT else (_load, _add)


@kernel
def wait_at(gate):
    """Wait while the gate is shut, for a bounded time."""
    if load(gate, 0) == 0:
        return
    for _ in range(MAX_POLLS):
        if load(gate, 0) == 0:
            break
    for _ in range(POLLS_AFTER_OPENING):
        load(gate, 0)


@kernel
def enter(gate):
    """Tell writers that a kernel is running that takes longer than an update."""
    add(gate, 1)


@kernel
def leave(gate):
    """Wait at the gate, then undo `enter`."""
    wait_at(gate)
    add(gate, -1)


@entry("i8[1]! i8 i8")
def shut_gate(gate, least, most):
    """Shut the gate once a long kernel is running; polls at least `least` and at most `most` times."""
    for k in range(most):
        if load(gate, RUNNING_PLACE) > 0 and k >= least:
            break
    gate[0] = 1
