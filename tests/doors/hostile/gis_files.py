"""GeoPackage, Shapefile and FlatGeobuf files, sound and damaged, made by pyogrio; and files for bytes of them."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import contrada as ct
from verification.damage import damaged

DAMAGES = 6  # damaged files of each kind
DRIVERS = {"GPKG": (".gpkg",), "ESRI Shapefile": (".shp", ".shx", ".dbf", ".prj"), "FlatGeobuf": (".fgb",)}
# GDAL tells most formats by the suffix and the first bytes.
SUFFIXES = {b"SQLite format 3": ".gpkg", b"PK": ".shp.zip", b"fgb": ".fgb", b"\x00\x00\x27\x0a": ".shp"}


def file_name(format: str, data: bytes) -> str:
    """The name of a file of a format, with a suffix that leads readers to it."""
    if format != "gis":
        return f"x.{format}"
    return "x" + next((found for magic, found in SUFFIXES.items() if data.startswith(magic)), ".geojson")


@contextlib.contextmanager
def file_of(data: bytes) -> Iterator[str]:
    """A file with these bytes and the suffix that they ask for; GDAL reads no streams."""
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        path = Path(folder) / file_name("gis", data)
        path.write_bytes(data)
        yield str(path)


def made_files() -> dict[str, dict[str, bytes]]:
    """Sound files by format, each by the suffixes of its parts; none where pyogrio is not installed."""
    try:
        import pyogrio
    except ImportError:
        return {}
    found = {}
    for driver, suffixes in DRIVERS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"x{suffixes[0]}"
            pyogrio.write_arrow(
                _table(), str(path), driver=driver, geometry_name="geometry", geometry_type="Polygon", crs="EPSG:4326"
            )
            found[driver] = {suffix: path.with_suffix(suffix).read_bytes() for suffix in suffixes}
    return found


def _table() -> pa.Table:
    """Rows that are messages, subscriptions and zones."""
    shapes = [ct.Region.box(k, k, k + 3, k + 2) for k in range(4)]
    return pa.table(
        {
            "key": [f"k{k}" for k in range(4)],
            "subscriber": ["ops"] * 4,
            "filter": ["severity >= 3", "kind = 'flood'", "rubbish (", None],
            "valueName": ["UGC"] * 4,
            "value": [f"CAZ04{k}" for k in range(4)],
            "severity": [4, 1, None, 3],
            "kind": ["flood", "storm", "", None],
            "geometry": [shape.to_wkb() for shape in shapes],
        }
    )


def _joined(parts: dict[str, bytes]) -> bytes:
    """The one part of a file, or several parts as a zip."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for suffix, data in parts.items():
            archive.writestr(zipfile.ZipInfo(f"x{suffix}"), data)
    return sink.getvalue()


@cache
def gis_files() -> dict[str, Any]:
    """Sound files, files without a part, and files with changed bytes: of a zipped Shapefile the parts are changed."""
    found: dict[str, Any] = {}
    for name, parts in made_files().items():
        found[name] = data = _joined(parts)
        found[f"{name}, unfinished"] = data[: len(data) // 2]
        for k in range(DAMAGES):
            suffix = list(parts)[k % min(3, len(parts))]
            changed = damaged(parts[suffix], np.random.default_rng([k, len(name)]))
            found[f"{name}, damaged {k}"] = _joined({**parts, suffix: changed})
        for gone in parts if len(parts) > 1 else ():
            found[f"{name} without {gone}"] = _joined({suffix: parts[suffix] for suffix in parts if suffix != gone})
    return found
