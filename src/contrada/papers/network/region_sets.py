"""Region sets: the three real ones of the papers, files of one's own, and one that is made up."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from contrada.doors import input_errors, reason_of
from contrada.errors import FormatError
from contrada.geometry import Region, RegionArray

PARCELS = "parcels"
FILES = {
    "London": "paper_london_4170.parquet",
    "Rhône-Alpes": "paper_rhone_alpes_17048.parquet",
    "SoCal": "paper_socal_85550.parquet",
}
PARCEL_COUNT = 10_000
PARCEL_SEED = 1
PARCEL_RADIUS = 0.001, 0.01  # of a universe with sides of 1
SHOWN_CHARACTERS = 60


def file_of(name: str) -> str:
    """Return the name of a set's file: of one of the papers' sets, or of any other by its stem.

    >>> file_of("London"), file_of("mine")
    ('paper_london_4170.parquet', 'mine.parquet')
    """
    return FILES.get(name, f"{name}.parquet")


def check_set(name: str) -> None:
    """Raise FormatError for a name that is no stem of a file."""
    if not name or "/" in name or "\\" in name or "\0" in name or name.startswith("."):
        raise FormatError(f"set: need a name of a set or file, got {name!r:.{SHOWN_CHARACTERS}}")


@lru_cache(maxsize=4)
def region_set(name: str, data: Path | None) -> RegionArray:
    """Return the regions of a set; raise FormatError if `data` does not have its file.

    >>> len(region_set("parcels", None))
    10000
    """
    if name == PARCELS:
        return _parcels(np.random.default_rng(PARCEL_SEED))
    import pyarrow.parquet as pq

    if data is None:
        raise FormatError(f"{name}: no directory of regions is given")
    try:
        return RegionArray.from_wkb(pq.read_table(data / file_of(name), columns=["geometry"])["geometry"])
    except input_errors(OSError) as error:
        raise FormatError(f"{data / file_of(name)}: {reason_of(error)}") from error


def _parcels(rng: np.random.Generator) -> RegionArray:
    """Return small polygons of 4 to 9 vertices on a line around their centre."""
    regions = []
    for _ in range(PARCEL_COUNT):
        corners = int(rng.integers(4, 10))
        turns = (np.arange(corners) + rng.uniform(0, 0.8, corners)) * (2 * np.pi / corners)
        radii = rng.uniform(*PARCEL_RADIUS) * rng.uniform(0.6, 1, (corners, 1))
        xy = rng.random(2) + radii * np.column_stack([np.cos(turns), np.sin(turns)])
        regions.append(Region(xy.tolist()))
    return RegionArray.from_regions(regions)
