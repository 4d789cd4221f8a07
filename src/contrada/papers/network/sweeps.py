"""What the network experiment runs: all workloads and modes at one size, then brokers, shapes and sizes one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from contrada.errors import FormatError
from contrada.papers.exhibit import Row
from contrada.papers.network.peers import PEER_MODES
from contrada.papers.network.plan import NetworkSetting
from contrada.papers.network.run import MODES
from contrada.papers.network.workload import RECTANGLES, WORKLOADS

AXIS_WORKLOAD = "parcels 25:75"  # needs no files
AXIS_MODES = ("flooding", "covering", "withdrawal")
SHAPES = ("chain", "star")
SHAPE_MODES = CONTAINED_MODES = ("flooding", "covering")
EXACT_MODES = tuple(mode for mode in MODES if not mode.startswith("merging"))


@dataclass(frozen=True)
class Sweep:
    """The sizes of an experiment: those at which workloads are compared, and those along each axis."""

    stem: str  # of the files
    workloads: tuple[str, ...]
    brokers: int
    subscriptions: int
    messages: int
    brokers_axis: tuple[int, ...]
    shapes_axis: tuple[int, ...]
    contained_subscriptions: int  # with regions of which many lie within others
    subscriptions_axis: tuple[int, ...]
    axis_brokers: int  # along the axis of subscriptions
    largest: int | None  # subscriptions, with covering alone

    def base(self, workload: str, mode: str, seed: int) -> NetworkSetting:
        """Return the setting at which workloads and modes are compared."""
        return NetworkSetting(workload, mode, "tree", self.brokers, self.subscriptions, self.messages, seed)

    def settings(self, seed: int) -> list[NetworkSetting]:
        """Return all settings, each once, the largest last."""
        return list(dict.fromkeys(self._all(self.workloads, seed)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of subscriptions along their axis."""
        return self.subscriptions_axis if self.largest is None else (*self.subscriptions_axis, self.largest)

    def _all(self, workloads: Iterable[str], seed: int) -> Iterator[NetworkSetting]:
        for workload in workloads:
            modes = (*EXACT_MODES, *PEER_MODES) if workload in RECTANGLES else tuple(MODES)
            yield from (self.base(workload, mode, seed) for mode in modes)
        for workload in filter(is_contained, workloads):
            for mode in CONTAINED_MODES:
                yield replace(self.base(workload, mode, seed), subscriptions=self.contained_subscriptions)
        for mode in AXIS_MODES:
            base = self.base(AXIS_WORKLOAD, mode, seed)
            yield from (replace(base, brokers=count) for count in self.brokers_axis)
            large = replace(base, brokers=self.axis_brokers)
            yield from (replace(large, subscriptions=count) for count in self.subscriptions_axis)
        for mode in SHAPE_MODES:
            base = self.base(AXIS_WORKLOAD, mode, seed)
            yield from (replace(base, topology=shape, brokers=n) for shape in SHAPES for n in self.shapes_axis)
        if self.largest is not None:
            base = self.base(AXIS_WORKLOAD, "covering", seed)
            yield replace(base, brokers=self.axis_brokers, subscriptions=self.largest)


FULL = Sweep(
    stem="network", workloads=WORKLOADS, brokers=15, subscriptions=2_000, messages=1_000,
    brokers_axis=(1, 3, 7, 15, 31, 63, 127), shapes_axis=(7, 15, 31, 63, 127), contained_subscriptions=10_000,
    subscriptions_axis=(100, 1_000, 10_000),
    axis_brokers=31, largest=100_000,
)  # fmt: skip
QUICK = Sweep(
    stem="network_quick", workloads=("rectangles", "rectangles 25:75", "parcels 25:75"), brokers=7, subscriptions=200,
    messages=40, brokers_axis=(1, 3, 7), shapes_axis=(3, 7), contained_subscriptions=400,
    subscriptions_axis=(100, 200), axis_brokers=7, largest=None,
)  # fmt: skip


def is_contained(workload: str) -> bool:
    """Return True for regions of which many lie within others."""
    return ":" in workload and workload not in RECTANGLES


def setting_of(row: Row) -> NetworkSetting:
    """Return the setting of a row; raise FormatError if it has none."""
    try:
        return NetworkSetting(**{field.name: row[field.name] for field in fields(NetworkSetting)})
    except KeyError as error:
        raise FormatError(f"it has no {error}") from None


def find(rows: Iterable[Row], setting: NetworkSetting) -> Row | None:
    """Return the row of a setting, if it was measured."""
    return next((row for row in rows if setting_of(row) == setting), None)


def value_of(row: Row | None, name: str) -> Any:
    """Return a value of a row, by a name such as `settling.mean`; NaN if there is none."""
    found: Any = row
    for part in name.split("."):
        found = float("nan") if not isinstance(found, dict) or part not in found else found[part]
    return found
