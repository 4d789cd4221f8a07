"""Match batches in a task of `contrada match --spark`, against a whole table or its partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.cli.match_run import answered
from contrada.cli.message_reader import MessageBatch
from contrada.formats.records import Rejected
from contrada.matching import ForwardingTable
from contrada.pipeline.artifact_cache import opened, opened_part
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.partitioned.partitions import PartitionedArtifact


class Found(NamedTuple):
    """The matches of a batch: message, subscriber and key of each; and the bad messages."""

    owners: NDArray[np.int64]
    subscribers: list[str]
    keys: list[str]  # empty with by="subscriber"
    bad: list[Rejected]


class Whole:
    """A table that is held whole."""

    def __init__(self, artifact: Artifact, by: Any) -> None:
        self._table, self._by = opened(artifact).table, by

    def ask(self, batch: MessageBatch) -> Found:
        """Match a batch."""
        counts, rows, bad = answered(self._table, batch, self._by, 1)
        return Found(np.repeat(np.arange(len(counts)), counts), *_names(self._table, rows, self._by), bad)


class Parts:
    """A partitioned table: messages are matched in each partition that they can match, one open at a time."""

    def __init__(self, artifact: PartitionedArtifact, by: Any) -> None:
        self._whole, self._by = artifact, by
        self._may_repeat = artifact.has_shared or by == "subscriber"

    def ask(self, batch: MessageBatch) -> Found:
        """Match a batch."""
        router = opened(self._whole.router).table
        counts, rows, bad = answered(router, batch, "subscription", 1)
        places = {place: k for k, place in enumerate(batch.places)}
        is_good = np.ones(len(batch.ids), np.bool_)
        is_good[[places[item[:3]] for item in bad]] = False
        numbers = np.array(router.keys_of(rows), np.int64)
        senders = np.repeat(np.arange(len(counts)), counts)
        found = list(self._visits(batch, senders, numbers, np.flatnonzero(is_good)))
        owners = np.concatenate([part.owners for part in found] or [np.empty(0, np.int64)])
        subscribers = [name for part in found for name in part.subscribers]
        keys = [name for part in found for name in part.keys]
        if self._may_repeat:  # a subscriber, or a subscription, may have filters in several partitions
            pairs = zip(owners.tolist(), subscribers if self._by == "subscriber" else keys, strict=True)
            first = {pair: k for k, pair in reversed(list(enumerate(pairs)))}
            kept = sorted(first.values())
            owners, subscribers = owners[kept], [subscribers[k] for k in kept]
            keys = [keys[k] for k in kept] if keys else keys
        return Found(owners, subscribers, keys, bad)

    def _visits(
        self, batch: MessageBatch, senders: NDArray[np.int64], numbers: NDArray[np.int64], good: NDArray[np.int64]
    ) -> Iterator[Found]:
        """Yield the matches in each partition; partitions that receive every message get all `good` ones."""
        for number, part in enumerate(self._whole.partitions):
            own = good if part.is_wide else senders[numbers == number]
            if not len(own):
                continue
            table = opened_part(part.artifact).table
            answer = table.match_many(_some(batch.messages, own), self._by, 1)
            owners = np.repeat(own, np.diff(answer.offsets))
            yield Found(owners, *_names(table, answer.rows, self._by), [])


def asked(artifact: Artifact | PartitionedArtifact, by: Any) -> Whole | Parts:
    """Return the matcher for an artifact."""
    return Parts(artifact, by) if isinstance(artifact, PartitionedArtifact) else Whole(artifact, by)


def _names(table: ForwardingTable, rows: NDArray[np.int64], by: Any) -> tuple[list[str], list[str]]:
    keys = list(map(str, table.keys_of(rows))) if by == "subscription" else []
    return list(map(str, table.subscribers_of(rows, by))), keys


def _some(messages: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of messages, a list or an Arrow table."""
    return [messages[row] for row in rows.tolist()] if isinstance(messages, list) else messages.take(rows)
