"""The live map by hand: clicks on the map, time, layers, drawing, files, other base maps, tiles, plain coordinates."""

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import NamedTuple
from urllib.request import Request, urlopen

import pytest
import shapely
from PIL import Image
from playwright.sync_api import expect

from browser import context, watch
from contrada.client import Client
from live_map import LiveMap
from server_process import serving

pytestmark = pytest.mark.slow

VIEW = (11.34, 43.33, 12.0)
TILED = 30  # subscriptions past which the server makes tiles
PINK = (230, 90, 180)
DRAWN_SUBSCRIPTIONS = """document.querySelector('[data-testid=map]').contradaView.maplibre
    .queryRenderedFeatures({ layers: ['subscriptions-fill'] }).map(one => String(one.id))"""
# Notes the states that features get.
SPY = """() => {
    window.states = [];
    const { maplibre } = document.querySelector('[data-testid=map]').contradaView;
    const set = maplibre.setFeatureState.bind(maplibre);
    maplibre.setFeatureState = (feature, state) => {
        window.states.push([feature.id, state]);
        return set(feature, state);
    };
}"""


def area(x, y, half=0.01):
    return shapely.to_wkt(shapely.box(x - half, y - half, x + half, y + half), rounding_precision=6)


def point(x, y, **attributes):
    return {**attributes, "geometry": {"type": "Point", "coordinates": [x, y]}}


class TileServer(ThreadingHTTPServer):
    """Answers every request with the same tile, for pages of any origin."""

    def __init__(self):
        tile = BytesIO()
        Image.new("RGB", (256, 256), PINK).save(tile, "PNG")
        self.tile = tile.getvalue()
        super().__init__(("127.0.0.1", 0), TileHandler)

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.server_port}"


class TileHandler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(self.server.tile)

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def serving_tiles():
    with TileServer() as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()


class Map(NamedTuple):
    """A page that is signed in, and a client with the same key."""

    shown: LiveMap
    client: Client


@pytest.fixture(scope="module")
def tiles():
    with serving_tiles() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory, tiles):
    flags = ("--map-tiles", f"{tiles.origin}/{{z}}/{{x}}/{{y}}.png", "--map-attribution", "<b>Tiles</b> of the test")
    with serving(tmp_path_factory.mktemp("hand"), *flags, "--name", "north", "--map-tiles-from", str(TILED)) as found:
        yield found


@contextmanager
def opened(browser, server, tiles, name, view=VIEW, fill=None):
    """Open the map of a tenant of this name, after `fill` has made what is on it."""
    asked = {"name": "test", "tenant": name, "scopes": ["publish", "subscribe", "admin"]}
    headers = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"}
    with urlopen(Request(f"{server.url}/keys", json.dumps(asked).encode(), headers)) as answer:
        key = json.load(answer)["key"]
    with Client(server.url, key) as client, context(browser) as window:
        if fill is not None:
            fill(client)
        shown = LiveMap(window.new_page(), server.url)
        seen = watch(shown.page, server.url)
        shown.open(view)
        shown.log_in(key)
        yield Map(shown, client)
        seen.strangers = [one for one in seen.strangers if not one.startswith(tiles.origin)]
        seen.check()


@pytest.fixture(scope="module")
def page(chromium, server, tiles):
    """One page for the tests that need nothing of their own; each uses keys and places of its own."""
    with opened(chromium, server, tiles, "shared") as found:
        yield found


