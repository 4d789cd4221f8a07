"""Partitioned tables: several artifacts, and a small router table that finds the partitions of a message.

`<artifacts>/<digest>/partitions.json` lists the partitions; each is an artifact beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import TableError
from contrada.geometry import Region, RelationSet
from contrada.index.cells import Cells, cut_cells, middles_of, widened
from contrada.matching import ForwardingTable
from contrada.model import Constraint, Filter, Predicate
from contrada.pipeline import manifests
from contrada.pipeline.artifacts import Artifact, publish, store_of
from contrada.pipeline.storage import Storage

ABOUT = "partitions.json"
WIDE_SHARE = 0.9  # share of sampled box centers that a wide filter's box contains
SAMPLE_CENTERS = 256  # sampled box centers
NO_PARTITION = -1  # the router's subscription that tests every attribute and leads to no partition


class Partition(NamedTuple):
    """A partition: its table, the first row of subscriptions with filters elsewhere too, and its filters' boxes."""

    artifact: Artifact
    first_shared: int
    boxes: dict[str, list[list[float]]]  # a few boxes around all heads, by attribute; empty: receives every message

    @property
    def is_wide(self) -> bool:
        """Return True if every message goes to this partition."""
        return not self.boxes


def _box(value: Any) -> list[float]:
    """Return xmin, ymin, xmax and ymax; anything else is a TableError."""
    box = list(manifests.list_of(manifests.number)(value))
    if len(box) != 4 or box[0] > box[2] or box[1] > box[3]:
        raise TableError(f"a box is xmin, ymin, xmax, ymax, not {value!r:.100}")
    return box


def _boxes(value: Any) -> dict[str, list[list[float]]]:
    return {name: list(boxes) for name, boxes in manifests.map_of(manifests.list_of(_box))(value).items()}


def _partition(value: Any) -> Partition:
    checks: dict[str, manifests.Check] = {"artifact": Artifact.of, "first_shared": manifests.count, "boxes": _boxes}
    return Partition(**manifests.fields(value, checks))


FIELDS: dict[str, manifests.Check] = {
    "path": manifests.location,
    "digest": manifests.digest,
    "filters": manifests.count,
    "subscriptions": manifests.count,
    "bytes": manifests.count,
    "attributes": manifests.list_of(manifests.text),
    "crs": manifests.map_of(manifests.optional_text),
    "key_type": manifests.name_type,
    "subscriber_type": manifests.name_type,
    "has_subscribers": manifests.boolean,
    "router": Artifact.of,
    "partitions": manifests.list_of(_partition),
}


class PartitionedArtifact(NamedTuple):
    """A compiled table in partitions; the fields are those of an `Artifact`, for the whole table."""

    path: str
    digest: str
    filters: int
    subscriptions: int
    bytes: int
    attributes: tuple[str, ...]
    crs: dict[str, str | None]
    key_type: str
    subscriber_type: str
    has_subscribers: bool  # False: the key is the subscriber
    router: Artifact
    partitions: tuple[Partition, ...]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PartitionedArtifact:
        """Read the partitions that `compile` wrote to a directory or URI."""
        store, place = store_of(path)
        try:
            with store.open_input_stream(f"{place}/{ABOUT}") as file:
                about = manifests.parsed(file.read())
            given = {**manifests.map_of(manifests.anything)(about), "path": os.fspath(path)}
            return cls(**manifests.fields(given, FIELDS))
        except (OSError, TableError) as error:
            raise TableError(f"{os.fspath(path)} holds no partitions: {ABOUT}: {error}") from error

    @property
    def has_shared(self) -> bool:
        """Return True if a subscription has filters in several partitions."""
        return any(part.first_shared < part.artifact.subscriptions for part in self.partitions)


