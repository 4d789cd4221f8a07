"""Read messages from files and streams; each is returned, or rejected with its place and a reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from contrada.doors import input_errors, reason_of
from contrada.errors import FormatError
from contrada.formats import records
from contrada.formats.cap.areas import Zones
from contrada.formats.geojson.shapes import is_feature
from contrada.formats.messages import message_from, not_an_object
from contrada.formats.records import OpenFile, Read, Rejected, Source
from contrada.formats.spatial import Spatial
from contrada.geometry import Region
from contrada.geometry.globe import globes_of

__all__ = ["Read", "Rejected", "read_messages", "read_zones"]


def read_messages(
    source: Source,
    format: str | None = None,
    *,
    times: Collection[str] = (),
    zones: Zones | Source | None = None,
    crs: Any = None,
    to_crs: Any = None,
    buffer: float | None = None,
    wrap: Mapping[str, str] | None = None,
) -> Iterator[Read | Rejected]:
    """Yield the messages of a file, a directory, a binary stream or standard input ("-").

    The default `format` follows from the suffix or the first bytes. `times` names attributes whose text is a timestamp,
    `zones` resolves the codes of CAP areas (a mapping, or a file for `read_zones`), `wrap` says by attribute how
    regions and points are wrapped at the date line ([Globe](../globe.md)); for the rest see `Spatial`. A missing file
    is an OSError; a damaged one is rejected like a bad line.

    >>> import io
    >>> found = read_messages(io.BytesIO(b'{"size": 3}\\nsize: 4\\n'))
    >>> [item.message if isinstance(item, Read) else item.reason for item in found]
    [{'size': 3}, 'JSON is malformed: invalid character (byte 0)']
    """
    records.checked_format(format)
    known = zones if isinstance(zones, Mapping) else {} if zones is None else read_zones(zones)
    return _read_files(source, format, Spatial(crs, to_crs, buffer, globes=globes_of(wrap)), frozenset(times), known)


def _read_files(
    source: Source, format: str | None, spatial: Spatial, times: frozenset[str], zones: Zones
) -> Iterator[Read | Rejected]:
    for file in records.files_of(source):
        with records.opened(file, format) as ready:
            yield from records.until_damage(_read_file(ready, spatial, times, zones), ready.name)


def _read_file(ready: OpenFile, spatial: Spatial, times: frozenset[str], zones: Zones) -> Iterator[Read | Rejected]:
    if ready.format == "cap":
        return _read_cap(ready, spatial, zones)
    if ready.format in records.TABLE_FORMATS:
        from contrada.formats.tables.row_files import read_rows

        return read_rows(ready, spatial, times)
    if ready.format == "csv":
        from contrada.formats.csv import read_csv

        return read_csv(ready.name, ready.stream, spatial, times)
    return _read_json(ready, spatial, times)


def _read_json(ready: OpenFile, spatial: Spatial, times: frozenset[str]) -> Iterator[Read | Rejected]:
    for record in records.json_records(ready.stream, ready.format):
        value, reason = record.decoded()
        if reason is None and record.in_collection and not is_feature(value):
            reason = "need a GeoJSON Feature with properties and geometry in a FeatureCollection"
        elif reason is None and type(value) is not dict:
            reason = not_an_object(value)
        if reason is not None:  # faster than an exception
            yield record.rejected(ready.name, reason)
            continue
        try:
            message = message_from(value, spatial, times)
        except input_errors() as error:
            yield record.rejected(ready.name, reason_of(error))
        else:
            yield Read(ready.name, record.unit, record.number, message)


def _read_cap(ready: OpenFile, spatial: Spatial, zones: Zones) -> Iterator[Read | Rejected]:
    from contrada.formats.cap.alerts import read_alerts

    for number, (data, alerts) in enumerate(read_alerts(ready.stream.read(), zones, spatial)):
        text = data.decode(errors="replace")  # of all blocks; only the first rejection carries it
        for alert in alerts:
            for reason in alert.lost if alert.message is not None else [alert.reason]:
                yield Rejected(ready.name, "alert", number, reason, text, is_part=alert.message is not None)
                text = ""
            if alert.message is not None:
                yield Read(ready.name, "alert", number, alert.message)


def read_zones(source: Source, format: str | None = None, *, crs: Any = None) -> dict[tuple[str, str], Region]:
    """Read zones by code from a file of any format with the attributes `valueName`, `value` and `geometry`.

    >>> import io
    >>> read_zones(io.BytesIO(b'''{"valueName": "UGC", "value": "CAZ041", "geometry":
    ...     {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]}}'''))[("UGC", "CAZ041")].area
    0.5
    """
    zones: dict[tuple[str, str], Region] = {}
    for item in read_messages(source, format, crs=crs):
        if isinstance(item, Rejected):
            raise FormatError(f"zones: {item}")
        named: list[Any] = [item.message.get(name) for name in ("valueName", "value", "geometry")]
        if None in named or not isinstance(named[2], Region):
            raise FormatError(f"zones: {item.source}, {item.unit} {item.number}: need valueName, value and a region")
        zones[str(named[0]), str(named[1])] = named[2]
    return zones
