"""Read many bodies at once: messages as tables, with id and JSON of each; bad ones with reasons."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from contrada.collecting import collections_paused
from contrada.doors import input_errors, reason_of
from contrada.errors import FormatError
from contrada.formats.cap.alerts import read_alerts
from contrada.formats.cap.areas import Zones
from contrada.formats.messages import message_from, message_of_cloudevent
from contrada.formats.spatial import UNCHANGED, Spatial
from contrada.geometry import Region
from contrada.geometry.globe import globes_of
from contrada.limits import limit
from contrada.service.intake.bodies import (
    Text,
    alert_json,
    check_count,
    event_json,
    plain,
    single_text,
    texts_of,
    time_text,
)
from contrada.service.intake.parts import Kind, Part, kinds_of, parts_of
from contrada.service.intake.posts import Post
from contrada.service.intake.regions import RegionColumns, UnreadRegion

MAX_ID_CHARS = 256  # a longer id is kept as a digest
MAX_MESSAGES = 100_000  # in one body
BYTES_PER_VERTEX = 6  # at least, in JSON: [0,0],
# Up to here messages are read and matched sooner one by one than as columns, which take a millisecond to set up.
FEW_POSTS, FEW_BYTES = 32, 64 << 10


class Refusal(NamedTuple):
    """Why a message of a post was not taken: `row` is its place within the post, from 0.

    With `is_part`, only an area of an alert is lost, and the message was taken without it.
    """

    row: int
    reason: str
    is_part: bool = False


class Taken(NamedTuple):
    """The messages of many posts, in their order.

    `ids[k]` identifies message k, None if it has no id of its own; `bodies[k]` is its JSON in one line; `posts[k]` and
    `rows[k]` tell its place. `parts` hold the attributes: usually one table, several if messages have values of
    different types for one attribute. `rejected` has a list for each post.
    """

    parts: list[Part]
    ids: list[str | None]
    bodies: list[bytes]
    posts: list[int]
    rows: list[int]
    rejected: list[list[Refusal]]


class BodyReader:
    """Reads the bodies of requests that publish.

    `zones` resolves the codes of CAP areas; a message of more than `vertices` vertices is rejected, by default of more
    than the limit of that name, and so is a body of more than `messages` messages. `wrap` says by attribute how regions
    and points are wrapped at the date line.

    >>> taken = BodyReader().read([Post("json", b'{"depth": 3}'), Post("ndjson", b'{"depth": 4.5}\\n{"depth": x}\\n')])
    >>> [(part.table.to_pydict(), part.rows) for part in taken.parts], taken.posts, taken.rows
    ([({'depth': [3.0, 4.5]}, [0, 1])], [0, 1], [0, 0])
    >>> taken.rejected
    [[], [Refusal(row=1, reason='JSON is malformed: invalid character (byte 10)', is_part=False)]]
    """

    def __init__(
        self,
        zones: Zones | None = None,
        vertices: int | None = None,
        messages: int = MAX_MESSAGES,
        wrap: Mapping[str, str] | None = None,
    ) -> None:
        self._zones: Zones = zones or {}
        self._spatial = Spatial(globes=globes_of(wrap))
        self._vertices, self._messages = vertices, messages

    def read(self, posts: Sequence[Post]) -> Taken:
        """Return the messages of posts; a bad one is rejected and affects no other."""
        with collections_paused():  # decoded objects refer to each other in no circles
            vertices = limit("vertices") if self._vertices is None else self._vertices
            batch = _Batch(self._zones, vertices, self._messages, self._spatial)
            for post in posts:
                batch.add(post)
            return batch.taken()

    def read_singly(self, posts: Sequence[Post]) -> Taken | None:
        """Return a few posts of one message each, with the messages as they are in place of a table.

        None if they are many or large, or if one of them is a batch or bad: then `read` takes all of them.
        """
        vertices = limit("vertices") if self._vertices is None else self._vertices
        size = sum([len(post.body) for post in posts])
        if len(posts) > FEW_POSTS or size > min(FEW_BYTES, BYTES_PER_VERTEX * vertices):
            return None
        messages: list[dict[str, Any]] = []
        ids: list[str | None] = []
        bodies: list[bytes] = []
        for post in posts:
            text = single_text(post)
            if text is None or text[3] is not None:
                return None
            try:
                value, message, body = _message_of(post, text[1], text[2], self._spatial)
                kinds_of(message)
            except input_errors():
                return None
            messages.append(message)
            ids.append(_id_of(post, 0, value, message, body))
            bodies.append(body)
        places = list(range(len(posts)))
        return Taken([Part(messages, places)], ids, bodies, places, [0] * len(posts), [[] for _ in posts])


class _Item(NamedTuple):
    """A message that was read, apart from its regions."""

    post: int
    row: int
    message: dict[str, Any]
    kinds: tuple[Kind, ...]
    id: str | None
    body: bytes


class _Batch:
    """The posts of one call."""

    def __init__(self, zones: Zones, vertices: int, messages: int, spatial: Spatial) -> None:
        self._spatial = spatial
        self._zones, self._vertices, self._messages = zones, vertices, messages
        self._regions = RegionColumns(spatial.globes)
        self._items: list[_Item] = []
        self._rejected: list[list[Refusal]] = []
        self._longest = 0  # body of a post

    def add(self, post: Post) -> None:
        """Read the messages of a post, apart from their regions."""
        self._rejected.append([])
        self._longest = max(self._longest, len(post.body))
        if (text := single_text(post)) is not None:
            self._add_text(post, text)
            return
        try:
            (self._add_alerts if post.format == "cap" else self._add_texts)(post)
        except FormatError as error:  # of the body as a whole
            self._reject(0, str(error))

    def _add_texts(self, post: Post) -> None:
        """Read the messages of a body of several."""
        texts, is_single = texts_of(post, self._messages)
        if post.id is not None and not is_single:
            raise FormatError("Message-Id names one message, but the body is a batch")
        for text in texts:
            self._add_text(post, text)

    def _reject(self, row: int, reason: str, is_part: bool = False) -> None:
        self._rejected[-1].append(Refusal(row, reason, is_part))

    def _add_text(self, post: Post, text: Text) -> None:
        """Read one message of JSON."""
        row, data, value, reason = text
        if reason is not None:
            self._reject(row, reason)
            return
        self._regions.begin()
        try:
            value, message, body = _message_of(post, data, value, self._regions)
            kinds = kinds_of(message)
        except input_errors() as error:
            self._regions.cancel()
            self._reject(row, reason_of(error))
            return
        values = (len(self._rejected) - 1, row, message, kinds, _id_of(post, row, value, message, body), body)
        self._items.append(tuple.__new__(_Item, values))  # as in contrada.formats.records

    def _add_alerts(self, post: Post) -> None:
        """Read the alerts of CAP XML: one message for each <info> block."""
        check_count(post, self._messages)
        found = [alerts for _, alerts in read_alerts(post.body, self._zones, self._spatial)]
        alerts = [(block, alert) for own in found for block, alert in enumerate(own)]
        if not alerts:
            raise FormatError("the body is empty; need a CAP alert")
        if post.id is not None and len(alerts) > 1:
            raise FormatError(f"Message-Id names one message, but the body has {len(alerts)} blocks <info>")
        for row, (block, alert) in enumerate(alerts):
            for reason in alert.lost if alert.message is not None else [alert.reason]:
                self._reject(row, reason, is_part=alert.message is not None)
            if alert.message is not None:
                try:
                    self._add_alert(post, row, block, alert.message)
                except input_errors() as error:
                    self._reject(row, reason_of(error))

    def _add_alert(self, post: Post, row: int, block: int, alert: Mapping[str, Any]) -> None:
        body, id, event = alert_json(alert), _alert_id(alert, block), {}
        if post.context is not None:
            body, event = event_json(post.context, body), message_of_cloudevent(post.context, UNCHANGED)
            id = _text_id("ce", event["ce.source"], event["ce.id"], *([row] if row else []))
        self._longest = max(self._longest, len(body))
        area = alert.get("area")
        message = {**event, **alert}
        if isinstance(area, Region):
            message["area"] = self._regions.of_region(area)
        item = _Item(len(self._rejected) - 1, row, message, kinds_of(message), _given_id(post) or id, body)
        self._items.append(item)

    def taken(self) -> Taken:
        """Read the regions of all messages; return the good ones as tables."""
        self._drop(self._too_large())
        columns, bad = self._regions.read()
        self._drop(self._invalid(bad))
        for refusals in self._rejected:
            refusals.sort(key=attrgetter("row"))
        fields: Any = map(list, zip(*self._items, strict=True)) if self._items else ([] for _ in _Item._fields)
        posts, rows, messages, kinds, ids, bodies = fields
        return Taken(parts_of(messages, kinds, columns), ids, bodies, posts, rows, self._rejected)

    def _drop(self, reasons: Mapping[int, str]) -> None:
        """Reject items, for reasons by their places."""
        for place, reason in reasons.items():
            item = self._items[place]
            self._rejected[item.post].append(Refusal(item.row, reason))
            for unread in _regions_of(item).values():
                self._regions.drop(unread)
        if reasons:
            self._items = [item for place, item in enumerate(self._items) if place not in reasons]

    def _too_large(self) -> dict[int, str]:
        """Return the reasons against messages with too many vertices, by place."""
        reasons: dict[int, str] = {}
        if self._longest <= BYTES_PER_VERTEX * self._vertices:
            return reasons
        for place, item in enumerate(self._items):
            count = sum(map(self._regions.vertices, _regions_of(item).values()))
            if count > self._vertices:
                reasons[place] = f"the message has {count:,} vertices; the limit is {self._vertices:,}"
        return reasons

    def _invalid(self, bad: Mapping[UnreadRegion, str]) -> dict[int, str]:
        """Return the reasons against messages with regions that are not valid, by place."""
        reasons: dict[int, str] = {}
        if bad:
            for place, item in enumerate(self._items):
                for name, unread in _regions_of(item).items():
                    if unread in bad:
                        reasons[place] = f"attribute {name[:60]!r}: {bad[unread]}"
        return reasons


def _regions_of(item: _Item) -> dict[str, UnreadRegion]:
    return {name: value for name, value in item.message.items() if isinstance(value, UnreadRegion)}


def _message_of(post: Post, data: bytes, value: Any, spatial: Spatial) -> tuple[Any, dict[str, Any], bytes]:
    """Return the value of a text, a CloudEvent if the post is one, with the message in it and its JSON in one line."""
    body = plain(data) if b"\n" in data or b"\r" in data else data
    if post.context is not None:
        value, body = {**post.context, "data": value}, event_json(post.context, body)
        return value, message_of_cloudevent(value, spatial), body
    if post.format in ("cloudevent", "cloudevents") and not (isinstance(value, dict) and "specversion" in value):
        raise FormatError("need a CloudEvent with specversion")
    return value, message_from(value, spatial, ()), body


def _id_of(post: Post, row: int, value: Mapping[str, Any], message: Mapping[str, Any], body: bytes) -> str | None:
    """Return what identifies a message; None if nothing does."""
    return _given_id(post) or _own_id(post, row, value, message, body) or _retry_id(post, row)


def _given_id(post: Post) -> str | None:
    return None if post.id is None else f"id:{post.id}"


def _retry_id(post: Post, row: int) -> str | None:
    return None if post.retry_key is None else _text_id("retry", post.retry_key, row)


def _own_id(post: Post, row: int, value: Mapping[str, Any], message: Mapping[str, Any], body: bytes) -> str | None:
    """Return the id of a CloudEvent, or the place that the message was read from.

    If the place is unknown and the message is about a thing that has an id, return a digest of the body.
    """
    if "specversion" in value:
        return _text_id("ce", message["ce.source"], message["ce.id"])
    if post.origin is not None:
        return _text_id("at", post.origin, row)
    return f"body:{_digest(body)}" if "id" in message else None


def _alert_id(alert: Mapping[str, Any], block: int) -> str:
    """Return the id of a block of an alert; blocks after the first have their number in it."""
    return _text_id("cap", alert["sender"], alert["identifier"], time_text(alert["sent"]), *([block] if block else []))


def _text_id(kind: str, *names: str | int) -> str:
    """Return an id made of names; a long one is a digest.

    >>> _text_id("ce", "/buoy", "7")
    'ce:["/buoy","7"]'
    """
    text = msgspec.json.encode(names)
    return f"{kind}:{text.decode() if len(text) <= MAX_ID_CHARS else _digest(text)}"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
