"""Collect the attributes of a message from JSON objects: nested names are dotted, geometry objects are values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from contrada.cql2.shown import short
from contrada.errors import ContradaError, FormatError
from contrada.formats.message_values import is_value, value_of
from contrada.formats.spatial import Spatial
from contrada.formats.times import instant_of
from contrada.limits import check_limit, limit

_JSON_TYPES = frozenset((str, int, float, bool, list))  # types of values that are kept as they are


class Attributes:
    """Collects the attributes of one message; two values for one name are an error.

    Null is an absent attribute; an array stays a list, which only operators of added types can test.

    >>> Attributes(Spatial(), ("at",)).add_all({"wind": {"speed": 12.5}, "gone": None, "at": "2024-05-01"}).values
    {'wind.speed': 12.5, 'at': datetime.datetime(2024, 5, 1, 0, 0, tzinfo=datetime.timezone.utc)}
    """

    def __init__(self, spatial: Spatial, times: Collection[str] = (), crs: str | None = None) -> None:
        self.values: dict[str, Any] = {}
        self._spatial, self._times, self._crs = spatial, times, crs
        self._longest, self._most = limit("name_bytes"), limit("attributes")

    def add_all(self, members: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Attributes:
        """Add the members of an object and of the objects within it."""
        check_limit("nesting", depth, f"object {prefix[:60]!r}")
        check_limit("name_bytes", len(prefix), f"attribute {prefix[:40]}...")
        for name, value in members.items():
            full = prefix + str(name)
            if isinstance(value, Mapping) and not is_value(value):
                self.add_all(value, full + ".", depth + 1)
            else:
                self.add(full, value)
        return self

    def add(self, name: str, value: Any) -> None:
        """Add one attribute, unless it is null."""
        if value is None:
            return
        if name in self.values:
            raise FormatError(f"duplicate attribute {name[:60]!r}")
        if len(name) > self._longest:
            check_limit("name_bytes", len(name), f"attribute {name[:40]}...")
        if len(self.values) >= self._most:
            check_limit("attributes", len(self.values) + 1, "the message")
        if name in self._times and isinstance(value, str | bool | int | float | list):
            self.values[name] = _instant_at(name, value)
            return
        read = value if type(value) in _JSON_TYPES else value_of(name, value, self._spatial, self._crs)
        if read is not None:
            self.values[name] = read

    def merge(self, values: Mapping[str, Any]) -> None:
        """Add attributes that have been read."""
        for name in self.values.keys() & values.keys():
            raise FormatError(f"duplicate attribute {name[:60]!r}")
        self.values.update(values)


def _instant_at(name: str, value: Any) -> Any:
    """Parse the text of a member as an instant."""
    try:
        if not isinstance(value, str):
            raise FormatError(f"{short(value)} is not a timestamp; need text")
        return instant_of(value)
    except ContradaError as error:
        raise type(error)(f"attribute {name!r}: {error}") from error
