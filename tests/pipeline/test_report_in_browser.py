"""The page of a report in a real browser, opened by file://: list, search, every match on the map, and plain text."""

import math
import re
import time
from types import SimpleNamespace

import pytest
import shapely
from playwright.sync_api import expect

from benchmarks.pictures.report_page import WAIT_UNTIL_DRAWN, row_to_show
from browser import PHONE, WAITING, check_access, check_width, chromium, context, give_up, watch
from contrada.pipeline import write_report
from contrada.web import HOW_TO_BUILD, report_folder
from report_pages import read_report

__all__ = ["chromium"]

pytestmark = pytest.mark.slow
HOSTILE = "</script><img src=x onerror=alert(1)> <b>bold</b> \u2028 ' \" & {x} `"
ROWS = 1200
SCHEMAS = {
    "messages": "message_id string, event string, note string, onset timestamp, area binary",
    "subscriptions": "key string, subscriber string, filter string, geometry binary",
    "matches": "message_id string, subscriber string, key string",
    "rejected": "message_id string, reason string",
}
DRAWN = """async (layer) => {
    const view = document.querySelector("[data-testid=map]").contradaView;
    return (await view.maplibre.getSource(layer).getData()).features.map((one) => one.properties.id);
}"""


def square(x, y, size):
    return shapely.to_wkb(shapely.box(x, y, x + size, y + size))


ROUND = (11.99, 43.005)  # the last subscription is a circle around it, round on the map


def circle():
    return shapely.to_wkb(shapely.affinity.scale(shapely.Point(ROUND).buffer(0.005, quad_segs=32), 1 / 0.7313))


@pytest.fixture(scope="module")
def reports(spark, tmp_path_factory):
    """One run as three pages: with its data, with the data beside it, and in plain coordinates; hostile text in all."""
    if report_folder() is None:
        give_up(HOW_TO_BUILD)
    keys = [f"{k} {HOSTILE}" for k in range(60)]
    rows = {
        "messages": [
            (
                f"m{n} {HOSTILE}",
                "storm" if n % 10 == 3 else HOSTILE,
                f"{HOSTILE} {n}",
                None,
                square(11 + n % 40 / 50, 43, 0.1),
            )
            for n in range(ROWS)
        ],
        "subscriptions": [
            (key, HOSTILE, f"name = '{HOSTILE}'", square(11 + k / 60, 43, 0.01) if k < 59 else circle())
            for k, key in enumerate(keys)
        ],
        "matches": [(f"m{n} {HOSTILE}", HOSTILE, key) for n in range(ROWS) for key in keys[: n % 60]],
        "rejected": [(f"m{ROWS - 1} {HOSTILE}", HOSTILE)],
    }
    tables = {name: spark.createDataFrame(rows[name], schema) for name, schema in SCHEMAS.items()}
    folder = tmp_path_factory.mktemp("reports")
    told = {"title": HOSTILE, "attribution": HOSTILE, "plan": HOSTILE, "seconds": {HOSTILE: 1.0}}
    pages = {
        "whole": write_report(folder / "whole.html", **tables, **told, crs="EPSG:4326", max_embedded_bytes=1 << 30),
        "beside": write_report(folder / "beside.html", **tables, **told, crs="EPSG:4326", max_embedded_bytes=0),
        "plain": write_report(folder / "plain.html", **tables, **told, max_embedded_bytes=1 << 30),
    }
    return SimpleNamespace(**pages)


def open_report(window, path, anchor=""):
    page = window.new_page()
    address = path.as_uri() + anchor
    seen = watch(page, address)
    page.goto(address)
    page.locator("[data-ready=true]").wait_for()
    return page, seen


def wait_until(page, condition):
    """Wait for an expression to hold. Playwright's own waiting evaluates text in the page, which its policy forbids."""
    end = time.monotonic() + WAITING / 1000
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)


def row_of(page, position):
    return page.locator(f"#messages-{position}")


