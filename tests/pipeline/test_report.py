"""The report: numbers equal to the tables', one page that needs nothing else, and nothing that data can break."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import pyarrow as pa
import pytest
import shapely
from report_cards import cards

import contrada as ct
from contrada.pipeline import write_report
from contrada.report import report
from contrada.report.numbers import Bin, Numbers
from contrada.report.page import Making
from contrada.report.sample import DrawnSample
from effort import slow
from generators.filters_of_every_kind import expected

START = datetime(2026, 5, 1, tzinfo=UTC)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \"quoted\" 'too' %%title {x}"
SCHEMAS = {
    "messages": "message_id long, event string, onset timestamp, area binary",
    "subscriptions": "key string, subscriber string, filter string, geometry binary",
    "matches": "message_id long, subscriber string, key string",
    "rejected": "message_id long, reason string",
}
VOID = {"meta", "br", "img", "input", "link", "hr"}


class Parsed(HTMLParser):
    """A page as text, elements, and what its elements hold by class or id; complains about tags that do not pair."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[tuple[tuple[str, ...], str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append((tuple(self.open), data))

    def within(self, *tags: str) -> list[str]:
        """The texts that stand directly in the innermost of these tags."""
        return [text for path, text in self.text if path[-len(tags) :] == tags and text.strip()]


def box(x: float, size: float = 2.0) -> bytes:
    return ct.Region.box(x, 0, x + size, size).to_wkb()


@pytest.fixture(scope="module")
def run(spark):
    """Forty messages that walk over thirty subscriptions, matched in one process; three are rejected."""
    subscriptions = [
        (f"s{n}", f"team {n % 4}", f"S_INTERSECTS(area, POLYGON(({n} 0, {n + 1} 0, {n + 1} 1, {n} 0)))", box(n, 0.9))
        for n in range(30)
    ]
    messages = [(n, "storm", START + timedelta(minutes=7 * n), box(n * 0.8, 1 + n % 5)) for n in range(40)]
    for bad in (4, 9, 20):
        messages[bad] = (*messages[bad][:3], shapely.to_wkb(shapely.from_wkt("POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))")))
    table = ct.ForwardingTable()
    for key, subscriber, asked, _ in subscriptions:
        table.subscribe(subscriber, asked, key=key)
    areas = {"message_id": range(40), "area": [area for *_, area in messages]}
    matches, rejected = expected(table, pa.table(areas))
    rows = {"messages": messages, "subscriptions": subscriptions, "matches": matches, "rejected": rejected}
    tables = {name: spark.createDataFrame(rows[name], schema) for name, schema in SCHEMAS.items()}
    return SimpleNamespace(rows=SimpleNamespace(**rows), tables=tables)


class Reported(NamedTuple):
    """A page, and what it was made of."""

    page: str
    numbers: Numbers
    sample: DrawnSample
    making: Making


def reported(path: Path, tables: dict, **told) -> Reported:
    with mock.patch.object(report, "render", wraps=report.render) as rendered:
        assert write_report(path, **tables, **{"title": "A walk", **told}) == path
    return Reported(path.read_text(encoding="utf-8"), *rendered.call_args_list[0].args)


@pytest.fixture(scope="module")
def walk(spark, run, tmp_path_factory) -> Reported:
    rows = [("a.geojson", 3, "coordinate is not finite near (1.5, nan)"), ("a.geojson", 8, "no geometry")]
    rows += [("b.parquet", n, f"self-intersection near ({n}.25, 7)") for n in range(5)]
    quarantine = spark.createDataFrame(rows, "file string, row long, reason string")
    path = tmp_path_factory.mktemp("report") / "new" / "report.html"
    seconds = {"ingest": 3.0, "match": 2.0}
    return reported(path, run.tables, quarantine=quarantine, seconds=seconds, attribution="© X")


def bins_of(values: list[int]) -> dict[tuple[int, int], int]:
    """A histogram a second time: 0, 1, 2-3, 4-7, ..."""
    found: Counter[tuple[int, int]] = Counter()
    for value in values:
        low = 0 if value == 0 else 2 ** (value.bit_length() - 1)
        found[low, max(0, 2 * low - 1)] += 1
    return dict(found)


