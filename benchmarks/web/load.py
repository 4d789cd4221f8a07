"""Subscriptions and messages for the map: thousands of areas over a country, and storms that move across it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import numpy as np

BOUNDS = (7.0, 37.0, 18.0, 47.0)  # degrees
CORNERS = 12
RADIUS, STORM = 0.08, 0.12  # degrees: a storm matches about three of 10,000 areas
STORMS = 40
POSTS = 20  # a second


def polygon(x: float, y: float, radius: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return a polygon of GeoJSON around a place, with corners at uneven distances."""
    angles = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)
    reach = radius * rng.uniform(0.7, 1.2, CORNERS)
    ring = np.column_stack([x + reach * np.cos(angles), y + reach * np.sin(angles)]).round(6).tolist()
    return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}


def subscriptions(count: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield rows for `POST /subscriptions`: areas that want to know of storms of some severity."""
    places = rng.uniform(BOUNDS[:2], BOUNDS[2:], (count, 2)).tolist()
    for number, (x, y) in enumerate(places):
        area = polygon(x, y, RADIUS, rng)
        asked = [
            {"op": "s_intersects", "args": [{"property": "geometry"}, area]},
            {"op": ">=", "args": [{"property": "severity"}, number % 3]},
        ]
        yield {
            "key": f"area-{number:05}",
            "subscriber": f"office-{number % 50}",
            "filter": {"op": "and", "args": asked},
        }


def storms(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield messages for ever: storms by turns, each a little further than before."""
    places = rng.uniform(BOUNDS[:2], BOUNDS[2:], (STORMS, 2))
    headings = rng.uniform(0, 2 * np.pi, STORMS)
    while True:
        for storm in range(STORMS):
            places[storm] += 0.02 * np.array([np.cos(headings[storm]), np.sin(headings[storm])])
            if not (BOUNDS[0] < places[storm, 0] < BOUNDS[2] and BOUNDS[1] < places[storm, 1] < BOUNDS[3]):
                places[storm] = rng.uniform(BOUNDS[:2], BOUNDS[2:])
            x, y = places[storm].tolist()
            yield {
                "storm": f"storm {storm}",
                "severity": int(rng.integers(0, 4)),
                "geometry": polygon(x, y, STORM, rng),
            }


def post(connection: HTTPConnection, path: str, key: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Post rows as newline JSON and return the answer; an error ends the benchmark."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
    connection.request("POST", path, "\n".join(map(json.dumps, rows)), headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 300:
        raise SystemExit(f"POST {path}: {answer.status} {text[:300]!r}")
    found: dict[str, Any] = json.loads(text)
    return found


def subscribe_all(port: int, key: str, count: int, rng: np.random.Generator) -> None:
    """Upload so many subscriptions."""
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    rows = list(subscriptions(count, rng))
    for start in range(0, count, 1000):
        post(connection, "/subscriptions", key, rows[start : start + 1000])
    connection.close()


class Publisher:
    """Publishes storms at a steady rate until it is stopped."""

    def __init__(self, port: int, key: str, rate: float, rng: np.random.Generator) -> None:
        self._port, self._key, self._rate, self._messages = port, key, rate, storms(rng)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.last = 0  # sequence number
        self.count = 0
        self.error: BaseException | None = None

    def _run(self) -> None:
        try:
            self._publish()
        except BaseException as error:
            self.error = error

    def _publish(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        start = time.monotonic()
        for turn in range(1, 10**9):
            size = round(self._rate * turn / POSTS) - self.count
            answer = post(connection, "/messages", self._key, [next(self._messages) for _ in range(size)])
            self.last, self.count = answer["last"], self.count + size
            if self._stopped.wait(max(0.0, start + turn / POSTS - time.monotonic())):
                break
        connection.close()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and raise what went wrong."""
        self._stopped.set()
        self._thread.join()
        if self.error is not None:
            raise self.error


@contextmanager
def publishing(port: int, key: str, rate: float, rng: np.random.Generator) -> Iterator[Publisher]:
    """Publish so many messages a second until the block ends."""
    publisher = Publisher(port, key, rate, rng)
    publisher.start()
    try:
        yield publisher
    finally:
        publisher.stop()
