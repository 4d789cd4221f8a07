"""What a subscription asks of tracked objects, as arguments of the clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypedDict

from contrada.errors import ArgumentError


class TrackOptions(TypedDict, total=False):
    """Arguments of `subscribe` and `dry_run` for tracked objects; docs/serve.md says what each means.

    Durations are text such as "5m", seconds, or a timedelta: `on=["enter", "exit", {"dwell": "5m"}]`.
    """

    track: str
    on: Sequence[str | Mapping[str, Any]]
    exit_buffer: float
    exit_after: str | float | timedelta
    time: str
    first: Literal["enter", "silent"]
    late: Literal["ignore", "arrival"]


def track_members(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a request; raise ArgumentError for an argument that there is not.

    >>> track_members({"track": "bus", "on": ["exit", {"dwell": timedelta(minutes=5)}]})
    {'track': 'bus', 'on': ['exit', {'dwell': 300.0}]}
    """
    for name in options.keys() - TrackOptions.__annotations__.keys():
        raise ArgumentError(f"there is no argument {name!r:.60}; need one of {', '.join(TrackOptions.__annotations__)}")
    return {name: _plain(value) for name, value in options.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def track_query(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the members of a request as parameters of a query.

    >>> track_query({"track": "bus", "on": ["exit", {"dwell": "5m"}], "exit_buffer": 0.5})
    {'track': 'bus', 'on': 'exit,dwell(5m)', 'exit_buffer': '0.5'}
    """
    members = track_members(options)
    if "on" in members:
        kinds = [kind if isinstance(kind, str) else f"dwell({_seconds(kind['dwell'])})" for kind in members["on"]]
        members["on"] = ",".join(kinds)
    if "exit_after" in members:
        members["exit_after"] = _seconds(members["exit_after"])
    return {name: str(value) for name, value in members.items()}


def _seconds(value: Any) -> Any:
    return f"{value}s" if isinstance(value, int | float) else value
