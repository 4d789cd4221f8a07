"""Tell a neighbour what changed: forward first, then withdraw."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from contrada.broker.change import LinkChange
from contrada.broker.frames import LinkCommand, Subscribe, Unsubscribe
from contrada.broker.link import Link
from contrada.broker.state import State
from contrada.broker.wire import digest_of
from contrada.model import Predicate


def apply_change(
    state: State,
    link: Link,
    change: LinkChange,
    kind: type[LinkCommand] = Subscribe,
    known: Mapping[int, int] = MappingProxyType({}),
) -> None:
    """Forward and then withdraw; `kind` is the command that forwards. Digests in `known` need not be looked up."""
    for id, predicate in change.forward:
        state.note(True, "forwarded", link.name, id)
        digest = known[id] if id in known else digest_told(state, id, predicate)
        state.command(link, kind, id, predicate, digest)
    for id in change.withdraw:
        state.note(None, "forwarded", link.name, id)
        state.command(link, Unsubscribe, id)


def digest_told(state: State, id: int, predicate: Predicate) -> int:
    """Return the digest of what is told as `id`; those of subscriptions and advertisements are known."""
    if id in state.advertisements:
        return state.advertisements[id].digest
    row = state.entries.row_of(id)
    return digest_of(predicate) if row is None else state.entries[row].digest
