"""What the programs of databases share: messages are asked one by one, and the quickest plan's answers are written.

Runs in the environment build/peers, without Contrada.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

Plan = tuple[float, list[list[int]]]  # mean seconds of a message, and the rows of each


def ask_each(ask: Callable[[Any], Any], messages: Sequence[Any]) -> Plan:
    """Return the mean seconds and the sorted rows of each message, after the first message to warm up."""
    ask(messages[0])
    seconds, rows = 0.0, []
    for message in messages:
        start = time.perf_counter()
        found = ask(message)
        seconds += time.perf_counter() - start
        rows.append(sorted(found.tolist()))
    return seconds / len(messages), rows


def write_quickest(plans: dict[str, Plan], path: str) -> None:
    """Write the quickest plan's name, seconds and rows, and the seconds of all."""
    best = min(plans, key=lambda name: plans[name][0])
    seconds, rows = plans[best]
    times = {name: seconds for name, (seconds, _) in plans.items()}
    with open(path, "w") as file:
        json.dump({"plan": best, "plans": times, "seconds": seconds, "rows": rows}, file)
