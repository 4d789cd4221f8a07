"""Tables of predicates in the pages for people who know another system say what Shapely says."""

import re
from itertools import pairwise, product

import pytest
import shapely

import contrada as ct
from doc_pages import page_text

ROW = re.compile(
    r"^\| `(?:ST_)?(\w+)(?:\(a, b\))?`(?: \(default\))? \| `(\w+)\(a, b\)` \|(?: ([\w ]+) \|)?$", re.MULTILINE
)
PAGES = ("postgis", "geopandas", "sedona", "percolator", "tile38")
# Of Tile38, whose polygons contain the points on their edges (ContainsPoint in geometry/poly.go of tidwall/geojson).
TILE38 = {"WITHIN": "covered_by", "INTERSECTS": "intersects"}
REGIONS = [
    "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "POLYGON ((1 1, 3 1, 3 3, 1 3, 1 1))", "POLYGON ((1 1, 4 1, 4 2, 1 2, 1 1))",
    "POLYGON ((4 0, 8 0, 8 4, 4 4, 4 0))", "POLYGON ((4 4, 6 4, 6 6, 4 6, 4 4))", "POLYGON ((2 2, 6 2, 6 6, 2 6, 2 2))",
    "POLYGON ((9 9, 10 9, 10 10, 9 9))", "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 3 1, 3 3, 1 3, 1 1))",
    "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((2 2, 3 2, 3 3, 2 2)))",
]  # fmt: skip
POINTS = ["POINT (2 2)", "POINT (0 0)", "POINT (4 2)", "POINT (1 2)", "POINT (20 20)"]


def snake(name):
    return TILE38.get(name) or re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def rows(page):
    """The predicates of a page: name in Shapely, function of ours, and of what both agree."""
    found = [(snake(name), ours, scope or "regions and points") for name, ours, scope in ROW.findall(page_text(page))]
    return [(name, ours, scope) for name, ours, scope in found if hasattr(shapely, name)]


CASES = [(page, *row) for page in PAGES for row in rows(f"coming-from-{page}.md")]


def test_all_predicates_of_the_pages_are_compared():
    assert [sum(case[0] == page for case in CASES) for page in PAGES] == [10, 8, 9, 4, 3]


@pytest.mark.parametrize(("page", "name", "ours", "scope"), CASES)
def test_both_agree(page, name, ours, scope):
    shapes = {"regions and points": [*REGIONS, *POINTS], "regions": REGIONS, "points": POINTS}[scope]
    others = REGIONS if scope == "points" else shapes
    both = set()
    for one, other in product(shapes, others):
        if one in POINTS and other in POINTS:
            continue  # a point against a point: OGC's words for lines and areas say little there
        a, b = map(shapely.from_wkt, (one, other))
        expected = bool(getattr(shapely, name)(a, b))
        table = ct.ForwardingTable()
        table.subscribe("ann", f"{ours}(area, {other})")
        assert bool(table.match({"area": a})) == expected, (name, one, other)
        both.add(expected)
    assert both == {True, False}


DETECT = re.compile(r'^\| `(\w+)` \| (`on="\w+"`|a plain subscription(?: with NOT)?)', re.MULTILINE)
AREA = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
PLACES = [(-2, 2), (0, 2), (2, 2), (6, 2), (2, -2), (5, 3), (3, 5)]  # the segment between the last two meets a corner


def detected(before, now):
    """What a fence of Tile38 detects of an object that moved between two places (fenceMatch in its fence.go)."""
    area = shapely.from_wkt(AREA)
    was, is_in = (place is not None and area.intersects(shapely.Point(place)) for place in (before, now))
    if is_in:
        return {"inside"} if was else {"enter", "inside"}
    if was:
        return {"exit", "outside"}
    has_crossed = before is not None and area.intersects(shapely.LineString([before, now]))
    return {"cross", "outside"} if has_crossed else {"outside"}


def test_words_of_detect_are_told_for_the_same_moves():
    rows = dict(DETECT.findall(page_text("coming-from-tile38.md")))
    query = f"S_INTERSECTS(place, {AREA})"
    queries = {"a plain subscription": query, "a plain subscription with NOT": f"NOT {query}"}
    assert set(rows) == {"enter", "exit", "cross", "inside", "outside"}
    table = ct.ForwardingTable()
    for word, told in rows.items():
        if told in queries:
            table.subscribe("ann", queries[told], key=word)
    for path in product(PLACES, repeat=2):
        tracker = ct.Tracker(track="id")
        for word, told in rows.items():
            if told not in queries:
                tracker.subscribe(word, query, on=told.split('"')[1])
        messages = [{"id": "truck", "place": ct.Point(*place)} for place in path]
        found = [set(table.match_keys(message)) for message in messages]
        for event in tracker.publish(messages):
            found[event.row].add(event.key)
        assert found == [detected(*move) for move in pairwise((None, *path))], path
