"""Tables of predicates in the pages for people who know another system say what Shapely says."""

import re
from itertools import product

import pytest
import shapely

import contrada as ct
from doc_pages import page_text

ROW = re.compile(
    r"^\| `(?:ST_)?(\w+)(?:\(a, b\))?`(?: \(default\))? \| `(\w+)\(a, b\)` \|(?: ([\w ]+) \|)?$", re.MULTILINE
)
PAGES = ("postgis", "geopandas", "sedona", "percolator")
REGIONS = [
    "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "POLYGON ((1 1, 3 1, 3 3, 1 3, 1 1))", "POLYGON ((1 1, 4 1, 4 2, 1 2, 1 1))",
    "POLYGON ((4 0, 8 0, 8 4, 4 4, 4 0))", "POLYGON ((4 4, 6 4, 6 6, 4 6, 4 4))", "POLYGON ((2 2, 6 2, 6 6, 2 6, 2 2))",
    "POLYGON ((9 9, 10 9, 10 10, 9 9))", "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 3 1, 3 3, 1 3, 1 1))",
    "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((2 2, 3 2, 3 3, 2 2)))",
]  # fmt: skip
POINTS = ["POINT (2 2)", "POINT (0 0)", "POINT (4 2)", "POINT (1 2)", "POINT (20 20)"]


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def rows(page):
    """The predicates of a page: name in Shapely, function of ours, and of what both agree."""
    found = [(snake(name), ours, scope or "regions and points") for name, ours, scope in ROW.findall(page_text(page))]
    return [(name, ours, scope) for name, ours, scope in found if hasattr(shapely, name)]


CASES = [(page, *row) for page in PAGES for row in rows(f"coming-from-{page}.md")]


def test_all_predicates_of_the_pages_are_compared():
    assert [sum(case[0] == page for case in CASES) for page in PAGES] == [10, 8, 9, 4]


@pytest.mark.parametrize(("page", "name", "ours", "scope"), CASES)
def test_both_agree(page, name, ours, scope):
    shapes = [*REGIONS, *POINTS] if scope == "regions and points" else REGIONS
    both = set()
    for one, other in product(shapes, repeat=2):
        if one in POINTS and other in POINTS:
            continue  # a point against a point: OGC's words for lines and areas say little there
        a, b = map(shapely.from_wkt, (one, other))
        expected = bool(getattr(shapely, name)(a, b))
        table = ct.ForwardingTable()
        table.subscribe("ann", f"{ours}(area, {other})")
        assert bool(table.match({"area": a})) == expected, (name, one, other)
        both.add(expected)
    assert both == {True, False}