@pytest.mark.parametrize("name", ["whole", "beside", "plain"])
def test_every_match_of_a_chosen_message_is_drawn(chromium, reports, name):
    path = getattr(reports, name)
    data = read_report(path)
    with context(chromium) as window:
        page, seen = open_report(window, path)
        assert len(page.evaluate(DRAWN, "subscriptions")) == 60
        for row in (3, 0, 59, 7):
            page.goto(f"{path.as_uri()}#message={row}")
            page.reload()
            page.get_by_test_id("details").wait_for()
            matches = data.matches(row)
            expect(page.get_by_test_id("drawn")).to_have_text(re.compile(f"^{len(matches)} match"))
            drawn = {int(one.split(":")[0]) for one in page.evaluate(DRAWN, "answer")}
            assert {data.lines["subscriptions"][number][0] for number in drawn} == matches.keys()
            assert len(page.evaluate(DRAWN, "relation")) == 1
        seen.check()
        assert (page.locator(".map-grid-labels span").count() > 0) == (name == "plain")


def test_the_map_moves_to_the_chosen_message(chromium, reports):
    with context(chromium) as window:
        ids = [item[0] for item in read_report(reports.whole).lines["items"]]
        page, seen = open_report(window, reports.whole, f"#message={ids.index(f'm59 {HOSTILE}')}")
        page.get_by_test_id("details").wait_for()
        page.evaluate(WAIT_UNTIL_DRAWN)
        bounds = page.evaluate(
            "() => document.querySelector('[data-testid=map]').contradaView.maplibre.getBounds().toArray().flat()"
        )
        shape = shapely.box(11, 43, 11.97, 43.1)  # of the message and of the regions that it matched
        assert shapely.box(*bounds).contains(shape)
        assert bounds[2] - bounds[0] < 5
        seen.check()


# The subscription with the most corners.
ROUNDEST = """async () => {
    const view = document.querySelector("[data-testid=map]").contradaView;
    const { features } = await view.maplibre.getSource("subscriptions").getData();
    const corners = one => one.geometry.coordinates[0].length;
    return features.reduce((a, b) => (corners(a) > corners(b) ? a : b)).properties.id;
}"""
# Pixels of the corners that are drawn of a subscription; the page may move the map once more after it has loaded.
CORNERS = """async ([id, center, zoom]) => {
    const { maplibre } = document.querySelector("[data-testid=map]").contradaView;
    for (;;) {
        maplibre.jumpTo({ center, zoom });
        await new Promise(resolve => setTimeout(resolve, 300));
        if (maplibre.getZoom() !== zoom || !maplibre.areTilesLoaded()) continue;
        const found = maplibre.queryRenderedFeatures({ layers: ["subscriptions-fill"] })
            .filter(one => one.properties.id === id)
            .flatMap(one => (one.geometry.type === "Polygon" ? [one.geometry.coordinates] : one.geometry.coordinates));
        if (found.length === 0) continue;
        return found.flat(2).map(place => Object.values(maplibre.project(place)));
    }
}"""


def test_circles_stay_round_when_zoomed(chromium, reports):
    with context(chromium) as window:
        page, seen = open_report(window, reports.whole)
        circle = page.evaluate(ROUNDEST)
        for zoom in (10, 14):
            drawn = shapely.MultiPoint(page.evaluate(CORNERS, [circle, ROUND, zoom])).convex_hull
            west, north, east, south = drawn.bounds
            assert (east - west) / (south - north) == pytest.approx(1, abs=0.05 if zoom == 10 else 0.01)
            assert drawn.area / ((east - west) * (south - north)) == pytest.approx(math.pi / 4, rel=0.03), zoom
        seen.check()


def test_chunks_beside_the_page_are_loaded_when_they_are_needed(chromium, reports):
    with context(chromium) as window:
        page = window.new_page()
        asked = []
        page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
        page.goto(reports.beside.as_uri())
        page.locator("[data-ready=true]").wait_for()
        row_of(page, 0).get_by_text("storm").or_(row_of(page, 0).locator("b")).first.wait_for()
        assert {name for name in asked if name.endswith(".js")} == {
            "counts-00000.js",
            "items-00000.js",
            "overview-00000.js",
        }
        row_of(page, 3).click()
        page.get_by_test_id("details").wait_for()
        assert {"details-00000.js", "subscriptions-00000.js"} <= set(asked)
        assert len(asked) == len(set(asked))
        (reports.beside.parent / "beside-data").rename(reports.beside.parent / "gone")
        try:
            page.reload()
            expect(page.get_by_role("alert")).to_contain_text("keep the folder of the data beside the page")
        finally:
            (reports.beside.parent / "gone").rename(reports.beside.parent / "beside-data")


