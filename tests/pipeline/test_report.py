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
from contrada.report.template import Built, read_built
from effort import slow
from generators.filters_of_every_kind import expected
from report_pages import ReportData, read_report, shape_of

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
    """A page, the numbers in it, and the data of its map and list."""

    page: str
    numbers: Numbers
    data: ReportData


@pytest.fixture(autouse=True, scope="module")
def built():
    """A page without its script: these tests look at data, those in tests/web at what the browser makes of it."""
    with mock.patch.object(report, "built_page", return_value=Built("/* style */", "/* script */")):
        yield


def reported(path: Path, tables: dict, **told) -> Reported:
    with mock.patch.object(report, "body", wraps=report.body) as rendered:
        assert write_report(path, **tables, **{"title": "A walk", **told}) == path
    return Reported(path.read_text(encoding="utf-8"), rendered.call_args.args[0], read_report(path))


@pytest.fixture(scope="module")
def walk(spark, run, built, tmp_path_factory) -> Reported:
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
    assert not re.search(r"https?://", page)
    assert ("html", {"lang": "en"}) in parsed.elements
    assert any(tag == "meta" and found.get("name") == "viewport" for tag, found in parsed.elements)
    drawings = [found for tag, found in parsed.elements if tag == "svg"]
    assert len(drawings) == 4
    assert all(found["role"] == "img" and found["aria-label"] for found in drawings)


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
    page, numbers, data = reported(tmp_path / "report.html", tables, **told)
    parsed = Parsed(page)
    assert sum(tag == "script" for tag, _ in parsed.elements) == 3
    assert [item[0] for item in data.lines["items"]] == [None, HOSTILE, HOSTILE, "2"]
    assert data.header["columns"][0] == "e` < vil"
    assert data.lines["counts"] == [1, 1, 1, 0]
    assert data.matches(1) == {HOSTILE: "equals"}
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
    page, numbers, data = reported(tmp_path / "r.html", {**run.tables, "matches": by_subscriber})
    pairs = {(number, subscriber) for number, subscriber, _ in run.rows.matches}
    expected = Counter(subscriber for _, subscriber in pairs)
    assert {busy.key: busy.matches for busy in numbers.busiest} == expected
    assert sum(found.count for found in numbers.per_subscription) == 4
    assert "The busiest subscribers" in page
    assert data.header["unit"] == "subscriber"
    listed = {(item[0], name) for row, item in enumerate(data.lines["items"]) for name in data.matches(row)}
    assert listed == {(str(number), subscriber) for number, subscriber in pairs}
    shapes = [shape_of(line[-1]) for line in data.lines["subscriptions"]]
    assert sorted(len(shape) for shape in shapes) == [7, 7, 8, 8]  # all regions of each subscriber


def test_all_messages_are_listed_in_the_order_of_time_with_all_matches_and_their_exact_relations(run, walk):
    data, rows = walk.data, run.rows
    refused = dict(rows.rejected)
    areas = {f"s{n}": ct.Region.from_wkt(f"POLYGON(({n} 0, {n + 1} 0, {n + 1} 1, {n} 0))") for n in range(30)}
    boxes = {key: ct.Region.from_wkb(area) for key, _, _, area in rows.subscriptions}
    assert [item[0] for item in data.lines["items"]] == [str(number) for number, *_ in rows.messages]
    assert [item[1] for item in data.lines["items"]] == [
        int(onset.timestamp() * 1000) for _, _, onset, _ in rows.messages
    ]
    for row, (number, _, _, area) in enumerate(rows.messages):
        expected = {key for found, _, key in rows.matches if found == number}
        matches = data.matches(row)
        assert set(matches) == expected
        assert data.lines["counts"][row] == (-1 if number in refused else len(expected))
        assert data.lines["details"][row][3:] == ([refused[number]] if number in refused else [])
        for key, relation in matches.items():
            assert relation == str(ct.relate(ct.Region.from_wkb(area), boxes[key]))
            assert ct.relate(ct.Region.from_wkb(area), areas[key]) != ct.Relation.DISJOINT
    drawn = {line[0]: (line[1], line[3], shape_of(line[4])) for line in data.lines["subscriptions"]}
    per_key = Counter(key for _, _, key in rows.matches)
    for key, subscriber, _, area in rows.subscriptions:
        if key in per_key:
            assert drawn[key][:2] == (subscriber, per_key[key])
            assert shapely.hausdorff_distance(drawn[key][2], shapely.from_wkb(area)) < 1e-5
    assert drawn.keys() == per_key.keys()
    assert {line[0] for line in data.lines["overview"]} == {key for key, *_ in rows.subscriptions}
    assert data.header["plain"] is True