def test_clicks_on_the_map_select_a_message_a_subscription_and_their_match(page):
    shown, client = page
    client.subscribe("clicked", "ann", f"S_INTERSECTS(geometry, {area(11.31, 43.32)})")
    shown.open(VIEW)
    shown.wait_until_drawn("subscriptions", "clicked")
    shown.click_map((11.305, 43.325))
    expect(shown.page.get_by_role("article", name="Subscription clicked")).to_be_visible()
    sequence = client.publish(
        {"depth": 7, "geometry": shapely.geometry.mapping(shapely.box(11.315, 43.32, 11.33, 43.335))}
    ).last
    shown.wait_until_drawn("messages", str(sequence))
    shown.click_map((11.326, 43.333))
    expect(shown.page.get_by_role("article", name=f"Message {sequence}")).to_be_visible()
    shown.click_map((11.305, 43.313))
    why = shown.page.get_by_role("article", name=f"Why message {sequence} and clicked")
    expect(why).to_contain_text("It matches.")
    box = shown.page.get_by_test_id("map").bounding_box()
    shown.page.mouse.click(box["x"] + box["width"] - 30, box["y"] + 30)  # beside both: the map has moved to them
    expect(why).to_have_count(0)
    client.unsubscribe("clicked")
    shown.page.wait_for_function(f"() => !({DRAWN_SUBSCRIPTIONS}).includes('clicked')")


def test_layers_are_switched_off_and_on(page):
    shown, client = page
    client.subscribe("layered", "ann", f"S_INTERSECTS(geometry, {area(11.35, 43.35)})")
    shown.open(VIEW)
    shown.wait_until_drawn("subscriptions", "layered")
    sequence = str(client.publish(point(11.355, 43.355, depth=1)).last)
    shown.wait_until_drawn("messages", sequence)
    button = shown.page.get_by_role("button", name="Layers and legend")
    button.click()
    legend = shown.page.get_by_role("group", name="Layers and legend")
    for title, layer, seen in (("Subscriptions", "subscriptions", "layered"), ("Messages", "messages", sequence)):
        box = legend.get_by_label(re.compile(f"^{title}"))
        box.uncheck()
        shown.wait_until_drawn(layer, exactly=True)
        box.check()
        shown.wait_until_drawn(layer, seen)
    shown.page.keyboard.press("Escape")
    expect(legend).to_have_count(0)


def test_the_past_is_chosen_on_the_time_line_and_played(page):
    shown, client = page
    sequence = client.publish(point(11.36, 43.36, played=1)).last
    shown.open(VIEW)
    shown.wait_for_message(sequence)
    line = shown.page.get_by_role("region", name="Time line")
    line.get_by_label("Range").select_option("15 minutes")
    slider = line.get_by_label("Moment shown")
    at = next(iter(client.dry_run("played = 1").sample)).at.timestamp() * 1000
    # The range follows the choice after an answer of the server.
    shown.page.wait_for_function("one => one.max - one.min === 900_000", arg=slider.element_handle())
    slider.fill(str(round((at - 20_000) / 1000) * 1000))
    expect(line.get_by_test_id("time")).not_to_have_text("Now")
    expect(line.get_by_test_id("live")).to_have_attribute("aria-pressed", "false")
    expect(shown.page.get_by_test_id(f"message-{sequence}")).to_have_count(0)
    line.get_by_label("Speed").select_option("10")
    line.get_by_role("button", name="Play").click()
    expect(line.get_by_role("button", name="Pause")).to_be_visible()
    expect(shown.page.get_by_test_id(f"message-{sequence}")).to_be_visible()
    expect(line.get_by_test_id("live")).to_have_attribute("aria-pressed", "true")  # the present is reached
    expect(line.get_by_role("button", name="Play")).to_be_visible()


