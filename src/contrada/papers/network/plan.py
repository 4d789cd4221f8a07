"""The settings of a run, and where everything of it happens; the mode of forwarding plays no part in that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contrada.papers.network.workload import Publisher, Workload, workload_of

CLIENTS = 4  # of each broker
PUBLISHERS = 4  # at brokers of their own, each with messages from one part of the first axis
LEAVING = 0.2  # of all subscriptions


@dataclass(frozen=True, slots=True)
class NetworkSetting:
    """The parameters of one run."""

    workload: str
    mode: str
    topology: str = "tree"
    brokers: int = 31
    subscriptions: int = 2_000
    messages: int = 1_000
    seed: int = 1

    def __str__(self) -> str:
        return f"{self.workload}, {self.mode}, {self.topology} of {self.brokers}, {self.subscriptions:,} subscriptions"


class Plan(NamedTuple):
    """Where everything of a run happens: the broker of each subscription, and the broker of each publisher."""

    work: Workload
    homes: list[str]
    publishers: list[tuple[str, Publisher]]
    leaving: npt.NDArray[np.int64]

    def client(self, row: int) -> str:
        """Return the client of a subscription."""
        return f"{self.homes[row]}/{row % CLIENTS}"


def plan_of(setting: NetworkSetting, data: Path | None) -> Plan:
    """Draw the workload and the places; the mode plays no part in it."""
    work = workload_of(setting.workload, setting.subscriptions, setting.messages, setting.seed, data)
    rng = np.random.default_rng([setting.seed, setting.brokers])
    homes = [f"b{number}" for number in rng.integers(0, setting.brokers, setting.subscriptions).tolist()]
    places = rng.permutation(setting.brokers)[: min(PUBLISHERS, setting.brokers)].tolist()
    publishers = [(f"b{at}", one) for at, one in zip(places, work.publishers(len(places)), strict=True)]
    return Plan(work, homes, publishers, rng.permutation(setting.subscriptions)[: int(LEAVING * setting.subscriptions)])
