"""Convert tests other than patterns to pieces (intervals) of the ordered values, and back."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from contrada.codes import INTERVAL, NOT, SET
from contrada.model.forms import Bound, Operand, Test
from contrada.model.values import BOOLEAN

# A cut is a position between operands: just below or above an operand, or at either end of all.
Cut = tuple[int] | tuple[int, Operand, int]
Piece = tuple[Cut, Cut]  # the values between two cuts
BEGIN: Cut = (0,)
END: Cut = (2,)


def pieces_of(test: Test) -> list[Piece]:
    """Return the pieces that a test (no pattern) accepts, in order, with gaps between them."""
    low, high = _cut(test.low, 0, BEGIN), _cut(test.high, 1, END)
    pieces = [(low, high)] if low < high else []
    if test.asks & ~NOT == SET:
        pieces = [_point(member) for member in test.members]
    if test.asks & NOT:
        edges = [BEGIN, *(cut for piece in pieces for cut in piece), END]
        pieces = [(low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if low < high]
    if test.form == BOOLEAN:  # there are only two values
        pieces = [_point(value) for value in ((0, 0), (1, 0)) if lie_in([_point(value)], pieces)]
    return pieces


def _point(operand: Operand) -> Piece:
    return (1, operand, 0), (1, operand, 1)


def _cut(bound: Bound | None, closed_above: int, without: Cut) -> Cut:
    """Return where an interval begins (0) or ends (1): a closed one begins below its bound and ends above it."""
    return without if bound is None else (1, bound.operand, closed_above ^ bound.is_open)


def lie_in(inner: list[Piece], outer: list[Piece]) -> bool:
    """Return True if every piece of `inner` lies in a piece of `outer`; both in order."""
    lows = [low for low, _ in outer]
    for low, high in inner:
        k = bisect_right(lows, low) - 1
        if k < 0 or outer[k][1] < high:
            return False
    return True


def intersection(first: list[Piece], second: list[Piece]) -> Iterator[Piece]:
    """Yield the pieces that lie in both, in order; both in order."""
    i = j = 0
    while i < len(first) and j < len(second):
        low, high = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if low < high:
            yield low, high
        if first[i][1] <= second[j][1]:
            i += 1
        else:
            j += 1


def union(pieces: list[Piece]) -> list[Piece]:
    """Return pieces in order; pieces that overlap or touch are joined into one."""
    united: list[Piece] = []
    for low, high in sorted(pieces):
        if united and low <= united[-1][1]:
            united[-1] = united[-1][0], max(united[-1][1], high)
        else:
            united.append((low, high))
    return united


def test_of_pieces(form: int, pieces: list[Piece]) -> Test | None:
    """Return the one test that accepts exactly these pieces; None if no operator can express it.

    That is a closed interval, an interval with one end, a set, or all but a set; an interval with two ends of which one
    is open has no operator.
    """
    members = values_of(pieces)
    if members is not None:
        return _naming(form, members, 0)
    if len(pieces) == 1:
        low, high = _bound(pieces[0][0], 1), _bound(pieces[0][1], 0)
        has_open_side = any(bound is not None and bound.is_open for bound in (low, high))
        if (low is None and high is None) or (low is not None and high is not None and has_open_side):
            return None
        return Test(form, INTERVAL, low, high)
    left_out = values_of(gaps_of(pieces) or [])
    return None if left_out is None else _naming(form, left_out, NOT)


def _naming(form: int, values: list[Operand], negated: int) -> Test:
    """Return the test that accepts these values; all other values if `negated` is NOT."""
    if len(values) > 1:
        return Test(form, SET | negated, members=tuple(values))
    return Test(form, INTERVAL | negated, Bound(values[0], False), Bound(values[0], False))


def gaps_of(pieces: list[Piece]) -> list[Piece] | None:
    """Return the values that the pieces leave out, if they leave out only single values and at least one."""
    gaps = [(before[1], after[0]) for before, after in pairwise(pieces)]
    if len(pieces) < 2 or (pieces[0][0], pieces[-1][1]) != (BEGIN, END) or not all(map(is_point, gaps)):
        return None
    return gaps


def is_point(piece: Piece) -> bool:
    """Return True for a piece that holds one value."""
    low, high = piece
    return len(low) == len(high) == 3 and low[1] == high[1]


def values_of(pieces: list[Piece]) -> list[Operand] | None:
    """Return the values that pieces hold; None if there is no piece, or one that holds more than one value."""
    return [_operand(low) for low, _ in pieces] if pieces and all(map(is_point, pieces)) else None


def _operand(cut: Cut) -> Operand:
    assert len(cut) == 3
    return cut[1]


def _bound(cut: Cut, open_above: int) -> Bound | None:
    """Return the bound of a cut: a low bound is open above its operand, a high bound below it."""
    return None if len(cut) == 1 else Bound(cut[1], cut[2] == open_above)
