"""Locks that survive a fork: the forking thread holds all of them, so no update of another thread is cut in half.

A child process has only the thread that called `os.fork`. A lock that another thread held would stay locked there
forever, and the table behind it half changed. So a fork waits until running updates have ended, takes every lock in the
order in which the code nests them, and releases them in parent and child. Threads that packed tables do not exist in
the child: `after_fork` of their owners is called, and they start again with the next update.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  a fork takes the locks of modules imported later first; see _before
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, overload

# Ranks, outermost first: a thread that holds a lock takes only locks of higher ranks.
OPENING, UPDATING, LEARNING, SAMPLING, BUILDING = range(5)
_locks: tuple[weakref.WeakSet[Any], ...] = tuple(weakref.WeakSet() for _ in range(5))
_owners: weakref.WeakSet[Any] = weakref.WeakSet()
_held: list[Any] = []
_fork = threading.Lock()  # held from `_before` to `_release`: two threads that fork at once take turns


T = TypeVar("T")


class Owner(Protocol):
    """Object with state about threads."""

    def after_fork(self) -> None:
        """Forget the threads of the parent process; called in the child."""


class cached_property(Generic[T]):  # as functools calls it
    """A property that is computed once and kept in the object: that of functools without its lock.

    Up to Python 3.11 that of functools has one lock for all objects of a class. A child that was forked while another
    thread held it waited for ever. Two threads may compute a value at once here, which does no harm: values are equal.

    >>> class Square:
    ...     @cached_property
    ...     def area(self):
    ...         return 4.0
    >>> square = Square()
    >>> square.area, vars(square)
    (4.0, {'area': 4.0})
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._function(instance)
        return value


def make_lock(rank: int) -> Any:
    """Return a reentrant lock that is never held by another thread in a forked child.

    >>> with make_lock(UPDATING):
    ...     pass
    """
    lock = threading.RLock()
    _locks[rank].add(lock)
    return lock


def tell_child(owner: Owner) -> None:
    """Call `after_fork` of `owner` in every child process."""
    _owners.add(owner)


def _members(some: weakref.WeakSet[Any]) -> list[Any]:
    """Return the members of a set to which other threads may add meanwhile."""
    while True:
        try:
            return list(some)
        except RuntimeError:  # the size changed during reading
            continue


def _before() -> None:
    """Take all locks, before the lock of thread pools: a thread that holds one of ours may hand work to a pool."""
    _fork.acquire()
    for rank in _locks:
        for lock in _members(rank):
            lock.acquire()
            _held.append(lock)
    if "contrada.jit" in sys.modules:  # kernels are compiled while any other lock may be held
        lock = sys.modules["contrada.jit"].EntryPoint._lock
        lock.acquire()
        _held.append(lock)


def _release() -> None:
    while _held:
        _held.pop().release()
    _fork.release()


def _in_child() -> None:
    taken = {id(lock) for lock in _held}
    _release()
    for rank in _locks:
        for lock in _members(rank):
            if id(lock) not in taken:  # made by another thread after `_before`
                lock._at_fork_reinit()
    for owner in _members(_owners):
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