def test_large_data_lies_beside_the_page_and_is_the_same_in_other_partitions(run, walk, tmp_path):
    tables = {name: table.repartition(3) for name, table in run.tables.items()}
    large = reported(tmp_path / "a.html", tables, max_embedded_bytes=0)
    assert large.data.header == walk.data.header | {"files": "a-data/"}
    assert large.data.lines == walk.data.lines
    assert "contradaChunk(" not in large.page
    assert {path.name for path in (tmp_path / "a-data").iterdir()} == {
        f"{name}-00000.js" for name in ("counts", "details", "items", "overview", "subscriptions")
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-data", "a.html"]


@pytest.mark.slow
def test_equal_tables_give_equal_pages(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1777593600")
    pages = [reported(tmp_path / name, run.tables).page for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]
    assert "2026-05-01 00:00 UTC" in pages[0]


AWKWARD = {
    "null": None,
    "rubbish": b"rubbish",
    "point": shapely.to_wkb(shapely.Point(11.3, 43.3)),
    "hole": shapely.to_wkb(shapely.box(11, 43, 12, 44).difference(shapely.box(11.4, 43.4, 11.6, 43.6))),
    "parts": shapely.to_wkb(shapely.union(shapely.box(11, 43, 11.2, 43.2), shapely.box(12, 44, 12.1, 44.1))),
    "line": shapely.to_wkb(shapely.LineString([(0, 0), (1, 1)])),
    "north": shapely.to_wkb(shapely.box(0, 80, 10, 95)),  # no latitude
}


def test_awkward_geometry_and_text(spark, run, tmp_path):
    long = "long \u2028 line </script> " * 1000
    messages = [
        (number, name if name != "hole" else long, None, area) for number, (name, area) in enumerate(AWKWARD.items())
    ]
    subscriptions = [(name, None, "severity >= 3", area) for name, area in AWKWARD.items()]
    subscriptions[0] = ("null", None, "S_INTERSECTS(area, POINT(11.5 43.1))", None)
    subscriptions.append(("none", "x", None, None))
    matches = [(number, None, key) for number in range(len(AWKWARD)) for key, *_ in subscriptions[:-1]]
    matches += [(0, "x", "none"), (0, "x", "unknown"), (99, "x", "none")]
    rows = {"messages": messages, "subscriptions": subscriptions, "matches": matches, "rejected": []}
    tables = {name: spark.createDataFrame(rows[name], schema) for name, schema in SCHEMAS.items()}
    page, _, data = reported(tmp_path / "report.html", tables, crs="EPSG:4326")
    assert page.count("</script>") == 3
    assert "\u2028" not in page
    assert data.header["plain"] is False
    listed = {item[2][:4]: (item, row) for row, item in enumerate(data.lines["items"])}
    assert listed["long"][0][2] == long[:300]
    assert listed["null"][0][1] is None
    shapes = {name: shape_of(data.lines["details"][row][0]) for name, (_, row) in listed.items()}
    assert [name for name, shape in shapes.items() if shape is None] == ["null", "rubb", "line", "nort"]
    assert shapes["poin"].equals_exact(shapely.Point(11.3, 43.3), 1e-7)
    for name, key in (("long", "hole"), ("part", "parts")):
        assert shapely.hausdorff_distance(shapes[name], shapely.from_wkb(AWKWARD[key])) < 1e-5
        assert shapely.get_num_interior_rings(shapes[name]) == (1 if key == "hole" else 0)
    found = data.matches(listed["poin"][1])
    assert {key: found[key] for key in ("hole", "point", "null", "line")} == {
        "hole": "inside", "point": "equals", "null": "disjoint", "line": None,
    }  # fmt: skip
    assert data.matches(listed["null"][1]).keys() == {*AWKWARD, "none", "unknown"}
    assert data.header["bounds"] == pytest.approx([11, 43, 12.1, 44.1])


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
    data = reported(tmp_path / "report.html", {**tables, "subscriptions": both.drop("geometry")}).data
    assert sum(len(data.matches(row)) for row in range(40)) == len(run.rows.matches)
    assert {line[0] for line in data.lines["overview"]} == {f"s{n}" for n in range(30)}
    first = next(line for line in data.lines["subscriptions"] if line[0] == "s0")
    assert shape_of(first[-1]).bounds == pytest.approx((0, 0, 1, 1))


@pytest.mark.slow
def test_many_messages_and_matches_are_written_in_chunks(spark, run, tmp_path):
    rough = shapely.Point(0, 0).buffer(100.0, quad_segs=250)  # 1,001 vertices
    shapes = [shapely.to_wkb(shapely.affinity.translate(rough, 37.0 * (n % 60), 41.0 * (n // 60))) for n in range(50)]
    tables = {
        "messages": spark.range(30_000).selectExpr(
            "id AS message_id", "'x' AS event", "timestamp_seconds(id) AS onset", "CAST(NULL AS BINARY) AS area"
        ),
        "subscriptions": spark.createDataFrame([(n % 50, s) for n, s in enumerate(shapes)], "n long, geometry binary")
        .join(spark.range(6000).selectExpr("id", "id % 50 AS n"), "n")
        .selectExpr("concat('k', id) AS key", "'s' AS subscriber", "repeat('x', 5000) AS filter", "geometry"),
        "matches": spark.range(150_000)
        .selectExpr(
            "id % 15000 AS message_id", "'s' AS subscriber", "concat('k', (id * 7 + id div 15000) % 6000) AS key"
        )
        .union(spark.range(6000).selectExpr("20000L", "'s'", "concat('k', id)")),  # one message matches all
        "rejected": run.tables["rejected"].limit(0),
    }
    page, numbers, data = reported(tmp_path / "report.html", tables)
    assert numbers.matches == 156_000
    assert sum(data.lines["counts"]) == 156_000
    assert [int(item[0]) for item in data.lines["items"]] == list(range(30_000))
    assert data.lines["counts"][20_000] == 6000
    assert len(data.matches(20_000)) == 6000
    assert data.matches(77).keys() == {f"k{(n * 7 + n // 15_000) % 6000}" for n in range(77, 150_000, 15_000)}
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "report-data").iterdir()}
    assert max(sizes.values()) < 1_100_000
    assert len(data.lines["overview"]) == 5000  # of 6,000
    assert "5,000 of 6,000 subscriptions" in page
    # Neighbours have close numbers, so that a message needs few chunks.
    centres = [shape_of(line[-1]).centroid for line in data.lines["subscriptions"]]
    assert sum(a.distance(b) for a, b in pairwise(centres)) / len(centres) < 20


def test_the_page_must_be_built(run, tmp_path):
    with pytest.raises(ct.ContradaError, match="the page of reports was not built: run `make web`"):
        read_built(None)
    (tmp_path / "report.css").write_text("")
    (tmp_path / "report.js").write_text('const a = "</script><!-- <SCRIPT"')
    assert read_built(tmp_path).script == r'const a = "\x3C/script>\x3C!-- \x3CSCRIPT"'


def test_a_table_without_its_columns_is_named(run, tmp_path):
    tables = {**run.tables, "matches": run.tables["matches"].drop("message_id")}
    with pytest.raises(ct.ContradaError, match="matches needs column message_id; columns: subscriber, key"):
        reported(tmp_path / "report.html", tables)
