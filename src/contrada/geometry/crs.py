"""Coordinate reference systems: one value type that is checked on input, carried with regions and compared.

`Named` holds the systems that rows of a column name: SRIDs of EWKB and EWKT, the member `crs` of GeoJSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.doors import plain_dict
from contrada.errors import CrsError
from contrada.geometry.faults import FaultCode, Rejection
from contrada.limits import check_limit, limit, variable

if TYPE_CHECKING:
    from pyproj import CRS

LONGITUDE_LATITUDE = "OGC:CRS84"  # WGS 84 with longitude first: used by GeoJSON, and by GeoParquet that names no system
MAX_SHOWN_CHARS = 60  # of a rejected value in an error

_CODE = re.compile(r"([A-Za-z][A-Za-z0-9_]*):([A-Za-z0-9._-]+)")
_COMPOUND = re.compile(r"[A-Za-z]+:\d+\+\d+")
_URN = re.compile(r"urn:(?:x-)?ogc:def:crs:([^:]+):[^:]*:([^:]+)", re.IGNORECASE)
_URL = re.compile(r"https?://www\.opengis\.net/def/crs/([^/]+)/[^/]+/([^/]+)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_IN_EPSG = {"OGC:CRS84": 4326, "OGC:CRS83": 4269, "OGC:CRS27": 4267}
# Codes that need no look-up in PROJ's database, which takes a second to load.
_COMMON = frozenset(
    [LONGITUDE_LATITUDE, *(f"EPSG:{n}" for n in (4326, 3857, 4258, 3035, 3034, 4269, 27700, 2056, 2154, 3395))]
    + [f"EPSG:{n}" for first, last in ((25828, 25837), (32601, 32660), (32701, 32760)) for n in range(first, last + 1)]
)


class Crs(str):
    """Coordinate reference system that is known to exist: equal text means the same system.

    The text is an authority code ("EPSG:25832") where PROJ identifies exactly that system, and PROJJSON otherwise.

    >>> Crs.of(4326), Crs.of("urn:ogc:def:crs:EPSG::25832")
    ('EPSG:4326', 'EPSG:25832')
    """

    __slots__ = ()

    @classmethod
    def of(cls, value: Any) -> Crs | None:
        """Return the system that `value` names; None stays None, and a value that names no system raises a CrsError.

        Values are authority codes, EPSG codes as integers, WKT, PROJJSON (text or a dict), URNs and URLs of the OGC,
        PROJ strings, and objects with a method `to_wkt`, such as `pyproj.CRS`.
        """
        if value is None or type(value) is cls:
            return value
        if isinstance(value, str):
            return _of_text(str(value))
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return _of_text(f"EPSG:{value}") if 0 < value < 1 << 32 else _refuse(value)
        if isinstance(value, Mapping):
            return _of_mapping(value)
        to_wkt = getattr(value, "to_wkt", None)
        if not callable(to_wkt):
            return _refuse(value, f"; need text or an EPSG code, got {type(value).__name__}")
        try:
            text = to_wkt()
        except Exception as error:
            raise CrsError(f"unknown coordinate reference system {value!r:.60}: to_wkt() failed: {error}") from error
        return _of_text(text) if isinstance(text, str) else _refuse(value)

    @property
    def epsg(self) -> int | None:
        """The EPSG code, None for a system without one; OGC's longitude and latitude systems have the codes of EPSG's.

        >>> Crs.of("OGC:CRS84").epsg
        4326
        """
        authority, _, code = self.partition(":")
        return int(code) if authority == "EPSG" and code.isdigit() else _IN_EPSG.get(self)

    @property
    def label(self) -> str:
        """Text for errors and summaries: the code, or the name of a system without one."""
        if not self.startswith("{"):
            return str(self)
        return f"{str(json.loads(self).get('name', 'unnamed'))[:MAX_SHOWN_CHARS]!r} (PROJJSON)"

    def projjson(self) -> dict[str, Any]:
        """Return the system as PROJJSON, as GeoParquet takes it.

        >>> Crs.of("EPSG:25832").projjson()["id"]
        {'authority': 'EPSG', 'code': 25832}
        """
        made: dict[str, Any] = _parse(self).to_json_dict()
        return made


def srid_of(crs: Crs | None) -> int:
    """Return the SRID that EWKB has for a CRS; a CRS without an EPSG code raises a CrsError.

    >>> srid_of(Crs.of("EPSG:3035"))
    3035
    """
    if crs is None:
        raise CrsError("EWKB needs a coordinate reference system, but this geometry has none; pass crs=")
    if crs.epsg is None:
        raise CrsError(f"EWKB needs an EPSG code, but {crs.label} has none; write WKB without srid=True")
    return crs.epsg


def _refuse(value: Any, why: str = "") -> Crs:
    is_huge = isinstance(value, int) and value.bit_length() > 64
    try:
        shown = f"an integer of {value.bit_length()} bits" if is_huge else repr(value)
    except (RecursionError, ValueError):  # value is nested too deeply, or has a number too long to print
        shown = f"a {type(value).__name__}"
    shown = shown if len(shown) <= MAX_SHOWN_CHARS else shown[: MAX_SHOWN_CHARS - 3] + "..."
    raise CrsError(f"unknown coordinate reference system {shown}{why}")


@lru_cache(maxsize=1024)
def _of_text(text: str) -> Crs:
    check_limit("crs_bytes", len(text), "the text of a coordinate reference system")
    plain = text.strip()
    if plain in _COMMON:
        return Crs(plain)
    if _CONTROL.search(plain):
        return _refuse(text)
    if plain.isascii() and plain.isdigit() and len(plain) < 20:
        plain = f"EPSG:{int(plain)}"
    found = _CODE.fullmatch(plain) or _URN.fullmatch(plain) or _URL.fullmatch(plain)
    if found is not None:
        return _of_code(found[1], found[2], text)
    if nesting_of(plain) > limit("nesting"):
        return _refuse(text, f"; nested deeper than {limit('nesting')} levels ({variable('nesting')})")
    if plain.startswith("{"):
        return _of_json(plain)
    # PROJ would search the names of all objects it knows for any other text, which takes seconds.
    if not ("[" in plain or plain.startswith(("+", "urn:ogc:def:crs,")) or _COMPOUND.fullmatch(plain)):
        return _refuse(text)
    return _identified(_created(plain), text)


def _of_code(authority: str, code: str, given: str) -> Crs:
    known = f"{authority.upper()}:{code.upper() if authority.upper() == 'OGC' else code}"
    if known not in _COMMON and known.partition(":")[2] not in _codes(authority.upper()):
        return _refuse(given)
    return Crs(known)


@lru_cache(maxsize=64)
def _codes(authority: str) -> frozenset[str]:
    """Return the codes of an authority's systems with horizontal axes, in one query: a single look-up takes 60 ms."""
    from pyproj.database import get_authorities, get_codes
    from pyproj.enums import PJType

    if authority not in get_authorities():
        return frozenset()
    without = {PJType.VERTICAL_CRS, PJType.GEOCENTRIC_CRS}
    others = {code for kind in without for code in get_codes(authority, kind, allow_deprecated=True)}
    return frozenset(get_codes(authority, PJType.CRS, allow_deprecated=True)) - others