class Layout(NamedTuple):
    """Assigns filters to partitions: cells for each attribute, and wide partitions, which receive every message."""

    cells: dict[str, tuple[int, Cells]]  # the first partition of an attribute, and its cells
    wide: tuple[int, int]  # the first wide partition, and their number
    samples: dict[str, NDArray[np.float64]]  # centers of an attribute's heads

    @property
    def total(self) -> int:
        """Return the number of partitions."""
        return self.wide[0] + self.wide[1]

    def find(
        self, names: tuple[str, ...], attributes: NDArray[np.int32], boxes: NDArray[np.float64], turns: NDArray[Any]
    ) -> NDArray[np.int32]:
        """Return the partition of each head; `turns` spreads filters that have the same box or none."""
        found = (self.wide[0] + turns % max(1, self.wide[1])).astype(np.int32)
        for k, name in enumerate(names):
            rows = np.flatnonzero(attributes == k)
            rows = rows[~self._nearly_all(name, boxes[rows])]
            first, cells = self.cells[name]
            found[rows] = first + cells.find(boxes[rows], turns[rows])
        return found

    def _nearly_all(self, name: str, boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return True for boxes that nearly any message meets; always False without wide partitions."""
        return _is_nearly_all(boxes, self.samples[name]) if self.wide[1] else np.zeros(len(boxes), np.bool_)


class Sampled(NamedTuple):
    """A sample of an attribute's heads; a weight is the number of filters of a head, 0 for the largest ones."""

    boxes: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def usual(self) -> Sampled:
        """Return the heads of positive weight."""
        chosen = self.weights > 0
        return Sampled(self.boxes[chosen], self.weights[chosen])


def laid_out(
    sampled: dict[str, Sampled], anywhere: float, partitions: int, messages: dict[str, NDArray[np.float64]]
) -> Layout:
    """Spread filters over about `partitions` partitions; cells balance filters and expected messages.

    `messages` are boxes of some messages, by attribute; without them filters alone are balanced.
    """
    cells: dict[str, tuple[int, Cells]] = {}
    samples = {name: _middles(one.usual.boxes) for name, one in sampled.items()}
    narrow: dict[str, Sampled] = {}
    has_wide = anywhere > 0
    for name, one in sampled.items():
        is_wide = _is_nearly_all(one.boxes, samples[name])
        has_wide = has_wide or bool(is_wide.any())
        anywhere += float(one.weights[is_wide].sum())
        narrow[name] = Sampled(one.boxes[~is_wide], one.weights[~is_wide]).usual
    total = anywhere + sum(float(one.weights.sum()) for one in narrow.values())
    first = 0
    for name, one in sorted(narrow.items()):
        share = float(one.weights.sum()) / max(1.0, total)
        count = max(1, round(partitions * share))
        cells[name] = first, _cells(one, count, messages.get(name))
        first += count
    wide = max(1, round(partitions * anywhere / max(1.0, total))) if has_wide else 0
    return Layout(cells, (first, wide if first else max(1, wide)), samples)


def _cells(filters: Sampled, count: int, messages: NDArray[np.float64] | None) -> Cells:
    if messages is None or not len(messages) or not len(filters.boxes):
        return cut_cells(filters.boxes, count, filters.weights)
    low, high = filters.boxes[:, :2].min(axis=0), filters.boxes[:, 2:].max(axis=0)
    near = messages[((messages[:, 2:] >= low) & (messages[:, :2] <= high)).all(axis=1)]
    each = float(filters.weights.sum()) / max(1, len(near))  # all messages together weigh as much as all filters
    return cut_cells(
        np.concatenate([filters.boxes, near]), count, np.concatenate([filters.weights, np.full(len(near), each)])
    )


def _middles(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    step = max(1, len(boxes) // SAMPLE_CENTERS)
    return middles_of(boxes[::step])


def _is_nearly_all(boxes: NDArray[np.float64], middles: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return True for boxes that contain `WIDE_SHARE` of the points; always False with too few points."""
    found = np.zeros(len(boxes), np.bool_)
    if len(middles) < SAMPLE_CENTERS // 8:
        return found
    low, high = np.quantile(middles, 0.25, axis=0), np.quantile(middles, 0.75, axis=0)
    for row in np.flatnonzero(((boxes[:, :2] <= low) & (boxes[:, 2:] >= high)).all(axis=1)):
        inside = ((middles >= boxes[row, :2]) & (middles <= boxes[row, 2:])).all(axis=1)
        found[row] = inside.mean() >= WIDE_SHARE
    return found


def manifest(
    place: str,
    partitions: Iterable[Partition],
    names: tuple[str, str, bool],
    subscriptions: int,
) -> PartitionedArtifact:
    """Write the list of partitions and their router; `names` are key type, subscriber type, `has_subscribers`."""
    parts = tuple(partitions)
    crs: dict[str, str | None] = {}
    for part in parts:
        for attribute, system in part.artifact.crs.items():
            crs[attribute] = crs.get(attribute) or system
    attributes = tuple(sorted({name for part in parts for name in part.artifact.attributes}))
    asked = () if all(part.artifact.is_plain for part in parts) else attributes
    router = publish(_router(parts, crs, asked), place, key_type="int", subscriber_type="int")
    made = PartitionedArtifact(
        "", "", sum(part.artifact.filters for part in parts), subscriptions,
        sum(part.artifact.bytes for part in parts), attributes, crs, *names, router, parts,
    )  # fmt: skip
    about = {**made._asdict(), "router": router._asdict()}
    about["partitions"] = [{**part._asdict(), "artifact": part.artifact._asdict()} for part in parts]
    del about["path"], about["digest"]
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    Storage(place).write(f"{digest}/{ABOUT}", json.dumps({**about, "digest": digest}, indent=1).encode())
    return made._replace(path=f"{place.rstrip('/')}/{digest}", digest=digest)


def _router(parts: tuple[Partition, ...], crs: dict[str, str | None], scalars: tuple[str, ...]) -> ForwardingTable:
    """Build a table with the partitions as subscriptions, which rejects the same messages as the whole table."""
    table = ForwardingTable()
    for number, part in enumerate(parts):
        filters = [
            Filter([Constraint(attribute, RelationSet.S_INTERSECTS, Region.box(*box, crs=crs[attribute]))])
            for attribute, boxes in part.boxes.items()
            for box in widened(np.array(boxes)).tolist()
        ]
        if filters:
            table.subscribe(number, Predicate(filters), number)
    anywhere = [
        Filter([Constraint(name, RelationSet.S_INTERSECTS, Region.box(0, 0, 1, 1, crs=system))])
        for name, system in crs.items()
    ]
    never = [Filter([Constraint(name, "is null"), Constraint(name, "is not null")]) for name in scalars]
    if anywhere or never:
        table.subscribe(NO_PARTITION, Predicate([*anywhere, *never]), NO_PARTITION)
    return table
