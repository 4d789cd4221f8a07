"""LiveMap: what the open maps of one server share: watchers, indexes of tiles, and messages as JSON."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from contrada.service.catalog import FILTER, SEPARATOR, SUBSCRIPTION, Catalog
from contrada.service.kept_state import KeptState
from contrada.service.map.extents import Extent, extent_of
from contrada.service.map.filter_shapes import FilterShapeReader
from contrada.service.map.map_settings import MapSettings
from contrada.service.map.message_views import message_view
from contrada.service.map.subscription_views import subscription_view
from contrada.service.map.tile_index import TileIndex
from contrada.service.map.viewers import Viewer
from contrada.service.map.watching import DEFAULT_LIMITS, Watcher, WatchLimits
from contrada.service.service import Service
from contrada.service.store.message_store import StoreChange, StoredMessage

KEPT_TEXTS, KEPT_TEXT_BYTES = 4_000, 100_000  # of messages that several watchers are told, and of the longest of them
THREAD_BYTES = 256 << 10  # of messages, above which their texts are made in a thread
EXTENT_SECONDS = 10.0  # for which an extent is not measured again
UNUSED_SECONDS = 600.0  # after which an index that nobody asks is forgotten

_encode = msgspec.json.Encoder().encode


class LiveMap:
    """Watchers and indexes by tenant. Without any, it does not watch the service, so publishing costs nothing more."""

    def __init__(self, settings: MapSettings, limits: WatchLimits = DEFAULT_LIMITS) -> None:
        self.settings, self._limits = settings, limits
        self.reader = FilterShapeReader()
        self._service: Service | None = None
        self._watchers: dict[str, list[Watcher]] = {}
        self._indexes: dict[str, TileIndex] = {}
        self._texts: OrderedDict[tuple[int, Viewer], bytes] = OrderedDict()
        self._extents: dict[str, tuple[float, Extent]] = {}

    def start(self, service: Service) -> None:
        """Show the subscriptions and messages of this service."""
        self._service = service

    @property
    def service(self) -> Service:
        """The service."""
        assert self._service is not None
        return self._service

    @property
    def kept(self) -> KeptState:
        """The stored messages and subscriptions."""
        return self.service.kept

    @property
    def watching(self) -> int:
        """The number of open maps."""
        return sum(map(len, self._watchers.values()))

    @contextmanager
    def watch(self, viewer: Viewer) -> Iterator[Watcher]:
        """Yield a watcher that gets all messages and changes of the tenant until the block ends."""
        watcher = Watcher(viewer, self._limits)
        self._watchers.setdefault(viewer.tenant, []).append(watcher)
        self._look_or_not()
        try:
            yield watcher
        finally:
            own = self._watchers[viewer.tenant]
            own.remove(watcher)
            if not own:
                del self._watchers[viewer.tenant]
            if not self._watchers:
                self._texts.clear()
            self._look_or_not()

    def _look_or_not(self) -> None:
        is_needed = bool(self._watchers or self._indexes)
        self.service.watch_changes(self._look if is_needed else None)

    def _look(self, change: StoreChange, catalog: Catalog) -> None:
        """Pass a change to watchers and indexes."""
        changed = _changed_keys(change)
        for tenant, watchers in self._watchers.items():
            messages = [one for one in change.messages if one.tenant == tenant]
            keys = changed.get(tenant, ())
            if messages or keys:
                for watcher in watchers:
                    watcher.offer(messages, keys)
        if self._indexes:
            self._note_changed(changed)

    def _note_changed(self, changed: dict[str, list[str]]) -> None:
        late = time.monotonic() - UNUSED_SECONDS
        for tenant, index in list(self._indexes.items()):
            if index.used < late:
                del self._indexes[tenant]
            elif tenant in changed:
                index.note_changed(changed[tenant])
        if not self._indexes:
            self._look_or_not()

    # --- texts, shared by watchers that see the same ---

    async def message_texts(self, messages: Sequence[StoredMessage], viewer: Viewer) -> list[bytes]:
        """Return messages as JSON; long ones are made in a thread."""
        if sum(len(one.body) for one in messages) > THREAD_BYTES:
            return await asyncio.to_thread(lambda: [self._made_text(one, viewer) for one in messages])
        return [self._message_text(one, viewer) for one in messages]

    def _made_text(self, message: StoredMessage, viewer: Viewer) -> bytes:
        return _encode(message_view(message, self.kept.keys, viewer))

    def _message_text(self, message: StoredMessage, viewer: Viewer) -> bytes:
        """Return a message as JSON."""
        name = (message.sequence, viewer)
        found = self._texts.get(name)
        if found is None:
            found = self._made_text(message, viewer)
            if len(found) <= KEPT_TEXT_BYTES and len(self._watchers.get(viewer.tenant, ())) > 1:
                self._texts[name] = found
                while len(self._texts) > KEPT_TEXTS:
                    self._texts.popitem(last=False)
        return found

    def changed_texts(self, keys: Sequence[str], viewer: Viewer) -> list[bytes]:
        """Return changed subscriptions as JSON, as they are stored now; a key without one was deleted."""
        found = {one.key: one for one in self.kept.subscriptions(viewer.tenant, keys)}
        texts = []
        for key in keys:
            view = found.get(key)
            shown = None if view is None else subscription_view(view, self.reader, viewer)
            change = "deleted" if shown is None else "put"
            texts.append(_encode({"change": change, "key": key, "subscription": shown}))
        return texts

    # --- what is made once for all viewers of a tenant ---

    def index(self, tenant: str) -> TileIndex:
        """Return the index of the subscriptions of a tenant, which follows changes from now on."""
        index = self._indexes.get(tenant)
        if index is None:
            index = self._indexes[tenant] = TileIndex(tenant, lambda: self.kept, self.reader)
            self._look_or_not()
        index.used = time.monotonic()
        return index

    def extent(self, tenant: str) -> Extent:
        """Return the extent of the subscriptions and latest messages of a tenant; may read the store."""
        now = time.monotonic()
        known = self._extents.get(tenant)
        if known is None or now - known[0] > EXTENT_SECONDS:
            known = now, extent_of(tenant, self.kept, self.reader, self.settings.coordinates)
            if known[1].bounds is not None:  # an empty map may fill at any moment
                self._extents[tenant] = known
        return known[1]


def _changed_keys(change: StoreChange) -> dict[str, list[str]]:
    """Return the keys of subscriptions that a change concerns, by tenant."""
    found: dict[str, dict[str, None]] = {}
    for kind, name, _ in change.records:
        if kind in (SUBSCRIPTION, FILTER):
            tenant, _, key = name.partition(SEPARATOR)
            found.setdefault(tenant, {})[key] = None
    return {tenant: list(keys) for tenant, keys in found.items()}
