"""A model of tracked subscriptions, in plain Python: fences are boxes, and objects enter and leave them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Fence(NamedTuple):
    """A box with its edges; if `least` is given, only fixes with that speed or more count."""

    x: int
    y: int
    width: int
    height: int
    least: int | None = None

    def holds(self, fix: ModelFix) -> bool:
        """Return True if a fix satisfies the filter."""
        is_in = self.x <= fix.x <= self.x + self.width and self.y <= fix.y <= self.y + self.height
        return is_in and (self.least is None or (isinstance(fix.speed, int) and fix.speed >= self.least))

    @property
    def filter(self) -> str:
        """The filter in CQL2."""
        box = f"BBOX({self.x}, {self.y}, {self.x + self.width}, {self.y + self.height})"
        return f"S_INTERSECTS(geometry, {box})" + ("" if self.least is None else f" AND speed >= {self.least}")


class ModelFix(NamedTuple):
    """A message about an object; one without an object is about nothing that is tracked."""

    object: str | int | None
    x: int
    y: int
    speed: Any = 0

    def feature(self) -> dict[str, Any]:
        """Return the message."""
        properties = {"speed": self.speed} | ({} if self.object is None else {"bus": self.object})
        return {
            "type": "Feature", "properties": properties, "geometry": {"type": "Point", "coordinates": [self.x, self.y]},
        }  # fmt: skip


class TrackModel:
    """Which objects are inside of which fences; each call returns the events in order, as (key, object, kind)."""

    def __init__(self) -> None:
        self.fences: dict[str, Fence] = {}
        self._inside: dict[tuple[str, str | int], bool] = {}

    def put(self, key: str, fence: Fence) -> set[tuple[str, str | int, str]]:
        """Add or replace a fence; return the exits from the old one."""
        if self.fences.get(key) == fence:
            return set()
        left = self.delete(key)
        self.fences[key] = fence
        return left

    def delete(self, key: str) -> set[tuple[str, str | int, str]]:
        """Remove a fence; return the exits."""
        self.fences.pop(key, None)
        gone = {one for one in self._inside if one[0] == key}
        return {(*one, "exit") for one in gone if self._inside.pop(one)}

    def fix(self, fix: ModelFix) -> list[tuple[str, str | int, str]]:
        """Take a fix; return its events by rising key."""
        found = []
        for key in sorted(self.fences) if fix.object is not None else ():
            assert fix.object is not None
            was, now = self._inside.get((key, fix.object), False), self.fences[key].holds(fix)
            self._inside[key, fix.object] = now
            if was != now:
                found.append((key, fix.object, "enter" if now else "exit"))
        return found

    def inside(self) -> int:
        """Return how many pairs of an object and a fence there are."""
        return sum(self._inside.values())