def as_dict(bins: tuple[Bin, ...]) -> dict[tuple[int, int], int]:
    return {(found.low, found.high): found.count for found in bins if found.count}


def test_headline_numbers_are_the_tables(walk, run):
    rows, found = run.rows, cards(walk.page)
    matched = {number for number, _, _ in rows.matches}
    refused = {number for number, _ in rows.rejected}
    lonely = len(rows.messages) - len(matched) - len(refused)
    assert len(refused) == 3
    assert lonely > 0
    assert found.pop("Without a match").startswith(f"{100 * lonely / 40:.1f}".removesuffix(".0"))
    counts = {"Messages": "40", "Subscriptions": "30", "Matches": str(len(rows.matches))}
    assert found == {**counts, "Rejected": "3", "Quarantined": "7"}
    assert "20 per second" in walk.page  # forty messages in the two seconds of the match
    assert "© X" in walk.page


def test_distributions_are_the_tables(run, walk):
    rows, numbers = run.rows, walk.numbers
    refused = {number for number, _ in rows.rejected}
    per_message = Counter(number for number, _, _ in rows.matches)
    per_key = Counter(key for _, _, key in rows.matches)
    assert as_dict(numbers.per_message) == bins_of([per_message[n] for n in range(40) if n not in refused])
    assert as_dict(numbers.per_subscription) == bins_of([per_key[key] for key, *_ in rows.subscriptions])
    busiest = sorted(per_key.items(), key=lambda item: (-item[1], item[0]))[: len(numbers.busiest)]
    assert [(busy.key, busy.matches) for busy in numbers.busiest] == busiest
    assert numbers.with_match + numbers.without_match + numbers.unread == numbers.messages == 40


