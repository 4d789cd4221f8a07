"""Traces: record the operations on a simulated overlay and every note that arrived, to replay and compare.

A trace is lines of JSON: the set-up, then in order operations (`do`) and arrived notes (`note`: time, sender, receiver,
kind, and a hash of the content).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO, cast

import msgspec

from contrada.errors import OverlayError
from contrada.overlay.protocol import AnyNote, PeerId
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.network import Network
from contrada.overlay.simulation.simulator import MessageSpread, Simulator


class TracedSimulator:
    """A simulator that writes its operations to a file; only the operations offered here are traced."""

    def __init__(
        self, target: TextIO, rules: Rules | None = None, seed: int = 0, network: Network | None = None
    ) -> None:
        self.simulator = Simulator(rules, seed, network)
        self.simulator.watch = lambda *arrived: self._write({"note": _line(*arrived)})
        self._target = target
        setup = {"rules": asdict(self.simulator.rules), "seed": seed, "network": _network(network)}
        self._write({"overlay": setup})

    def add(self, boxes: Sequence[Sequence[float]]) -> PeerId:
        """Add a peer."""
        return cast("PeerId", self._do("add", boxes))

    def remove(self, id: PeerId) -> None:
        """Let a peer leave."""
        self._do("remove", id)

    def crash(self, id: PeerId) -> None:
        """Let a peer vanish."""
        self._do("crash", id)

    def corrupt(self, id: PeerId) -> None:
        """Corrupt the tables of a peer."""
        self._do("corrupt", id)

    def publish(self, where: Sequence[float], at: PeerId | None = None) -> MessageSpread:
        """Publish a message."""
        return cast("MessageSpread", self._do("publish", where, at))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self._do("run", seconds)

    def change_network(self, network: Network) -> None:
        """Replace the network."""
        self._write({"do": ["network", _network(network)]})
        self.simulator.network = network

    def _do(self, what: str, *arguments: Any) -> Any:
        self._write({"do": [what, *arguments]})
        return getattr(self.simulator, what)(*arguments)

    def _write(self, record: dict[str, Any]) -> None:
        self._target.write(json.dumps(record) + "\n")


def replay(path: Path) -> Simulator:
    """Replay a trace and compare every note; raise OverlayError naming the first line that differs."""
    try:
        with path.open(encoding="utf-8") as lines:
            records = ((number, _read(number, line)) for number, line in enumerate(lines, 1))
            first = next(records, (1, {}))[1].get("overlay")
            if first is None:
                raise OverlayError(f"{path} is not a trace of an overlay: the first line has no member 'overlay'")
            network = None if first["network"] is None else Network(**first["network"])
            simulator = Simulator(Rules(**first["rules"]), first["seed"], network)
            arrived: list[list[Any]] = []
            simulator.watch = lambda *note: arrived.append(_line(*note))
            _follow(simulator, records, arrived)
            return simulator
    except OverlayError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise OverlayError(
            f"{path} is not a trace of an overlay: {type(error).__name__}: {str(error)[:200]}"
        ) from error


def _follow(simulator: Simulator, records: Iterator[tuple[int, dict[str, Any]]], arrived: list[list[Any]]) -> None:
    for number, record in records:
        if "note" in record:
            if not arrived or arrived.pop(0) != record["note"]:
                raise OverlayError(f"line {number}: the replay did not send this note: {str(record['note'])[:200]}")
            continue
        if arrived:
            raise OverlayError(
                f"line {number}: the replay sent a note that is not in the trace: {str(arrived[0])[:200]}"
            )
        match record["do"]:
            case ["network", network]:
                simulator.network = Network(**network)
            case [("add" | "remove" | "crash" | "corrupt" | "publish" | "run") as what, *arguments]:
                getattr(simulator, what)(*arguments)
            case other:
                raise OverlayError(f"line {number}: unknown action {str(other)[:200]}")
    if arrived:
        raise OverlayError(f"the replay sent a note after the end of the trace: {str(arrived[0])[:200]}")


def _read(number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise OverlayError(f"line {number} of the trace is not valid JSON: {error}") from error
    if not isinstance(record, dict):
        raise OverlayError(f"line {number} of the trace is not an object")
    return record


def _network(network: Network | None) -> dict[str, float] | None:
    return None if network is None else asdict(network)


def _line(time: float, sender: PeerId, to: PeerId, note: AnyNote) -> list[Any]:
    digest = hashlib.sha256(msgspec.msgpack.encode(note)).hexdigest()[:16]
    return [time, sender, to, type(note).__name__, digest]
