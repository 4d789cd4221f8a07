"""Arrays of tracked objects: their names and types, for kernels and for Python alike."""

from typing import Annotated, Any, NamedTuple


class TrackArrays(NamedTuple):
    """Objects by slot, and blocks of pairs: object o is inside of the subscriptions in a block, by rising number.

    A block of class c has room for 2**c pairs. Free blocks of a class are linked: `numbers[start]` of a free block is
    the start of the next one, or -1.
    """

    newest: Annotated[Any, "i8[1]!"]  # time of the last fix
    seen: Annotated[Any, "i8[1]!"]  # number of the last fix among all; 0 if there is none
    starts: Annotated[Any, "i4[1]!"]  # first place of the block
    counts: Annotated[Any, "i4[1]!"]  # pairs in the block
    classes: Annotated[Any, "u1[1]!"]  # class of the block; NO_BLOCK if the object has none
    numbers: Annotated[Any, "i4[1]!"]  # of subscriptions, by place
    relations: Annotated[Any, "u1[1]!"]  # at the last fix that matched, if the subscription asks for changes
    flags: Annotated[Any, "u1[1]!"]  # DWELT
    entered: Annotated[Any, "i8[1]!"]
    left: Annotated[Any, "i8[1]!"]  # time of the first fix that did not match while the exit waits; NEVER
    free: Annotated[Any, "i8[1]!"]  # first free block of each class, -1 for none
    state: Annotated[Any, "i8[1]!"]  # see contrada.codes


class WatchArrays(NamedTuple):
    """Parameters of watched subscriptions; `places[number]` is the row of a subscription in the others, or -1."""

    places: Annotated[Any, "i4[1]!"]
    kinds: Annotated[Any, "u1[1]!"]  # bits of the kinds of events asked for
    silent: Annotated[Any, "u1[1]!"]  # whether a first fix that matches tells nothing
    dwells: Annotated[Any, "i8[1]!"]  # milliseconds; 0 for none
    exit_afters: Annotated[Any, "i8[1]!"]  # milliseconds; 0 for none
    since: Annotated[Any, "i8[1]!"]  # fixes taken when the subscription came
    inside: Annotated[Any, "i4[1]!"]  # objects that are inside
    removed: Annotated[Any, "u1[1]!"]  # whether the subscription is being removed
    buffers: Annotated[Any, "f8[1]!"]  # distance within which an object stays in; 0 for none
    bounds: Annotated[Any, "f8[2]!"]  # box of the region


class EventArrays(NamedTuple):
    """Room for events, as many as `state[EVENTS]` says."""

    kinds: Annotated[Any, "u1[1]!"]
    reasons: Annotated[Any, "u1[1]!"]
    befores: Annotated[Any, "u1[1]!"]  # relation, or where to take it from
    afters: Annotated[Any, "u1[1]!"]
    numbers: Annotated[Any, "i4[1]!"]
    slots: Annotated[Any, "i4[1]!"]
    places: Annotated[Any, "i8[1]!"]  # of the fix, in the order in which fixes are taken
    times: Annotated[Any, "i8[1]!"]


class ChangeArrays(NamedTuple):
    """Room for changed pairs, as many as `state[CHANGES]` says; empty if nobody asks for deltas."""

    slots: Annotated[Any, "i4[1]!"]
    numbers: Annotated[Any, "i4[1]!"]
    flags: Annotated[Any, "u1[1]!"]  # GONE for a pair that is inside no more
    relations: Annotated[Any, "u1[1]!"]
    entered: Annotated[Any, "i8[1]!"]
    left: Annotated[Any, "i8[1]!"]


class FixArrays(NamedTuple):
    """Fixes in the order in which they are taken: object, row and time; the pairs of each, by rising number.

    The fix at place k matches `numbers[offsets[k]:offsets[k + 1]]`; `near` are subscriptions that it does not match but
    is within the exit buffer of, `crossed` those that the segment from the fix before crosses.
    """

    slots: Annotated[Any, "i4[1]"]
    times: Annotated[Any, "i8[1]"]
    ends: Annotated[Any, "u1[1]"]
    offsets: Annotated[Any, "i8[1]"]
    numbers: Annotated[Any, "i4[1]"]
    relations: Annotated[Any, "u1[1]"]
    near_offsets: Annotated[Any, "i8[1]"]
    near: Annotated[Any, "i4[1]"]
    crossed_offsets: Annotated[Any, "i8[1]"]
    crossed: Annotated[Any, "i4[1]"]