def test_time_is_cut_evenly_and_loses_nothing(run, walk):
    rows, numbers = run.rows, walk.numbers
    assert numbers.bucket == 5 * 60
    starts = [moment.start for moment in numbers.over_time]
    assert {after - before for before, after in pairwise(starts)} == {numbers.bucket}
    expected, matches = Counter(), Counter(number for number, _, _ in rows.matches)
    for number, _, onset, _ in rows.messages:
        expected[int(onset.timestamp()) // 300 * 300] += matches[number]
    assert {moment.start: moment.matches for moment in numbers.over_time if moment.matches} == +expected
    assert sum(moment.messages for moment in numbers.over_time) == 40


def test_reasons_that_differ_in_numbers_are_one_kind(walk):
    numbers = walk.numbers
    assert [(reason.text, reason.count) for reason in numbers.quarantined.listed] == [
        ("self-intersection near (…, …)", 5),
        ("coordinate is not finite near (…, …)", 1),
        ("no geometry", 1),
    ]
    assert numbers.quarantined.listed[0].examples[0] == ("b.parquet, row 0", "self-intersection near (0.25, 7)")
    assert sum(reason.count for reason in numbers.rejected.listed) == 3
    assert "b.parquet, row 4" in walk.page


def test_the_page_needs_nothing_else_and_is_for_everybody(walk):
    page, parsed = walk.page, Parsed(walk.page)
    for tag, attributes in parsed.elements:
        assert tag not in {"link", "iframe", "object", "embed", "img", "base"}
        assert not {"src", "href", "xlink:href", "action", "data", "srcset"} & attributes.keys()
    style = "".join(parsed.within("style"))
    assert not re.search(r"url\(|@import", style)
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|WebSocket|innerHTML|eval\(|https?://", page)
    assert ("html", {"lang": "en"}) in parsed.elements
    assert any(tag == "meta" and found.get("name") == "viewport" for tag, found in parsed.elements)
    drawings = [found for tag, found in parsed.elements if tag == "svg"]
    assert len(drawings) == 5  # the map and four charts
    assert all(found["role"] == "img" and found["aria-label"] for found in drawings)
    assert "prefers-color-scheme: dark" in page


@pytest.mark.slow
def test_hostile_text_stays_text_and_messages_may_share_an_id_or_have_none(spark, tmp_path):
    area, odd = box(0), "`e`` < vil`"
    messages = [
        (HOSTILE, HOSTILE, START, area),
        (HOSTILE, "", START, area),
        (None, "", START, area),
        ("2", "", None, None),
    ]
    rows = {
        "messages": messages,
        "subscriptions": [(HOSTILE, HOSTILE, HOSTILE, area)],
        "matches": [(HOSTILE, HOSTILE, HOSTILE)] * 2 + [(None, HOSTILE, HOSTILE)],
        "rejected": [(f"{HOSTILE}!", HOSTILE)],
    }
    schemas = {name: schema.replace("long", "string").replace("event", odd) for name, schema in SCHEMAS.items()}
    tables = {name: spark.createDataFrame(rows[name], schema) for name, schema in schemas.items()}
    tables["quarantine"] = spark.createDataFrame([(HOSTILE, 1, HOSTILE)], "file string, row long, reason string")
    told = {"title": HOSTILE, "attribution": [HOSTILE], "plan": HOSTILE}
    page, numbers, *_ = reported(tmp_path / "report.html", tables, **told)
    parsed = Parsed(page)
    assert sum(tag == "script" for tag, _ in parsed.elements) == 2
    assert not any(tag == "img" or "onerror" in found for tag, found in parsed.elements)
    assert parsed.within("h1") == [HOSTILE]
    assert HOSTILE in parsed.within("td", "code")
    assert HOSTILE in parsed.within("details", "pre")
    assert (numbers.messages, numbers.with_match, numbers.without_match, numbers.matches) == (4, 3, 1, 3)
    assert as_dict(numbers.per_message) == {(0, 0): 1, (1, 1): 3}
    assert sum(moment.matches for moment in numbers.over_time) == 3


@pytest.mark.parametrize(
    ("empty", "shown", "text"),
    [
        (("messages", "subscriptions", "matches", "rejected"), ("0", "0", "0 %"), "Nothing to draw"),
        slow(("matches",), ("40", "0", "92.5 %"), "Nothing matched."),  # three of forty were rejected
    ],
)
def test_empty_tables_give_a_page(run, tmp_path, empty, shown, text):
    tables = {name: table.limit(0) if name in empty else table for name, table in run.tables.items()}
    page = reported(tmp_path / "report.html", tables, seconds=0.0).page
    found = cards(page)
    assert (found["Messages"], found["Matches"], found["Without a match"]) == shown
    assert text in page


@pytest.mark.slow
def test_without_keys_subscribers_are_counted(run, tmp_path):
    by_subscriber = run.tables["matches"].select("message_id", "subscriber").distinct()
    page, numbers, *_ = reported(tmp_path / "r.html", {**run.tables, "matches": by_subscriber})
    pairs = {(number, subscriber) for number, subscriber, _ in run.rows.matches}
    expected = Counter(subscriber for _, subscriber in pairs)
    assert {busy.key: busy.matches for busy in numbers.busiest} == expected
    assert sum(found.count for found in numbers.per_subscription) == 4
    assert "The busiest subscribers" in page


def test_the_map_shows_what_a_message_matched(run, walk):
    sample, matches = walk.sample, run.rows.matches
    assert len(sample.messages) == 37  # all but the rejected
    assert len(sample.regions) == 30
    for message in sample.messages:
        expected = {key for number, _, key in matches if str(number) == message.name}
        assert {sample.regions[row].key for row in message.regions} == expected
        assert message.matches == len(expected)
        assert dict(message.attributes)["event"] == "storm"
    half = sample.halved()
    assert len(half.regions) == 15
    assert all(row < 15 for message in half.messages for row in message.regions)


@pytest.mark.slow
def test_ids_of_any_type_find_their_matches_and_regions_come_from_filters_if_there_is_no_geometry(run, spark, tmp_path):
    # Spark writes this id as 1.0E7, Python as 10000000.0.
    tables = {
        name: table.selectExpr(
            "CAST(message_id + 10000000 AS DOUBLE) AS message_id", *[c for c in table.columns if c != "message_id"]
        )
        for name, table in run.tables.items()
        if name != "subscriptions"
    }
    further = [("bad", "x", "severity >= ", None), ("plain", "x", "a = 1", None)]
    both = run.tables["subscriptions"].union(spark.createDataFrame(further, SCHEMAS["subscriptions"]))
    sample = reported(tmp_path / "report.html", {**tables, "subscriptions": both.drop("geometry")}).sample
    assert sum(len(message.regions) for message in sample.messages) == len(run.rows.matches)
    assert {region.key for region in sample.regions} == {f"s{n}" for n in range(30)}
    first = next(region for region in sample.regions if region.key == "s0")
    assert shapely.from_wkb(first.wkb).bounds == (0, 0, 1, 1)


@pytest.mark.slow
def test_large_tables_are_sampled_and_the_page_stays_small(spark, run, tmp_path):
    rough = shapely.Point(0, 0).buffer(100.0, quad_segs=250)  # 1,001 vertices
    shapes = [shapely.to_wkb(shapely.affinity.translate(rough, 37.0 * (n % 60), 41.0 * (n // 60))) for n in range(50)]
    tables = {
        "messages": spark.range(3000).selectExpr(
            "id AS message_id", "'x' AS event", "timestamp_seconds(id) AS onset", "CAST(NULL AS BINARY) AS area"
        ),
        "subscriptions": spark.createDataFrame([(n % 50, s) for n, s in enumerate(shapes)], "n long, geometry binary")
        .join(spark.range(3200).selectExpr("id", "id % 50 AS n"), "n")
        .selectExpr("concat('k', id) AS key", "'s' AS subscriber", "repeat('x', 5000) AS filter", "geometry"),
        "matches": spark.range(60_000).selectExpr(
            "id % 1500 AS message_id", "'s' AS subscriber", "concat('k', (id * 7) % 3200) AS key"
        ),
        "rejected": run.tables["rejected"].limit(0),
    }
    page = reported(tmp_path / "report.html", tables).page
    assert len(page.encode()) < report.MAX_PAGE_BYTES
    assert "Drawn: 2,500 of 3,200 subscriptions and 300 of 3,000 messages" in page
    assert cards(page)["Matches"] == "60,000"


@pytest.mark.slow
def test_rare_messages_with_many_matches_are_drawn_and_all_messages_show_some(spark, run, tmp_path):
    """Eighty messages have a hundred matches each, 3,000 have one; far more regions matched than are drawn."""
    square = spark.createDataFrame([(bytearray(shapely.to_wkb(shapely.box(0, 0, 1, 1))),)], "geometry binary")
    many = spark.range(8000).selectExpr("id DIV 100 AS message_id", "'s' AS subscriber",
                                        "concat('k', id DIV 200 * 100 + id % 100) AS key")  # fmt: skip
    one = spark.range(100, 3100).selectExpr("id AS message_id", "'s' AS subscriber", "concat('k', id + 5000) AS key")
    tables = {
        "messages": spark.range(3100).selectExpr("id AS message_id", "CAST(NULL AS BINARY) AS area"),
        "subscriptions": spark.range(9000)
        .selectExpr("concat('k', id) AS key", "'s' AS subscriber", "'x' AS filter")
        .crossJoin(square),
        "matches": many.union(one),
        "rejected": run.tables["rejected"].limit(0),
    }
    sample = reported(tmp_path / "report.html", tables).sample
    matched = {message.name: message for message in sample.messages if message.matches}
    assert len(sample.regions) == 2500
    assert {str(number) for number in range(80)} <= set(matched)
    assert len(matched) == 240
    assert all(message.regions for message in matched.values())


@pytest.mark.slow
def test_a_page_that_is_too_large_shows_less_of_a_sample_that_is_the_same_each_time(run, walk, tmp_path):
    limit = len(walk.page.encode()) - 5_000
    assert reported(tmp_path / "report.html", run.tables).sample == walk.sample
    page = report.render_within(walk.numbers, walk.sample, walk.making, limit)
    assert len(page.encode()) <= limit
    drawn = re.search(r"Drawn: (\d+) of 30 subscriptions and (\d+) of 40 messages", page)
    assert 0 < int(drawn[1]) < 30
    assert 0 < int(drawn[2]) < 37


def test_a_table_without_its_columns_is_named(run, tmp_path):
    tables = {**run.tables, "matches": run.tables["matches"].drop("message_id")}
    with pytest.raises(ct.ContradaError, match="matches needs column message_id; columns: subscriber, key"):
        reported(tmp_path / "report.html", tables)
