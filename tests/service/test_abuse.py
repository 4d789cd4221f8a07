"""Mutated bodies, paths, queries and headers against a server: a clear 4xx or an answer, never a 5xx, never a leak."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote

import aiohttp
import geopandas
import pytest
import shapely
from yarl import URL

from effort import slow, thorough
from hostile.mutation import mutated
from served import ADMIN, Served, served

AT_ONCE = 8
PLACES = ("Traceback", str(Path(__file__).parents[2]))  # in no answer
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
FEATURE = {"type": "Feature", "id": "a", "properties": {"depth": 2.5, "kind": "flood"}, "geometry": SQUARE}
EVENT = {
    "specversion": "1.0",
    "id": "7",
    "source": "/gauge",
    "type": "level",
    "data": FEATURE,
    "time": "2026-05-01T12:00:00Z",
}
CAP = """<?xml version="1.0" encoding="UTF-8"?>
<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>A-1</identifier><sender>x@example.org</sender>
<sent>2026-05-01T12:00:00+00:00</sent><status>Actual</status><msgType>Alert</msgType><scope>Public</scope>
<info><category>Met</category><event>Flood</event><urgency>Immediate</urgency><severity>Severe</severity>
<certainty>Observed</certainty><area><areaDesc>Siena</areaDesc><polygon>43,11 43,12 44,12 43,11</polygon>
<circle>43,11 5</circle></area></info></alert>"""
FILTER = {"op": "and", "args": [
    {"op": ">=", "args": [{"property": "depth"}, 2]},
    {"op": "s_intersects", "args": [{"property": "geometry"}, SQUARE]},
]}  # fmt: skip
TEXT = "depth >= 2 AND S_INTERSECTS(geometry, POLYGON ((0 0, 4 0, 4 4, 0 0))) OR kind LIKE 'fl%'"
ASKED = {"subscriber": "ann", "filter": TEXT, "on": "match", "expires": "2036-05-01T12:00:00Z", "paused": False}
TEMPLATE = f"/subscriptions?template={quote('S_INTERSECTS(geometry, $geometry) AND depth > $depth')}"


class Case(NamedTuple):
    """A good request: method, path, content type and body."""

    method: str
    path: str
    kind: str
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


def parquet() -> bytes:
    frame = geopandas.GeoDataFrame(
        {"key": ["p", "q"], "depth": [1.0, 2.0]}, geometry=[shapely.box(0, 0, 1, 1)] * 2, crs=4326
    )
    file = io.BytesIO()
    frame.to_parquet(file)
    return file.getvalue()


ROWS = {"type": "FeatureCollection", "features": [
    {"type": "Feature", "properties": {"key": "r", "depth": 1.5}, "geometry": SQUARE}
]}  # fmt: skip
COLLECTION = {"type": "FeatureCollection", "features": [FEATURE] * 3}
TIMED = {"subscriber": "bob", "filter": FILTER, "ttl": 60.5}
LINES = dumped({"key": "a", **ASKED}) + b"\n" + dumped({"key": 7, "filter": FILTER})
KEY = {"name": "n", "tenant": "t", "scopes": ["publish"], "expires": "2036-01-01T00:00:00Z"}
BINARY = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/a", "ce-type": "b"}
FAMILIES = {
    "messages": [
        Case("POST", "/messages", "application/geo+json", dumped(FEATURE)),
        Case("POST", "/messages", "application/json", dumped({"depth": 3, "at": "2026-05-01", "geometry": SQUARE})),
        Case("POST", "/messages", "application/json", dumped({"depth": 3}), {"Message-Id": "m"}),
        Case("POST", "/messages", "application/geo+json", dumped(COLLECTION)),
        Case("POST", "/messages", "application/x-ndjson", dumped(FEATURE) + b"\n" + dumped({"depth": 1})),
        Case("POST", "/messages", "application/geo+json-seq", b"\x1e" + dumped(FEATURE) + b"\n\x1e" + dumped(FEATURE)),
        Case("POST", "/messages", "application/cloudevents+json", dumped(EVENT)),
        Case("POST", "/messages", "application/cloudevents-batch+json", dumped([EVENT, EVENT])),
        Case("POST", "/messages", "application/json", dumped(FEATURE), BINARY),
        Case("POST", "/messages", "application/cap+xml", CAP.encode()),
    ],
    "subscriptions": [
        Case("PUT", "/subscriptions/k", "application/json", dumped(ASKED)),
        Case("PUT", "/subscriptions/j", "application/json", dumped(TIMED)),
        Case("PATCH", "/subscriptions/k", "application/json", b'{"paused": true}'),
    ],
    "bulk": [
        Case("POST", "/subscriptions", "application/x-ndjson", LINES),
        Case("POST", TEMPLATE, "application/geo+json", dumped(ROWS)),
        Case("POST", TEMPLATE, "application/vnd.apache.parquet", parquet()),
    ],
    "trials": [
        Case("POST", "/dry-run", "application/json", dumped({"filter": TEXT, "from": 1, "limit": 5})),
        Case("POST", "/dry-run", "application/json", dumped({"filter": FILTER, "since": "2026-05-01T12:00:00Z"})),
        Case("POST", "/subscriptions/kept/explain", "application/json", dumped(FEATURE)),
        Case("POST", "/subscriptions/kept/explain", "application/cloudevents+json", dumped(EVENT)),
    ],
    "others": [
        Case("POST", "/subscribers/ann/ack", "application/json", b'{"id": "1.1"}'),
        Case("POST", "/keys", "application/json", dumped(KEY)),
    ],
}  # fmt: skip
QUERIES = (
    "/subscribers/ann/events?from=1&wait=0&limit=10&format=events",
    "/subscribers/ann/events?since=2026-05-01T12:00:00Z&wait=0",
    "/subscribers/ann/events?after=1.1&wait=0&token=abc",
    "/subscriptions?subscriber=ann&prefix=k&after=a&limit=10",
    "/subscribers?after=a&limit=3",
    "/subscriptions/k",
    "/keys/t/n",
    "/problems/bad-body",
)


def mutants(cases: list[Case], rng: Random) -> Iterator[Case]:
    """Yield cases with one to three changes in the body, for ever."""
    bodies = [case.body for case in cases]
    while True:
        case = rng.choice(cases)
        body = case.body
        for _ in range(rng.choice((1, 1, 2, 3))):
            body = mutated(rng, body, bodies)
        yield case._replace(body=body)


def odd_paths(rng: Random) -> Iterator[Case]:
    """Yield requests with changed paths, queries and headers, for ever."""
    while True:
        base = rng.choice(QUERIES)
        text = mutated(rng, base.encode(), [one.encode() for one in QUERIES])
        method = rng.choice(("GET", "GET", "GET", "PUT", "DELETE", "POST", "PATCH", "OPTIONS", "HEAD"))
        path = "/" + quote(text.lstrip(b"/"), safe="/?&=%:.")
        odd = mutated(rng, b"1.1", [b"7.7"]).decode("latin-1")
        headers = {"Last-Event-ID": "".join(one for one in odd if one.isprintable())[:200]}
        if method != "DELETE" or "keys" not in path:
            yield Case(method, path, "application/json", b"{}", headers | {"Accept": "application/json"})


def fault(case: Case, status: int, kind: str, text: str) -> str | None:
    """Say what is wrong with an answer; None if it is an answer or a clear refusal."""
    if status >= 500 or (status >= 400 and kind != "application/problem+json" and case.method != "HEAD"):
        is_bulk = status == 422 and '"rejected":' in text
        return None if is_bulk else f"{status} {text[:300]}: {case!r:.600}"
    if status >= 400 and any(place in text for place in PLACES):
        return f"an answer names places of the server: {text[:300]}"
    return None


async def send_all(server: Served, cases: Iterator[Case], count: int, faults: list[str]) -> None:
    timeout = aiohttp.ClientTimeout(total=120)

    async def work(session: aiohttp.ClientSession, share: int) -> None:
        for _ in range(share):
            case = next(cases)
            headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": case.kind, **case.headers}
            url = URL(server.url + case.path, encoded=True)
            try:
                async with session.request(
                    case.method, url, data=case.body, headers=headers, allow_redirects=False
                ) as answer:
                    text = (await answer.read()).decode("utf-8", "replace")
                    found = fault(case, answer.status, answer.headers.get("Content-Type", ""), text)
            except aiohttp.ClientError as error:
                found = f"{error!r}: {case!r:.600}"
            if found:
                faults.append(found)

    async with aiohttp.ClientSession(timeout=timeout) as session:
        await asyncio.gather(*(work(session, count // AT_ONCE) for _ in range(AT_ONCE)))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("abuse") / "state") as running:
        kept = Case("PUT", "/subscriptions/kept", "application/json", dumped({"subscriber": "ann", "filter": TEXT}))
        faults: list[str] = []
        asyncio.run(send_all(running, iter([kept] * AT_ONCE), AT_ONCE, faults))
        assert faults == []
        yield running
        assert running.process.poll() is None


@pytest.mark.parametrize("count", [160, slow(2_500), thorough(10_000)])
@pytest.mark.parametrize("family", FAMILIES)
def test_mutated_bodies_get_an_answer_or_a_clear_refusal(server, family, count):
    faults: list[str] = []
    asyncio.run(send_all(server, mutants(FAMILIES[family], Random(count)), count, faults))
    assert faults == []


@pytest.mark.parametrize("count", [400, slow(2_500), thorough(10_000)])
def test_mutated_paths_and_queries_get_an_answer_or_a_clear_refusal(server, count):
    faults: list[str] = []
    asyncio.run(send_all(server, odd_paths(Random(count)), count, faults))
    assert faults == []