def test_a_circle_a_point_and_moved_corners(page):
    shown, _ = page
    form = shown.form("Subscription")
    shown.open(VIEW, panel="do")
    text = form.get_by_label("WKT or coordinates")
    shown.draw(form, "Circle", [(11.33, 43.33), (11.35, 43.33)])
    circle = shapely.from_wkt(text.input_value())
    assert circle.contains(shapely.Point(11.33, 43.33))
    west, south, east, north = circle.bounds
    assert east == pytest.approx(11.35, abs=0.001)
    assert (east - west) * 0.7274 == pytest.approx(north - south, rel=0.02)  # cos 43.33°: round on the ground
    form.get_by_role("button", name="Clear", exact=True).first.click()
    expect(text).to_have_value("")
    shown.draw(form, "Point", [(11.36, 43.34)])
    place = shapely.from_wkt(text.input_value())
    assert (place.geom_type, place.x, place.y) == (
        "Point",
        pytest.approx(11.36, abs=5e-4),
        pytest.approx(43.34, abs=5e-4),
    )
    text.fill(area(11.34, 43.33))
    text.press("Control+Enter")
    form.get_by_role("button", name="Edit corners").click()
    expect(form.get_by_role("status").filter(has_text="Drag corners")).to_be_visible()
    shown.drag((11.35, 43.34), (11.37, 43.35))
    expect(text).not_to_have_value(re.compile(r"11\.35 43\.34"))
    others = {(11.33, 43.32), (11.35, 43.32), (11.33, 43.34)}  # as they were, to the last digit
    ((x, y),) = set(shapely.from_wkt(text.input_value()).exterior.coords) ^ others
    assert (x, y) == (pytest.approx(11.37, abs=5e-4), pytest.approx(43.35, abs=5e-4))
    form.get_by_role("button", name="Done").first.click()
    form.get_by_role("button", name="Clear", exact=True).last.click()


def test_a_file_is_dropped_on_the_map(page):
    shown, _ = page
    form = shown.form("Subscription")
    carried = form.page.evaluate_handle(
        """text => {
            const carried = new DataTransfer();
            carried.items.add(new File([text], "area.wkt"));
            return carried;
        }""",
        area(11.4, 43.4),
    )
    place = shown.page.get_by_test_id("map")
    for event in ("dragover", "drop"):
        place.dispatch_event(event, {"dataTransfer": carried})
    expect(form.get_by_label("WKT or coordinates")).to_have_value(re.compile("11.41 43.41"))
    notice = shown.page.get_by_test_id("notice")
    expect(notice).to_have_text("Read area.wkt.")
    shown.page.evaluate("document.querySelector('.maplibregl-ctrl-attrib').open = true")
    boxes = [one.bounding_box() for one in (notice, shown.page.locator(".maplibregl-ctrl-attrib"))]
    assert all(boxes)
    assert not shapely.box(*corners(boxes[0])).intersects(shapely.box(*corners(boxes[1])))
    form.get_by_role("button", name="Clear", exact=True).last.click()


def corners(box):
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


def test_a_relation_is_chosen_in_the_form(page):
    shown, client = page
    form = shown.form("Subscription")
    text = form.get_by_label("WKT or coordinates")
    text.fill(area(11.3, 43.3))
    text.press("Control+Enter")
    filter = form.get_by_label("Filter as CQL2")
    relation = form.get_by_label("It", exact=True)
    for choice, function in (("lies within it", "S_WITHIN"), ("is apart from it", "S_DISJOINT")):
        relation.select_option(choice)
        expect(filter).to_have_value(re.compile(rf"^{function}\(geometry, ", re.IGNORECASE))
    relation.select_option("has one of the relations chosen below")
    form.get_by_role("checkbox", name=re.compile("^meets: ")).check()
    form.get_by_role("checkbox", name=re.compile("^inside: ")).check()
    expect(filter).to_have_value(re.compile("(?=.*disjoint)(?=.*meets)(?=.*inside)", re.IGNORECASE | re.DOTALL))
    form.get_by_label("Key").fill("apart")
    form.get_by_label("Subscriber").fill("ann")
    shown.submit(form, "Subscribe", "Subscription apart")
    before = client.publish(point(11.5, 43.5, n=1)).last  # disjoint
    client.publish({"n": 1, "geometry": json.loads(shapely.to_geojson(shapely.from_wkt(area(11.3, 43.3))))})  # equal
    assert [one.sequence for one in client.dry_run(f"({client.get('apart').filter}) AND n = 1").sample] == [before]


