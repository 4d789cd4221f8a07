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

from contrada.errors import TableError
from contrada.geometry import Region, RelationSet
from contrada.index.cells import widened
from contrada.matching import ForwardingTable
from contrada.model import Constraint, Filter, Predicate
from contrada.pipeline import manifests
from contrada.pipeline.artifacts import TABLE_FIELDS, Artifact, publish, read_manifest
from contrada.pipeline.storage import Storage

ABOUT = "partitions.json"
BadRow = tuple[int, str | None, str]  # its number, its key, and why it is bad
NO_PARTITION = -1  # the router's subscription that tests every attribute and leads to no partition


class Partition(NamedTuple):
    """A partition: its table, the first row of subscriptions with filters elsewhere too, and its filters' boxes."""

    artifact: Artifact
    first_shared: int
    boxes: dict[str, tuple[list[float], ...]]  # a few around all heads, by attribute; empty: receives every message

    @property
    def is_wide(self) -> bool:
        """Return True if every message goes to this partition."""
        return not self.boxes


def _box(value: Any) -> list[float]:
    """Return xmin, ymin, xmax and ymax; anything else is a TableError."""
    box = list(manifests.list_of(manifests.number)(value))
    if len(box) != 4 or box[0] > box[2] or box[1] > box[3]:
        raise TableError(f"need a box of xmin, ymin, xmax, ymax, got {value!r:.100}")
    return box


def _partition(value: Any) -> Partition:
    boxes = manifests.map_of(manifests.list_of(_box))
    checks: dict[str, manifests.Check] = {"artifact": Artifact.of, "first_shared": manifests.count, "boxes": boxes}
    return Partition(**manifests.fields(value, checks))


FIELDS = {
    **TABLE_FIELDS,
    "has_subscribers": manifests.boolean,
    "router": Artifact.of,
    "partitions": manifests.list_of(_partition),
    "kept": manifests.text,
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
    kept: str = ""  # Spark's schema of the columns that matches may carry, as JSON

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PartitionedArtifact:
        """Read the partitions that `compile` wrote to a directory or URI."""
        optional = frozenset({"kept"})
        return read_manifest(
            path, ABOUT, "a partitioned artifact", lambda about: cls(**manifests.fields(about, FIELDS, optional))
        )

    @property
    def has_shared(self) -> bool:
        """Return True if a subscription has filters in several partitions."""
        return any(part.first_shared < part.artifact.subscriptions for part in self.partitions)


def partitions_of(found: Iterable[dict[str, Any]]) -> tuple[list[Partition], list[BadRow]]:
    """Return the partitions in order from the output of `build_partition`, and the bad rows, each once."""
    told = sorted(found, key=lambda about: about["partition"])
    parts = [_partition({name: about[name] for name in Partition._fields}) for about in told]
    bad = {number: (number, key, reason) for about in told for number, key, reason in about["rejected"]}
    return parts, sorted(bad.values())


def manifest(
    place: str, partitions: Iterable[Partition], names: tuple[str, str, bool], subscriptions: int, kept: str = ""
) -> PartitionedArtifact:
    """Write the list of partitions and their router; `names` are key type, subscriber type, `has_subscribers`."""
    parts = tuple(partitions)
    crs: dict[str, str | None] = {}
    for part in parts:
        for attribute, system in part.artifact.crs.items():
            crs[attribute] = crs.get(attribute) or system
    attributes = tuple(sorted({name for part in parts for name in part.artifact.attributes}))
    asked = () if all(part.artifact.is_spatial_only for part in parts) else attributes
    router = publish(_router(parts, crs, asked), place, key_type="int", subscriber_type="int")
    made = PartitionedArtifact(
        "", "", sum(part.artifact.filters for part in parts), subscriptions,
        sum(part.artifact.bytes for part in parts), attributes, crs, *names, router, parts, kept,
    )  # fmt: skip
    about = {**made._asdict(), "router": _about(router)}
    about["partitions"] = [{**part._asdict(), "artifact": _about(part.artifact)} for part in parts]
    del about["path"], about["digest"]
    if not kept:
        del about["kept"]  # earlier versions know no such field
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    Storage(place).write(f"{digest}/{ABOUT}", json.dumps({**about, "digest": digest}, indent=1).encode())
    return made._replace(path=f"{place.rstrip('/')}/{digest}", digest=digest)


def _about(artifact: Artifact) -> dict[str, Any]:
    about = artifact._asdict()
    if not artifact.kept:
        del about["kept"]
    return about


def _meets(attribute: str, box: list[float], crs: str | None) -> Filter:
    return Filter([Constraint(attribute, RelationSet.S_INTERSECTS, Region.box(*box, crs=crs))])


def _router(parts: tuple[Partition, ...], crs: dict[str, str | None], scalars: tuple[str, ...]) -> ForwardingTable:
    """Build a table with the partitions as subscriptions, which rejects the same messages as the whole table.

    Boxes that are grown by distances may leave the range of a CRS, so they name none; those of NO_PARTITION do.
    """
    table = ForwardingTable()
    for number, part in enumerate(parts):
        heads = [(name, box) for name, boxes in part.boxes.items() for box in widened(np.array(boxes)).tolist()]
        if heads:
            table.subscribe(number, Predicate([_meets(name, box, None) for name, box in heads]), number)
    anywhere = [_meets(name, [0, 0, 1, 1], system) for name, system in crs.items()]
    never = [Filter([Constraint(name, "is null"), Constraint(name, "is not null")]) for name in scalars]
    if anywhere or never:
        table.subscribe(NO_PARTITION, Predicate([*anywhere, *never]), NO_PARTITION)
    return table
