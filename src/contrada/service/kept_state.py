"""KeptState: messages and subscriptions as they are kept; any thread may ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from contrada.service.catalog import FILTER, SEPARATOR, Catalog
from contrada.service.matches import NUMBER_MASK
from contrada.service.store.message_store import MessageStore, Span, StoredMessage
from contrada.service.views import SubscriptionView


class KeptState:
    """Reads a store beside the engine, and tells whose numbers match lists have."""

    def __init__(self, store: MessageStore, catalog: Callable[[], Catalog]) -> None:
        self._store, self._catalog = store, catalog

    def span(self) -> Span:
        """Return which messages are kept."""
        return self._store.span()

    def first_at(self, at: int) -> int:
        """Return the first message that came at a time or later; one past the newest if there is none."""
        return self._store.first_at(at)

    def messages(self, first: int, limit: int) -> Sequence[StoredMessage]:
        """Return up to `limit` messages of all tenants from a sequence number on."""
        return self._store.messages(first, limit)

    def matches(self, tenant: str, first: int, stop: int) -> list[tuple[int, int, bytes]]:
        """Return sequence numbers, times and match lists of the messages of a tenant in a range."""
        return self._store.tenant_matches(tenant, first, stop)

    def keys(self, numbers: Iterable[int]) -> list[str | None]:
        """Return the keys of subscriptions, or of those that had the numbers; None if nobody knows any more."""
        owners = self._catalog().owners
        found = (number & NUMBER_MASK for number in numbers)
        known = (owners[number] if number < len(owners) else None for number in found)
        return [None if owner is None else owner.key for owner in known]

    def subscriptions(self, tenant: str, keys: Iterable[str]) -> list[SubscriptionView]:
        """Return the subscriptions of a tenant that have these keys, as far as they are there."""
        return self._views(tenant, self._store.chosen(FILTER, [tenant + SEPARATOR + key for key in keys]).items())

    def some_subscriptions(self, tenant: str, most: int) -> list[SubscriptionView]:
        """Return at most so many subscriptions of a tenant, from all over its keys."""
        keys = sorted(self._catalog().keys(tenant))
        return self.subscriptions(tenant, keys[:: max(1, -(-len(keys) // most))])

    def all_subscriptions(self, tenant: str, together: int = 1_000) -> Iterator[list[SubscriptionView]]:
        """Yield the subscriptions of a tenant by rising key, some at a time."""
        start = after = tenant + SEPARATOR
        while page := self._store.page(FILTER, start, after, together):
            yield self._views(tenant, page)
            after = page[-1][0]

    def _views(self, tenant: str, filters: Iterable[tuple[str, bytes]]) -> list[SubscriptionView]:
        catalog, found = self._catalog(), list[SubscriptionView]()
        for name, value in filters:
            key = name.partition(SEPARATOR)[2]
            definition = catalog.get(tenant, key)
            if definition is not None:  # those without one were removed meanwhile
                found.append(SubscriptionView(key, definition, msgspec.json.decode(value)))
        return found