def test_a_subscription_is_changed(page):
    shown, client = page
    client.subscribe("changing", "ann", f"S_INTERSECTS(geometry, {area(11.3, 43.3)}) AND depth > 5")
    shown.open(VIEW, subscription="changing", panel="ask")
    shown.page.get_by_role("article", name="Subscription changing").get_by_role("button", name="Change").click()
    form = shown.page.get_by_role("form", name="Change changing")
    expect(form.get_by_label("Key")).to_be_disabled()
    form.get_by_role("group", name="Condition").get_by_label("Value").fill("9")
    form.get_by_label("Subscriber").fill("bob")
    article = shown.submit(form, "Save changes", "Subscription changing")
    expect(article).to_contain_text("depth > 9")
    found = client.get("changing")
    assert found.subscriber == "bob"
    assert "depth > 9" in found.filter


def test_long_words_fit_into_the_form_of_a_message(page):
    shown, _ = page
    form = shown.form("Message")
    shown.fill_attribute(form, "severity", "text", "thunderstorm")
    row = form.get_by_role("group", name="Attribute 1")
    for field in (row.get_by_label("Name"), row.get_by_label("Value")):
        assert field.evaluate("one => one.scrollWidth <= one.clientWidth")
    search = shown.panel("Messages").get_by_label("Search messages")
    assert search.evaluate(
        """one => {
            const [pen, style] = [document.createElement("canvas").getContext("2d"), getComputedStyle(one)];
            pen.font = style.font;
            const room = one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
            return pen.measureText(one.placeholder).width <= room;
        }"""
    )