def _of_mapping(value: Mapping[Any, Any]) -> Crs:
    plain = plain_dict(value, CrsError)
    try:
        text = json.dumps(plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise CrsError(f"unknown coordinate reference system: PROJJSON is not valid JSON: {error}") from error
    return _of_text(text)


def _of_json(text: str) -> Crs:
    """Return the system of PROJJSON; an object that has only an id is the system that the id names."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _refuse(text)
    named = value.get("id")
    if isinstance(named, dict) and {"authority", "code"} <= named.keys() and "type" not in value:
        return _of_code(str(named["authority"]), str(named["code"]), f"{named['authority']}:{named['code']}")
    return _identified(_created(text), text)


# By byte: 1 for an opening bracket, -1 for a closing bracket. Non-ASCII bytes of UTF-8 are never brackets.
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[({")], _STEPS[list(b"])}")] = 1, -1


def nesting_of(text: str | bytes) -> int:
    """Return an upper bound of the depth of brackets in WKT or JSON: brackets within quoted text count as well.

    >>> nesting_of('A[B["c"], D[E[]]]')
    3
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    depths = np.cumsum(_STEPS[np.frombuffer(data, np.uint8)], dtype=np.int64)
    return max(0, int(depths.max(initial=0)))


def _created(text: str) -> CRS:
    """Return what PROJ makes of WKT, PROJJSON or a PROJ string."""
    import warnings

    from pyproj import CRS
    from pyproj.exceptions import ProjError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about "+init=", which is deprecated but still valid
            if text.startswith("{"):
                return CRS.from_json(text)
            return CRS.from_wkt(text) if "[" in text else CRS.from_user_input(text)
    except (ProjError, ValueError, TypeError, AttributeError) as error:
        raise CrsError(f"unknown coordinate reference system {text[:MAX_SHOWN_CHARS]!r}: {str(error)[:200]}") from error


def _identified(crs: CRS, given: str) -> Crs:
    """Return a system by its code if PROJ is certain of it, otherwise as PROJJSON."""
    if crs.is_geocentric or (crs.is_vertical and not crs.is_compound):
        return _refuse(given, f"; {crs.name} has no horizontal axes")
    # PROJ takes a second to compare a system with all it knows; the result of a PROJ string has no name to search by.
    found = None if crs.name == "unknown" else crs.to_authority(min_confidence=100)
    return Crs(f"{found[0]}:{found[1]}") if found else Crs(crs.to_json())


@lru_cache(maxsize=256)
def _parse(crs: str) -> CRS:
    return _created(str(crs if crs.startswith("{") else Crs.of(crs)))


@lru_cache(maxsize=256)
def is_same_crs(a: str, b: str) -> bool:
    """Return True if two CRS texts (authority codes, WKT, PROJJSON) name one system; the order of axes does not count.

    >>> is_same_crs("EPSG:4326", "OGC:CRS84")
    True
    """
    if a == b or {a, b} == {"EPSG:4326", LONGITUDE_LATITUDE}:
        return True
    return _parse(a).equals(_parse(b), ignore_axis_order=True)


@lru_cache(maxsize=256)
def is_geographic(crs: str) -> bool:
    """Return True if the axes of `crs` are longitude and latitude.

    >>> is_geographic("EPSG:4326"), is_geographic("EPSG:3857")
    (True, False)
    """
    return crs in ("EPSG:4326", LONGITUDE_LATITUDE) or _parse(crs).is_geographic


def common_crs(a: Any, b: Any) -> Crs | None:
    """Return the common CRS of two values; an unknown CRS fits any. Raise a CrsError that names both if they differ.

    >>> common_crs("EPSG:4326", None)
    'EPSG:4326'
    """
    one, other = Crs.of(a), Crs.of(b)
    if one is None or other is None:
        return one if other is None else other
    if not is_same_crs(one, other):
        raise CrsError(differing(one, other))
    return one


def differing(a: Crs, b: Crs) -> str:
    """Return the error text for two systems that differ."""
    return f"coordinate reference systems differ: {a.label} and {b.label}"


def metadata_crs(serialized: bytes | str | None) -> Crs | None:
    """Return the CRS that the metadata of a GeoArrow type names; unreadable metadata raise a CrsError.

    >>> metadata_crs(b'{"crs": "EPSG:25832"}')
    'EPSG:25832'
    """
    about = loaded(serialized or b"{}", "GeoArrow metadata")
    if not isinstance(about, dict):
        raise CrsError(f"GeoArrow metadata: need a JSON object, got {str(about)[:MAX_SHOWN_CHARS]!r}")
    return Crs.of(about.get("crs"))


def loaded(text: bytes | str, what: str) -> Any:
    """Parse JSON that names systems; raise a CrsError if it is too long, too deep or no JSON."""
    check_limit("crs_bytes", len(text), what)
    if nesting_of(text) > limit("nesting"):
        raise CrsError(f"{what}: nested deeper than {limit('nesting')} levels ({variable('nesting')})")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CrsError(f"{what}: not valid JSON: {error}") from error


class Named(NamedTuple):
    """Systems that rows name: row i names systems[codes[i]], or none if codes[i] is -1.

    A name that means no system is in `systems` as a CrsError.
    """

    codes: NDArray[np.int64]
    systems: tuple[Crs | CrsError, ...]


def named_by_srids(srids: NDArray[np.int64]) -> Named | None:
    """Return the systems of rows with these SRIDs (0 and less: none); None if no row names a system.

    >>> named_by_srids(np.array([-1, 4326]))
    Named(codes=array([-1,  0]), systems=('EPSG:4326',))
    """
    if not (srids > 0).any():
        return None
    distinct, codes = np.unique(srids, return_inverse=True)
    none = int(np.searchsorted(distinct, 0, side="right"))
    return Named(np.maximum(codes - none, -1), tuple(map(_of_srid, distinct[none:].tolist())))


def _of_srid(srid: int) -> Crs | CrsError:
    found = _tried(srid)
    return found if isinstance(found, Crs) else CrsError(f"SRID {srid} is not a known coordinate reference system")


def named_by_values(values: Sequence[Any]) -> Named | None:
    """Return the systems that `values` name, one per row; None if no row names a system."""
    distinct = {str(value): value for value in values if value is not None}
    if not distinct:
        return None
    places = {text: k for k, text in enumerate(distinct)}
    codes = [-1 if value is None else places[str(value)] for value in values]
    return Named(np.array(codes, np.int64), tuple(map(_tried, distinct.values())))


def crs_member(value: Any) -> Any:
    """Return the name in the member `crs` of GeoJSON 2008, or the member itself if it has no name."""
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None  # malformed as a geometry, too
    member = value.get("crs") if isinstance(value, dict) else None
    properties = member.get("properties") if isinstance(member, dict) else None
    return properties["name"] if isinstance(properties, dict) and "name" in properties else member


def _tried(value: Any) -> Crs | CrsError:
    try:
        made = Crs.of(value)
    except ValueError as error:  # a CrsError, or a LimitError
        return CrsError(str(error))
    assert made is not None
    return made


def resolved(named: Named | None, crs: Crs | None) -> tuple[Crs | None, dict[int, Rejection]]:
    """Return the CRS of a column: the given `crs`, or else that of the first row that names one.

    Also returns the rejections of rows that name another system or one that does not exist, by row.
    """
    if named is None:
        return crs, {}
    if crs is None:
        systems = (named.systems[code] for code in named.codes if code >= 0)
        crs = next((system for system in systems if isinstance(system, Crs)), None)
    faults = {k: fault for k, system in enumerate(named.systems) if (fault := _fault(system, crs)) is not None}
    rows = np.flatnonzero(np.isin(named.codes, list(faults))).tolist()
    return crs, {row: Rejection(row, *faults[int(named.codes[row])]) for row in rows}


def _fault(system: Crs | CrsError, crs: Crs | None) -> tuple[str, FaultCode] | None:
    """Return why rows that name a system are no rows of a column in `crs`; None if they are."""
    if isinstance(system, CrsError):
        return str(system), FaultCode.UNKNOWN_CRS
    if crs is None or is_same_crs(system, crs):
        return None
    return f"{differing(system, crs)} (the column's)", FaultCode.OTHER_CRS
