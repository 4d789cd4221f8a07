"""Which brokers are behind which neighbour. A link that would close a cycle is refused, with the path in the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contrada.broker.frames import Path, Reach, Unreach
from contrada.broker.link import Link
from contrada.broker.state import State


def paths_behind(state: State, link: Link) -> tuple[Path, ...]:
    """Return the ways from this broker to all brokers that a neighbour reaches through it, itself first."""
    others = (other for other in state.links.values() if other is not link)
    return ((state.id,), *((state.id, *path) for other in others for path in other.paths.values()))


def cycle_through(state: State, link: Link, paths: Sequence[Path]) -> tuple[Link, str] | None:
    """Return the cycle that arises if a neighbour reaches brokers by `paths`: the link to give up, and the reason.

    Of two links on the cycle the later one is given up; None if there is no cycle.
    """
    for path in paths:
        if path[-1] == state.id:  # found before all others: this broker must not learn a path to itself
            return link, _reason(state.id, (*path[:-1], state.id))
    for path in paths:
        for other in state.links.values():
            if other is not link and path[-1] in other.paths:
                back = tuple(reversed(other.paths[path[-1]]))[1:]
                later = link if link.interface > other.interface else other
                return later, _reason(state.id, (*path, *back, state.id))
    return None


def _reason(start: str, rest: Path) -> str:
    return f"the link would close a cycle: {' - '.join((start, *rest))}"


def learn_paths(state: State, link: Link, paths: Iterable[Path]) -> None:
    """Note brokers behind a neighbour, and tell the others."""
    new = [path for path in paths if link.paths.get(path[-1]) != path]
    if not new:
        return
    link.paths.update((path[-1], path) for path in new)
    _note(state, link)
    for other in state.links.values():
        if other is not link:
            state.command(other, Reach, tuple((state.id, *path) for path in new))


def forget_paths(state: State, link: Link, brokers: Iterable[str]) -> None:
    """Forget brokers behind a neighbour, and tell the others."""
    gone = tuple(broker for broker in brokers if link.paths.pop(broker, None) is not None)
    if not gone:
        return
    _note(state, link)
    for other in state.links.values():
        if other is not link:
            state.command(other, Unreach, gone)


def _note(state: State, link: Link) -> None:
    state.note(tuple(link.paths.values()), "paths", link.name)
