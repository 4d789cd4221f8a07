"""Messages from files and streams: every one is given, or rejected with its place and the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from contrada.doors import input_errors, reason_of
from contrada.errors import FormatError
from contrada.geometry import Region
from contrada.language.cap_areas import Zones
from contrada.language.messages import message_from, not_an_object
from contrada.language.records import (
    ROWS,
    Opened,
    Read,
    Rejected,
    Source,
    checked_format,
    files_of,
    json_records,
    opened,
    until_damage,
)
from contrada.language.shapes import is_feature
from contrada.language.spatial import Spatial

__all__ = ["Read", "Rejected", "read_messages", "read_zones"]


class Reading(NamedTuple):
    """How messages are read."""

    spatial: Spatial
    times: frozenset[str]
    zones: Zones


def read_messages(
    source: Source,
    format: str | None = None,
    *,
    times: Collection[str] = (),
    zones: Zones | Source | None = None,
    crs: Any = None,
    to_crs: Any = None,
    buffer: float | None = None,
) -> Iterator[Read | Rejected]:
    """The messages of a file, a directory, a binary stream or standard input ("-"), one after another.

    The format is told by the suffix or the first bytes unless it is named. `times` names attributes whose text is a
    timestamp, `zones` resolves the codes of CAP areas (a mapping, or a file for `read_zones`); for the rest see
    `Spatial`. A file that is not there is an OSError; one that is damaged is rejected like a bad line.

    >>> import io
    >>> found = read_messages(io.BytesIO(b'{"size": 3}\\nsize: 4\\n'))
    >>> [item.message if isinstance(item, Read) else item.reason for item in found]
    [{'size': 3}, 'JSON is malformed: invalid character (byte 0)']
    """
    checked_format(format)
    known = zones if isinstance(zones, Mapping) else {} if zones is None else read_zones(zones)
    reading = Reading(Spatial(crs, to_crs, buffer), frozenset(times), known)
    return _read_files(source, format, reading)


def _read_files(source: Source, format: str | None, reading: Reading) -> Iterator[Read | Rejected]:
    for file in files_of(source):
        with opened(file, format) as ready:
            yield from until_damage(_readers(ready, reading), ready.name)


def _readers(ready: Opened, reading: Reading) -> Iterator[Read | Rejected]:
    if ready.format == "cap":
        return _read_cap(ready, reading)
    if ready.format in ROWS:
        from contrada.language.rowfiles import read_rows

        return read_rows(ready, reading.spatial, reading.times)
    if ready.format == "csv":
        from contrada.language.csvrows import read_csv

        return read_csv(ready.name, ready.stream, reading.spatial, reading.times)
    return _read_json(ready, reading)


def _read_json(ready: Opened, reading: Reading) -> Iterator[Read | Rejected]:
    for record in json_records(ready.stream, ready.format):
        value, reason = record.decoded()
        if reason is None and record.in_collection and not is_feature(value):
            reason = "a FeatureCollection holds Features, with properties and geometry, and this is none"
        elif reason is None and type(value) is not dict:
            reason = not_an_object(value)
        if reason is not None:  # an exception would take longer than all the rest
            yield record.rejected(ready.name, reason)
            continue
        try:
            message = message_from(value, reading.spatial, reading.times)
        except input_errors() as error:
            yield record.rejected(ready.name, reason_of(error))
        else:
            yield Read(ready.name, record.unit, record.number, message)


def _read_cap(ready: Opened, reading: Reading) -> Iterator[Read | Rejected]:
    from contrada.language.cap import read_alerts

    for number, (data, alerts) in enumerate(read_alerts(ready.stream.read(), reading.zones, reading.spatial)):
        text = data.decode(errors="replace")  # of all blocks; only the first rejection carries it
        for alert in alerts:
            for reason in alert.lost:
                yield Rejected(ready.name, "alert", number, reason, text, is_part=True)
                text = ""
            if alert.message is None:
                yield Rejected(ready.name, "alert", number, alert.reason, text)
                text = ""
            else:
                yield Read(ready.name, "alert", number, alert.message)


def read_zones(source: Source, format: str | None = None, *, crs: Any = None) -> dict[tuple[str, str], Region]:
    """Zones by their codes, from GeoJSON, GeoParquet or any other format: attributes `valueName`, `value`, `geometry`.

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
