"""Tracked objects: messages with the same tracking id are states of one object; subscribers hear when it changes."""

from contrada.tracking.durations import duration_ms
from contrada.tracking.fixes import Fixes, FixReader, read_fixes
from contrada.tracking.tracker import Tracker, TrackEvent, TrackEvents
from contrada.tracking.tracks import Inside, Tracks
from contrada.tracking.transitions import REASONS, Transition, Transitions
from contrada.tracking.watch import KINDS, Watch, kinds_of, watch_of

__all__ = [
    "KINDS",
    "REASONS",
    "FixReader",
    "Fixes",
    "Inside",
    "TrackEvent",
    "TrackEvents",
    "Tracker",
    "Tracks",
    "Transition",
    "Transitions",
    "Watch",
    "duration_ms",
    "kinds_of",
    "read_fixes",
    "watch_of",
]
