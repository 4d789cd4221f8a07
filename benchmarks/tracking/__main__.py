"""Tracked objects in this process: positions per second, and bytes of state.

    python -m benchmarks.tracking [--quick] [--seed 7] [--write]

100,000 fences and points that move; batches in Arrow, enter and exit. The peer is what a user of Shapely writes: all
points of a batch against one `STRtree`, then a dictionary of sets. Events are compared with the peer's. Writes
build/bench/tracking.json.
"""

from benchmarks.command import run_sections
from benchmarks.tracking import positions

SECTIONS = {"positions": positions.by_objects}

if __name__ == "__main__":
    run_sections("tracking", __doc__, SECTIONS)
