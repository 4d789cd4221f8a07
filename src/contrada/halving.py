"""Find the bad rows of a batch that fails as a whole: halve the batch until each bad row is alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class BatchPart(NamedTuple, Generic[T]):
    """Rows `start` to `stop` of a batch with the result of the work on them, or one row with the error of the work."""

    start: int
    stop: int
    result: T | None
    error: BaseException | None


def in_halves(
    count: int,
    work: Callable[[int, int], T],
    errors: tuple[type[BaseException], ...] | type[Exception],
    fatal: tuple[type[Exception], ...] = (),
) -> Iterator[BatchPart[T]]:
    """Yield the results of `work(start, stop)` for parts that make up rows 0 to `count`, in order.

    The first part is the whole batch. Where `work` raises one of `errors`, the part is halved; a single row that fails
    is yielded with its error. Errors in `fatal` are raised: the machine caused them, not a row.

    >>> def total(start, stop):
    ...     return sum(1 / number for number in [1, 2, 0, 4][start:stop])
    >>> [(part.start, part.stop, part.result, part.error is not None) for part in in_halves(4, total, ArithmeticError)]
    [(0, 2, 1.5, False), (2, 3, None, True), (3, 4, 0.25, False)]
    """
    waiting = [(0, count)] if count else []
    while waiting:
        start, stop = waiting.pop()
        try:
            made = work(start, stop)
        except fatal:
            raise
        except errors as error:
            if stop - start == 1:
                yield BatchPart(start, stop, None, error)
                continue
            middle = (start + stop) // 2
            waiting += [(middle, stop), (start, middle)]
        else:
            yield BatchPart(start, stop, made, None)