def test_tiles_of_ones_own_are_the_base_map(page, tiles):
    shown, _ = page
    with shown.page.expect_response(re.compile(rf"^{tiles.origin}/10/\d+/\d+\.png$")):  # tiles of 256 pixels
        shown.open((20.0, 50.0, 9.0))
    shown.page.wait_for_function(
        "() => document.querySelector('[data-testid=map]').contradaView.maplibre.areTilesLoaded()"
    )
    with Image.open(BytesIO(shown.page.get_by_test_id("map").screenshot())) as found:
        assert found.convert("RGB").getpixel((found.width // 3, found.height // 2)) == PINK
    shown.page.evaluate("document.querySelector('.maplibregl-ctrl-attrib').open = true")
    expect(shown.page.locator(".maplibregl-ctrl-attrib-inner")).to_contain_text("<b>Tiles</b> of the test")


def test_plain_coordinates_have_a_grid(chromium, server, tiles):
    def fill(client):
        client.subscribe("hall", "ann", "S_INTERSECTS(geometry, BBOX(2000, 3000, 2400, 3200))")

    with opened(chromium, server, tiles, "plain", None, fill) as (shown, client):
        shown.wait_until_drawn("subscriptions", "hall")
        labels = shown.page.locator(".map-grid-labels .map-grid-x")
        expect(labels.first).to_be_visible()
        assert all(re.fullmatch(r"-?[\d,]+", text) for text in labels.all_inner_texts())
        expect(shown.page.get_by_test_id("scale")).to_have_text(re.compile("units$"))
        shown.page.mouse.move(*plain_pixel(shown, 2200, 3100))
        expect(shown.page.get_by_test_id("coordinates")).to_have_text(re.compile(r"^(2199|2200)\.\d, 3(099|100)\.\d$"))
        sequence = client.publish(point(2300, 3150)).last
        shown.wait_until_drawn("messages", str(sequence))
        shown.page.mouse.click(*plain_pixel(shown, 2100, 3050))
        expect(shown.page.get_by_role("article", name="Subscription hall")).to_be_visible()
        form = shown.form("Subscription")
        form.get_by_role("button", name="Rectangle").click()
        expect(form.get_by_role("status").filter(has_text="Click one corner")).to_be_visible()
        for place in ((2050, 3050), (2150, 3120)):
            shown.page.mouse.move(*plain_pixel(shown, *place), steps=4)
            shown.page.wait_for_timeout(350)
            shown.page.mouse.click(*plain_pixel(shown, *place))
        text = form.get_by_label("WKT or coordinates")
        expect(text).not_to_have_value("")
        drawn = shapely.from_wkt(text.input_value())
        assert drawn.bounds == pytest.approx((2050, 3050, 2150, 3120), abs=2)
        assert drawn.equals(shapely.box(*drawn.bounds))


def plain_pixel(shown, x, y):
    """Return where plain coordinates are in the window."""
    box = shown.page.get_by_test_id("map").bounding_box()
    place = shown.page.evaluate(
        """([x, y]) => {
            const view = document.querySelector('[data-testid=map]').contradaView;
            const { x: across, y: down } = view.maplibre.project(view.project([x, y]));
            return [across, down];
        }""",
        [x, y],
    )
    return box["x"] + place[0], box["y"] + place[1]


def test_many_subscriptions_are_tiles_of_the_server(chromium, server, tiles):
    def fill(client):
        for number in range(TILED + 1):
            x, y = 11.26 + 0.02 * (number % 8), 43.29 + 0.02 * (number // 8)
            client.subscribe(f"tile-{number:02}", "ann", f"S_INTERSECTS(geometry, {area(x, y, 0.006)})")

    with opened(chromium, server, tiles, "tiled", fill=fill) as (shown, client):
        shown.wait_until_drawn("subscriptions", "tile-00", "tile-30")
        assert (
            shown.page.evaluate(
                "document.querySelector('[data-testid=map]').contradaView.maplibre.getSource('subscriptions').type"
            )
            == "vector"
        )
        shown.click_map((11.30, 43.31))
        expect(shown.page.get_by_role("article", name="Subscription tile-10")).to_be_visible()
        client.subscribe("new", "ann", f"S_INTERSECTS(geometry, {area(11.40, 43.37, 0.006)})")
        client.unsubscribe("tile-00")
        shown.wait_until_drawn("subscriptions", "new")
        shown.page.wait_for_function(f"() => !({DRAWN_SUBSCRIPTIONS}).includes('tile-00')")
        shown.page.evaluate(SPY)
        client.publish(point(11.40, 43.37))
        shown.page.wait_for_function("() => window.states.some(([id, state]) => id === 'new' && state.flashing)")


def test_the_network_shows_a_link_and_what_it_holds_back(chromium, server, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTRADA_LINKS_KEYS", server.key)
    flags = ("--name", "south", "--link", f"ws://127.0.0.1:{server.port}")
    with (
        serving(tmp_path, *flags) as linked,
        Client(linked.url, linked.key) as client,
        context(chromium) as window,
    ):
        client.subscribe("large", "ann", f"S_INTERSECTS(geometry, {area(11.3, 43.3, 0.1)})")
        client.subscribe("small", "ann", f"S_INTERSECTS(geometry, {area(11.3, 43.3)})")
        shown = LiveMap(window.new_page(), linked.url)
        seen = watch(shown.page, linked.url)
        shown.open(VIEW)
        shown.log_in(linked.key)
        links = shown.panel("Network").get_by_role("region", name="Links")
        expect(links.get_by_role("row").nth(1)).to_have_text(re.compile(r"^north *up *1 *1"))
        picture = shown.page.get_by_role("region", name="Tenant default").get_by_role("img")
        expect(picture).to_have_accessible_name(re.compile("south.*north"))
        with Client(server.url, server.key) as other:
            other.subscribe("theirs", "bob", f"S_INTERSECTS(geometry, {area(11.3, 43.3)})")
        expect(links.get_by_role("row").nth(1)).to_have_text(re.compile(r"^north *up *1 *1 *1"))
        seen.check()