def test_messages_are_searched_and_ordered(chromium, reports):
    with context(chromium) as window:
        page, seen = open_report(window, reports.beside)
        found = page.get_by_test_id("found")
        expect(found).to_have_text("1,200 of 1,200 messages")
        page.get_by_label("Search messages").fill("STORM")
        expect(found).to_have_text("120 of 1,200 messages")
        page.get_by_label("Order").select_option("matches")
        expect(row_of(page, 0)).to_contain_text("53 matches")
        page.get_by_label("Search messages").fill(f'"m77 {HOSTILE[:9]}"')
        expect(found).to_have_text("1 of 1,200 messages")
        page.get_by_label("Search messages").fill("no such words")
        expect(page.get_by_text("No message contains this.")).to_be_visible()
        page.get_by_label("Search messages").fill("")
        page.get_by_label("Which messages").select_option("rejected")
        expect(found).to_have_text("1 of 1,200 messages")
        row_of(page, 0).click()
        expect(page.get_by_test_id("details")).to_contain_text("Rejected: </script>")
        seen.check()


def test_text_stays_text(chromium, reports):
    with context(chromium) as window:
        page, seen = open_report(window, reports.whole, "#message=5")
        page.get_by_test_id("details").wait_for()
        for name in (page.locator("h1"), row_of(page, 4), page.get_by_test_id("details"), page.locator("#matches-0")):
            expect(name).to_contain_text("<img src=x onerror=alert(1)>")
        page.locator("#matches-0").click()
        assert page.locator("img, main b:text-is('bold')").count() == 0
        seen.check()


def test_the_wheel_scrolls_the_page_and_zooms_with_control(chromium, reports):
    zoom = "() => document.querySelector('[data-testid=map]').contradaView.maplibre.getZoom()"
    with context(chromium) as window:
        page, _ = open_report(window, reports.whole)
        page.evaluate(WAIT_UNTIL_DRAWN)
        page.get_by_test_id("map").hover()
        before = page.evaluate(zoom), page.evaluate("scrollY")
        page.mouse.wheel(0, 300)
        wait_until(page, f"scrollY > {before[1] + 100}")
        assert page.evaluate(zoom) == before[0]
        page.get_by_test_id("map").hover()
        place = page.evaluate("scrollY")
        page.keyboard.down("Control")
        page.mouse.wheel(0, -300)
        wait_until(page, f"({zoom})() > {before[0]} + 0.1")
        page.keyboard.up("Control")
        assert page.evaluate("scrollY") == place


def test_keys_choose_messages_and_a_link_leads_back(chromium, reports):
    with context(chromium) as window:
        page, seen = open_report(window, reports.whole)
        page.locator("#messages").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        expect(page.get_by_test_id("announcement")).to_contain_text("1 match, 1 drawn")
        assert page.url.endswith("#message=1")
        page.keyboard.press("End")
        expect(row_of(page, ROWS - 1)).to_be_in_viewport()
        page.get_by_label("Choose no message").click()
        expect(page.get_by_test_id("details")).to_have_count(0)
        assert page.evaluate(DRAWN, "answer") == []
        seen.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1400, 1000), PHONE])
def test_the_page_is_for_everybody(chromium, reports, scheme, size):
    with context(chromium, size, scheme) as window:
        page, seen = open_report(window, reports.whole, "#message=35")
        page.get_by_test_id("details").wait_for()
        check_width(page)
        check_access(page)
        seen.check()


def test_the_picture_shows_a_message_with_a_region(reports):
    data = read_report(reports.whole)
    assert data.lines["counts"][row_to_show(data)] == 59
