"""Inputs that are known to fail, with the reason. Each pattern must still match a failure, or be removed."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from hostile.worker import Input


class Known(NamedTuple):
    """Inputs of the corpus by patterns of door and name, and why they fail."""

    door: str
    name: str
    reason: str

    def matches(self, input: Input) -> bool:
        """True for an input that is meant."""
        return bool(input.name) and fnmatchcase(input.door, self.door) and fnmatchcase(input.name, self.name)


DAMAGED = "offsets, names and checksums of damaged files are not checked in full yet"
FORMATS = "this fault of a record is not turned into a rejected row yet"
CRS = "a CRS is not checked where it comes in yet"

KNOWN: tuple[Known, ...] = (
    Known("*[[]arrow]*", "*offsets*", DAMAGED),
    Known("*[[]arrow]*", "* deep", FORMATS),
    Known("*[[]arrow]*", "name not utf-8", FORMATS),
    Known("*[[]parquet]*", "geo deep", FORMATS),
    Known("arrow columns", "offsets *", DAMAGED),
    Known("ForwardingTable.open, damaged", "*", DAMAGED),
    Known("ForwardingTable.verify, damaged", "bit 13 6", DAMAGED),
    Known("*, damaged", "header 4", DAMAGED),
    Known("RegionArray.open, damaged", "bit *", DAMAGED),
    Known("RegionArray.open, damaged", "header 10", DAMAGED),
    Known("*.from_w*", "*cur*", FORMATS),
    Known("*.from_w*", "circular string", FORMATS),
    Known("*.from_w*", "multisurface", FORMATS),
    Known("shapely", "*", FORMATS),
    Known("*.from_wkt*", "lone surrogate*", FORMATS),
    Known("*.from_wkt*", "with * srid", FORMATS),
    Known("*.from_geojson*", "400 digits", FORMATS),
    Known("*[[]csv]*", "curve", FORMATS),
    Known("*[[]csv]*", "huge srid", FORMATS),
    Known("contrada *", "arrow*offsets*", DAMAGED),
    Known("contrada *", "arrow* deep", FORMATS),
    Known("contrada *", "arrow*name not utf-8", FORMATS),
    Known("contrada *", "parquet*: geo deep", FORMATS),
    Known("contrada *", "csv*: curve", FORMATS),
    Known("contrada *", "csv*: huge srid", FORMATS),
    Known("*()", "crs: *", CRS),
    Known("*()", "to_crs: *", CRS),
)


def is_known(input: Input) -> bool:
    """True for an input of the corpus that is expected to fail."""
    return any(known.matches(input) for known in KNOWN)


def stale(driven: Iterable[Input], failed: Iterable[Input]) -> list[Known]:
    """The patterns of inputs that were driven and did not fail."""
    all_inputs, bad = list(driven), list(failed)
    return [
        known
        for known in KNOWN
        if any(known.matches(input) for input in all_inputs) and not any(known.matches(input) for input in bad)
    ]
