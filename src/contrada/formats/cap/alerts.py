"""Read CAP 1.1 and 1.2 alerts: one message per <info> block, whose `area` is a region."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from contrada.doors import input_errors, reason_of
from contrada.errors import ContradaError, FormatError
from contrada.formats.cap.areas import Zones, regions_of_area, united
from contrada.formats.cap.xml import Element, documents
from contrada.formats.spatial import Spatial
from contrada.formats.times import instant_of
from contrada.geometry import Region
from contrada.geometry.globe import Globe
from contrada.limits import check_limit

NAMESPACES = ("urn:oasis:names:tc:emergency:cap:1.2", "urn:oasis:names:tc:emergency:cap:1.1")
ALERT_REQUIRED = ("identifier", "sender", "sent", "status", "msgType", "scope")
ALERT = (*ALERT_REQUIRED, "source", "restriction", "addresses", "code", "note", "references", "incidents")
INFO_REQUIRED = ("category", "event", "urgency", "severity", "certainty")
INFO = (
    *INFO_REQUIRED, "language", "responseType", "audience", "effective", "onset", "expires", "senderName", "headline",
    "description", "instruction", "web", "contact",
)  # fmt: skip
TIMES = frozenset(("sent", "effective", "onset", "expires"))


class Alert(NamedTuple):
    """The result of one <info> block, or of an alert without any: a message, or the reason why there is none.

    `lost` lists the areas that are missing from the message's region, with reasons.
    """

    message: dict[str, Any] | None
    reason: str
    lost: tuple[str, ...]


def read_alerts(data: bytes, zones: Zones, spatial: Spatial) -> Iterator[tuple[bytes, list[Alert]]]:
    """Yield the alerts of one XML document, or of several in sequence: the text of each, and its messages.

    >>> xml = b'''<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>7</identifier><sender>s</sender>
    ... <sent>2024-05-01T12:00:00-00:00</sent><status>Actual</status><msgType>Alert</msgType><scope>Public</scope>
    ... <info><category>Met</category><event>Storm</event><urgency>Immediate</urgency><severity>Severe</severity>
    ... <certainty>Likely</certainty><area><areaDesc>A field</areaDesc><polygon>0,0 0,1 1,1 0,0</polygon></area></info>
    ... </alert>'''
    >>> ((text, (alert,)),) = read_alerts(xml, {}, Spatial())
    >>> alert.message["event"], alert.message["sent"].isoformat(), alert.message["area"].to_wkt()
    ('Storm', '2024-05-01T12:00:00+00:00', 'POLYGON ((0 0, 1 0, 1 1, 0 0))')
    """
    for document in documents(data):
        if isinstance(document.root, ContradaError):
            alerts = [Alert(None, str(document.root), ())]
        else:
            alerts = alerts_of(document.root, zones, spatial)
        yield data[document.start : document.stop], alerts


def alerts_of(root: Element, zones: Zones, spatial: Spatial) -> list[Alert]:
    """Return the messages of an alert; a bad <info> block does not affect the others."""
    try:
        if root.name != "alert" or root.namespace not in NAMESPACES:
            raise FormatError(f"need an alert of CAP 1.1 or 1.2, got the root element {root.namespace} {root.name}")
        whole = _values(root, ALERT, ALERT_REQUIRED)
    except input_errors() as error:
        return [Alert(None, reason_of(error), ())]
    blocks = root.all("info")
    names = _names_of(root, whole)
    if not blocks:
        return [Alert({**whole, **names}, "", ())]
    suffixes = ["", *(f"#{number}" for number in range(2, len(blocks) + 1))]
    named = [{**whole, **{name: id + suffix for name, id in names.items()}} for suffix in suffixes]
    return [_alert_of(own, block, zones, spatial) for own, block in zip(named, blocks, strict=True)]


def _names_of(root: Element, whole: Mapping[str, Any]) -> dict[str, str]:
    """Return the id of an alert, as references write it, and of its thread: the first alert that an update follows.

    An Update or Cancel belongs to the thread of its earliest reference; any other alert begins one of its own.
    """
    own = ",".join(root.first(name) or "" for name in ("sender", "identifier", "sent"))
    earlier = whole.get("references", "").split() if whole["msgType"] in ("Update", "Cancel") else []
    return {"alert": own, "thread": min(earlier, key=_time_of_reference, default=own)}


def _time_of_reference(reference: str) -> float:
    """Return the time at the end of a reference in seconds, to find the earliest; infinity if it is none."""
    try:
        found = instant_of(reference.rpartition(",")[2])
    except FormatError:
        return math.inf
    return found.timestamp() if isinstance(found, datetime) else float(found.astype(np.int64)) / 1e9


def _alert_of(whole: Mapping[str, Any], block: Element, zones: Zones, spatial: Spatial) -> Alert:
    try:
        message = {**whole, "language": "en-US", **_values(block, INFO, INFO_REQUIRED)}
        areas = block.all("area")
        for kind, parents in (("eventCode", [block]), ("parameter", [block]), ("geocode", areas)):
            message.update(_named_values(kind, [child for parent in parents for child in parent.all(kind)]))
        names = [name for area in areas if (name := area.first("areaDesc"))]
        if names:
            message["areaDesc"] = "; ".join(names)
        own = spatial.at("area")
        region, lost = _region_of(areas, zones, own.globe)
        if region is not None:
            message["area"] = own.changed(region) if own.is_changing else region
    except input_errors() as error:
        return Alert(None, f"info {block.first('event') or ''!r}: {reason_of(error)}", ())
    return Alert(message, "", lost)


def _values(element: Element, names: tuple[str, ...], required: tuple[str, ...]) -> dict[str, Any]:
    """Return the text of the first child of each name; texts in `TIMES` become timestamps."""
    found = {name: text for name in names if (text := element.first(name)) is not None}
    missing = [name for name in required if name not in found]
    if missing:
        raise FormatError(f"<{element.name}> needs {', '.join(missing)}")
    try:
        return {name: instant_of(text) if name in TIMES else text for name, text in found.items()}
    except FormatError as error:
        raise FormatError(f"<{element.name}>: {error}") from error


def _named_values(kind: str, elements: list[Element]) -> dict[str, str]:
    """Return parameters and codes as `kind.NAME`; distinct values of one name are joined into one text."""
    found: dict[str, dict[str, None]] = {}
    for element in elements:
        name, value = element.first("valueName"), element.first("value")
        if name is not None and value is not None:
            found.setdefault(f"{kind}.{name}", {})[value] = None
    return {name: "; ".join(values) for name, values in found.items()}


def _region_of(areas: list[Element], zones: Zones, globe: Globe | None) -> tuple[Region | None, tuple[str, ...]]:
    """Return the union of the areas, None if there is none, and the faults of areas that are left out."""
    regions: dict[int, Region] = {}  # each once: areas often name the same zones
    known: dict[str, dict[str, Region]] = {}
    lost: list[str] = []
    circles = {circle.text for area in areas for circle in area.all("circle")}
    check_limit("circles", len(circles), "the alert")
    for area in areas:
        try:
            found, unknown = regions_of_area(area, zones, known, globe)
            regions |= {id(region): region for region in found}
            lost += unknown
        except input_errors() as error:
            lost.append(reason_of(error))
    return united(list(regions.values())) if regions else None, tuple(lost)
